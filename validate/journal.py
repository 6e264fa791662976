"""The write-ahead journal of a run: each step is on disk before it is executed.

So another process can undo the run after a crash.  One line of JSON each: first the run (`id`,
`pid`, `boot`), then `doing` before a step, `did` after it, `undone` after it was undone.  The file
is locked with flock(2) while its process lives, and removed when no step remains to be undone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from validate.errors import MissingError, RunError
from validate.system import System

LOCK = "lock"
SUFFIX = ".journal"


class Journal:
    """The journal of one run."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    @classmethod
    def begin(cls, identity: str, system: System) -> Journal:
        """Create the journal; raise MissingError if it cannot be written."""
        path = folder(system) / f"{identity}{SUFFIX}"
        try:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise MissingError(f"cannot write {path}: {error.strerror}") from None
        journal = cls(path, fd)
        journal.write({"id": identity, "pid": os.getpid(), "boot": system.boot()})
        sync_folder(path.parent)
        return journal

    def write(self, entry: dict[str, Any]) -> None:
        """Append a line and flush it to disk; raise RunError if it cannot be written."""
        line = (json.dumps(entry) + "\n").encode()
        try:
            if os.write(self._fd, line) != len(line):
                raise OSError(28, "no space left on device")
            os.fsync(self._fd)
        except OSError as error:
            raise RunError(
                f"cannot write the journal {self.path}: {error.strerror}; the step was not "
                "executed.  Free space there"
            ) from None

    def entries(self) -> list[dict[str, Any]]:
        """Return all lines but a last one that is cut short: its step was never begun."""
        text = self.path.read_text()
        entries = []
        for line in text.splitlines():
            try:
                entries.append(json.loads(line))
            except ValueError:
                break
        return entries

    def remove(self) -> None:
        """Delete the journal: all steps are undone."""
        self.path.unlink(missing_ok=True)
        os.close(self._fd)

    def close(self) -> None:
        """Close the journal and keep its file, for `clean`."""
        os.close(self._fd)


def folder(system: System) -> Path:
    """Return the folder of the journals, created if needed; raise MissingError if that fails."""
    try:
        system.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise MissingError(
            f"cannot create {system.state}, the folder of the journals: {error.strerror}; specify "
            "another folder with --state"
        ) from None
    return system.state


@contextlib.contextmanager
def exclusive(system: System) -> Iterator[None]:
    """Hold the lock that allows one run at a time; raise MissingError if another run holds it."""
    path = folder(system) / LOCK
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise MissingError(f"cannot write {path}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            other = os.pread(fd, 20, 0).decode(errors="replace").strip() or "?"
            raise MissingError(
                f"another run is active (process {other}): wait for it, or end it with Ctrl-C"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def abandoned(system: System) -> list[Journal]:
    """Return the journals of dead runs, each locked by this process."""
    journals = []
    for path in sorted(folder(system).glob(f"*{SUFFIX}")):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            continue
        journals.append(Journal(path, fd))
    return journals


def sync_folder(path: Path) -> None:
    """Flush a folder, so that the name of a new file in it is on disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
