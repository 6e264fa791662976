"""Traces in the Storage Performance Council's format: `ASU,LBA,Size,Opcode,Timestamp`.

As of the UMass trace repository (Financial1, WebSearch1, ...): LBA in blocks of 512 bytes, size in
bytes, seconds from the start; user-defined fields may follow.  A device is an ASU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import TraceError
from hybridsim.requests.rows import Requests
from hybridsim.traces.formats.columns import SECOND_NS, SECTOR_BYTES, Field, Table, To
from hybridsim.traces.formats.text import write_lines

LETTERS = {Op.READ: "r", Op.WRITE: "w", Op.WRITE_ZEROES: "w"}

TABLE = Table(
    name="spc",
    separator=",",
    fields=(
        Field(To.DEVICE),
        Field(To.OFFSET, SECTOR_BYTES),
        Field(To.LENGTH),
        Field(To.OP),
        Field(To.TIME, SECOND_NS),
    ),
    line=rb"\s*\d+\s*,\s*\d+\s*,\s*\d+\s*,\s*[rRwW]\s*,\s*\d+(\.\d*)?\s*(,.*)?",
    exact=False,
)


def write(chunks: Iterator[Requests], put: Callable[[str], object]) -> int:
    """Write reads and writes as ASU 0, with nanoseconds; return their number.

    Raises TraceError for an offset that is not a multiple of a block.
    """

    def columns(moves: Requests, letter: NDArray[Any]) -> list[NDArray[Any]]:
        block, within = np.divmod(moves.offset_bytes, SECTOR_BYTES)
        if within.any():
            offset = int(moves.offset_bytes[within > 0][0])
            raise TraceError(
                f"the offset {offset:,} is not a multiple of {SECTOR_BYTES} bytes, the unit of "
                "spc: write csv or msr (--as)"
            )
        return [block, moves.length_bytes, letter, *np.divmod(moves.arrival_ns, SECOND_NS)]

    return write_lines(chunks, put, "0,%d,%d,%s,%d.%09d\n", LETTERS, columns)
