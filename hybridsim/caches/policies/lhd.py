"""LHD: of some pages drawn at random, evict the one with the lowest expected hit density.

N. Beckmann, H. Chen, A. Cidon, "LHD: improving cache hit rate by maximizing hit density", NSDI
2018.
The hit density is learned by the age of a page and by the age at which it was hit last.  Here pages
have one size and belong to one application, ages have a resolution of 1/32, and all arithmetic is
in integers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybridsim.caches.policies.defaults import policy
from hybridsim.foundation.arrays import Int32s, Ints, filled, longer
from hybridsim.jit import method
from hybridsim.jit.instructions import by_page
from hybridsim.jit.mixing import mixed

AGES, CLASSES = 512, 16
OLDEST = AGES - 1
SINGLE = 64  # ages of one step each; then 32 ages for each doubling of the steps
STEPS_MAX = 1 << 20
TABLE_BITS = 12  # longest age in the lookup table, in steps; longer ages are divided by 64 first
SCALE_BITS = 6
STEPS_PER_CACHE = 128  # approximately: a step is a power of two of accesses
DRAWN = 32
DRAW_BITS = 31
CLASS_BITS = 4
WEIGHT_BITS = 7  # weight of a new event; each learning step removes an eighth
FORGET_BITS = 3
DENSITY = 1 << 26  # one hit per step of time
PERIOD_MIN = 1 << 14  # accesses between two learning steps
PERIOD_PER_PAGE = 4
CLOCK, DRAWS, HELD, NEXT = range(4)


@by_page("position")
@policy
class LHD(NamedTuple):
    """Events of pages by class and age, the hit densities from them, and the cached pages."""

    pages: int
    shift: int  # log2 of the accesses in a step
    width: Ints  # by age: number of steps
    age_of: Int32s  # by steps
    hits: NDArray[Any]  # [class, age]
    evictions: NDArray[Any]
    density: NDArray[Any]
    position: Int32s  # by page: in `held`
    held: Int32s  # cached pages, in any order
    stamp: Ints  # by position: clock of the last use, and in the low bits the class, 0 until a hit
    state: Ints  # [CLOCK, DRAWS, HELD, clock of the NEXT learning]

    @classmethod
    def new(cls, ids: int, pages: int) -> LHD:
        """Start without events: the older a page, the lower its density."""
        ages = np.arange(AGES + 1)
        octave = np.maximum(ages // (SINGLE // 2) - 1, 0)
        steps = (ages - octave * (SINGLE // 2)) << octave  # the first of each age; the last's end
        density = np.tile(DENSITY // (steps[:-1] + 1), (CLASSES, 1))
        age_of = np.repeat(np.arange(AGES, dtype=np.int32), np.diff(steps))
        return filled(
            cls,
            ids,
            pages=pages,
            shift=(pages // STEPS_PER_CACHE).bit_length(),
            width=np.diff(steps),
            age_of=age_of[: 1 << TABLE_BITS],
            hits=np.zeros((CLASSES, AGES), np.int64),
            evictions=np.zeros((CLASSES, AGES), np.int64),
            density=density,
            state=np.array([0, 0, 0, max(PERIOD_PER_PAGE * pages, PERIOD_MIN)]),
        )

    def grown(self, ids: int) -> LHD:
        """Return the same policy with room for `ids` pages."""
        return self._replace(
            position=longer(self.position, ids),
            held=longer(self.held, ids),
            stamp=longer(self.stamp, ids),
        )

    @method
    def missed(self, page):
        """Advance the clock."""
        self.tick()

    @method
    def admit(self, page):
        """Add a page."""
        at = self.state[HELD]
        self.state[HELD] += 1
        self.position[page] = at
        self.held[at] = page
        self.stamp[at] = self.state[CLOCK] << CLASS_BITS

    @method
    def touch(self, page):
        """Record a hit; the page changes its class."""
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
        """Remove a page: the last one takes its position."""
        self.state[HELD] -= 1
        last, at = self.state[HELD], self.position[page]
        self.held[at] = self.held[last]
        self.stamp[at] = self.stamp[last]
        self.position[self.held[at]] = at

    @method
    def evict(self):
        """Remove and return the page of the lowest density of those drawn, or -1."""
        if self.state[HELD] == 0:
            return -1
        victim, lowest, draws = 0, np.int64(1) << 62, self.state[DRAWS]
        for draw in range(draws, draws + DRAWN):
            at = mixed(draw) * self.state[HELD] >> DRAW_BITS
            promise = self.promise(self.stamp[at])
            if promise < lowest:
                victim, lowest = at, promise
        self.state[DRAWS] += DRAWN
        stamp, page = self.stamp[victim], self.held[victim]
        age = self.age(self.steps_since(stamp))
        self.evictions[stamp & (CLASSES - 1), age] += 1 << WEIGHT_BITS
        self.remove(page)
        return page

    @method
    def promise(self, stamp):
        """Return the expected hits per step of time."""
        return self.density[stamp & (CLASSES - 1), self.age(self.steps_since(stamp))]

    @method
    def steps_since(self, stamp):
        """Return the steps since the last use of a page."""
        return (self.state[CLOCK] - (stamp >> CLASS_BITS)) >> self.shift

    @method
    def age(self, steps):
        """Return the age for a number of steps, in coarser units the larger it is."""
        age = 0
        steps = min(steps, STEPS_MAX)
        while steps >> TABLE_BITS > 0:
            steps >>= SCALE_BITS
            age += SCALE_BITS * SINGLE // 2
        return min(age + self.age_of[steps], OLDEST)

    @method
    def tick(self):
        """Count an access; learn periodically."""
        self.state[CLOCK] += 1
        if self.state[CLOCK] == self.state[NEXT]:
            self.state[NEXT] += max(PERIOD_PER_PAGE * self.pages, PERIOD_MIN)
            self.learn()

    @method
    def learn(self):
        """Compute the densities from the events, and reduce the weight of these events."""
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
