"""Least recently used: evict the page that was not used for the longest time."""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.queues import Queues
from hybridsim.jit import method


@policy
class LRU(NamedTuple):
    """One list in order of use."""

    queues: Queues

    @classmethod
    def new(cls, ids: int, pages: int = 0) -> LRU:
        """Return an empty list with room for `ids` pages; the cache size is not used."""
        return cls(Queues.new(1, ids))

    @method
    def admit(self, page):
        """Add a page as the most recently used."""
        self.queues.push(0, page)

    @method
    def touch(self, page):
        """Make a page the most recently used."""
        self.queues.renew(0, page)

    @method
    def evict(self):
        """Remove and return the least recently used page, or -1 if there is none."""
        return self.queues.pop(0)
