"""CLOCK, or second chance: a queue in which a used page goes round once more.

F. J. Corbató, "A paging experiment with the Multics system", 1968.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.queues import Queues
from hybridsim.foundation.arrays import Bytes
from hybridsim.jit import method
from hybridsim.jit.instructions import by_page


@by_page("used")
@policy
class CLOCK(NamedTuple):
    """One list in order of arrival or of the last second chance, and a mark for each page."""

    queues: Queues
    used: Bytes  # by page: whether it was used since it came or the hand passed it

    @classmethod
    def new(cls, ids: int, pages: int) -> CLOCK:
        """Return an empty clock with room for `ids` pages."""
        return cls(Queues.new(1, ids), np.zeros(ids, np.uint8))

    @method
    def admit(self, page):
        """Add a page behind the hand, unmarked."""
        self.queues.push(0, page)
        self.used[page] = 0

    @method
    def touch(self, page):
        """Mark a page as used."""
        self.used[page] = 1

    @method
    def evict(self):
        """Remove and return the first unmarked page, or -1; pages passed lose their mark."""
        page = self.queues.oldest(0)
        while page >= 0 and self.used[page]:
            self.used[page] = 0
            self.queues.renew(0, page)
            page = self.queues.oldest(0)
        return self.queues.pop(0)
