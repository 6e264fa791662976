"""Admission at the n-th touch: once is chance, n times is a habit.  With n = 1 every miss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, longer
from hybridsim.jit import method, state_machine

COUNT_MAX = 255


@state_machine
class Touches(NamedTuple):
    """Counts the accesses of each page."""

    wanted: int
    accesses: Bytes  # by page id, saturating

    @classmethod
    def new(cls, ids: int, pages: int, touches: int = 1) -> Touches:
        """Want a page from its `touches`-th access on."""
        return cls(touches, np.zeros(ids, np.uint8))

    def grown(self, ids: int) -> Touches:
        """Return the same counts with room for `ids` pages."""
        return self._replace(accesses=longer(self.accesses, ids))

    @method
    def request(self, offset, length, write):
        """Hear of a request before its pages."""

    @method
    def consider(self, now, page, write, full):
        """Count an access; tell whether the page, if absent, is wanted."""
        if self.accesses[page] < COUNT_MAX:
            self.accesses[page] += 1
        return self.accesses[page] >= self.wanted

    @method
    def evicted(self, page):
        """Hear that a page had to leave."""
