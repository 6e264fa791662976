"""First in, first out: evict the page that was cached first, used or not."""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.caches.policies.queues import Queues
from hybridsim.jit import method, state_machine


@state_machine
class FIFO(NamedTuple):
    """One list in order of arrival."""

    queues: Queues

    @classmethod
    def new(cls, ids: int, pages: int) -> FIFO:
        """Return an empty queue with room for `ids` pages."""
        return cls(Queues.new(1, ids))

    def grown(self, ids: int) -> FIFO:
        """Return the same queue with room for `ids` pages."""
        return self._replace(queues=self.queues.grown(ids))

    @method
    def missed(self, page):
        """Ignore a miss."""

    @method
    def admit(self, page):
        """Add a page at the end of the queue."""
        self.queues.push(0, page)

    @method
    def touch(self, page):
        """Ignore a use of a page."""

    @method
    def remove(self, page):
        """Remove a page."""
        self.queues.drop(page)

    @method
    def evict(self):
        """Remove and return the first page of the queue, or -1 if it is empty."""
        return self.queues.pop(0)
