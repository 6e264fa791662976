"""LARC: reject first, with a memory that grows while the cache misses and shrinks while it hits.

S. Huang, Q. Wei, D. Feng, J. Chen, C. Chen, "Improving flash-based disk cache with lazy adaptive
replacement", MSST 2013 and ACM Transactions on Storage 12(2), 2016.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.queues import NOWHERE, Queues
from hybridsim.foundation.arrays import Bytes, Ints, longer
from hybridsim.jit import method, state_machine

FRACTION_BITS = 16  # the memory's size is kept in parts of a page


@state_machine
class LARC(NamedTuple):
    """A queue of pages that were refused, how long it may be, and a mark for those let in."""

    pages: int
    refused: Queues
    let_in: Bytes  # by page: and not evicted since
    most: Ints  # [pages remembered at most], in parts

    @classmethod
    def new(cls, ids: int, pages: int) -> LARC:
        """Remember up to a tenth of the cache's pages to begin with."""
        most = np.array([(pages << FRACTION_BITS) // 10])
        return cls(pages, Queues.new(1, ids), np.zeros(ids, np.uint8), most)

    def grown(self, ids: int) -> LARC:
        """Return the same memory with room for `ids` pages."""
        return self._replace(refused=self.refused.grown(ids), let_in=longer(self.let_in, ids))

    @method
    def request(self, offset, length, write):
        """Hear of a request before its pages."""

    @method
    def consider(self, now, page, write, full):
        """Want a page that is remembered; remember one that is not."""
        whole = self.pages << FRACTION_BITS
        most = self.most[0]
        if self.let_in[page]:
            step = (whole << FRACTION_BITS) // max(whole - most, 1)
            self.most[0] = max(most - step, whole // 10)
            return True
        step = (whole << FRACTION_BITS) // max(most, 1)
        self.most[0] = min(most + step, whole * 9 // 10)
        if self.refused.where(page) != NOWHERE:
            self.refused.drop(page)
            self.let_in[page] = 1
            return True
        self.refused.push(0, page)
        while self.refused.length[0] << FRACTION_BITS > max(self.most[0], 1 << FRACTION_BITS):
            self.refused.pop(0)
        return False

    @method
    def evicted(self, page):
        """Let a page that had to leave begin anew."""
        self.let_in[page] = 0
