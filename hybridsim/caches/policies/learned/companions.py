"""Pages that were touched together are evicted together: a request waits for its last page.

The pages of a request are a ring: each links to the page accessed before it, the first page to the
last, by the field `before` of its record (policy.py).  After a page was evicted, the page before it
is the next victim, if it was not touched since and its density is not higher.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine

NONE = -1
TOGETHER = 64  # accesses: maximum distance of two pages of a request
FIRST, LATEST, GONE, GONE_STAMP, GONE_CLOCK = range(5)


@state_machine
class Companions(NamedTuple):
    """The pages of the current request, and the last victim."""

    state: Ints  # [FIRST, LATEST page of the current request; GONE: last victim, its stamp, clock]

    @classmethod
    def new(cls) -> Companions:
        """Return an empty structure."""
        return cls(np.full(5, NONE, np.int64))

    @method
    def request(self, pages):
        """Close the ring of the previous request."""
        state = self.state
        if state[FIRST] != NONE:
            pages[state[FIRST]].before = state[LATEST]
        state[FIRST] = state[LATEST] = NONE

    @method
    def on_access(self, pages, page):
        """Add a page to the current request."""
        state = self.state
        if state[FIRST] == NONE:
            state[FIRST] = page
        else:
            pages[page].before = state[LATEST]
        state[LATEST] = page

    @method
    def on_evict(self, page, stamp, clock):
        """Record a victim, the stamp of its last access, and the clock."""
        self.state[GONE] = page
        self.state[GONE_STAMP] = stamp
        self.state[GONE_CLOCK] = clock

    @method
    def missed(self, page, clock):
        """If the page was just chosen as the victim, its eviction was refused: clear that."""
        if page == self.state[GONE] and clock == self.state[GONE_CLOCK]:
            self.state[GONE] = NONE

    @method
    def next(self, pages):
        """Return the page that was accessed before the last victim, or NONE."""
        gone = self.state[GONE]
        return np.int64(pages[gone].before) if gone != NONE else NONE
