"""MQSim's ASCII traces: DiskSim's format with times in integer nanoseconds.

A. Tavakkol et al., "MQSim: a framework for enabling realistic studies of modern multi-queue SSD
devices", FAST 2018: `time device sector sectors type`, type 1 for a read.
"""

from __future__ import annotations

from dataclasses import replace

from hybridsim.traces.formats import disksim
from hybridsim.traces.formats.columns import Field, To

RATE_MAX = 10**7  # requests per second: no device serves more

TABLE = replace(disksim.WHOLE, name="mqsim", fields=(Field(To.TIME), *disksim.FIELDS[1:]))


def detect(head: bytes) -> bool:
    """Return whether times are integers and, as nanoseconds, give a possible request rate."""
    return TABLE.detects(head) and disksim.requests_per_second(head, 1) <= RATE_MAX
