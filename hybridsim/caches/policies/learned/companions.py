"""Pages that were touched together leave together: a request waits for its last page.

The pages of a request are a ring: each knows the one that was accessed before it, the first one the
last.  After a page has left, the one before it goes next, if it was not touched since and promises
no more.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, longer
from hybridsim.jit import method, state_machine

NONE = -1
TOGETHER = 64  # accesses
FIRST, LATEST, GONE, GONE_STAMP, GONE_CLOCK = range(5)


@state_machine
class Companions(NamedTuple):
    """Who was accessed in the same request, and who left last."""

    before: Int32s  # by page: accessed before it in its last request; of the first the last one
    state: Ints  # [FIRST, LATEST of the request under way; GONE: who left last, GONE_STAMP, when]

    @classmethod
    def new(cls, ids: int) -> Companions:
        """Know no request."""
        return cls(np.full(ids, NONE, np.int32), np.full(5, NONE, np.int64))

    def grown(self, ids: int) -> Companions:
        """Return the same with room for `ids` pages."""
        return self._replace(before=longer(self.before, ids, NONE))

    @method
    def request(self):
        """Close the ring of the last request."""
        state = self.state
        if state[FIRST] != NONE:
            self.before[state[FIRST]] = state[LATEST]
        state[FIRST] = state[LATEST] = NONE

    @method
    def hear(self, page):
        """Hear of an access."""
        state = self.state
        if state[FIRST] == NONE:
            state[FIRST] = page
        else:
            self.before[page] = state[LATEST]
        state[LATEST] = page

    @method
    def gone(self, page, stamp, clock):
        """Hear that a page leaves now, and of its last access."""
        self.state[GONE] = page
        self.state[GONE_STAMP] = stamp
        self.state[GONE_CLOCK] = clock

    @method
    def missed(self, page, clock):
        """Hear of a page that is to come in; if it is who left at this clock, it could not go."""
        if page == self.state[GONE] and clock == self.state[GONE_CLOCK]:
            self.state[GONE] = NONE

    @method
    def next(self):
        """Return the page that was accessed before the one that left last, or NONE."""
        gone = self.state[GONE]
        return np.int64(self.before[gone]) if gone != NONE else NONE
