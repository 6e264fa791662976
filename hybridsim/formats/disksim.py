"""DiskSim's ascii traces: `time device block blocks flags`, in milliseconds and sectors of 512.

J. Bucy et al., "The DiskSim simulation environment version 4.0 reference manual", 2008.  The lowest
bit of the flags is set for a read.
"""

from __future__ import annotations

from hybridsim.formats.column_reader import ColumnReader
from hybridsim.formats.columns import BLANKS, Field, Table, To

SECTOR_BYTES = 512
MILLISECOND_NS = 10**6

FIELDS = (
    Field(To.TIME, MILLISECOND_NS),
    Field(To.DEVICE),
    Field(To.OFFSET, SECTOR_BYTES),
    Field(To.LENGTH, SECTOR_BYTES),
    Field(To.LOW_BIT),
)
TABLE = Table(
    name="disksim",
    separator=BLANKS,
    fields=FIELDS,
    line=rb"\d+\.\d+(\s+\d+){3}\s+[0-9a-fA-F]+",
)


def detect(head: bytes) -> bool:
    """Tell whether times have decimals; whole ones may be MQSim's nanoseconds as well."""
    from hybridsim.formats import mqsim

    if mqsim.TABLE.detects(head):
        return mqsim.requests_per_second(head, MILLISECOND_NS) >= mqsim.FEWEST
    return TABLE.detects(head)


class Reader(ColumnReader):
    """A trace; each pass reads the file anew."""

    table = TABLE
