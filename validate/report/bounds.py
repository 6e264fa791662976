"""The bounds of the errors of a twin: promotions, demotions, hit ratio, warm-up times and curves.

All other figures of a comparison are reported, not checked: they depend on the speed of an emulated
or shared host, and the twin predicts how the cache warms up.
"""

from __future__ import annotations

from dataclasses import replace

from hybridsim.answers.comparison.rows import Row
from hybridsim.answers.measurements.measurement import HIT_RATIO, IOPS

COUNTERS = 0.05  # share of the last value, every 10 s
JUDGED = {
    "promotions": COUNTERS, "demotions": COUNTERS, "cache_hits": COUNTERS, "cache_misses": COUNTERS,
    f"{HIT_RATIO} each 10 s": 0.05,
    f"{IOPS} t50": 0.15, f"{IOPS} t90": 0.15, f"{IOPS} level": 0.10, f"{IOPS} curve": 0.05,
}  # fmt: skip
TIMES = ("t50", "t90")


def judged(row: Row, noise: float | None) -> Row:
    """Return a row of a comparison with the tolerance of this report.

    A row is not checked if the real run has no warm-up time, or a run has no level.  If real runs
    differ by more than the bound, `noise`, their difference is the bound.
    """
    allowed = JUDGED.get(row.name.measure)
    last = row.name.measure.rpartition(" ")[2]
    if row.tolerance is None or (last in TIMES and row.real is None):
        allowed = None
    if allowed is not None and noise is not None:
        allowed = max(allowed, noise)
    return replace(row, tolerance=allowed)
