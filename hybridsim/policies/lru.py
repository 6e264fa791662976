"""Least recently used: the page that has waited longest leaves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.arrays import Int32s, longer
from hybridsim.jit import method, state_machine


@state_machine
class LRU(NamedTuple):
    """A doubly linked list over page ids; entry 0 is its end, page `p` is entry p + 1."""

    older: Int32s
    newer: Int32s

    @classmethod
    def new(cls, ids: int) -> LRU:
        """Make an empty list with room for `ids` pages."""
        return cls(np.zeros(ids + 1, np.int32), np.zeros(ids + 1, np.int32))

    def grown(self, ids: int) -> LRU:
        """Return the same list with room for `ids` pages."""
        return LRU(longer(self.older, ids + 1), longer(self.newer, ids + 1))

    @method
    def admit(self, page):
        """Take in a page as the most recently used."""
        entry = page + 1
        newest = self.older[0]
        self.newer[newest] = entry
        self.older[entry] = newest
        self.newer[entry] = 0
        self.older[0] = entry

    @method
    def remove(self, page):
        """Forget a page."""
        entry = page + 1
        self.newer[self.older[entry]] = self.newer[entry]
        self.older[self.newer[entry]] = self.older[entry]

    @method
    def touch(self, page):
        """Note that a page was used."""
        if self.older[0] != page + 1:
            self.remove(page)
            self.admit(page)

    @method
    def evict(self):
        """Drop and return the least recently used page, or -1 if there is none."""
        victim = self.newer[0] - 1
        if victim >= 0:
            self.remove(victim)
        return victim
