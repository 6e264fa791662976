"""Admission at the n-th touch; n = 1 admits every miss."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.foundation.arrays import Bytes
from hybridsim.jit import method
from hybridsim.jit.instructions import by_page

COUNT_MAX = 255


@by_page("accesses")
@policy
class Touches(NamedTuple):
    """Counts the accesses of each page."""

    wanted: int
    accesses: Bytes  # by page id, saturating

    @classmethod
    def new(cls, ids: int, pages: int, touches: int = 1) -> Touches:
        """Admit a page from its `touches`-th access on."""
        return cls(touches, np.zeros(ids, np.uint8))

    @method
    def consider(self, now, page, write, full):
        """Count an access; return whether the page is admitted if absent."""
        if self.accesses[page] < COUNT_MAX:
            self.accesses[page] += 1
        return self.accesses[page] >= self.wanted
