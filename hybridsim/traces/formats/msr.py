"""MSR Cambridge's traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.

D. Narayanan, A. Donnelly, A. Rowstron, "Write off-loading", FAST 2008; SNIA IOTTA.  Times are
Windows file times, ticks of 100 ns since 1601; so are response times.  A device is HOST_DISK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Requests
from hybridsim.traces.formats.columns import Field, Table, To

TICK_NS = 100
TICKS_TO_1970 = 116_444_736_000_000_000

WORDS = {int(Op.READ): "Read", int(Op.WRITE): "Write", int(Op.WRITE_ZEROES): "Write"}

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


def write(chunks: Iterator[Requests], put: Callable[[str], object]) -> int:
    """Write reads and writes, as disk 0 of host `trace` from 1970 on; return their number.

    A request without a completion gets the response time 0.
    """
    rows = 0
    for chunk in chunks:
        moves = np.isin(chunk.op, list(WORDS))
        response_ns = (chunk.complete_ns - chunk.arrival_ns).clip(0)
        columns = (chunk.arrival_ns, chunk.op, chunk.offset_bytes, chunk.length_bytes, response_ns)
        put(
            "".join(
                f"{arrival // TICK_NS + TICKS_TO_1970},trace,0,{WORDS[op]},{offset},{length},"
                f"{response // TICK_NS}\n"
                for arrival, op, offset, length, response in zip(
                    *(column[moves].tolist() for column in columns)
                )
            )
        )
        rows += int(moves.sum())
    return rows
