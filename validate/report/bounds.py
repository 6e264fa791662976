"""How far a twin may be off: promotions, demotions and hit ratio, warm-up times, levels, curves.

All other figures of a comparison are told and not judged: an emulated or a shared host answers as
fast as it can, and what the twin is asked is how the cache warms up.
"""

from __future__ import annotations

from dataclasses import replace

from hybridsim.answers.comparison.rows import Row
from hybridsim.answers.measurements.measurement import HIT_RATIO, IOPS

COUNTERS = 0.05  # of the last value, at every ten seconds
JUDGED = {
    "promotions": COUNTERS, "demotions": COUNTERS, "cache_hits": COUNTERS, "cache_misses": COUNTERS,
    f"{HIT_RATIO} each 10 s": 0.05,
    f"{IOPS} t50": 0.15, f"{IOPS} t90": 0.15, f"{IOPS} level": 0.10, f"{IOPS} curve": 0.05,
}  # fmt: skip
TIMES = ("t50", "t90")


def judged(row: Row, noise: float | None) -> Row:
    """Return a row of a comparison as it is judged here.

    Where the real run has no time of warming up, or a run no level, there is nothing to judge; and
    where real runs differ among themselves by more than the bound, that is the bound.
    """
    allowed = JUDGED.get(row.name.measure)
    last = row.name.measure.rpartition(" ")[2]
    if row.tolerance is None or (last in TIMES and row.real is None):
        allowed = None
    if allowed is not None and noise is not None:
        allowed = max(allowed, noise)
    return replace(row, tolerance=allowed)
