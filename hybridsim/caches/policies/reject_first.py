"""Reject first: a page is let in when it is missed again while its first miss is remembered.

The simplest filter against pages that come but once, as in the SSD caches of CacheLib (B. Berg et
al., "The CacheLib caching engine", OSDI 2020).  As many are remembered as the cache has pages.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.queues import NOWHERE, Queues
from hybridsim.foundation.arrays import Bytes, longer
from hybridsim.jit import method, state_machine


@state_machine
class RejectFirst(NamedTuple):
    """A queue of pages that were refused, and a mark for those let in."""

    remembered_pages: int
    refused: Queues
    let_in: Bytes  # by page: and not evicted since

    @classmethod
    def new(cls, ids: int, pages: int) -> RejectFirst:
        """Remember nothing yet."""
        return cls(pages, Queues.new(1, ids), np.zeros(ids, np.uint8))

    def grown(self, ids: int) -> RejectFirst:
        """Return the same memory with room for `ids` pages."""
        return self._replace(refused=self.refused.grown(ids), let_in=longer(self.let_in, ids))

    @method
    def request(self, offset, length, write):
        """Hear of a request before its pages."""

    @method
    def consider(self, now, page, write, full):
        """Want a page that is remembered; remember one that is not."""
        if self.let_in[page]:
            return True
        if self.refused.where(page) != NOWHERE:
            self.refused.drop(page)
            self.let_in[page] = 1
            return True
        self.refused.push(0, page)
        if self.refused.length[0] > self.remembered_pages:
            self.refused.pop(0)
        return False

    @method
    def evicted(self, page):
        """Let a page that had to leave begin anew."""
        self.let_in[page] = 0
