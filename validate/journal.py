"""What is about to be done, on disk before it is done: so that it can be undone after any end.

One line of JSON each: first who we are, then `doing` before a step, `did` after it, `undone` after
it was undone.  The file is locked while its process lives, and removed when nothing is left.
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
    """One run's."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    @classmethod
    def begin(cls, identity: str, system: System) -> Journal:
        """Begin a new one; MissingError where it cannot be written."""
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
        """Append a line; it is on disk when this returns."""
        line = (json.dumps(entry) + "\n").encode()
        try:
            if os.write(self._fd, line) != len(line):
                raise OSError(28, "no space left on device")
            os.fsync(self._fd)
        except OSError as error:
            raise RunError(
                f"cannot note in {self.path} what is to be done: {error.strerror}; so it is not "
                "done.  Make room there"
            ) from None

    def entries(self) -> list[dict[str, Any]]:
        """Return all lines; a last one that was cut short was not acted on."""
        text = self.path.read_text()
        found = []
        for line in text.splitlines():
            try:
                found.append(json.loads(line))
            except ValueError:
                break
        return found

    def remove(self) -> None:
        """End it: nothing is left to be undone."""
        self.path.unlink(missing_ok=True)
        os.close(self._fd)

    def close(self) -> None:
        """Leave it for `clean`."""
        os.close(self._fd)


def folder(system: System) -> Path:
    """Return where journals are, made if need be; MissingError where that is not possible."""
    try:
        system.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise MissingError(
            f"cannot make {system.state}, where a run notes what it does: {error.strerror}; name "
            "another folder with --state"
        ) from None
    return system.state


@contextlib.contextmanager
def alone(system: System) -> Iterator[None]:
    """Hold the lock that one run at a time has; MissingError where another has it."""
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
                f"another run is at work (process {other}): wait for it, or end it with Ctrl-C"
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


def left(system: System) -> list[Journal]:
    """Return the journals of runs that are dead, locked for us."""
    found = []
    for path in sorted(folder(system).glob(f"*{SUFFIX}")):
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(fd)
            continue
        found.append(Journal(path, fd))
    return found


def sync_folder(path: Path) -> None:
    """See that a new file's name is on disk."""
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
