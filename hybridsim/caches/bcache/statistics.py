"""Counters of reads and bypasses: true ones, and those that sysfs shows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache.tags import STATISTICS
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE

INTERVAL_NS = 3409 * 4_000_000  # 300 s / 22 in whole jiffies
MODULUS = 65_536  # sysfs shows the count of each interval modulo this

COUNTERS = (
    "cache_hits", "cache_misses", "cache_bypass_hits", "cache_bypass_misses",
    "cache_miss_collisions", "bypassed_sectors",
)  # fmt: skip
HITS, MISSES, BYPASS_HITS, BYPASS_MISSES, COLLISIONS, BYPASSED = range(len(COUNTERS))


@state_machine
class Statistics(NamedTuple):
    """True counts, those of the current interval, and those shown."""

    counted: Ints
    gathered: Ints
    shown: Ints
    is_timed: Ints  # [1: an event for the end of the interval is scheduled]

    @classmethod
    def new(cls) -> Statistics:
        """Return counters of 0."""
        columns = (np.zeros(len(COUNTERS), np.int64) for _ in range(3))
        return cls._make([*columns, np.zeros(1, np.int64)])

    def totals(self) -> dict[str, int]:
        """Return the true counts by name, and those that sysfs shows."""
        true = dict(zip(COUNTERS, self.counted.tolist(), strict=True))
        names = [f"sysfs_{name}" for name in COUNTERS]
        return true | dict(zip(names, self.shown.tolist(), strict=True))

    def restart(self) -> None:
        """Start again; what was not shown yet is never shown."""
        self.gathered[:] = 0
        self.is_timed[0] = 0

    @method
    def add(self, now, which, number, below):
        """Add a number to a counter."""
        self.counted[which] += number
        self.gathered[which] += number
        if self.is_timed[0] == 0:
            self.is_timed[0] = 1
            below.events.push((now // INTERVAL_NS + 1) * INTERVAL_NS, CACHE, STATISTICS)

    @method
    def show(self):
        """End an interval: add its counts to those shown."""
        self.is_timed[0] = 0
        for which in range(len(self.counted)):
            self.shown[which] += self.gathered[which] % MODULUS
            self.gathered[which] = 0
