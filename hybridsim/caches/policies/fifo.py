"""First in, first out: the page that was cached longest ago leaves, used or not."""

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
        """Make an empty queue with room for `ids` pages."""
        return cls(Queues.new(1, ids))

    def grown(self, ids: int) -> FIFO:
        """Return the same queue with room for `ids` pages."""
        return FIFO(self.queues.grown(ids))

    @method
    def missed(self, page):
        """Hear that an absent page is about to be cached."""

    @method
    def admit(self, page):
        """Take in a page as the last of the queue."""
        self.queues.push(0, page)

    @method
    def touch(self, page):
        """Hear that a page was used: it changes nothing."""

    @method
    def remove(self, page):
        """Forget a page."""
        self.queues.drop(page)

    @method
    def evict(self):
        """Drop and return the first of the queue, or -1 if there is none."""
        return self.queues.pop(0)
