"""ARC: adapts the shares of recency and frequency to the evicted pages that come back.

N. Megiddo, D. S. Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.queues import NOWHERE, Queues
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method

# T1, T2: cached, seen once or more often; B1, B2: evicted from them; missed while in B1 or B2
RECENT, FREQUENT, RECENT_GHOST, FREQUENT_GHOST, RETURNING = range(5)
TARGET, CAME_FROM = 0, 1  # indices of `state`
FRACTION_BITS = 20  # the target has a fraction of this many bits


@policy
class ARC(NamedTuple):
    """Two lists of cached pages, two of evicted pages, and the target length of the first."""

    pages: int
    queues: Queues
    state: Ints  # [TARGET length of RECENT, CAME_FROM: ghost list of the page missed last]

    @classmethod
    def new(cls, ids: int, pages: int) -> ARC:
        """Return empty lists for a cache of `pages` pages."""
        return cls(pages, Queues.new(5, ids), np.array([0, NOWHERE]))

    @method
    def missed(self, page):
        """Adapt the target if the page was evicted recently: its list was too short."""
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
        """Add a page as seen once, or as seen more often if it came back."""
        if self.queues.where(page) == RETURNING:
            self.queues.move(page, FREQUENT)
        else:
            self.queues.push(RECENT, page)

    @method
    def touch(self, page):
        """Move a page that was used again to the newest end of the frequent list."""
        if self.queues.where(page) == FREQUENT:
            self.queues.renew(FREQUENT, page)
        else:
            self.queues.move(page, FREQUENT)

    @method
    def evict(self):
        """Evict a page for the page missed last, and remember the evicted page."""
        queues, length = self.queues, self.queues.length
        origin = self.state[CAME_FROM]
        if origin == NOWHERE:
            if length[RECENT] + length[RECENT_GHOST] >= self.pages:
                if length[RECENT_GHOST] == 0:
                    return queues.pop(RECENT)  # not remembered: that list is full
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
        """Return the change of the target: one page, or more if the other ghost list is longer."""
        return max((other << FRACTION_BITS) // own, 1 << FRACTION_BITS)

    @method
    def known(self):
        """Return how many pages the four lists hold."""
        length = self.queues.length
        recent = length[RECENT] + length[RECENT_GHOST]
        return recent + length[FREQUENT] + length[FREQUENT_GHOST]
