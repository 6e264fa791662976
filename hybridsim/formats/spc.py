"""Traces in the Storage Performance Council's form: `ASU,LBA,Size,Opcode,Timestamp`.

As of the UMass trace repository (Financial1, WebSearch1, ...): LBA in blocks of 512 bytes, size in
bytes, seconds from the beginning; fields of the user's own may follow.  A device is an ASU.
"""

from __future__ import annotations

from hybridsim.formats.column_reader import ColumnReader
from hybridsim.formats.columns import Field, Table, To

BLOCK_BYTES = 512
SECOND_NS = 10**9

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
detect = TABLE.detects


class Reader(ColumnReader):
    """A trace; each pass reads the file anew."""

    table = TABLE
