"""Reject first: admit a page that is missed again while its first miss is remembered.

The simplest filter against pages that are used only once, as in the SSD caches of CacheLib (B. Berg
et al., "The CacheLib caching engine", OSDI 2020).  It remembers as many pages as the cache holds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.queues import NOWHERE, Queues
from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.jit import method
from hybridsim.jit.instructions import by_page


@by_page("admitted")
@policy
class RejectFirst(NamedTuple):
    """A queue of rejected pages, and a mark for each admitted page."""

    refused: Queues
    admitted: Bytes  # by page: whether it was admitted and not evicted since
    limit: Ints  # [pages in the queue, at most]

    @classmethod
    def new(cls, ids: int, pages: int) -> RejectFirst:
        """Return an empty queue."""
        return cls(Queues.new(1, ids), np.zeros(ids, np.uint8), np.array([pages]))

    @method
    def consider(self, now, page, write, full):
        """Admit a page that is in the queue; else add it to the queue."""
        if self.admitted[page]:
            return True
        if self.refused.where(page) != NOWHERE:
            self.refused.drop(page)
            self.admitted[page] = 1
            return True
        self.refused.push(0, page)
        while self.refused.length[0] > self.limit[0]:
            self.refused.pop(0)
        return False

    @method
    def evicted(self, page):
        """Clear the mark of an evicted page."""
        self.admitted[page] = 0
