"""The addresses of requests over time: counts on a grid that coarsens as it grows."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Requests

COLUMNS, ROWS = 128, 64  # maximum cells of time and address; at least half once it has grown
WIDTH_BITS, HEIGHT_BITS = 20, 16  # a cell is 2^20 ns by 64 KiB at first; both double
KINDS = ("reads", "writes")
OTHER = len(KINDS)  # neither
_KIND = np.full(len(Op), OTHER, np.int64)
_KIND[Op.READ] = 0
_KIND[[Op.WRITE, Op.WRITE_ZEROES]] = 1


class AddressMap:
    """Counts requests by arrival time and first address."""

    def __init__(self) -> None:
        self._width_bits, self._height_bits = WIDTH_BITS, HEIGHT_BITS
        self._counts = np.zeros((len(KINDS), COLUMNS, ROWS), np.int64)
        self._end_ns = self._end_bytes = 0

    def add(self, chunk: Requests) -> None:
        """Count the reads and writes of a chunk."""
        kind, time_ns, offset = _KIND[chunk.op], chunk.arrival_ns, chunk.offset_bytes
        is_data = (kind != OTHER) & (chunk.length_bytes > 0)
        if not is_data.all():
            kind, time_ns, offset = kind[is_data], time_ns[is_data], offset[is_data]
        if not len(kind):
            return
        self._reach(int(time_ns.max()) + 1, int(offset.max()) + 1)
        cells = (kind * COLUMNS + (time_ns >> self._width_bits)) * ROWS
        cells += offset >> self._height_bits
        shape = self._counts.shape
        self._counts += np.bincount(cells, minlength=self._counts.size).reshape(shape)

    def _reach(self, end_ns: int, end_bytes: int) -> None:
        """Merge neighbouring cells until the grid covers a time and an address."""
        self._end_ns = max(self._end_ns, end_ns)
        self._end_bytes = max(self._end_bytes, end_bytes)
        while self._end_ns > COLUMNS << self._width_bits:
            self._counts = _halved(self._counts, 1)
            self._width_bits += 1
        while self._end_bytes > ROWS << self._height_bits:
            self._counts = _halved(self._counts, 2)
            self._height_bits += 1

    def to_dict(self) -> dict[str, Any]:
        """Return the used part of the grid: one text per column, with counts from address 0 up."""
        width_ns, height_bytes = 1 << self._width_bits, 1 << self._height_bits
        columns = max(-(-self._end_ns // width_ns), 1)
        rows = max(-(-self._end_bytes // height_bytes), 1)
        used = self._counts[:, :columns, :rows]
        about = {"width_ns": width_ns, "height_bytes": height_bytes}
        columns_of = {name: used[kind].tolist() for kind, name in enumerate(KINDS)}
        return about | {
            name: [" ".join(map(str, column)) for column in each]
            for name, each in columns_of.items()
        }


def _halved(counts: Ints, axis: int) -> Ints:
    """Merge neighbouring cells along an axis; the second half becomes empty."""
    even, odd = ((slice(None),) * axis + (slice(start, None, 2),) for start in (0, 1))
    joined = counts[even] + counts[odd]
    return np.concatenate([joined, np.zeros_like(joined)], axis=axis)
