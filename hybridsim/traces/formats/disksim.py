"""DiskSim's ascii traces: `time device block blocks flags`, in milliseconds and sectors of 512.

J. Bucy et al., "The DiskSim simulation environment version 4.0 reference manual", 2008.  The lowest
bit of the flags is set for a read.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hybridsim.traces.formats.columns import BLANKS, SECTOR_BYTES, Field, Table, To

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
WHOLE = replace(TABLE, line=rb"\d+(\s+\d+){3}\s+[01]")
"""Lines with integer times: MQSim's nanoseconds, or DiskSim's."""
LINE_TIME = re.compile(rb"^[ \t]*(\d{1,18})\s", re.MULTILINE)
RATE_MIN = 0.5  # requests per second: a trace has more


def detect(head: bytes) -> bool:
    """Return whether times have decimals, or are integers that cannot be MQSim's nanoseconds."""
    if WHOLE.detects(head):
        return requests_per_second(head, MILLISECOND_NS) >= RATE_MIN
    return TABLE.detects(head)


def requests_per_second(head: bytes, unit_ns: int) -> float:
    """Return the requests per second of the first lines, if times have this unit."""
    matches = LINE_TIME.findall(head)  # the last line may be cut off, but not within its time
    times = [int(each) for each in matches[:1] + matches[-1:]]
    return 10**9 * len(matches) / max((times[1] - times[0]) * unit_ns, 1) if times else 0.0
