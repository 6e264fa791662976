"""LIRS: keep pages with short reuse intervals; the others get one page in a hundred.

S. Jiang, X. Zhang, "LIRS: an efficient low inter-reference recency set replacement policy",
SIGMETRICS 2002, with 1 % of the cache for the other pages, and a stack of at most twice the cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.queues import NOWHERE, Queues
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method

PASSING, GONE, RETURNING = range(3)  # the paper's Q; evicted but still in the stack; missed there


@policy
class LIRS(NamedTuple):
    """The stack S of the paper, and a queue for each kind of page that is not settled (LIR).

    A settled page (LIR) is in the stack and in none of those queues.
    """

    pages: int
    settled_pages: int
    stack: Queues
    others: Queues
    settled: Ints  # [number of settled pages]

    @classmethod
    def new(cls, ids: int, pages: int) -> LIRS:
        """Return an empty stack for a cache of `pages` pages."""
        passing = max(pages // 100, 1)
        return cls(
            pages,
            max(pages - passing, 0),
            Queues.new(1, ids),
            Queues.new(3, ids),
            np.zeros(1, np.int64),
        )

    @method
    def missed(self, page):
        """Mark a page as returning if it is still in the stack."""
        if self.others.where(page) == GONE:
            self.others.move(page, RETURNING)
            self.stack.renew(0, page)

    @method
    def admit(self, page):
        """Add a page: settled if it returns or there is room, else passing."""
        if self.others.where(page) == RETURNING:
            self.others.drop(page)
            self.stack.renew(0, page)
            self.settle()
        else:
            self.stack.push(0, page)
            if self.settled[0] < self.settled_pages:
                self.settled[0] += 1
            else:
                self.others.push(PASSING, page)
        self.limit_stack()

    @method
    def touch(self, page):
        """Use a page: a passing page that is still in the stack becomes settled."""
        if self.others.where(page) == NOWHERE:
            self.stack.renew(0, page)
            self.prune()
        elif self.stack.where(page) == 0:
            self.others.drop(page)
            self.stack.renew(0, page)
            self.settle()
        else:
            self.stack.push(0, page)
            self.others.renew(PASSING, page)
        self.limit_stack()

    @method
    def remove(self, page):
        """Remove a page."""
        if self.others.where(page) == PASSING:
            self.others.drop(page)
        else:
            self.settled[0] -= 1
        if self.stack.where(page) == 0:
            self.stack.drop(page)
            self.prune()

    @method
    def evict(self):
        """Remove and return the oldest passing page, or -1; it stays in the stack as a ghost."""
        if self.others.length[PASSING] == 0 and self.settled[0] > 0:
            self.unsettle()
        page = self.others.pop(PASSING)
        if page >= 0 and self.stack.where(page) == 0:
            self.others.push(GONE, page)
        return page

    @method
    def settle(self):
        """Count one more settled page; if there are too many, the oldest becomes passing."""
        self.settled[0] += 1
        if self.settled[0] > self.settled_pages:
            self.unsettle()

    @method
    def unsettle(self):
        """Make the settled page at the bottom of the stack a passing one."""
        self.prune()
        self.settled[0] -= 1
        self.others.push(PASSING, self.stack.pop(0))
        self.prune()

    @method
    def prune(self):
        """Remove the pages that are not settled from the bottom of the stack."""
        page = self.stack.oldest(0)
        while page >= 0 and self.others.where(page) != NOWHERE:
            self.stack.pop(0)
            if self.others.where(page) != PASSING:
                self.others.drop(page)
            page = self.stack.oldest(0)

    @method
    def limit_stack(self):
        """Remove the ghosts evicted first while the stack is too long."""
        while self.stack.length[0] > 2 * self.pages and self.others.length[GONE] > 0:
            self.stack.drop(self.others.pop(GONE))
