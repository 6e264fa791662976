"""Traces in the Storage Performance Council's format: `ASU,LBA,Size,Opcode,Timestamp`.

As of the UMass trace repository (Financial1, WebSearch1, ...): LBA in blocks of 512 bytes, size in
bytes, seconds from the start; user-defined fields may follow.  A device is an ASU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import TraceError
from hybridsim.requests.rows import Requests
from hybridsim.traces.formats.columns import Field, Table, To

BLOCK_BYTES = 512
SECOND_NS = 10**9

LETTERS = {int(Op.READ): "r", int(Op.WRITE): "w", int(Op.WRITE_ZEROES): "w"}

TABLE = Table(
    name="spc",
    separator=",",
    fields=(
        Field(To.DEVICE),
        Field(To.OFFSET, BLOCK_BYTES),
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
    rows = 0
    for chunk in chunks:
        moves = np.isin(chunk.op, list(LETTERS))
        within = chunk.offset_bytes[moves] % BLOCK_BYTES != 0
        if within.any():
            offset = int(chunk.offset_bytes[moves][within][0])
            raise TraceError(
                f"the offset {offset:,} is not a multiple of {BLOCK_BYTES} bytes, the unit of spc: "
                "write csv or msr (--as)"
            )
        columns = (chunk.arrival_ns, chunk.op, chunk.offset_bytes, chunk.length_bytes)
        put(
            "".join(
                f"0,{offset // BLOCK_BYTES},{length},{LETTERS[op]},"
                f"{arrival // SECOND_NS}.{arrival % SECOND_NS:09}\n"
                for arrival, op, offset, length in zip(
                    *(column[moves].tolist() for column in columns)
                )
            )
        )
        rows += int(moves.sum())
    return rows
