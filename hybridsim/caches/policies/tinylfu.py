"""TinyLFU: a page is let in if it was used more lately than those that had to leave.

G. Einziger, R. Friedman, B. Manes, "TinyLFU: a highly efficient cache admission policy",
ACM Transactions on Storage 13(4), 2017.  There a page is compared with the very one that would
leave for it; here with the running mean of those that left, so that any replacement may be
combined with it, also one that cannot tell beforehand who is next.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.frequencies import Frequencies
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine

PARTS = 16  # of a use, in which the mean is kept
SMOOTHING = 16  # evictions


@state_machine
class TinyLFU(NamedTuple):
    """How often each page was used lately, and the mean of those evicted."""

    frequencies: Frequencies
    mean: Ints  # [uses of evicted pages], in parts

    @classmethod
    def new(cls, ids: int, pages: int) -> TinyLFU:
        """Know nothing yet."""
        return cls(Frequencies.new(ids, pages), np.zeros(1, np.int64))

    def grown(self, ids: int) -> TinyLFU:
        """Return the same counters with room for `ids` pages."""
        return self._replace(frequencies=self.frequencies.grown(ids))

    @method
    def request(self, offset, length, write):
        """Hear of a request before its pages."""

    @method
    def consider(self, now, page, write, full):
        """Count a use; want every page while there is room, then the better ones."""
        if self.frequencies.count(page):
            self.mean[0] >>= 1
        return not full or self.frequencies.of(page) * PARTS > self.mean[0]

    @method
    def evicted(self, page):
        """Learn from a page that had to leave."""
        self.mean[0] += (self.frequencies.of(page) * PARTS - self.mean[0]) // SMOOTHING
