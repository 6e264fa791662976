"""LHD: of some pages drawn by chance the one leaves that promises the fewest hits for its time.

N. Beckmann, H. Chen, A. Cidon, "LHD: improving cache hit rate by maximizing hit density", NSDI
2018.
What a page promises is learned by its age and by the age at which it was hit last.  Here pages are
of one size and of one application, ages are told apart to a 32nd of themselves, and all is in whole
numbers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.arrays import Int32s, Ints, longer
from hybridsim.jit import method, state_machine
from hybridsim.jit.mixing import mixed

AGES, CLASSES = 512, 16
OLDEST = AGES - 1
SINGLE = 64  # ages of one step each; then so many half as often, as the steps of each double
STEPS_MAX = 1 << 20
TABLE_BITS = 12  # ages are looked up for so many steps; for more, for a 64th of them
SCALE_BITS = 6
STEPS_PER_CACHE = 128  # about: it is a power of two of accesses
DRAWN = 32
DRAW_BITS = 31
CLASS_BITS = 4
WEIGHT_BITS = 7  # of an event when it happens; learning forgets an eighth at a time
FORGET_BITS = 3
DENSITY = 1 << 26  # a hit for each step of time
PERIOD_MIN = 1 << 14  # accesses between two times of learning
PERIOD_PER_PAGE = 4
CLOCK, DRAWS, HELD, NEXT = range(4)


def first_steps() -> Ints:
    """Return with how many steps each age begins, and behind them where the oldest ends."""
    ages = np.arange(AGES + 1)
    octave = np.maximum(ages // (SINGLE // 2) - 1, 0)
    steps: Ints = (ages - octave * (SINGLE // 2)) << octave
    return steps


@state_machine
class LHD(NamedTuple):
    """What happened to pages of each class at each age, what that promises, and who is cached."""

    pages: int
    shift: int  # accesses in a step: 2 to this
    width: Ints  # by age: steps
    age_of: Int32s  # by steps
    hits: NDArray[Any]  # [class, age]
    evictions: NDArray[Any]
    density: NDArray[Any]
    position: Int32s  # by page: in `held`
    held: Int32s  # cached pages, in any order
    stamp: Ints  # by position: when the page was used last, above its class, 0 until it is hit
    state: Ints  # [CLOCK, DRAWS, HELD, clock of the NEXT learning]

    @classmethod
    def new(cls, ids: int, pages: int) -> LHD:
        """Know nothing yet: the older a page, the less it promises."""
        steps = first_steps()
        density = np.tile(DENSITY // (steps[:-1] + 1), (CLASSES, 1))
        return cls(
            pages,
            (pages // STEPS_PER_CACHE).bit_length(),
            np.diff(steps),
            np.repeat(np.arange(AGES, dtype=np.int32), np.diff(steps))[: 1 << TABLE_BITS],
            np.zeros((CLASSES, AGES), np.int64),
            np.zeros((CLASSES, AGES), np.int64),
            density,
            np.zeros(ids, np.int32),
            np.zeros(ids, np.int32),
            np.zeros(ids, np.int64),
            np.array([0, 0, 0, max(PERIOD_PER_PAGE * pages, PERIOD_MIN)]),
        )

    def grown(self, ids: int) -> LHD:
        """Return the same with room for `ids` pages."""
        return self._replace(
            position=longer(self.position, ids),
            held=longer(self.held, ids),
            stamp=longer(self.stamp, ids),
        )

    @method
    def missed(self, page):
        """Let time pass."""
        self.tick()

    @method
    def admit(self, page):
        """Take in a page."""
        at = self.state[HELD]
        self.state[HELD] += 1
        self.position[page] = at
        self.held[at] = page
        self.stamp[at] = self.state[CLOCK] << CLASS_BITS

    @method
    def touch(self, page):
        """Learn from a hit; the page is of another class now."""
        self.tick()
        at = self.position[page]
        steps = self.steps_since(self.stamp[at])
        self.hits[self.stamp[at] & (CLASSES - 1), self.age(steps)] += 1 << WEIGHT_BITS
        kind = 1
        while steps > 0 and kind < CLASSES - 1:
            steps >>= 1
            kind += 1
        self.stamp[at] = self.state[CLOCK] << CLASS_BITS | kind

    @method
    def remove(self, page):
        """Forget a page: the last one takes its position."""
        self.state[HELD] -= 1
        last, at = self.state[HELD], self.position[page]
        self.held[at] = self.held[last]
        self.stamp[at] = self.stamp[last]
        self.position[self.held[at]] = at

    @method
    def evict(self):
        """Give up the least promising of some pages drawn, the first of equals, or -1."""
        if self.state[HELD] == 0:
            return -1
        victim, least, draws = 0, np.int64(1) << 62, self.state[DRAWS]
        for draw in range(draws, draws + DRAWN):
            at = mixed(draw) * self.state[HELD] >> DRAW_BITS
            promise = self.promise(self.stamp[at])
            if promise < least:
                victim, least = at, promise
        self.state[DRAWS] += DRAWN
        stamp, page = self.stamp[victim], self.held[victim]
        age = self.age(self.steps_since(stamp))
        self.evictions[stamp & (CLASSES - 1), age] += 1 << WEIGHT_BITS
        self.remove(page)
        return page

    @method
    def promise(self, stamp):
        """Return the hits to be expected for a step of time."""
        return self.density[stamp & (CLASSES - 1), self.age(self.steps_since(stamp))]

    @method
    def steps_since(self, stamp):
        """Return the steps since a page was used."""
        return (self.state[CLOCK] - (stamp >> CLASS_BITS)) >> self.shift

    @method
    def age(self, steps):
        """Return the age of a page: the steps since its use, less exactly the more they are."""
        age = 0
        steps = min(steps, STEPS_MAX)
        while steps >> TABLE_BITS > 0:
            steps >>= SCALE_BITS
            age += SCALE_BITS * SINGLE // 2
        return min(age + self.age_of[steps], OLDEST)

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
        for kind in range(CLASSES):
            hits, events, time = 0, 0, 0
            for age in range(OLDEST, -1, -1):
                hits += self.hits[kind, age]
                events += self.hits[kind, age] + self.evictions[kind, age]
                time += events * self.width[age]
                if time > 0:
                    self.density[kind, age] = hits * DENSITY // time
                self.hits[kind, age] -= self.hits[kind, age] >> FORGET_BITS
                self.evictions[kind, age] -= self.evictions[kind, age] >> FORGET_BITS
