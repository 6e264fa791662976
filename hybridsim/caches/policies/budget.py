"""A write budget: two policies, held to so many fills.

The budget is a bucket of fills.  One comes in with each `interval` of the clock, while it holds
fewer than `burst`; each page let in takes one; while it is empty, nothing is let in.  At first it
holds as many more as the cache has pages: an empty SSD may be filled.  So in any time t no more is
let in than t / interval + burst, and once the pages of the cache.

A policy that has a price for a fill is told a higher one the emptier the bucket is, so that fills
go to where they bring most rather than to who comes first.  The bucket sums up how far what was
let in is ahead of the budget, and the price follows it, until both stand still.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.policies.learned import Learned
from hybridsim.caches.policies.learned.worth import OVER
from hybridsim.foundation.arrays import Floats, Ints, grown_together
from hybridsim.jit import method, state_machine

ACCESS = 1 << 20  # of the clock, where that counts accesses
NONE = -1
FILLS, CLOCK, PAID, GIVEN_UP = range(4)


@state_machine
class Bucket(NamedTuple):
    """What may be let in now."""

    interval: int  # that brings a fill: ns, or parts of an access
    burst: int  # fills, at least one
    counts_accesses: int  # else the clock is time
    state: Ints  # [FILLS; CLOCK; PAID: until then fills came in; GIVEN_UP]

    @classmethod
    def new(cls, pages: int, interval: int, burst: int, counts_accesses: bool) -> Bucket:
        """Begin with a full bucket and what an empty cache takes."""
        state = np.array([pages + burst, 0, NONE, NONE])
        return cls(interval, burst, int(counts_accesses), state)

    @method
    def go_on(self, now):
        """Let come in what the time since the last access brings."""
        state = self.state
        if self.counts_accesses:
            now = state[CLOCK] + ACCESS
        state[CLOCK] = max(now, state[CLOCK])
        if state[PAID] == NONE:
            state[PAID] = state[CLOCK]
        fills = (state[CLOCK] - state[PAID]) // self.interval
        state[PAID] += fills * self.interval
        state[FILLS] = max(state[FILLS], min(state[FILLS] + fills, self.burst))

    @method
    def overprice(self):
        """Return by how much a fill costs more than with a full bucket, in reads of the disks."""
        fills = self.state[FILLS]
        return max(self.burst - fills, 0) / max(fills, 1)


@state_machine
class Budgeted(NamedTuple):
    """Two policies, or one that is both, within a budget."""

    admission: Any
    replacement: Any
    bucket: Bucket
    worth: Floats  # where the price stands, of a policy that has one

    @classmethod
    def new(cls, admission: Any, replacement: Any, bucket: Bucket) -> Budgeted:
        """Hold policies to a budget."""
        worth = (
            admission.reuse.worth.state if isinstance(admission, Learned) else np.zeros(OVER + 1)
        )
        return cls(admission, replacement, bucket, worth)

    def grown(self, ids: int) -> Budgeted:
        """Return the same with room for `ids` pages."""
        admission, replacement = grown_together(self.admission, self.replacement, ids)
        return self._replace(admission=admission, replacement=replacement)

    @method
    def request(self, offset, length, write):
        """Hear of a request before its pages."""
        self.admission.request(offset, length, write)

    @method
    def consider(self, now, page, write, full):
        """Want what admission wants while there is something left to spend."""
        bucket = self.bucket
        bucket.go_on(now)
        bucket.state[GIVEN_UP] = NONE
        self.worth[OVER] = bucket.overprice()
        wanted = self.admission.consider(now, page, write, full)
        return bool(wanted) and bucket.state[FILLS] > 0

    @method
    def evicted(self, page):
        """Hear that a page had to leave the cache."""
        self.admission.evicted(page)

    @method
    def missed(self, page):
        """Pay for a page, unless it is one that was given up just now and cannot go."""
        if page != self.bucket.state[GIVEN_UP]:
            self.bucket.state[FILLS] -= 1
        self.replacement.missed(page)

    @method
    def admit(self, page):
        """Take in a page."""
        self.replacement.admit(page)

    @method
    def touch(self, page):
        """Hear of a hit."""
        self.replacement.touch(page)

    @method
    def remove(self, page):
        """Forget a page."""
        self.replacement.remove(page)

    @method
    def evict(self):
        """Give up a page, or -1 if there is none."""
        page = self.replacement.evict()
        self.bucket.state[GIVEN_UP] = page
        return page
