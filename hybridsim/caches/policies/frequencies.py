"""How often each page was used recently: counters that are halved regularly.

TinyLFU keeps them in a sketch of a few bits per page, for caches that store nothing else about an
absent page.  Here pages have ids, so each has its own counter: the same without collisions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.foundation.arrays import Bytes, Int32s, Ints
from hybridsim.jit import method
from hybridsim.jit.instructions import by_page

USES_MAX = 15
PERIOD_PER_PAGE = 10  # accesses, in cache sizes, after which all counters are halved
ACCESSES, HALVINGS = 0, 1


@by_page("uses", "halvings")
@policy
class Frequencies(NamedTuple):
    """Counters; a halving takes effect when a counter is next read."""

    period: int
    uses: Bytes  # by page, saturating
    halvings: Int32s  # by page: number of halvings already applied to `uses`
    state: Ints  # [ACCESSES since the last halving, HALVINGS]

    @classmethod
    def new(cls, ids: int, pages: int) -> Frequencies:
        """Return counters for a cache of `pages` pages."""
        uses, halvings = np.zeros(ids, np.uint8), np.zeros(ids, np.int32)
        return cls(PERIOD_PER_PAGE * max(pages, 1), uses, halvings, np.zeros(2, np.int64))

    @method
    def count(self, page):
        """Count a use; return whether it triggered the halving of all counters."""
        self.uses[page] = min(self.of(page) + 1, USES_MAX)
        self.halvings[page] = self.state[HALVINGS]
        self.state[ACCESSES] += 1
        if self.state[ACCESSES] < self.period:
            return False
        self.state[ACCESSES] = 0
        self.state[HALVINGS] += 1
        return True

    @method
    def of(self, page):
        """Return how often a page was used recently."""
        return self.uses[page] >> min(self.state[HALVINGS] - self.halvings[page], 7)
