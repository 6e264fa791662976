"""MSR Cambridge's traces: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.

D. Narayanan, A. Donnelly, A. Rowstron, "Write off-loading", FAST 2008; SNIA IOTTA.  Times are
Windows file times, ticks of 100 ns since 1601; so are response times.  A device is HOST_DISK.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from numpy.typing import NDArray

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Requests
from hybridsim.traces.formats.columns import Field, Table, To
from hybridsim.traces.formats.text import write_lines

TICK_NS = 100
TICKS_TO_1970 = 116_444_736_000_000_000

WORDS = {Op.READ: "Read", Op.WRITE: "Write", Op.WRITE_ZEROES: "Write"}

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

    def columns(moves: Requests, word: NDArray[Any]) -> list[NDArray[Any]]:
        ticks = moves.arrival_ns // TICK_NS + TICKS_TO_1970
        response = (moves.complete_ns - moves.arrival_ns).clip(0) // TICK_NS
        return [ticks, word, moves.offset_bytes, moves.length_bytes, response]

    return write_lines(chunks, put, "%d,trace,0,%s,%d,%d,%d\n", WORDS, columns)
