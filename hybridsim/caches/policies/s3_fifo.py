"""S3-FIFO: a small queue that most pages leave soon, a main queue, and a queue of evicted pages.

J. Yang et al., "FIFO queues are all you need for cache eviction", SOSP 2023, with the paper's
sizes; as in its authors' later version, pages go to the main queue while the cache first fills.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.queues import Queues
from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.jit import method
from hybridsim.jit.instructions import by_page

SMALL, MAIN, GHOST, RETURNING = range(4)
USES_MAX = 3  # two bits
PROMOTE_USES = 2  # uses in the small queue after which a page goes to the main queue


@by_page("uses")
@policy
class S3FIFO(NamedTuple):
    """Three queues, and the uses of each cached page."""

    small_pages: int
    main_pages: int
    ghost_pages: int
    queues: Queues
    uses: Bytes  # by page, saturating
    state: Ints  # [1 once a page was evicted]

    @classmethod
    def new(cls, ids: int, pages: int) -> S3FIFO:
        """Return empty queues: a tenth of the cache small, nine tenths main and as many ghosts."""
        small = pages // 10
        ghost = pages * 9 // 10
        state = np.zeros(1, np.int64)
        return cls(small, pages - small, ghost, Queues.new(4, ids), np.zeros(ids, np.uint8), state)

    @method
    def missed(self, page):
        """Mark a page as returning if it is a ghost."""
        if self.queues.where(page) == GHOST:
            self.queues.move(page, RETURNING)

    @method
    def admit(self, page):
        """Add a page to the small queue, or to the main queue if it returns."""
        queues = self.queues
        self.uses[page] = 0
        if queues.where(page) == RETURNING:
            queues.move(page, MAIN)
        elif self.state[0] == 0 and queues.length[SMALL] >= self.small_pages:
            queues.push(MAIN, page)
        else:
            queues.push(SMALL, page)

    @method
    def touch(self, page):
        """Count a use."""
        if self.uses[page] < USES_MAX:
            self.uses[page] += 1

    @method
    def evict(self):
        """Remove and return a rarely used page, or -1 if there is none."""
        self.state[0] = 1
        page = -1
        if self.queues.length[MAIN] <= self.main_pages:
            page = self.leave_small()
        if page < 0:
            page = self.leave_main()
        return page if page >= 0 else self.leave_small()

    @method
    def leave_small(self):
        """Process the small queue up to a page with too few uses for the main queue; return it."""
        queues = self.queues
        while queues.length[SMALL] > 0:
            page = queues.oldest(SMALL)
            if self.uses[page] < PROMOTE_USES:
                queues.move(page, GHOST)
                if queues.length[GHOST] > self.ghost_pages:
                    queues.pop(GHOST)
                return page
            self.uses[page] = 0
            queues.move(page, MAIN)
        return -1

    @method
    def leave_main(self):
        """Requeue used pages of the main queue; remove and return the first unused one."""
        page = self.queues.oldest(MAIN)
        while page >= 0 and self.uses[page] > 0:
            self.uses[page] -= 1
            self.queues.renew(MAIN, page)
            page = self.queues.oldest(MAIN)
        return self.queues.pop(MAIN)
