"""SIEVE: a queue that keeps its order; a hand evicts the pages not used since it last passed.

Y. Zhang et al., "SIEVE is simpler than LRU", NSDI 2024.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.queues import Queues
from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.jit import method
from hybridsim.jit.instructions import by_page

NOBODY = -1


@by_page("used")
@policy
class SIEVE(NamedTuple):
    """One list in order of arrival, a mark for each page, and the hand."""

    queues: Queues
    used: Bytes  # by page: whether it was used since it came or the hand passed it
    hand: Ints  # [page at which the next sweep begins, or NOBODY: the oldest]

    @classmethod
    def new(cls, ids: int, pages: int) -> SIEVE:
        """Return an empty list with room for `ids` pages."""
        return cls(Queues.new(1, ids), np.zeros(ids, np.uint8), np.array([NOBODY]))

    @method
    def admit(self, page):
        """Add a page as the newest, unmarked."""
        self.queues.push(0, page)
        self.used[page] = 0

    @method
    def touch(self, page):
        """Mark a page as used."""
        self.used[page] = 1

    @method
    def remove(self, page):
        """Remove a page; the hand goes on to the next."""
        if self.hand[0] == page:
            self.hand[0] = self.queues.newer(page)
        self.queues.drop(page)

    @method
    def evict(self):
        """Sweep towards the newest page, and round, to an unmarked page; remove and return it."""
        queues = self.queues
        page = self.hand[0] if self.hand[0] != NOBODY else queues.oldest(0)
        if page < 0:
            return page
        while self.used[page]:
            self.used[page] = 0
            page = queues.newer(page)
            if page < 0:
                page = queues.oldest(0)
        self.hand[0] = queues.newer(page)
        queues.drop(page)
        return page
