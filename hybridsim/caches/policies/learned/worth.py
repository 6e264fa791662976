"""The value of caching a page, computed from the chances of a touch at each age.

density  the saving of a page of a class and age per time in the cache, up to the best moment to
         evict it (the Gittins index: J. C. Gittins, "Bandit processes and dynamic allocation
         indices", J. R. Statist. Soc. B 41, 1979)
value    the saving of a page that was just touched up to that moment, less the rent of its space

The unit of both is a disk read saved.  Rent is the density of the marginal page: of those about to
be evicted.  A touch of a cached page saves the read, and the fill that it would have needed again:
`kept`.

A touch of a page that comes in large requests saves less than one of a page that comes alone: of a
class's values each size of request has its `part`, learned as the ratio of what its touches saved
to what their classes had it.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybridsim.caches.policies.learned.habits import PAGE_COUNTS
from hybridsim.caches.policies.learned.halfoctaves import AGES, STARTS
from hybridsim.foundation.arrays import Floats
from hybridsim.jit import kernel, method, state_machine

# Of a price, in reads: reading the rest of a page for its fill.  Fitted to 66 machines under full
# timing (benchmarks/policy_fills.py): a fill took 0.54 to 0.82 of the disk time of a missed read.
READING_SHARE, READING_MAX = 0.875, 0.7
USUAL_BYTES = 1 << 16  # page size to which the price refers; larger pages cost no more
PRIOR = 8 * 16.0  # weight of the coarser class
DOUBT = 16 * 16.0  # a class with less weight than this is discounted
PART_PRIOR, PART_MAX = 64.0, 512.0  # reads expected at first, and when both sums are halved
RENT_WEIGHT = 1 / 64  # weight of the next victim in the mean
RENT, PRICE, OVER, WRITING, READING = range(5)
CHANCE, TIME, SURVIVAL, BEST, BEST_TIME = range(5)


@kernel
def chance_of(touched, reached, age, above):
    """Return the chance of a touch at an age, from weights by age; `above` is the coarser class's.

    Of the samples that reached the age some were touched at it, some have reached the next one, and
    the others are still at it: of these, which may yet be touched, half count.
    """
    later = reached[age + 1] if age + 1 < AGES else 0
    at_risk = 0.5 * (reached[age] + touched[age] + later)
    return min((touched[age] + PRIOR * above) / (at_risk + PRIOR), 1.0)


@kernel
def find_chances(chance, touched, reached, above, ages):
    """Set the chances of the first `ages` ages: chance_of(), in a form that can be vectorised."""
    for age in range(min(ages, AGES - 1)):
        at_risk = 0.5 * (reached[age] + touched[age] + reached[age + 1])
        chance[age] = min((touched[age] + PRIOR * above[age]) / (at_risk + PRIOR), 1.0)
    if ages == AGES:
        chance[AGES - 1] = chance_of(touched, reached, AGES - 1, above[AGES - 1])


@state_machine
class Worth(NamedTuple):
    """The value of pages, by class."""

    density: NDArray[Any]  # [class, age]: per access of time, float32
    value: Floats  # by class
    sure: Floats  # by class: value, discounted if there are few samples
    span: Floats  # by age: its length in accesses
    part: Floats  # by size of the request: of its class's values
    saved: Floats  # by size: reads saved by touches
    expected: Floats  # by size: the same by their classes
    work: Floats  # [CHANCE.., depth or age]
    state: Floats  # [RENT per access; in reads: PRICE of a fill, OVER it, its parts]

    @classmethod
    def new(cls, classes: int, price: float, page_bytes: int) -> Worth:
        """Return an empty structure."""
        reading = min(price * READING_SHARE, READING_MAX)
        writing = (price - reading) * min(page_bytes / USUAL_BYTES, 1.0)
        return cls(
            np.zeros((classes, AGES), np.float32),
            np.zeros(classes),
            np.zeros(classes),
            np.diff(np.array(STARTS)).astype(np.float64),
            np.ones(PAGE_COUNTS),
            np.full(PAGE_COUNTS, PART_PRIOR),
            np.full(PAGE_COUNTS, PART_PRIOR),
            np.zeros((5, AGES)),
            np.array([0.0, writing + reading, 0.0, writing, reading]),
        )

    @method
    def kept(self, group):
        """Return the saving of a hit besides the read: the page need not be filled again."""
        return min(self.value[group], self.price())

    @method
    def price(self):
        """Return the price of a fill for the current request, in disk reads."""
        return self.state[PRICE] + self.state[OVER]

    @method
    def prices(self, begin, end, page_bytes):
        """Set the price for a request, whose first and last page may be incomplete."""
        first, last = begin // page_bytes, (end - 1) // page_bytes
        is_late, is_short = first * page_bytes < begin, end < (last + 1) * page_bytes
        cut = int(is_late or is_short) if first == last else int(is_late) + int(is_short)
        self.state[PRICE] = self.state[WRITING] + self.state[READING] * cut / (last - first + 1)

    @method
    def learn_part(self, size, saved, expected):
        """Learn from a touch how much a page of a request of this size saves."""
        self.saved[size] += saved
        self.expected[size] += expected
        if self.expected[size] > PART_MAX:
            self.saved[size] *= 0.5
            self.expected[size] *= 0.5
        self.part[size] = self.saved[size] / self.expected[size]

    @method
    def rents(self, density):
        """Update the rent with the density of a victim."""
        self.state[RENT] += (density - self.state[RENT]) * RENT_WEIGHT

    @method
    def appraise(self, group, touched, reached, above, reward, ages, border):
        """Compute value and density of a class.

        `touched` and `reached` are its weights by age, `above` the chances of the coarser class;
        ages below `ages` can occur, and pages stay up to age `border`.
        """
        chance, density = self.work[CHANCE], self.density[group]
        best, best_time = self.work[BEST], self.work[BEST_TIME]
        find_chances(chance, touched, reached, above, ages)
        known = reached[border]
        for age in range(border):
            known += touched[age]
        self.value[group] = self.find_best(reward, ages)
        self.sure[group] = self.value[group] * (known / (known + DOUBT))
        for age in range(ages):
            density[age] = best[age] * reward / best_time[age]

    @method
    def find_best(self, reward, ages):
        """Compute for each age the chance of a touch and the time up to the best moment to evict.

        A block is a group of ages that are best spent together.  An age joins the following blocks
        that are denser; the values of a block are stored at its depth, in entries of ages that were
        read already.  Return the saving of a page up to the best moment to evict it, less rent:
        in the same loop, as each of the two waits for its own results most of the time.
        """
        work, depth = self.work, ages
        value, rent = 0.0, self.state[RENT]
        for age in range(ages - 1, -1, -1):
            chance = work[CHANCE, age]
            time, survival = self.span[age] * (1.0 - 0.5 * chance), 1.0 - chance
            value = max(chance * reward + survival * value - rent * time, 0.0)
            while depth < ages and work[CHANCE, depth] * time > chance * work[TIME, depth]:
                chance += survival * work[CHANCE, depth]
                time += survival * work[TIME, depth]
                survival *= work[SURVIVAL, depth]
                depth += 1
            depth -= 1
            work[CHANCE, depth] = chance
            work[TIME, depth] = time
            work[SURVIVAL, depth] = survival
            work[BEST, age] = chance
            work[BEST_TIME, age] = time
        return value
