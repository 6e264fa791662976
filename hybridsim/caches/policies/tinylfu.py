"""TinyLFU: admit a page that was recently used more often than the evicted pages.

G. Einziger, R. Friedman, B. Manes, "TinyLFU: a highly efficient cache admission policy",
ACM Transactions on Storage 13(4), 2017.  The paper compares a page with the victim that it would
replace; here it is compared with the running mean of past victims, so that any replacement policy
can be combined with it, also one that cannot name its next victim.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.frequencies import Frequencies
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method

PARTS = 16  # per use: the unit of the mean
SMOOTHING = 16  # weight of the mean against one eviction


@policy
class TinyLFU(NamedTuple):
    """Recent uses of each page, and the mean of the evicted pages."""

    frequencies: Frequencies
    mean: Ints  # [mean uses of evicted pages, in parts]

    @classmethod
    def new(cls, ids: int, pages: int) -> TinyLFU:
        """Return counters of 0."""
        return cls(Frequencies.new(ids, pages), np.zeros(1, np.int64))

    @method
    def consider(self, now, page, write, full):
        """Count a use; admit every page while there is room, then those above the mean."""
        if self.frequencies.count(page):
            self.mean[0] >>= 1
        return not full or self.frequencies.of(page) * PARTS > self.mean[0]

    @method
    def evicted(self, page):
        """Update the mean with an evicted page."""
        self.mean[0] += (self.frequencies.of(page) * PARTS - self.mean[0]) // SMOOTHING
