"""W-TinyLFU: new pages enter a small window; to stay they must be used more than the main victim.

G. Einziger, R. Friedman, B. Manes, "TinyLFU: a highly efficient cache admission policy",
ACM Transactions on Storage 13(4), 2017: a window of 1 %, and a main cache of two segments, with
80 % for the protected one.
"""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.caches.policies.defaults import policy
from hybridsim.caches.policies.frequencies import Frequencies
from hybridsim.caches.policies.queues import Queues
from hybridsim.jit import method

WINDOW, PROBATION, PROTECTED = range(3)


@policy
class WTinyLFU(NamedTuple):
    """Three lists in order of use, and the recent uses of each page."""

    window_pages: int
    protected_pages: int
    queues: Queues
    frequencies: Frequencies

    @classmethod
    def new(cls, ids: int, pages: int) -> WTinyLFU:
        """Return empty lists for a cache of `pages` pages."""
        window = max(pages // 100, 1)
        protected = max(pages - window, 0) * 8 // 10
        return cls(window, protected, Queues.new(3, ids), Frequencies.new(ids, pages))

    @method
    def missed(self, page):
        """Count a use of an absent page."""
        self.frequencies.count(page)

    @method
    def admit(self, page):
        """Add a page to the window; the oldest page of an overfull window goes on."""
        self.queues.push(WINDOW, page)
        if self.queues.length[WINDOW] > self.window_pages:
            self.queues.move(self.queues.oldest(WINDOW), PROBATION)

    @method
    def touch(self, page):
        """Count a use; a page on probation becomes protected."""
        self.frequencies.count(page)
        queue = self.queues.where(page)
        if queue != PROBATION:
            self.queues.renew(queue, page)
            return
        self.queues.move(page, PROTECTED)
        if self.queues.length[PROTECTED] > self.protected_pages:
            self.queues.move(self.queues.oldest(PROTECTED), PROBATION)

    @method
    def evict(self):
        """Compare the oldest page of window and main cache; remove and return the less used."""
        queues = self.queues
        victim = queues.oldest(PROBATION)
        if victim < 0:
            victim = queues.oldest(PROTECTED)
        if victim >= 0 and queues.length[WINDOW] < self.window_pages:
            queues.drop(victim)
            return victim
        candidate = queues.oldest(WINDOW)
        if candidate < 0:
            return candidate
        if victim >= 0 and self.frequencies.of(candidate) > self.frequencies.of(victim):
            queues.drop(victim)
            queues.move(candidate, PROBATION)
            return victim
        queues.drop(candidate)
        return candidate
