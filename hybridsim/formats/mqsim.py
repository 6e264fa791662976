"""MQSim's ascii traces: DiskSim's form with times in whole nanoseconds.

A. Tavakkol et al., "MQSim: a framework for enabling realistic studies of modern multi-queue SSD
devices", FAST 2018: `time device sector sectors type`, type 1 for a read.
"""

from __future__ import annotations

from dataclasses import replace

from hybridsim.formats import disksim
from hybridsim.formats.column_reader import ColumnReader
from hybridsim.formats.columns import Field, To

# Requests a second: fewer are hardly a trace, more hardly a device.
FEWEST, MOST = 0.5, 10**7

TABLE = replace(
    disksim.TABLE,
    name="mqsim",
    fields=(Field(To.TIME), *disksim.FIELDS[1:]),
    line=rb"\d+(\s+\d+){3}\s+[01]",
)


def detect(head: bytes) -> bool:
    """Tell whether times are whole, and may be nanoseconds; few requests a second: they are."""
    return TABLE.detects(head) and requests_per_second(head, 1) <= MOST


def requests_per_second(head: bytes, unit_ns: int) -> float:
    """Return how many requests a second come in the first lines, if times have this unit."""
    lines = [line for line in head.split(b"\n")[:-1] if line.strip()]
    times = [int(line.split(None, 1)[0]) for line in (lines[0], lines[-1])]
    return 10**9 * len(lines) / max((times[1] - times[0]) * unit_ns, 1)


class Reader(ColumnReader):
    """A trace; each pass reads the file anew."""

    table = TABLE
