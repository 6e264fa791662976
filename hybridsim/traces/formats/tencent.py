"""Tencent's cloud block storage traces of 2018: `Timestamp,Offset,Size,IOType,VolumeID`.

Y. Zhang et al., "OSCA", USENIX ATC 2020; SNIA IOTTA.  Offset and size in sectors; times in integer
seconds since 1970, over which the requests are spread evenly; 0 is a read, 1 a write.
"""

from __future__ import annotations

from hybridsim.traces.formats.columns import BITS, SECOND_NS, SECTOR_BYTES, Field, Table, To

TABLE = Table(
    name="tencent",
    separator=",",
    fields=(
        Field(To.TIME, SECOND_NS),
        Field(To.OFFSET, SECTOR_BYTES),
        Field(To.LENGTH, SECTOR_BYTES),
        Field(To.OP),
        Field(To.DEVICE),
    ),
    line=rb"1\d{9},\d+,\d+,[01],\d+",
    header=b"Timestamp,Offset,Size,IOType,VolumeID",
    ops=BITS,
    since_1970=True,
    whole_seconds=True,
)
