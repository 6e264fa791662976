"""Samples of `dmsetup status` of a dm-writecache: lines of uptime in seconds and the status itself.

The fields are those of the kernel's Documentation/admin-guide/device-mapper/writecache.rst.
"""

from __future__ import annotations

import re

from hybridsim.answers.measurements.dmcache_status import samples
from hybridsim.answers.measurements.measurement import Measurement, sampled

# The fields after the word `writecache`, an error indicator and the number of blocks.
FIELDS = (
    "free_blocks", "blocks_under_writeback", "reads", "read_hits", "writes",
    "write_hits_uncommitted", "write_hits_committed", "writes_around", "writes_allocated",
    "writes_blocked", "flushes", "discards",
)  # fmt: skip
LINE = re.compile(
    r"(?P<uptime>\d+\.\d+) (?:\S+: )?\d+ \d+ writecache \d+ \d+ (?P<rest>\d+(?: \d+){11})\s*$"
)


def detect(name: str, head: str) -> bool:
    """Return whether a file holds such samples."""
    return LINE.match(head.split("\n", 1)[0]) is not None


def read(name: str, text: str) -> Measurement:
    """Return the counters over uptime; raise MeasurementError for an invalid line."""
    rows = [[time_ns, *map(int, fields)] for time_ns, fields in samples(name, text, LINE)]
    return sampled(name, rows, FIELDS)
