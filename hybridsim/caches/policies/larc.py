"""LARC: reject first, with a ghost queue that grows on misses and shrinks on hits.

S. Huang, Q. Wei, D. Feng, J. Chen, C. Chen, "Improving flash-based disk cache with lazy adaptive
replacement", MSST 2013 and ACM Transactions on Storage 12(2), 2016.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.queues import NOWHERE, Queues
from hybridsim.foundation.arrays import Bytes, Ints, longer
from hybridsim.jit import method, state_machine
from hybridsim.jit.prefetch import by_page

FRACTION_BITS = 16  # the queue's limit has a fraction of this many bits


@by_page("admitted")
@state_machine
class LARC(NamedTuple):
    """A queue of rejected pages, its limit, and a mark for each admitted page."""

    pages: int
    refused: Queues
    admitted: Bytes  # by page: whether it was admitted and not evicted since
    limit: Ints  # [maximum length of the queue, with a fraction]

    @classmethod
    def new(cls, ids: int, pages: int) -> LARC:
        """Start with a limit of a tenth of the cache's pages."""
        limit = np.array([(pages << FRACTION_BITS) // 10])
        return cls(pages, Queues.new(1, ids), np.zeros(ids, np.uint8), limit)

    def grown(self, ids: int) -> LARC:
        """Return the same memory with room for `ids` pages."""
        return self._replace(refused=self.refused.grown(ids), admitted=longer(self.admitted, ids))

    @method
    def request(self, offset, length, write):
        """Ignore a request."""

    @method
    def consider(self, now, page, write, full):
        """Admit a page that is in the queue; else add it to the queue."""
        whole = self.pages << FRACTION_BITS
        limit = self.limit[0]
        if self.admitted[page]:
            step = (whole << FRACTION_BITS) // max(whole - limit, 1)
            self.limit[0] = max(limit - step, whole // 10)
            return True
        step = (whole << FRACTION_BITS) // max(limit, 1)
        self.limit[0] = min(limit + step, whole * 9 // 10)
        if self.refused.where(page) != NOWHERE:
            self.refused.drop(page)
            self.admitted[page] = 1
            return True
        self.refused.push(0, page)
        while self.refused.length[0] << FRACTION_BITS > max(self.limit[0], 1 << FRACTION_BITS):
            self.refused.pop(0)
        return False

    @method
    def evicted(self, page):
        """Clear the mark of an evicted page."""
        self.admitted[page] = 0
