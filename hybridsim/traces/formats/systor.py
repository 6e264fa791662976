"""The traces of SYSTOR '17: `Timestamp,Response,IOType,LUN,Offset,Size`, in bytes and seconds.

C. Lee et al., "Understanding storage traffic characteristics on enterprise virtual desktop
infrastructure", SYSTOR 2017; SNIA IOTTA.  Seconds since 1970 with decimals; lines are in order of
completion, and the type may be missing.
"""

from __future__ import annotations

from hybridsim.traces.formats.columns import OPS, SECOND_NS, Field, Table, To

TABLE = Table(
    name="systor",
    separator=",",
    fields=(
        Field(To.TIME, SECOND_NS),
        Field(To.RESPONSE, SECOND_NS),
        Field(To.OP),
        Field(To.DEVICE),
        Field(To.OFFSET),
        Field(To.LENGTH),
    ),
    line=rb"\d+\.\d+,\d+\.\d+,[RW]?,\d+,\d+,\d+",
    header=b"Timestamp,Response,IOType,LUN,Offset,Size",
    ops={**OPS, "": None},
    since_1970=True,
)
