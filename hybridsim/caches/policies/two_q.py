"""2Q: a page that returns after it has left the entrance queue goes to the main list.

T. Johnson, D. Shasha, "2Q: a low overhead high performance buffer management replacement
algorithm", VLDB 1994, the full version with its recommended sizes.
"""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.queues import Queues
from hybridsim.jit import method

IN, OUT, MAIN, RETURNING = range(4)  # A1in, A1out (evicted, remembered), Am, missed while in A1out


@policy
class TwoQ(NamedTuple):
    """The entrance queue, the pages that left it recently, and the main list in order of use."""

    in_pages: int
    out_pages: int
    queues: Queues

    @classmethod
    def new(cls, ids: int, pages: int) -> TwoQ:
        """Return empty queues: a quarter of the cache to enter, half as many remembered."""
        return cls(pages // 4, pages // 2, Queues.new(4, ids))

    @method
    def missed(self, page):
        """Mark a page as returning if it is remembered."""
        if self.queues.where(page) == OUT:
            self.queues.move(page, RETURNING)

    @method
    def admit(self, page):
        """Add a page to the entrance queue, or to the main list if it returns."""
        if self.queues.where(page) == RETURNING:
            self.queues.move(page, MAIN)
        else:
            self.queues.push(IN, page)

    @method
    def touch(self, page):
        """Use a page; in the entrance queue that changes nothing."""
        if self.queues.where(page) == MAIN:
            self.queues.renew(MAIN, page)

    @method
    def evict(self):
        """Remove and return the first page of an overfull entrance queue, else of the main list."""
        queues = self.queues
        if queues.length[IN] <= self.in_pages and queues.length[MAIN] > 0:
            return queues.pop(MAIN)
        page = queues.oldest(IN)
        if page >= 0:
            queues.move(page, OUT)
            if queues.length[OUT] > self.out_pages:
                queues.pop(OUT)
        return page
