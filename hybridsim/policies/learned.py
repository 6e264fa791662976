"""Learned admission: a page is let in if pages like it have been worth it.

An access belongs to a class by what is known at that moment: read or write, how often the page
was touched before, how long ago.  Samples teach for each class how likely a page is to be touched
again before a cached page would be evicted.  A page that is hit with probability p, and then with
p again, brings p / (1 - p) hits; at the price of about one hit for the fill, it pays from p = 1/2.
While the cache has room a fill needs much less to pay.  Integers only (DESIGN.md 2.4.1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.arrays import Int32s, Ints, longer
from hybridsim.jit import method, state_machine

GAPS, COUNTS = 32, 8
CLASSES = 2 * COUNTS * GAPS
SAMPLES = 4096  # under observation at a time
WEIGHT = 16  # of one sample
FORGET = 256 * WEIGHT  # a class that has seen more is halved
MATURE_MAX = 4  # samples judged at one access
HORIZON_MIN = 64
CLOCK, HORIZON, HEAD, USED = range(4)


@state_machine
class Learned(NamedTuple):
    """What each class is worth, and the samples under observation."""

    last: Ints  # by page id: clock of the last access, -1 never
    accesses: Int32s  # by page id: accesses so far, saturating
    good: Ints  # by class: weight of samples touched again in time
    total: Ints  # by class: weight of all samples
    sample_page: Ints  # ring
    sample_class: Ints
    sample_clock: Ints
    state: Ints  # [CLOCK, HORIZON, HEAD, USED]

    @classmethod
    def new(cls, ids: int, pages: int) -> Learned:
        """Know nothing, and be optimistic."""
        return cls(
            last=np.full(ids, -1, np.int64),
            accesses=np.zeros(ids, np.int32),
            good=np.full(CLASSES, WEIGHT, np.int64),
            total=np.full(CLASSES, 2 * WEIGHT, np.int64),
            sample_page=np.zeros(SAMPLES, np.int64),
            sample_class=np.zeros(SAMPLES, np.int64),
            sample_clock=np.zeros(SAMPLES, np.int64),
            state=np.array([0, max(2 * pages, HORIZON_MIN), 0, 0]),
        )

    def grown(self, ids: int) -> Learned:
        """Return the same knowledge with room for `ids` pages."""
        return self._replace(last=longer(self.last, ids, -1), accesses=longer(self.accesses, ids))

    @method
    def request(self, offset, length, write):
        """Hear of a request before its pages."""

    @method
    def consider(self, now, page, write, full):
        """Learn from an access; tell whether the page, if absent, is wanted."""
        clock = self.state[CLOCK]
        self.judge(clock)
        group = self.class_of(page, write, clock)
        period = self.state[HORIZON] // (SAMPLES // 2) + 1
        if clock % period == 0 and self.state[USED] < SAMPLES:
            self.observe(page, group, clock)
        self.last[page] = clock
        self.accesses[page] = min(self.accesses[page] + 1, COUNTS - 1)
        self.state[CLOCK] = clock + 1
        return self.good[group] * (2 if full else 8) >= self.total[group]

    @method
    def class_of(self, page, write, clock):
        """Return the class of an access."""
        gap = 0
        if self.last[page] >= 0:
            since = clock - self.last[page]
            while since > 0 and gap < GAPS - 1:
                since >>= 1
                gap += 1
        return (COUNTS * GAPS if write else 0) + self.accesses[page] * GAPS + gap

    @method
    def observe(self, page, group, clock):
        """Put an access under observation."""
        at = (self.state[HEAD] + self.state[USED]) % SAMPLES
        self.sample_page[at] = page
        self.sample_class[at] = group
        self.sample_clock[at] = clock
        self.state[USED] += 1

    @method
    def judge(self, clock):
        """Settle the samples whose time is up: was the page touched again?"""
        for _ in range(MATURE_MAX):
            at = self.state[HEAD]
            if self.state[USED] == 0 or clock - self.sample_clock[at] < self.state[HORIZON]:
                return
            self.state[HEAD] = (at + 1) % SAMPLES
            self.state[USED] -= 1
            group = self.sample_class[at]
            self.total[group] += WEIGHT
            if self.last[self.sample_page[at]] > self.sample_clock[at]:
                self.good[group] += WEIGHT
            if self.total[group] >= FORGET:
                self.total[group] >>= 1
                self.good[group] >>= 1

    @method
    def evicted(self, page):
        """Learn from an eviction how long a page stays."""
        age = self.state[CLOCK] - self.last[page]
        horizon = self.state[HORIZON]
        self.state[HORIZON] = max(horizon + (age - horizon) // 16, HORIZON_MIN)
