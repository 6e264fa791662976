"""Segmented LRU: a hit moves a page up one segment; overfull segments move their oldest down.

R. Karedla, J. S. Love, B. G. Wherry, "Caching strategies to improve disk system performance",
IEEE Computer 27(3), 1994, with two segments; here four of equal size, as in libCacheSim.
"""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.queues import Queues
from hybridsim.jit import method

SEGMENTS = 4
TOP = SEGMENTS - 1


@policy
class SLRU(NamedTuple):
    """A list for each segment, the lowest first; the remainder of the division is in the lowest."""

    segment_pages: int
    queues: Queues

    @classmethod
    def new(cls, ids: int, pages: int) -> SLRU:
        """Return empty segments for a cache of `pages` pages."""
        return cls(pages // SEGMENTS, Queues.new(SEGMENTS, ids))

    @method
    def admit(self, page):
        """Add a page to the lowest segment that has room; to the lowest of all if none has."""
        lowest = 0
        while lowest < TOP and self.queues.length[lowest] >= self.segment_pages:
            lowest += 1
        if self.queues.length[lowest] >= self.segment_pages:
            lowest = 0
        self.queues.push(lowest, page)

    @method
    def touch(self, page):
        """Move a page up; pages beyond a segment's size move down."""
        segment = self.queues.where(page)
        if segment == TOP:
            self.queues.renew(TOP, page)
            return
        self.queues.move(page, segment + 1)
        for upper in range(segment + 1, 0, -1):
            if self.queues.length[upper] > self.segment_pages:
                self.queues.move(self.queues.oldest(upper), upper - 1)

    @method
    def evict(self):
        """Remove and return the least recently used page of the lowest segment that has any."""
        for segment in range(SEGMENTS):
            if self.queues.length[segment] > 0:
                return self.queues.pop(segment)
        return -1
