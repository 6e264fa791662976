"""Results of points on disk: a folder that any number of sweeps and clients share.

results.jsonl   a line a point, with its key; only ever appended to, each line on disk (fsync)
                before its result is told to anybody.  A line torn by a crash is passed over.
claims          locks: a client that computes a point has locked the byte that the point's key
                says.  The system gives locks of a killed client back, so nothing is left behind.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from hybridsim.foundation.errors import UsageError

SCHEMA = "hybridsim.point/1"
FOLDER = "hybridsim-sweep"  # where nothing else is said
RESULTS, CLAIMS = "results.jsonl", "claims"
Row = dict[str, Any]


def has_results(folder: str) -> bool:
    """Tell whether something is kept there already."""
    return (Path(folder) / RESULTS).exists()


class Store:
    """The results in a folder, those of other clients as well."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Open or make a folder; raise UsageError where that cannot be."""
        self.folder = Path(folder)
        self._rows: dict[str, Row] = {}
        self._read_bytes = 0
        self._claimed: set[str] = set()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._results: BinaryIO = (self.folder / RESULTS).open("a+b")
            # A process loses its locks of a file when it closes any handle of it: this is the one.
            self._claims: BinaryIO = (self.folder / CLAIMS).open("a+b")
        except OSError as error:
            raise UsageError(f"cannot keep results in {folder}: {error.strerror}") from error
        self.refresh()

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):  # what could not be appended is told already
            self._results.close()
        self._claims.close()

    def get(self, key: str) -> Row | None:
        """Return the row of a point, if it is known."""
        return self._rows.get(key)

    def refresh(self) -> None:
        """Read what was appended since, by anybody."""
        self._results.seek(self._read_bytes)
        data = self._results.read()
        whole = data.rfind(b"\n") + 1
        for line in data[:whole].splitlines():
            with contextlib.suppress(ValueError, TypeError, KeyError, RecursionError):
                row = json.loads(line)
                if row["schema"] == SCHEMA:
                    self._rows.setdefault(row["key"], row)
        self._read_bytes += whole  # not sooner: an interrupt would lose what was read

    def add(self, key: str, row: Row) -> Row:
        """Put a row on disk, and give the claim back; return the row as it is there.

        Raises UsageError where the disk has no room for it.
        """
        with self._alone():
            self.refresh()
            if key not in self._rows:
                line = json.dumps({"schema": SCHEMA, "key": key, **row}, allow_nan=False)
                self._append(line.encode())
                self.refresh()
        self.give_back(key)
        return self._rows[key]

    def claim(self, key: str) -> bool:
        """Take a point for this client; False if another client computes it now."""
        try:
            fcntl.lockf(self._claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                return False
            raise
        self._claimed.add(key)
        return True

    def give_back(self, key: str) -> None:
        """Let another client take a point."""
        if key in self._claimed:
            self._claimed.remove(key)
            fcntl.lockf(self._claims, fcntl.LOCK_UN, 1, _place(key))

    def _append(self, line: bytes) -> None:
        end = self._results.seek(0, os.SEEK_END)
        torn = b""
        if end:
            self._results.seek(end - 1)
            torn = b"" if self._results.read(1) == b"\n" else b"\n"
        try:
            self._results.write(torn + line + b"\n")
            self._results.flush()
            os.fsync(self._results.fileno())
        except OSError as error:
            raise UsageError(
                f"cannot keep results in {self.folder}: {error.strerror}; those that are there "
                "stay, and the same command goes on when there is room"
            ) from error

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other clients from appending meanwhile."""
        fcntl.lockf(self._results, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._results, fcntl.LOCK_UN)


def _place(key: str) -> int:
    """Return the byte of the file of claims that stands for a key."""
    return int(key[:15], 16)
