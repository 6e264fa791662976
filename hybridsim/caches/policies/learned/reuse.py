"""Whether and when pages are touched again, learned for classes of accesses by sampling.

For each class of accesses and each age since then the policy counts the samples that reached the
age untouched and those that were touched at it: the hazard, which also uses open samples.  Of those
that are still at the age, half count.  A class with few samples is completed by the coarser class
above it, and that by the next one; one without any is left out.

The value of caching a page is computed from the chances of a touch at each age:

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

from hybridsim.caches.policies.learned.habits import (
    AGES,
    PAGE_COUNTS,
    STARTS,
    age_of,
    class_of,
    clock_of,
    is_sampled,
    size_in,
)
from hybridsim.foundation.arrays import Bytes, Floats, Int32s, Ints, Records, longer, records
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.instructions import along, by_page, prefetch
from hybridsim.jit.mixing import mixed

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


RING_BITS = 18
RING = 1 << RING_BITS  # samples
ALL = 1 << 31  # share of the requests
SHARE_MAX = ALL // 2  # of the requests of which pages are sampled
TURNS = 64  # accesses in which each age is looked at
COVERED_BITS = 3  # the ring covers 2 to this horizons
WEIGHT = 16  # of a sample
FORGET = 256 * WEIGHT  # weight at which the counts of a class are halved
EARLY = 1 << 17  # first accesses: each request is sampled
ROW_EVERY = 8  # accesses; at first each one, so that values are learned soon
SLOWER_BITS = 16  # accesses after which it is one access more
AHEAD = 16  # samples that are fetched from memory early
LOOKED = 16  # rows searched for one that was used
REWARD_MAX, REWARD_PRIOR = 256, 8
PENDING_MAX = 64  # touches of a request
OPEN, NONE = 255, -1
MEAN_BITS = 6
HEAD, HORIZON, BORDER, SHARE, ROW, PENDING, FOURS, MEAN_FOURS = range(8)
TOUCHED, REACHED = 0, 1
GROUP, IS_HELD, SIZE = range(3)

SAMPLE = np.dtype(
    [
        ("clock", np.int64),
        ("page", np.int32),
        ("group", np.uint16),  # its class
        ("age", np.uint8),  # at which its page was touched again, or OPEN
    ],
    align=True,
)


@by_page("sample")
@state_machine
class Reuse(NamedTuple):
    """The counts, and the samples under observation."""

    classes: int
    parent: Ints  # by row: the coarser row; the last row includes all
    touched: Int32s  # [class, age]: weight of samples touched at that age
    reached: Int32s  # [class, age]: weight of samples not touched before
    seen: Ints  # by class: samples, for reports only
    gathered: Ints  # [row after the classes, TOUCHED or REACHED, age]: sums of the rows below it
    chance: Floats  # [row after the classes, age]: of a touch
    source: Ints  # by row after the classes: the row with samples whose chances it has
    reward: Floats  # by row: of a touch, in disk reads
    heard: Ints  # by row: touches that the reward was learned from
    is_used: Bytes  # by class: whether it was used since it was appraised
    worth: Worth
    starts: Ints  # by age
    sample: Int32s  # by page: its open sample's place, or NONE
    samples: Records  # SAMPLE: a ring
    passed: Ints  # by age: number of samples already checked for reaching it
    pending: Ints  # [touch in the current request, GROUP, IS_HELD or SIZE]
    kept: Floats  # by such a touch: its saving besides the read
    # [HEAD, HORIZON in 64ths, BORDER: its age, SHARE of ALL requests of which pages are sampled,
    # ROW, PENDING, FOURS of pages of the request, their mean in 64ths]
    state: Ints

    @classmethod
    def new(cls, ids: int, pages: int, parent: Ints, classes: int, worth: Worth) -> Reuse:
        """Return an empty structure."""
        rows = len(parent)
        reuse = cls(
            classes,
            parent,
            np.zeros((classes, AGES), np.int32),
            np.zeros((classes, AGES), np.int32),
            np.zeros(classes, np.int64),
            np.zeros((rows - classes, 2, AGES), np.int64),
            np.zeros((rows - classes, AGES)),
            np.arange(rows - classes),
            np.zeros(rows),
            np.zeros(rows, np.int64),
            np.zeros(classes, np.uint8),
            worth,
            np.array(STARTS),
            np.full(ids, NONE, np.int32),
            records(SAMPLE, RING),
            np.zeros(AGES, np.int64),
            np.zeros((PENDING_MAX, 3), np.int64),
            np.zeros(PENDING_MAX),
            np.array([0, 0, 0, 0, 0, 0, 1, 1 << MEAN_BITS]),
        )
        reuse.state[HORIZON] = 2 * pages << MEAN_BITS
        reuse.stays(2 * pages)
        return reuse

    def grown(self, ids: int) -> Reuse:
        """Return the same structure with room for `ids` pages."""
        return self._replace(sample=longer(self.sample, ids, NONE))

    @method
    def request(self, pages):
        """Take a request of this many pages before its pages."""
        fours = (pages + 3) >> 2
        self.state[FOURS] = fours
        self.state[MEAN_FOURS] += fours - (self.state[MEAN_FOURS] >> MEAN_BITS)

    @method
    def on_access(self, page, before, group, clock, is_held):
        """Learn from an access of a class; return whether it is sampled.

        `before` is the stamp of the page's last access.
        """
        self.is_used[group] = 1
        if is_sampled(before) and self.sample[page] != NONE:
            self.close(page, before, group, clock, is_held)
        share = ALL if clock < EARLY else self.state[SHARE]
        is_observed = mixed(clock) * self.state[FOURS] < share
        if is_observed:
            self.observe(page, group, clock)
        turn = clock & (TURNS - 1)
        if 0 < turn < AGES:
            self.look_at_age(turn, clock)
        if turn % min(1 + (clock >> SLOWER_BITS), ROW_EVERY) == 0:
            self.go_on(clock)
        return is_observed

    @method
    def close(self, page, before, group, clock, is_held):
        """Record that the page of a sample was touched again: its stamp has what the sample has."""
        age, sampled = age_of(clock - clock_of(before)), class_of(before)
        self.samples[self.sample[page]].age = age
        self.sample[page] = NONE
        self.touched[sampled, age] += WEIGHT
        if self.state[PENDING] == PENDING_MAX:
            self.settle(1, PENDING_MAX)
        touch = self.state[PENDING]
        self.pending[touch, GROUP] = sampled
        self.pending[touch, IS_HELD] = is_held
        self.pending[touch, SIZE] = size_in(before)
        self.kept[touch] = self.worth.kept(group)
        self.state[PENDING] = touch + 1

    @method
    def settle(self, missed, held):
        """Learn the reward of the touches of a request, when its misses are known.

        A page that alone was missing would have saved the read; of several pages each saves a part.
        Cached ones count half: each of them is needed, but none is enough.
        """
        for touch in range(self.state[PENDING]):
            others = (held + 1) >> 1 if self.pending[touch, IS_HELD] else 0
            reward = 1.0 / max(missed + others, 1) + self.kept[touch]
            group = self.pending[touch, GROUP]
            self.worth.learn_part(self.pending[touch, SIZE], reward, self.rewarded(group))
            self.learn_reward(group, reward)
        self.state[PENDING] = 0

    @method
    def learn_reward(self, group, reward):
        """Update the mean reward of a class and of the coarser ones."""
        for row in along(group, self.parent):
            count = min(self.heard[row] + 1, REWARD_MAX)
            self.heard[row] = count
            self.reward[row] += (reward - self.reward[row]) / count

    @method
    def rewarded(self, row):
        """Return the expected reward of a touch of a page of this class, in disk reads."""
        count, above = self.heard[row], self.reward[self.parent[row]]
        return (self.reward[row] * count + above * REWARD_PRIOR) / (count + REWARD_PRIOR)

    @method
    def observe(self, page, group, clock):
        """Start a sample, in place of the oldest one."""
        at = self.state[HEAD] % RING
        sample = self.samples[at]
        if self.state[HEAD] >= RING and sample.age == OPEN:
            self.sample[sample.page] = NONE
        self.state[HEAD] += 1
        self.sample[page] = at
        sample.clock = clock
        sample.page = page
        sample.group = group
        sample.age = OPEN
        self.seen[group] += 1
        self.reached[group, 0] += WEIGHT
        if self.reached[group, 0] >= FORGET:
            for age in range(AGES):
                self.reached[group, age] >>= 1
                self.touched[group, age] >>= 1

    @method
    def look_at_age(self, age, clock):
        """Count the samples that have reached an age since its last check."""
        head, latest = self.state[HEAD], clock - self.starts[age]
        number = max(self.passed[age], head - RING)
        samples, reached = self.samples, self.reached
        while number < head and samples[number % RING].clock <= latest:
            sample = samples[number % RING]
            prefetch(samples, (number + AHEAD) % RING)
            reached[sample.group, age] += WEIGHT * int(sample.age >= age)  # OPEN is beyond all ages
            number += 1
        self.passed[age] = number

    @method
    def go_on(self, clock):
        """Process some rows, up to the next one to be computed: a class that was used."""
        for _ in range(LOOKED):
            row = self.state[ROW]
            self.state[ROW] = row + 1 if self.parent[row] != NONE else 0
            above = self.parent[row] - self.classes
            if row >= self.classes:
                coarser = row - self.classes
                if self.gathered[coarser, REACHED, 0] == 0:
                    self.source[coarser] = self.source[above] if above >= 0 else coarser
                    continue
                self.source[coarser] = coarser
                self.publish(coarser, above)
                return
            if self.reached[row, 0] > 0:
                self.gather(above, self.touched[row], self.reached[row])
            if self.is_used[row]:
                self.is_used[row] = 0
                self.worth.appraise(
                    row,
                    self.touched[row],
                    self.reached[row],
                    self.chance[self.source[above]],
                    self.rewarded(row),
                    age_of(clock) + 1,
                    self.state[BORDER],
                )
                return

    @method
    def gather(self, row, touched, reached):
        """Add the counts of a class to those of a coarser one."""
        all_touched, all_reached = self.gathered[row, TOUCHED], self.gathered[row, REACHED]
        for age in range(AGES):
            all_touched[age] += touched[age]
        for age in range(AGES):
            all_reached[age] += reached[age]

    @method
    def publish(self, row, above):
        """Compute the chances of a coarser class after all classes below it were gathered."""
        touched, reached = self.gathered[row, TOUCHED], self.gathered[row, REACHED]
        chance = self.chance[row]
        if above >= 0:
            known = self.chance[self.source[above]]
            find_chances(chance, touched, reached, known, AGES)
            self.gather(above, touched, reached)
        else:
            for age in range(AGES):
                chance[age] = chance_of(touched, reached, age, 0.0)
        for age in range(AGES):
            touched[age] = reached[age] = 0

    @method
    def evicted(self, time):
        """Update the mean time from a page's last use to its eviction."""
        mean = self.state[HORIZON]
        self.state[HORIZON] = mean + time - (mean >> MEAN_BITS)
        self.stays(self.state[HORIZON] >> MEAN_BITS)

    @method
    def stays(self, time):
        """Set the horizon and the sampling rate.

        Of a sampled request about four pages are sampled, as its pages come and go together: more
        of them would count one observation as many, and outweigh what other requests show.
        """
        self.state[BORDER] = min(age_of(time) + 1, AGES - 1)
        period = max(time >> RING_BITS - COVERED_BITS, 1)
        self.state[SHARE] = min(ALL // period * self.state[MEAN_FOURS] >> MEAN_BITS, SHARE_MAX)
