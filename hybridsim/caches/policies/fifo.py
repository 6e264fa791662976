"""First in, first out: evict the page that was cached first, used or not."""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.queues import Queues
from hybridsim.jit import method


@policy
class FIFO(NamedTuple):
    """One list in order of arrival."""

    queues: Queues

    @classmethod
    def new(cls, ids: int, pages: int) -> FIFO:
        """Return an empty queue with room for `ids` pages."""
        return cls(Queues.new(1, ids))

    @method
    def admit(self, page):
        """Add a page at the end of the queue."""
        self.queues.push(0, page)

    @method
    def evict(self):
        """Remove and return the first page of the queue, or -1 if it is empty."""
        return self.queues.pop(0)
