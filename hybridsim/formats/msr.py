"""MSR Cambridge's traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.

D. Narayanan, A. Donnelly, A. Rowstron, "Write off-loading", FAST 2008; SNIA IOTTA.  Times are
Windows file times, ticks of 100 ns since 1601; so are response times.  A device is HOST_DISK.
"""

from __future__ import annotations

from hybridsim.formats.column_reader import ColumnReader
from hybridsim.formats.columns import Field, Table, To

TICK_NS = 100
TICKS_TO_1970 = 116_444_736_000_000_000

TABLE = Table(
    name="msr",
    separator=",",
    fields=(
        Field(To.TIME, TICK_NS, zero=TICKS_TO_1970),
        Field(To.DEVICE),
        Field(To.DEVICE),
        Field(To.OP),
        Field(To.OFFSET),
        Field(To.LENGTH),
        Field(To.RESPONSE, TICK_NS),
    ),
    line=rb"\d{17,18},[^,]+,\d+,(?i:read|write),\d+,\d+,\d+",
    header=b"Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
    since_1970=True,
)
detect = TABLE.detects


class Reader(ColumnReader):
    """A trace; each pass reads the file anew."""

    table = TABLE
