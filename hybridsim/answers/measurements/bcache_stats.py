"""Samples of bcache's `stats_total` in sysfs: a line of names, then one of uptime and values.

The kernel updates these counters only every 13.6 s.  An update shows the exact count of its moment
(if it grew by less than 65,536: in between the counters are 16 bits wide), so only updates are
kept.  Each update lies between two samples, and all are whole intervals apart.  Counters in the
same format that are updated continuously are kept as sampled.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from hybridsim.answers.measurements.measurement import SECOND, Ints, Measurement, Samples
from hybridsim.foundation.errors import MeasurementError

Marks = npt.NDArray[np.bool_]

NAMES = (
    "cache_hits", "cache_misses", "cache_bypass_hits", "cache_bypass_misses",
    "cache_miss_collisions",
)  # fmt: skip

UPDATED_EVERY_NS = 3409 * 4_000_000  # Linux 6.1's stats.c: 300 s / 22, in jiffies of 4 ms


def detect(name: str, head: str) -> bool:
    """Return whether a file holds such samples."""
    return re.match(r"uptime(\s+\w+)*\s+cache_hits\s+cache_misses", head) is not None


def read(name: str, text: str) -> Measurement:
    """Return the counters over uptime; raise MeasurementError for a line unlike the header."""
    lines = [line.split() for line in text.splitlines() if line.strip()]
    header, rows = lines[0], lines[1:]
    chosen = [at for at, each in enumerate(header) if each in NAMES]
    chosen = [at for at in chosen if any(row[at : at + 1] != ["-"] for row in rows)]
    try:
        table = [[float(row[0]), *(int(row[at]) for at in chosen)] for row in rows]
    except (ValueError, IndexError) as error:
        raise MeasurementError(f"{name}: a line does not match the header ({error})") from error
    if not table:
        raise MeasurementError(f"{name}: no samples below the header")
    columns = np.array(table).T
    time_ns = np.rint(columns[0] * SECOND).astype(np.int64)
    result = Measurement([name])
    for at, values in zip(chosen, columns[1:]):
        moved = np.append(True, np.diff(values) != 0)
        result.counters[header[at]] = Samples(
            _moments(time_ns, moved), values[moved].astype(np.int64)
        )
    ignored = [each for each in header[1:] if each not in result.counters]
    if ignored:
        result.notes.append(f"{name}: ignored: {', '.join(ignored)}")
    return result


def _moments(time_ns: Ints, moved: Marks) -> Ints:
    """Return the time of the first sample and the times of updates, in ns.

    Updates that are whole intervals apart are located more precisely than the samples; otherwise
    the times of the samples are returned.
    """
    at = np.flatnonzero(moved)[1:]
    if len(at) < 2 or np.median(np.diff(time_ns[at])) < UPDATED_EVERY_NS / 2:
        return time_ns[moved]
    passed = np.rint((time_ns[at] - time_ns[at[0]]) / UPDATED_EVERY_NS).astype(np.int64)
    earliest = int((time_ns[at - 1] - passed * UPDATED_EVERY_NS).max())
    latest = int((time_ns[at] - passed * UPDATED_EVERY_NS).min())
    if earliest > latest:
        return time_ns[moved]
    first = (earliest + latest) // 2
    return np.append(time_ns[0], first + passed * UPDATED_EVERY_NS)
