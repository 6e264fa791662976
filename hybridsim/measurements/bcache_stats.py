"""Samples of bcache's `stats_total` in sysfs: a line of names, then one of uptime and values.

The kernel moves these counters every 13.6 s only.  When one moves it tells the true count of that
moment (if it grew by less than 65,536: they are 16 bits wide in between), so only the samples at
which it moved are kept.
"""

from __future__ import annotations

import re

import numpy as np

from hybridsim.errors import MeasurementError
from hybridsim.measurements.measurement import SECOND, Measurement, Samples

NAMES = (
    "cache_hits", "cache_misses", "cache_bypass_hits", "cache_bypass_misses",
    "cache_miss_collisions",
)  # fmt: skip


def detect(name: str, head: str) -> bool:
    """Tell whether a file holds such samples."""
    return re.match(r"uptime(\s+\w+)*\s+cache_hits\s+cache_misses", head) is not None


def read(name: str, text: str) -> Measurement:
    """Return the counters over uptime; raises MeasurementError for a line that does not fit."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    header, rows = lines[0], lines[1:]
    chosen = [at for at, each in enumerate(header) if each in NAMES]
    chosen = [at for at in chosen if any(row[at : at + 1] != ["-"] for row in rows)]
    try:
        table = [[float(row[0]), *(int(row[at]) for at in chosen)] for row in rows]
    except (ValueError, IndexError) as error:
        raise MeasurementError(f"{name}: a line does not fit its names ({error})") from error
    if not table:
        raise MeasurementError(f"{name}: no samples below the line of names")
    columns = np.array(table).T
    time_ns = np.rint(columns[0] * SECOND).astype(np.int64)
    found = Measurement([name])
    for at, values in zip(chosen, columns[1:]):
        moved = np.append(True, np.diff(values) != 0)
        found.counters[header[at]] = Samples(time_ns[moved], values[moved].astype(np.int64))
    unread = [each for each in header[1:] if each not in found.counters]
    if unread:
        found.notes.append(f"{name}: not read: {', '.join(unread)}")
    return found
