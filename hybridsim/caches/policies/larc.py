"""LARC: reject first, with a ghost queue that grows on misses and shrinks on hits.

S. Huang, Q. Wei, D. Feng, J. Chen, C. Chen, "Improving flash-based disk cache with lazy adaptive
replacement", MSST 2013 and ACM Transactions on Storage 12(2), 2016.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.reject_first import RejectFirst
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method

FRACTION_BITS = 16  # the queue's limit has a fraction of this many bits


@policy
class LARC(NamedTuple):
    """A filter whose queue adapts its limit."""

    pages: int
    filter: RejectFirst
    limit: Ints  # [that of the queue, with a fraction]

    @classmethod
    def new(cls, ids: int, pages: int) -> LARC:
        """Start with a limit of a tenth of the cache's pages."""
        return cls(pages, RejectFirst.new(ids, pages), np.array([(pages << FRACTION_BITS) // 10]))

    @method
    def consider(self, now, page, write, full):
        """Adapt the limit; admit a page that is in the queue, else add it to the queue."""
        whole = self.pages << FRACTION_BITS
        limit = self.limit[0]
        if self.filter.admitted[page]:
            step = (whole << FRACTION_BITS) // max(whole - limit, 1)
            self.limit[0] = max(limit - step, whole // 10)
        else:
            step = (whole << FRACTION_BITS) // max(limit, 1)
            self.limit[0] = min(limit + step, whole * 9 // 10)
            self.filter.limit[0] = max(self.limit[0] >> FRACTION_BITS, 1)
        return self.filter.consider(now, page, write, full)

    @method
    def evicted(self, page):
        """Clear the mark of an evicted page."""
        self.filter.evicted(page)
