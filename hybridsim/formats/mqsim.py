"""MQSim's ascii traces: DiskSim's form with times in whole nanoseconds.

A. Tavakkol et al., "MQSim: a framework for enabling realistic studies of modern multi-queue SSD
devices", FAST 2018: `time device sector sectors type`, type 1 for a read.
"""

from __future__ import annotations

from dataclasses import replace

from hybridsim.formats import disksim
from hybridsim.formats.column_reader import ColumnReader
from hybridsim.formats.columns import LINES_SEEN, Field, To

LONG = 10**6  # 20 requests within a millisecond are no old disk's, and in 17 minutes no SSD's

TABLE = replace(
    disksim.TABLE,
    name="mqsim",
    fields=(Field(To.TIME), *disksim.FIELDS[1:]),
    line=rb"\d+(\s+\d+){3}\s+[01]",
)
detect = TABLE.detects


def is_long(head: bytes) -> bool:
    """Tell whether the first requests are far apart, if times are nanoseconds."""
    lines = [line for line in head.split(b"\n")[:LINES_SEEN] if line.strip()]
    return int(lines[-1].split()[0]) - int(lines[0].split()[0]) >= LONG


class Reader(ColumnReader):
    """A trace; each pass reads the file anew."""

    table = TABLE
