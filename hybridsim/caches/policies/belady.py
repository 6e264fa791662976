"""Belady's bound: evict the page whose next use is furthest away.  No policy has fewer misses.

L. A. Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems
Journal 5(2), 1966.  It is a bound for caches that admit every missed page, and needs the future
accesses: it works only on a whole trace, without devices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.foundation.arrays import Int32s, Ints, filled, longer
from hybridsim.jit import method

NEVER = 1 << 62
GONE = -1


@policy
class Belady(NamedTuple):
    """A heap of (next use, page), the furthest on top.

    Each use of a page adds an entry.  The earlier entries of the page then lie in the past, below
    all entries in the future, so the top is always valid; entries of the past are removed when the
    heap is full.
    """

    upcoming: Ints  # by page: its next use, which the caller updates
    when: Ints  # heap
    page: Int32s
    used: Ints  # [number of entries]

    @classmethod
    def new(cls, ids: int, pages: int) -> Belady:
        """Return an empty heap with room for `ids` pages."""
        upcoming, used = np.full(ids, GONE, np.int64), np.zeros(1, np.int64)
        return filled(cls, 2 * ids + 1, upcoming=upcoming, used=used)

    def grown(self, ids: int) -> Belady:
        """Return the same heap with room for `ids` pages."""
        when, page = (longer(each, 2 * ids + 1) for each in (self.when, self.page))
        return self._replace(upcoming=longer(self.upcoming, ids, GONE), when=when, page=page)

    @method
    def admit(self, page):
        """Add a page."""
        self.touch(page)

    @method
    def touch(self, page):
        """Add an entry for the next use of a page."""
        if self.used[0] == len(self.when):
            self.clear_away()
        self.used[0] += 1
        self.rise(self.used[0] - 1, self.upcoming[page], page)

    @method
    def remove(self, page):
        """Remove a page."""
        self.upcoming[page] = GONE

    @method
    def evict(self):
        """Remove and return the page whose next use is furthest away, or -1."""
        while self.used[0] > 0:
            when, page = self.when[0], self.page[0]
            self.used[0] -= 1
            last = self.used[0]
            self.sink(0, self.when[last], self.page[last])
            if self.upcoming[page] == when:
                return page
        return -1

    @method
    def clear_away(self):
        """Keep the valid entries, and rebuild the heap."""
        kept = 0
        for entry in range(self.used[0]):
            if self.upcoming[self.page[entry]] == self.when[entry]:
                self.when[kept] = self.when[entry]
                self.page[kept] = self.page[entry]
                kept += 1
        self.used[0] = kept
        for entry in range(kept // 2 - 1, -1, -1):
            self.sink(entry, self.when[entry], self.page[entry])

    @method
    def rise(self, entry, when, page):
        """Insert an entry at a free place or above it."""
        while entry > 0 and self.when[(entry - 1) >> 1] < when:
            above = (entry - 1) >> 1
            self.when[entry] = self.when[above]
            self.page[entry] = self.page[above]
            entry = above
        self.when[entry] = when
        self.page[entry] = page

    @method
    def sink(self, entry, when, page):
        """Insert an entry at a free place or below it."""
        used = self.used[0]
        while 2 * entry + 1 < used:
            below = 2 * entry + 1
            if below + 1 < used and self.when[below + 1] > self.when[below]:
                below += 1
            if self.when[below] <= when:
                break
            self.when[entry] = self.when[below]
            self.page[entry] = self.page[below]
            entry = below
        self.when[entry] = when
        self.page[entry] = page
