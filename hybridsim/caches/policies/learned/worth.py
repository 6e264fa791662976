"""What a page is worth in the cache: computed from the chances of a touch at each age.

density  what a page of a class and age brings in its room's time, up to the best moment to give it
         up (the Gittins index: J. C. Gittins, "Bandit processes and dynamic allocation indices",
         J. R. Statist. Soc. B 41, 1979)
value    what a page that was touched just now brings until then, less the rent of its room

A unit of both is a read of the disks that is saved.  Rent is what the marginal page brings: the
density of those that are about to leave.  A page that is touched saves the read, and the fill that
it would have had to have again: `kept`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybridsim.caches.policies.learned.halfoctaves import AGES, STARTS
from hybridsim.foundation.arrays import Floats
from hybridsim.jit import method, state_machine

READING_SHARE, READING_MAX = 0.8, 0.4  # of a price, in reads: half a turn, and the page
USUAL_BYTES = 1 << 16  # a page for which the price of writing is said; larger ones cost no more
PRIOR = 8 * 16.0  # weight of what is known of the coarser class
DOUBT = 16 * 16.0  # a class of which less is known is not trusted to be worth a fill
RENT_WEIGHT = 1 / 64  # of the next page that leaves
RENT, PRICE, OVER, WRITING, READING = range(5)
CHANCE, TIME, SURVIVAL, BEST, BEST_TIME = range(5)


@state_machine
class Worth(NamedTuple):
    """What pages are worth, by class."""

    density: NDArray[Any]  # [class, age]: for each access of time, float32
    value: Floats  # by class
    sure: Floats  # by class: value, less where little is known
    span: Floats  # by age: its accesses
    work: Floats  # [CHANCE.., depth or age]
    state: Floats  # [RENT of a place for an access; in reads: PRICE of a fill now, OVER it, parts]

    @classmethod
    def new(cls, classes: int, price: float, page_bytes: int) -> Worth:
        """Know nothing."""
        reading = min(price * READING_SHARE, READING_MAX)
        writing = (price - reading) * min(page_bytes / USUAL_BYTES, 1.0)
        return cls(
            np.zeros((classes, AGES), np.float32),
            np.zeros(classes),
            np.zeros(classes),
            np.diff(np.array(STARTS)).astype(np.float64),
            np.zeros((5, AGES)),
            np.array([0.0, writing + reading, 0.0, writing, reading]),
        )

    @method
    def kept(self, group):
        """Return what it saves that a page touched is in the cache already, beside the read."""
        return min(self.value[group], self.price())

    @method
    def price(self):
        """Return what a fill of the request under way costs."""
        return self.state[PRICE] + self.state[OVER]

    @method
    def prices(self, begin, end, page_bytes):
        """Hear of a request, which may have its first and last page not as a whole."""
        first, last = begin // page_bytes, (end - 1) // page_bytes
        is_late, is_short = first * page_bytes < begin, end < (last + 1) * page_bytes
        cut = int(is_late or is_short) if first == last else int(is_late) + int(is_short)
        self.state[PRICE] = self.state[WRITING] + self.state[READING] * cut / (last - first + 1)

    @method
    def rents(self, density):
        """Learn what room is worth."""
        self.state[RENT] += (density - self.state[RENT]) * RENT_WEIGHT

    @method
    def appraise(self, group, touched, reached, above, reward, ages, border):
        """Compute what a class is worth.

        `touched` and `reached` are its weights by age, `above` the chances of the coarser class;
        `ages` are those that can occur, and up to `border` pages stay.
        """
        chance, density = self.work[CHANCE], self.density[group]
        best, best_time = self.work[BEST], self.work[BEST_TIME]
        for age in range(ages):
            chance[age] = min((touched[age] + PRIOR * above[age]) / (reached[age] + PRIOR), 1.0)
        known = reached[border]
        for age in range(border):
            known += touched[age]
        self.value[group] = self.valued(reward, ages)
        self.sure[group] = self.value[group] * (known / (known + DOUBT))
        self.find_best(ages)
        for age in range(ages):
            density[age] = best[age] * reward / best_time[age]

    @method
    def valued(self, reward, ages):
        """Return what a page brings up to the best moment to give it up, less rent."""
        value, rent = 0.0, self.state[RENT]
        for age in range(ages - 1, -1, -1):
            chance = self.work[CHANCE, age]
            time = self.span[age] * (1.0 - 0.5 * chance)
            value = max(chance * reward + (1.0 - chance) * value - rent * time, 0.0)
        return value

    @method
    def find_best(self, ages):
        """Find for each age the chance of a touch and the time up to the best moment to give up.

        A block is some ages that are best spent together.  An age joins those behind it that are
        denser; what is needed of a block lies where its depth is, in the place of ages that were
        read already.
        """
        work, depth = self.work, ages
        for age in range(ages - 1, -1, -1):
            chance = work[CHANCE, age]
            time, survival = self.span[age] * (1.0 - 0.5 * chance), 1.0 - chance
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
