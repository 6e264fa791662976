"""Samples of `dmsetup status` of a dm-writecache: lines of uptime in seconds and the status itself.

The fields are those of the kernel's Documentation/admin-guide/device-mapper/writecache.rst.
"""

from __future__ import annotations

import re

import numpy as np

from hybridsim.answers.measurements.measurement import SECOND, Measurement, Samples
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.levels import LEVELS

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
    rows = []
    for number, line in enumerate(text.splitlines(), 1):
        match = LINE.match(line)
        if match is None:
            raise MeasurementError(f"{name}:{number}: not a line of uptime and `dmsetup status`")
        rows.append([round(float(match["uptime"]) * SECOND), *map(int, match["rest"].split())])
    columns = np.array(rows, np.int64).T
    result = Measurement([name], levels=set(LEVELS & set(FIELDS)))
    for counter, values in zip(FIELDS, columns[1:]):
        result.counters[counter] = Samples(columns[0], values)
    return result
