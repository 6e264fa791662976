"""Newest first: evict the page that was cached last, used or not."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints, longer
from hybridsim.jit import method, state_machine


@state_machine
class Newest(NamedTuple):
    """When each page was cached; 0: it is not."""

    turn: Ints  # by page
    last: Ints  # [the last turn that was given]

    @classmethod
    def new(cls, ids: int, pages: int) -> Newest:
        """Return an empty cache's policy with room for `ids` pages."""
        return cls(np.zeros(ids, np.int64), np.zeros(1, np.int64))

    def grown(self, ids: int) -> Newest:
        """Return the same policy with room for `ids` pages."""
        return Newest(longer(self.turn, ids), self.last)

    @method
    def missed(self, page):
        """Ignore a miss."""

    @method
    def admit(self, page):
        """Give the page the next turn."""
        self.last[0] += 1
        self.turn[page] = self.last[0]

    @method
    def touch(self, page):
        """Ignore a use of a page."""

    @method
    def remove(self, page):
        """Remove a page."""
        self.turn[page] = 0

    @method
    def evict(self):
        """Remove and return the page of the last turn, or -1 if there is none."""
        page = self.turn.argmax()
        if self.turn[page] == 0:
            return -1
        self.turn[page] = 0
        return page
