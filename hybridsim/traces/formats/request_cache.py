"""Requests kept on disk while a trace is open, so that its lines are parsed but once."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Collection, Iterator

import numpy as np

from hybridsim.requests.rows import DTYPES, UNKNOWN, Requests

MOST_BYTES = 1 << 30  # some 40 million requests
UNTOLD = {"flags": 0, "stream": UNKNOWN, "dispatch_ns": UNKNOWN, "complete_ns": UNKNOWN}


class Kept:
    """The parts of a trace in a file without a name; nothing if they are too long for it.

    Columns that are `untold` (keys of UNTOLD) are not written.
    """

    def __init__(self, untold: Collection[str], most_bytes: int) -> None:
        self._told = [i for i, name in enumerate(Requests._fields) if name not in untold]
        self._most_bytes = most_bytes
        self._places: list[tuple[int, int]] = []  # of each part: where it begins, its rows
        self._end = 0
        self.is_whole = True  # whether nothing was lost
        try:
            file = tempfile.TemporaryFile(prefix="hybridsim-")  # noqa: SIM115
        except OSError:
            self.is_whole = False
            return
        self._descriptor = file.fileno()
        self._close = weakref.finalize(self, file.close)

    def add(self, part: Requests) -> None:
        """Write a part, unless something is lost already."""
        if not self.is_whole:
            return
        columns = self._told_of(part)
        size = sum(column.nbytes for column in columns)
        if self._end + size > self._most_bytes or not self._write(columns, size):
            self.drop()
            return
        self._places.append((self._end, part.rows))
        self._end += size

    def _told_of(self, part: Requests) -> list[memoryview]:
        return [part[index].data for index in self._told]

    def _write(self, columns: list[memoryview], size: int) -> bool:
        try:
            return os.pwritev(self._descriptor, columns, self._end) == size
        except OSError:  # the disk is full
            return False

    def drop(self) -> None:
        """Lose all."""
        if self.is_whole:
            self.is_whole = False
            self._places.clear()
            self._close()

    def parts(self, wanted: int) -> Iterator[Requests]:
        """Yield the parts: of each the requests of the wanted device (an index; -1: of all)."""
        for begin, rows in self._places:
            part = self._read(begin, rows)
            mine = part.device == wanted
            yield part if wanted < 0 else Requests._make(column[mine] for column in part)

    def _read(self, begin: int, rows: int) -> Requests:
        part = Requests._make(
            np.empty(rows, dtype) if index in self._told else np.full(rows, UNTOLD[name], dtype)
            for index, (name, dtype) in enumerate(zip(Requests._fields, DTYPES))
        )
        columns = self._told_of(part)
        got = os.preadv(self._descriptor, columns, begin)
        assert got == sum(column.nbytes for column in columns), "a file without a name was changed"
        return part
