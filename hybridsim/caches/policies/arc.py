"""ARC: recency and frequency share the cache as the pages that come back show to be best.

N. Megiddo, D. S. Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.queues import NOWHERE, Queues
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine

# T1, T2: cached, seen once and more often; B1, B2: what was evicted from them; missed while there
RECENT, FREQUENT, RECENT_GHOST, FREQUENT_GHOST, RETURNING = range(5)
TARGET, CAME_FROM = 0, 1
FRACTION_BITS = 20  # the target is kept in parts of a page


@state_machine
class ARC(NamedTuple):
    """Two lists of cached pages, two of pages that have left, and how long the first is to be."""

    pages: int
    queues: Queues
    state: Ints  # [TARGET of RECENT, list that the page missed last CAME_FROM]

    @classmethod
    def new(cls, ids: int, pages: int) -> ARC:
        """Make empty lists for a cache of `pages`."""
        return cls(pages, Queues.new(5, ids), np.array([0, NOWHERE]))

    def grown(self, ids: int) -> ARC:
        """Return the same lists with room for `ids` pages."""
        return self._replace(queues=self.queues.grown(ids))

    @method
    def missed(self, page):
        """Learn from a page that has left too early: its list should have been longer."""
        length = self.queues.length
        origin = self.queues.where(page)
        target = self.state[TARGET]
        if origin == RECENT_GHOST:
            step = self.step(length[FREQUENT_GHOST], length[RECENT_GHOST])
            self.state[TARGET] = min(target + step, self.pages << FRACTION_BITS)
        elif origin == FREQUENT_GHOST:
            step = self.step(length[RECENT_GHOST], length[FREQUENT_GHOST])
            self.state[TARGET] = max(target - step, 0)
        self.state[CAME_FROM] = NOWHERE
        if origin == RECENT_GHOST or origin == FREQUENT_GHOST:
            self.state[CAME_FROM] = origin
            self.queues.move(page, RETURNING)

    @method
    def admit(self, page):
        """Take in a page: as seen once, or more often if it came back."""
        if self.queues.where(page) == RETURNING:
            self.queues.move(page, FREQUENT)
        else:
            self.queues.push(RECENT, page)

    @method
    def touch(self, page):
        """Note that a page was used again."""
        if self.queues.where(page) == FREQUENT:
            self.queues.renew(FREQUENT, page)
        else:
            self.queues.move(page, FREQUENT)

    @method
    def remove(self, page):
        """Forget a page."""
        self.queues.drop(page)

    @method
    def evict(self):
        """Make room for the page missed last; what is evicted is remembered."""
        queues, length = self.queues, self.queues.length
        origin = self.state[CAME_FROM]
        if origin == NOWHERE:
            if length[RECENT] + length[RECENT_GHOST] >= self.pages:
                if length[RECENT_GHOST] == 0:
                    return queues.pop(RECENT)  # and not remembered: that list is full
                queues.pop(RECENT_GHOST)
            elif self.known() >= 2 * self.pages:
                queues.pop(FREQUENT_GHOST)
        excess = (length[RECENT] << FRACTION_BITS) - self.state[TARGET]
        too_many = excess > 0 or (excess == 0 and origin == FREQUENT_GHOST)
        source = RECENT if length[RECENT] > 0 and (too_many or length[FREQUENT] == 0) else FREQUENT
        page = queues.oldest(source)
        if page >= 0:
            queues.move(page, RECENT_GHOST if source == RECENT else FREQUENT_GHOST)
        return page

    @method
    def step(self, other, own):
        """Return by how much the target moves: a page, or more if the other memory is longer."""
        return max((other << FRACTION_BITS) // own, 1 << FRACTION_BITS)

    @method
    def known(self):
        """Return how many pages the four lists hold."""
        length = self.queues.length
        recent = length[RECENT] + length[RECENT_GHOST]
        return recent + length[FREQUENT] + length[FREQUENT_GHOST]
