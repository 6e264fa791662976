"""Admission at the n-th touch; n = 1 admits every miss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, longer
from hybridsim.jit import method, state_machine
from hybridsim.jit.prefetch import by_page

COUNT_MAX = 255


@by_page("accesses")
@state_machine
class Touches(NamedTuple):
    """Counts the accesses of each page."""

    wanted: int
    accesses: Bytes  # by page id, saturating

    @classmethod
    def new(cls, ids: int, pages: int, touches: int = 1) -> Touches:
        """Admit a page from its `touches`-th access on."""
        return cls(touches, np.zeros(ids, np.uint8))

    def grown(self, ids: int) -> Touches:
        """Return the same counts with room for `ids` pages."""
        return self._replace(accesses=longer(self.accesses, ids))

    @method
    def request(self, offset, length, write):
        """Ignore a request."""

    @method
    def consider(self, now, page, write, full):
        """Count an access; return whether the page is admitted if absent."""
        if self.accesses[page] < COUNT_MAX:
            self.accesses[page] += 1
        return self.accesses[page] >= self.wanted

    @method
    def evicted(self, page):
        """Ignore an eviction."""
