"""The bounds of the errors of a twin: counters of the cache, hit ratio, warm-up times and curves.

All other figures of a comparison are reported, not checked: they depend on the speed of an emulated
or shared host, and the twin predicts how the cache warms up.
"""

from __future__ import annotations

from dataclasses import replace

from hybridsim.answers.comparison import Row
from hybridsim.answers.measurements.measurement import CACHE, HIT_RATIO, IOPS

COUNTED = 0.05  # share of the last value, every 10 s
COUNTERS = {  # by kind of cache
    "dm-cache": ("promotions", "demotions"),
    "bcache": ("cache_hits", "cache_misses"),
    "open-cas": ("read_hits", "read_full_misses", "write_hits", "write_full_misses",
                 "pass_through_writes", "cleaned_blocks"),
    "dm-writecache": ("read_hits", "writes_allocated", "writes_around"),
    "page": ("hits", "misses", "fills_done", "evictions"),
}  # fmt: skip
RARE, FEW = ("open-cas", "dm-writecache", "page"), 100  # with a smaller last value: not checked
JUDGED = {
    f"{HIT_RATIO} each 10 s": 0.05,
    f"{IOPS} t50": 0.15, f"{IOPS} t90": 0.15, f"{IOPS} level": 0.10, f"{IOPS} curve": 0.05,
}  # fmt: skip
TIMES = ("t50", "t90")


def judged(row: Row, noise: float | None, kind: str) -> Row:
    """Return a row of a comparison with the tolerance of this report; `kind` of the cache.

    A row is not checked if the real run has no warm-up time, or a run has no level.  If real runs
    differ by more than the bound, `noise`, their difference is the bound.
    """
    allowed = JUDGED.get(row.name.measure)
    if row.name.what == CACHE and row.name.measure in COUNTERS.get(kind, ()):
        is_rare = kind in RARE and (row.real or 0) < FEW
        allowed = None if is_rare else COUNTED
    last = row.name.measure.rpartition(" ")[2]
    if row.tolerance is None or (last in TIMES and row.real is None):
        allowed = None
    if allowed is not None and noise is not None:
        allowed = max(allowed, noise)
    return replace(row, tolerance=allowed)
