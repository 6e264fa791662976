"""MQSim's ascii traces: DiskSim's form with times in whole nanoseconds.

A. Tavakkol et al., "MQSim: a framework for enabling realistic studies of modern multi-queue SSD
devices", FAST 2018: `time device sector sectors type`, type 1 for a read.
"""

from __future__ import annotations

from dataclasses import replace

from hybridsim.traces.formats import disksim
from hybridsim.traces.formats.column_reader import ColumnReader
from hybridsim.traces.formats.columns import Field, To

MOST = 10**7  # requests a second: more are hardly of a device

TABLE = replace(disksim.WHOLE, name="mqsim", fields=(Field(To.TIME), *disksim.FIELDS[1:]))


def detect(head: bytes) -> bool:
    """Tell whether times are whole, and may be nanoseconds; few requests a second: they are."""
    return TABLE.detects(head) and disksim.requests_per_second(head, 1) <= MOST


class Reader(ColumnReader):
    """A trace in this form."""

    table = TABLE
