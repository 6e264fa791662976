"""Cache of parsed requests in a temporary file, so that lines are parsed only once."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Collection, Iterator

import numpy as np

from hybridsim.requests.rows import DTYPES, UNKNOWN, Requests

CACHE_BYTES_MAX = 1 << 30  # some 40 million requests
OPTIONAL = {"flags": 0, "stream": UNKNOWN, "dispatch_ns": UNKNOWN, "complete_ns": UNKNOWN}


class Kept:
    """The parts of a trace in an unnamed temporary file; dropped if they exceed `max_bytes`.

    Columns in `absent` (keys of OPTIONAL) are not written.
    """

    def __init__(self, absent: Collection[str], max_bytes: int) -> None:
        self._stored = [i for i, name in enumerate(Requests._fields) if name not in absent]
        self._max_bytes = max_bytes
        self._places: list[tuple[int, int]] = []  # of each part: offset, rows
        self._end = 0
        self.is_whole = True  # whether all parts are stored
        try:
            file = tempfile.TemporaryFile(prefix="hybridsim-")  # noqa: SIM115
        except OSError:
            self.is_whole = False
            return
        self._descriptor = file.fileno()
        self._close = weakref.finalize(self, file.close)

    def add(self, part: Requests) -> None:
        """Write a part, unless the cache was dropped."""
        if not self.is_whole:
            return
        columns = self._stored_columns(part)
        size = sum(column.nbytes for column in columns)
        if self._end + size > self._max_bytes or not self._write(columns, size):
            self.drop()
            return
        self._places.append((self._end, part.rows))
        self._end += size

    def _stored_columns(self, part: Requests) -> list[memoryview]:
        return [part[index].data for index in self._stored]

    def _write(self, columns: list[memoryview], size: int) -> bool:
        try:
            return os.pwritev(self._descriptor, columns, self._end) == size
        except OSError:  # the disk is full
            return False

    def drop(self) -> None:
        """Drop all parts and the file."""
        if self.is_whole:
            self.is_whole = False
            self._places.clear()
            self._close()

    def parts(self, wanted: int) -> Iterator[Requests]:
        """Yield the parts, with the requests of the wanted device (an index; -1: all devices)."""
        for begin, rows in self._places:
            part = self._read(begin, rows)
            mine = part.device == wanted
            yield part if wanted < 0 else Requests._make(column[mine] for column in part)

    def _read(self, begin: int, rows: int) -> Requests:
        part = Requests._make(
            np.empty(rows, dtype) if index in self._stored else np.full(rows, OPTIONAL[name], dtype)
            for index, (name, dtype) in enumerate(zip(Requests._fields, DTYPES))
        )
        columns = self._stored_columns(part)
        got = os.preadv(self._descriptor, columns, begin)
        assert got == sum(column.nbytes for column in columns), "the unnamed file was changed"
        return part
