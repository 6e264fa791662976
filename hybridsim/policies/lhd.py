"""LHD: of some pages drawn by chance the one leaves that promises the fewest hits for its time.

N. Beckmann, H. Chen, A. Cidon, "LHD: improving cache hit rate by maximizing hit density", NSDI
2018.
What a page promises is learned by its age and by the age at which it was hit last.  Here pages are
of one size and of one application, ages are counted in steps that double when too many pages
outlive them, and all is in whole numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybridsim.arrays import Bytes, Int32s, Ints, longer
from hybridsim.jit import method, state_machine
from hybridsim.mixing import mixed

AGES, CLASSES = 512, 16
OLDEST = AGES - 1
DRAWN = 32
LIFETIMES = 8  # cache sizes of accesses that ages reach to begin with
WEIGHT_BITS = 7  # of an event when it happens; learning forgets an eighth at a time
FORGET_BITS = 3
DENSITY = 1 << 20  # a hit for each step of time
PERIOD_MIN = 1 << 14  # accesses between two times of learning
PERIOD_PER_PAGE = 4
TOO_OLD = 32  # one event in so many at the oldest age doubles the steps
CLOCK, SHIFT, DRAWS, HELD, NEXT = range(5)


@state_machine
class LHD(NamedTuple):
    """What happened to pages of each class at each age, what that promises, and who is cached."""

    pages: int
    hits: NDArray[Any]  # [class, age]
    evictions: NDArray[Any]
    density: NDArray[Any]
    last: Ints  # by page: when it was used last
    kind: Bytes  # by page: its class, 0 until it is hit
    position: Int32s  # by page: in `held`
    held: Int32s  # cached pages, in any order
    state: Ints  # [CLOCK, SHIFT of ages, DRAWS, HELD, clock of the NEXT learning]

    @classmethod
    def new(cls, ids: int, pages: int) -> LHD:
        """Know nothing yet: the older a page, the less it promises."""
        ages = np.arange(AGES)
        density = np.tile(DENSITY // (ages + 1), (CLASSES, 1))
        shift = (LIFETIMES * pages // AGES).bit_length()
        return cls(
            pages,
            np.zeros((CLASSES, AGES), np.int64),
            np.zeros((CLASSES, AGES), np.int64),
            density,
            np.zeros(ids, np.int64),
            np.zeros(ids, np.uint8),
            np.zeros(ids, np.int32),
            np.zeros(ids, np.int32),
            np.array([0, shift, 0, 0, max(PERIOD_PER_PAGE * pages, PERIOD_MIN)]),
        )

    def grown(self, ids: int) -> LHD:
        """Return the same with room for `ids` pages."""
        return self._replace(
            last=longer(self.last, ids),
            kind=longer(self.kind, ids),
            position=longer(self.position, ids),
            held=longer(self.held, ids),
        )

    @method
    def missed(self, page):
        """Let time pass."""
        self.tick()

    @method
    def admit(self, page):
        """Take in a page."""
        self.last[page] = self.state[CLOCK]
        self.kind[page] = 0
        self.position[page] = self.state[HELD]
        self.held[self.state[HELD]] = page
        self.state[HELD] += 1

    @method
    def touch(self, page):
        """Learn from a hit; the page is of another class now."""
        self.tick()
        age = self.age(page)
        self.hits[self.kind[page], age] += 1 << WEIGHT_BITS
        kind = 1
        while age > 0 and kind < CLASSES - 1:
            age >>= 1
            kind += 1
        self.kind[page] = kind
        self.last[page] = self.state[CLOCK]

    @method
    def remove(self, page):
        """Forget a page: the last one takes its position."""
        self.state[HELD] -= 1
        moved = self.held[self.state[HELD]]
        self.held[self.position[page]] = moved
        self.position[moved] = self.position[page]

    @method
    def evict(self):
        """Give up the least promising of some pages drawn, the first of equals, or -1."""
        if self.state[HELD] == 0:
            return -1
        victim, least = -1, np.int64(1) << 62
        for _ in range(DRAWN):
            at = mixed(self.state[DRAWS]) % self.state[HELD]
            self.state[DRAWS] += 1
            page = self.held[at]
            promise = self.density[self.kind[page], self.age(page)]
            if promise < least:
                victim, least = page, promise
        self.evictions[self.kind[victim], self.age(victim)] += 1 << WEIGHT_BITS
        self.remove(victim)
        return victim

    @method
    def age(self, page):
        """Return the steps since a page was used."""
        return min((self.state[CLOCK] - self.last[page]) >> self.state[SHIFT], OLDEST)

    @method
    def tick(self):
        """Count an access; learn from time to time."""
        self.state[CLOCK] += 1
        if self.state[CLOCK] == self.state[NEXT]:
            self.state[NEXT] += max(PERIOD_PER_PAGE * self.pages, PERIOD_MIN)
            self.learn()

    @method
    def learn(self):
        """Turn events into promises, and let them count less from now on."""
        all_events, too_old = 0, 0
        for kind in range(CLASSES):
            hits, events, time = 0, 0, 0
            for age in range(OLDEST, -1, -1):
                hits += self.hits[kind, age]
                events += self.hits[kind, age] + self.evictions[kind, age]
                time += events
                if time > 0:
                    self.density[kind, age] = hits * DENSITY // time
            all_events += events
            too_old += self.hits[kind, OLDEST] + self.evictions[kind, OLDEST]
        wider = too_old * TOO_OLD > all_events
        for kind in range(CLASSES):
            for age in range(AGES):
                self.hits[kind, age] -= self.hits[kind, age] >> FORGET_BITS
                self.evictions[kind, age] -= self.evictions[kind, age] >> FORGET_BITS
        if wider:
            self.state[SHIFT] += 1
            for kind in range(CLASSES):
                self.widen(self.hits[kind])
                self.widen(self.evictions[kind])

    @method
    def widen(self, counts):
        """Join each two ages."""
        for age in range(AGES // 2):
            counts[age] = counts[2 * age] + counts[2 * age + 1]
        for age in range(AGES // 2, AGES):
            counts[age] = 0
