"""A write budget: limits the fills of an admission and a replacement policy.

The budget is a bucket of fills.  One fill is added with each `interval` of the clock, while the
bucket holds fewer than `burst`; each admitted page takes one; while the bucket is empty, nothing is
admitted.  It starts with as many more fills as the cache has pages: an empty SSD may be filled.
So in any time t at most t / interval + burst pages are admitted, plus once the pages of the cache.

A policy with a price of a fill gets a higher price the emptier the bucket is, so that fills go to
the pages that save most and not to the first ones.  The bucket integrates how far the admissions
are ahead of the budget, and the price follows it until both are stable.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.policies.learned import Learned
from hybridsim.caches.policies.learned.reuse import OVER
from hybridsim.caches.policies.write_budget import ACCESS
from hybridsim.foundation.arrays import Floats, Ints, grown_together
from hybridsim.jit import method, state_machine

NONE = -1
FILLS, CLOCK, PAID, GIVEN_UP = range(4)


@state_machine
class Bucket(NamedTuple):
    """The fills available now."""

    interval: int  # per fill: ns, or parts of an access
    burst: int  # maximum number of saved fills, at least 1
    counts_accesses: int  # whether the clock counts accesses; else it is time
    state: Ints  # [FILLS; CLOCK; PAID: fills are added up to this clock; GIVEN_UP: last victim]

    @classmethod
    def new(cls, pages: int, interval: int, burst: int, counts_accesses: bool) -> Bucket:
        """Return a bucket with a full burst plus the fills of an empty cache."""
        state = np.array([pages + burst, 0, NONE, NONE])
        return cls(interval, burst, int(counts_accesses), state)

    @method
    def go_on(self, now):
        """Add the fills for the time since the last access."""
        state = self.state
        if self.counts_accesses:
            now = state[CLOCK] + ACCESS
        state[CLOCK] = max(now, state[CLOCK])
        if state[PAID] == NONE:
            state[PAID] = state[CLOCK]
        fills = (state[CLOCK] - state[PAID]) // self.interval
        state[PAID] += fills * self.interval
        state[FILLS] = max(state[FILLS], min(state[FILLS] + fills, self.burst))


@state_machine
class Budgeted(NamedTuple):
    """An admission and a replacement policy, or one object for both, within a budget."""

    admission: Any
    replacement: Any
    bucket: Bucket
    worth: Floats  # the array that holds the price, if the policy has one

    @classmethod
    def new(cls, admission: Any, replacement: Any, bucket: Bucket) -> Budgeted:
        """Limit policies by a budget."""
        worth = (
            admission.reuse.worth.state if isinstance(admission, Learned) else np.zeros(OVER + 1)
        )
        return cls(admission, replacement, bucket, worth)

    def grown(self, ids: int) -> Budgeted:
        """Return the same policies with room for `ids` pages."""
        admission, replacement = grown_together(self.admission, self.replacement, ids)
        return self._replace(admission=admission, replacement=replacement)

    @method
    def request(self, offset, length, write):
        """Pass a request on to admission."""
        self.admission.request(offset, length, write)

    @method
    def consider(self, now, page, write, full):
        """Return whether admission wants the page and a fill is available."""
        bucket = self.bucket
        bucket.go_on(now)
        bucket.state[GIVEN_UP] = NONE
        fills = bucket.state[FILLS]
        self.worth[OVER] = max(bucket.burst - fills, 0) / max(fills, 1)
        wanted = self.admission.consider(now, page, write, full)
        return bool(wanted) and bucket.state[FILLS] > 0

    @method
    def evicted(self, page):
        """Pass an eviction on to admission."""
        self.admission.evicted(page)

    @method
    def missed(self, page):
        """Charge a fill, unless the page was just chosen as the victim and stayed."""
        if page != self.bucket.state[GIVEN_UP]:
            self.bucket.state[FILLS] -= 1
        self.replacement.missed(page)

    @method
    def admit(self, page):
        """Add a page."""
        self.replacement.admit(page)

    @method
    def touch(self, page):
        """Pass a hit on to replacement."""
        self.replacement.touch(page)

    @method
    def remove(self, page):
        """Remove a page."""
        self.replacement.remove(page)

    @method
    def evict(self):
        """Remove and return the victim, or -1 if there is none."""
        page = self.replacement.evict()
        self.bucket.state[GIVEN_UP] = page
        return page
