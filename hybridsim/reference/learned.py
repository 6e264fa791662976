"""The learned policy (2.4.1): admits pages of high expected value, evicts those of lowest.

Classes of accesses: by the history of the page, its request and its region.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from hybridsim.foundation.cache_parameters import WRITE_PRICE, BudgetParameters
from hybridsim.reference.policies import Admission, Drawn, Replacement, mixed

AGES = 52
STARTS = [0, *sorted([1 << k for k in range(1, 27)] + [3 << k for k in range(26)])]
WEIGHT = 16
FORGET = 256 * WEIGHT
PRIOR = 8 * WEIGHT
DOUBT = 16 * WEIGHT


def age_of(time: int) -> int:
    """Return the age class of a time in accesses: two per octave, times below 2 together."""
    return min(bisect_right(STARTS, time) - 1, AGES - 1)


def span(age: int) -> int:
    """Return the length of an age in accesses."""
    return STARTS[age + 1] - STARTS[age]


def eighths(time: int) -> int:
    """Return log2 of a time in eighths, at most 211."""
    octave = time.bit_length() - 1
    return min(8 * octave + (8 * time >> octave) - 8, 211)


def exceeded(count: int, bounds: tuple[int, ...]) -> int:
    """Return the number of bounds that a count exceeds."""
    return sum(count > bound for bound in bounds)


class Regions:
    """Runs, last touch and mean gap of each region; regions with equal hashes are one."""

    def __init__(self) -> None:
        self.touched: dict[int, int] = {}
        self.end: dict[int, int] = {}
        self.run: dict[int, int] = {}
        self.gap: dict[int, int] = {}  # mean, as 64 log2
        self.here = self.rest = self.size = self.pace = 0

    def request(self, offset: int, length: int, clock: int) -> None:
        """Record the region, run and size of a request."""

        def place(byte: int) -> int:
            return mixed(byte // 2**20) % 2**14

        before, first, self.here = place(offset - 1), place(offset), place(offset + length - 1)
        run = self.run[before] if self.end.get(before) == offset else 0
        self.rest, self.pace = 0, 255
        if first in self.touched:
            idle = clock - self.touched[first]
            self.rest = min(1 + idle.bit_length() // 2, 13)
            gap = 8 * eighths(max(idle, 1))
            mean = self.gap.get(first, gap)
            mean += (gap - mean) // 8
            self.pace = mean // 8
            self.gap[first] = max(mean, 1)
        self.size = exceeded(length, (4096, 16384, 65536))
        self.touched[first] = self.touched[self.here] = clock
        self.end[self.here] = offset + length
        self.run[self.here] = run

    def position(self) -> int:
        """Return the class of the next page's position in its run."""
        run = self.run.get(self.here, 0)
        self.run[self.here] = run + 1
        return exceeded(run, (0, 3, 31))


class Sizes:
    """What pages of requests of each size save, as a part of what their classes do."""

    def __init__(self) -> None:
        self.saved = [64.0] * 8
        self.expected = [64.0] * 8
        self.part = [1.0] * 8

    def learn(self, size: int, saved: float, expected: float) -> None:
        """Add a touch of a page whose last request had this size."""
        self.saved[size] += saved
        self.expected[size] += expected
        if self.expected[size] > 512:
            self.saved[size] /= 2
            self.expected[size] /= 2
        self.part[size] = self.saved[size] / self.expected[size]


@dataclass
class Page:
    """The access history of a page."""

    clock: int  # of its last access
    kind: int  # class of its last access
    size: int  # of its last request, in octaves of pages
    count: int = 1
    mean: int = 0  # mean gap between accesses, as 32 log2

    def record_access(self, clock: int, write: int, pace: int) -> None:
        """Record an access; the class includes the gap before it."""
        gap, count = eighths(clock - self.clock), self.count
        if count == 1:
            self.mean = 4 * gap
        else:
            if 4 * gap > self.mean + 128:
                count = 1
            self.mean += (4 * gap - self.mean) // 2 ** (1 + exceeded(count, (2, 7, 16)))
        usual = self.mean // 4
        turn = 0 if gap < usual - 12 else 2 if gap > usual + 4 else 1
        often = exceeded(self.count, (1, 2, 4, 8, 16))
        heat = exceeded(pace, (64, 96))
        group = (write * 6 + often) * 53 + usual // 4
        self.kind = 448 + (group * 3 + turn) * 3 + heat
        self.count = min(count + 1, 17)
        self.clock = clock


class Row:
    """The statistics of one or more classes."""

    def __init__(self, parent: Coarser | None) -> None:
        self.parent = parent
        self.touched = [0] * AGES
        self.reached = [0] * AGES
        self.reward = 0.0  # mean reward of a touch, in disk reads
        self.heard = 0  # rewards in the mean, at most 256

    def add_reward(self, reward: float) -> None:
        """Add the reward of a touch to the running means."""
        self.heard = min(self.heard + 1, 256)
        self.reward += (reward - self.reward) / self.heard
        if self.parent:
            self.parent.add_reward(reward)

    def chances(self) -> list[float]:
        """Return the probability of a touch at each age, given that the age is reached."""
        prior: Sequence[float] = self.parent.source.chance if self.parent else [0.0] * AGES
        at_risk = [
            (entered + touched + left) / 2  # those that are still at the age count half
            for entered, touched, left in zip(
                self.reached, self.touched, [*self.reached[1:], 0], strict=True
            )
        ]
        return [
            min((touched + PRIOR * before) / (exposed + PRIOR), 1.0)
            for touched, exposed, before in zip(self.touched, at_risk, prior, strict=True)
        ]

    def hand_up(self) -> None:
        """Add the counts to the parent."""
        if self.parent:
            for age in range(AGES):
                self.parent.touched[age] += self.touched[age]
                self.parent.reached[age] += self.reached[age]


class Coarser(Row):
    """A group of classes; `touched` and `reached` are the sums of the current round."""

    def __init__(self, parent: Coarser | None) -> None:
        super().__init__(parent)
        self.chance = [0.0] * AGES
        self.source = self  # the row whose chances it has

    def take_turn(self) -> bool:
        """Update the chances after all classes below have added their counts, if there are any."""
        if self.reached[0] == 0:
            self.source = self.parent.source if self.parent else self
            return False
        self.source = self
        self.chance = self.chances()
        self.hand_up()
        self.touched = [0] * AGES
        self.reached = [0] * AGES
        return True


class Class(Row):
    """A class, and the value of its pages."""

    parent: Coarser

    def __init__(self, parent: Coarser) -> None:
        super().__init__(parent)
        self.is_used = False
        self.value = 0.0
        self.sure = 0.0
        self.density = array("f", [0.0] * AGES)  # in single precision

    def forget(self) -> None:
        """Halve the counts when they reach the limit."""
        if self.reached[0] >= FORGET:
            self.touched = [each // 2 for each in self.touched]
            self.reached = [each // 2 for each in self.reached]

    def expected_reward(self) -> float:
        """Return the expected reward of a touch, in disk reads."""
        return (self.reward * self.heard + 8 * self.parent.reward) / (self.heard + 8)

    def appraise(self, ages: int, border: int, rent: float) -> None:
        """Compute the value of the class's pages for the first `ages` ages."""
        reward = self.expected_reward()
        chances = self.chances()[:ages]
        times = [span(age) * (1 - 0.5 * chance) for age, chance in enumerate(chances)]
        value = 0.0
        for chance, time in reversed([*zip(chances, times, strict=True)]):
            value = max(chance * reward + (1 - chance) * value - rent * time, 0.0)
        observed = sum(self.touched[:border]) + self.reached[border]
        self.value = value
        self.sure = value * (observed / (observed + DOUBT))
        behind: list[tuple[float, float, float]] = []  # blocks: chance, time, survival
        for age in reversed(range(ages)):
            chance, time, survival = chances[age], times[age], 1 - chances[age]
            while behind and behind[-1][0] * time > chance * behind[-1][1]:
                its_chance, its_time, its_survival = behind.pop()
                chance += survival * its_chance
                time += survival * its_time
                survival *= its_survival
            behind.append((chance, time, survival))
            self.density[age] = chance * reward / time


def rows() -> list[Class | Coarser]:
    """Return the classes in order of their numbers, then the groups in theirs."""
    whole = Coarser(None)
    groups = {key: Coarser(whole) for key in product(range(2), range(4), range(27))}
    firsts = [Coarser(whole) for _write, _position, _rest in product(*map(range, (2, 4, 14)))]
    agains = [
        Coarser(groups[write, min(often, 3), gap // 2])
        for write, often, gap, _turn in product(*map(range, (2, 6, 53, 3)))
    ]
    classes = [Class(row) for row in firsts for _size in range(4)]
    classes += [Class(row) for row in agains for _heat in range(3)]
    return [*classes, *firsts, *agains, *groups.values(), whole]


RING = 2**18  # maximum number of samples in observation
EARLY = 2**17  # accesses at the start, in which each request is sampled
ALL = 2**31  # share of the requests
LOOKED = 16  # maximum number of rows visited at one update
USUAL = 2**16  # page size in bytes that the price of writing refers to
TOGETHER = 64  # maximum distance in accesses of pages that are evicted together
PENDING = 64  # maximum number of touches of one request that wait for their reward


@dataclass
class Sample:
    """An access that is observed until its page is touched again."""

    page: int
    row: Class
    size: int  # of its request
    clock: int
    time: int | None = None  # until its page was touched again


@dataclass
class Touch:
    """A page of the request under way was touched again."""

    row: Class  # class of the sample
    size: int  # of the sample's request
    is_held: bool
    kept: float  # saved in addition to the read


class Learned(Admission, Replacement):
    """Admission and replacement in one, or one of them combined with another policy.

    Times are in page accesses (`clock`), values and prices in disk reads.
    """

    def __init__(
        self,
        pages: int,
        price: int = round(1000 * WRITE_PRICE),
        admits: bool = True,
        replaces: bool = True,
        page_bytes: int = USUAL,
    ) -> None:
        self.page_bytes = page_bytes
        self.reading = min(price / 1000 * 0.875, 0.7)  # cost of reading for a fill, in disk reads
        self.writing = (price / 1000 - self.reading) * min(page_bytes / USUAL, 1.0)
        self.own_price = self.writing + self.reading  # of a fill of the current request
        self.overprice = 0.0  # surcharge of a write budget, which grows as that is used up
        self.limit = max(pages, 1)
        self.taken = 0  # pages admitted before there are statistics
        self.admits = admits
        self.replaces = replaces
        self.clock = 0
        self.regions = Regions()
        self.sizes = Sizes()
        self.size = 0  # of the request: octave of its pages, at most 7
        self.pages: dict[int, Page] = {}
        self.rows = rows()
        self.turn = 0  # number of the next row to update
        self.rent = 0.0  # moving average of the density of victims
        self.samples: list[Sample] = []
        self.open: dict[int, Sample] = {}  # by page: samples whose page was not touched again
        # By age: the number of the first sample that has not yet been checked at that age.
        self.passed = [0] * AGES
        self.touches: list[Touch] = []
        self.accessed = {False: 0, True: 0}  # pages of the request: missing, held
        self.horizon = 2 * pages * 64  # 64 times the usual age of victims
        self.fours = 1  # of pages of the request
        self.mean_fours = 64  # 64 times their mean
        self.share = self.sampled_share()
        self.held = Drawn()
        # Of each held page: class, clock and size of its last access, and whether it was accessed.
        self.promise: dict[int, tuple[Class, int, int, bool]] = {}
        self.victim: int | None = None
        self.ring: list[int] = []  # pages of the current request
        self.before: dict[int, int] = {}  # the page that was accessed just before a page
        # The last victim: page, class, clock and size of its last touch.
        self.last_evicted: tuple[int, Class, int, int] | None = None
        self.evicted_at = 0  # clock of that eviction

    @property
    def price(self) -> float:
        """The price of a fill now, in disk reads."""
        return self.own_price + self.overprice

    @property
    def border(self) -> int:
        """The age at which pages are usually evicted."""
        return min(age_of(self.horizon // 64) + 1, AGES - 1)

    def sampled_share(self) -> int:
        """Return the share of the requests of which pages are sampled: half of them at most."""
        period = max(self.horizon // 64 // 2**15, 1)
        return min(ALL // period * self.mean_fours // 64, ALL // 2)

    def request(self, offset: int, length: int, write: bool) -> None:
        """Settle the touches of the last request; record the place and price of this one."""
        if self.ring:
            self.before[self.ring[0]] = self.ring[-1]
        self.ring = []
        self.settle(self.accessed[False], self.accessed[True])
        self.accessed = {False: 0, True: 0}
        self.regions.request(offset, length, self.clock)
        size, end = self.page_bytes, offset + length
        pages = (end - 1) // size - offset // size + 1
        whole = max(end // size - (offset + size - 1) // size, 0)
        self.own_price = self.writing + self.reading * (pages - whole) / pages
        self.size = min(pages.bit_length() - 1, 7)
        self.fours = (pages + 3) // 4
        self.mean_fours += self.fours - self.mean_fours // 64

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Learn from an access; return whether its page should be admitted.

        Its value is compared with the price of a fill and with the value of the victim.
        """
        is_new, is_held = page not in self.pages, page in self.promise
        row = self.on_access(page, write)
        if not full or (self.taken < self.limit and not is_new and not is_held):
            self.taken += not is_held
            return True
        part = self.sizes.part[self.size]
        if row.sure * part < self.price or page in self.promise:
            return False
        if not self.held:
            return True
        self.victim = self.choose()
        density = self.density(self.victim)
        self.rent += (density - self.rent) / 64
        return row.density[0] * part >= density

    def on_access(self, page: int, write: bool) -> Class:
        """Learn from an access; return its class."""
        if self.ring:
            self.before[page] = self.ring[-1]
        self.ring.append(page)
        row = self.classify(page, int(write))
        row.is_used = True
        is_held = page in self.promise
        self.accessed[is_held] += 1
        if page in self.open:
            self.close(self.open.pop(page), min(row.value, self.price), is_held)
        share = ALL if self.clock < EARLY else self.share
        if mixed(self.clock) * self.fours < share:
            self.observe(Sample(page, row, self.size, self.clock))
        turn = self.clock % 64
        if 0 < turn < AGES:
            self.count_reached(turn)
        if turn % min(1 + self.clock // 2**16, 8) == 0:
            self.update_rows()
        self.clock += 1
        self.victim = None
        return row

    def classify(self, number: int, write: int) -> Class:
        """Update the history of a page; return the class of the access."""
        position = self.regions.position()
        if number in self.pages:
            self.pages[number].record_access(self.clock, write, self.regions.pace)
            self.pages[number].size = self.size
        else:
            kind = ((write * 4 + position) * 14 + self.regions.rest) * 4 + self.regions.size
            self.pages[number] = Page(self.clock, kind, self.size)
        return self.class_of(number)

    def class_of(self, page: int) -> Class:
        """Return the class of a page's last access; the first class if never accessed."""
        row = self.rows[self.pages[page].kind if page in self.pages else 0]
        assert isinstance(row, Class)
        return row

    def close(self, sample: Sample, kept: float, is_held: bool) -> None:
        """Close a sample whose page was touched again."""
        sample.time = self.clock - sample.clock
        sample.row.touched[age_of(sample.time)] += WEIGHT
        if len(self.touches) == PENDING:
            self.settle(1, PENDING)
        self.touches.append(Touch(sample.row, sample.size, is_held, kept))

    def settle(self, missed: int, held: int) -> None:
        """Reward the touches of a request; its missing and held pages share one read."""
        for touch in self.touches:
            others = (held + 1) // 2 if touch.is_held else 0
            reward = 1 / max(missed + others, 1) + touch.kept
            self.sizes.learn(touch.size, reward, touch.row.expected_reward())
            touch.row.add_reward(reward)
        self.touches = []

    def observe(self, sample: Sample) -> None:
        """Add a sample; drop the oldest one from observation."""
        if len(self.samples) >= RING:
            oldest = self.samples[-RING]
            if oldest.time is None:
                del self.open[oldest.page]
        self.samples.append(sample)
        self.open[sample.page] = sample
        sample.row.reached[0] += WEIGHT
        sample.row.forget()

    def count_reached(self, age: int) -> None:
        """Count the samples that have reached an age."""
        for number in range(max(self.passed[age], len(self.samples) - RING), len(self.samples)):
            sample = self.samples[number]
            if self.clock - sample.clock < STARTS[age]:
                self.passed[age] = number
                return
            if sample.time is None or sample.time >= STARTS[age]:
                sample.row.reached[age] += WEIGHT
        self.passed[age] = len(self.samples)

    def update_rows(self) -> None:
        """Visit the next rows, up to the first that computes something."""
        for _ in range(LOOKED):
            row = self.rows[self.turn]
            self.turn = (self.turn + 1) % len(self.rows)
            if isinstance(row, Coarser):
                if row.take_turn():
                    return
                continue
            if row.reached[0] > 0:
                row.hand_up()
            if row.is_used:
                row.is_used = False
                row.appraise(age_of(self.clock) + 1, self.border, self.rent)
                return

    def evicted(self, page: int) -> None:
        """Update the horizon, and the rent if another policy chose the victim."""
        age = self.clock - self.pages[page].clock
        self.horizon += age - self.horizon // 64
        self.share = self.sampled_share()
        if not self.replaces:
            density = self.class_of(page).density[age_of(age)]
            self.rent += (density * self.sizes.part[self.pages[page].size] - self.rent) / 64

    def missed(self, page: int) -> None:
        """Record a miss; a victim that is missed at once could not be evicted."""
        last = self.last_evicted
        if last is not None and (last[0], self.evicted_at) == (page, self.clock):
            self.last_evicted = None
        if not self.admits:
            self.on_access(page, False)

    def touch(self, page: int) -> None:
        """Update the value of a touched page."""
        if not self.admits:
            self.on_access(page, False)
        self.note(page)

    def note(self, page: int) -> None:
        """Record the class and clock of a held page's last access."""
        known = self.pages.get(page)
        clock, size = (known.clock, known.size) if known else (self.clock, 0)
        self.promise[page] = self.class_of(page), clock, size, known is not None

    def admit(self, page: int) -> None:
        """Append a new page."""
        self.held.append(page)
        self.note(page)

    def remove(self, page: int) -> None:
        """Remove a page."""
        del self.promise[page]
        self.held.remove(page)

    def density(self, page: int) -> float:
        """Return the density of a held page at its age."""
        return self.density_of(*self.promise[page][:3])

    def density_of(self, row: Class, clock: int, size: int) -> float:
        """Return the density of a page of a class, touched at `clock` in a request of a size."""
        return row.density[age_of(self.clock - clock)] * self.sizes.part[size]

    def choose(self) -> int:
        """Choose the companion of the last victim if it is worth less; otherwise draw."""
        if self.last_evicted is not None:
            page, row, clock, size = self.last_evicted
            companion = self.before.get(page)
            if companion in self.promise:
                is_together = abs(self.promise[companion][1] - clock) < TOGETHER
                if is_together and self.density(companion) <= self.density_of(row, clock, size):
                    return companion
        return self.draw()

    def draw(self) -> int:
        """Draw 32 pages; return the one of least density, of equals the one untouched longest."""
        return min(
            self.held.draw(),
            key=lambda page: (self.density(page), self.promise[page][1], self.promise[page][3]),
        )

    def evict(self) -> int:
        """Evict the page that the new one was compared with, if it is still held."""
        if not self.held:
            return -1
        victim, self.victim = self.victim, None
        if victim is None or victim not in self.promise:
            victim = self.choose()
        self.last_evicted, self.evicted_at = (victim, *self.promise[victim][:3]), self.clock
        self.remove(victim)
        if not self.admits and victim in self.pages:
            self.evicted(victim)
        return victim


# A write budget (2.4.4).

ACCESS = 2**20


class Budgeted:
    """Two policies, or one that is both, within a write budget."""

    def __init__(
        self, admission: Admission, replacement: Replacement, pages: int, budget: BudgetParameters
    ) -> None:
        self.admission = admission
        self.replacement = replacement
        self.parameters = budget
        self.fills = pages + budget.burst  # that remain; an empty cache has more
        self.clock = 0
        self.paid: int | None = None
        self.last_victim: int | None = None
        self.request = admission.request
        self.evicted = admission.evicted
        self.admit = replacement.admit
        self.touch = replacement.touch
        self.remove = replacement.remove

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Refuse every page when no fill remains."""
        self.last_victim = None
        self.go_on(now)
        if isinstance(self.admission, Learned):
            short = max(self.parameters.burst - self.fills, 0)
            self.admission.overprice = short / max(self.fills, 1)
        return self.admission.consider(now, page, write, full) and self.fills > 0

    def go_on(self, now: int) -> None:
        """Advance the clock and add the fills that have accrued."""
        p = self.parameters
        self.clock = self.clock + ACCESS if p.counts_accesses else max(self.clock, now)
        if self.paid is None:
            self.paid = self.clock
        while self.clock - self.paid >= p.interval:
            self.paid += p.interval
            self.fills += self.fills < p.burst

    def missed(self, page: int) -> None:
        """Charge a fill, unless the page was just chosen as a victim and could not be evicted."""
        self.fills -= page != self.last_victim
        self.replacement.missed(page)

    def evict(self) -> int:
        """Return the victim of the replacement policy, and remember it."""
        self.last_victim = page = self.replacement.evict()
        return page
