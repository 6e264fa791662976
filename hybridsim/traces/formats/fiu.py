"""FIU's traces (IODedup, SRCMap): `ns pid process block blocks W|R major minor md5`.

R. Koller, R. Rangaswami, "I/O Deduplication", FAST 2010; A. Verma et al., "SRCMap", FAST 2010;
SNIA IOTTA.  Fields are separated by blanks; block and size in units of 512
bytes.  A process name may contain blanks.  A device is MAJ,MIN.
"""

from __future__ import annotations

from hybridsim.traces.formats.columns import BLANKS, SECTOR_BYTES, SKIPPED, Field, Table, To

TABLE = Table(
    name="fiu",
    separator=BLANKS,
    fields=(
        Field(To.TIME),
        Field(To.PROCESS),
        SKIPPED,
        Field(To.OFFSET, SECTOR_BYTES),
        Field(To.LENGTH, SECTOR_BYTES),
        Field(To.OP),
        Field(To.DEVICE),
        Field(To.DEVICE),
        SKIPPED,
    ),
    elastic=2,
    line=rb"\d+\s+\d+\s+\S.*\s\d+\s+\d+\s+[RW]\s+\d+\s+\d+\s+[0-9a-fA-F]{32,}",
    joined_by=",",
)
