"""The learned policy (2.4.1): admits pages of high expected value, evicts those of lowest."""

from dataclasses import dataclass

from hybridsim.foundation.cache_parameters import WRITE_PRICE
from hybridsim.reference.classes import (
    AGES,
    STARTS,
    WEIGHT,
    Class,
    Coarser,
    Page,
    Regions,
    Sizes,
    age_of,
    first_kind,
    mixed,
    rows,
)
from hybridsim.reference.policies import Admission, Replacement

RING = 2**18  # maximum number of samples in observation
EARLY = 2**17  # accesses at the start, in which each request is sampled
ALL = 2**31  # share of the requests
LOOKED = 16  # maximum number of rows visited at one update
USUAL = 2**16  # page size in bytes that the price of writing refers to
TOGETHER = 64  # maximum distance in accesses of pages that are evicted together
PENDING = 64  # maximum number of touches of one request that wait for their reward
DRAWN = 32  # pages among which the victim is chosen


@dataclass
class Sample:
    """An access that is observed until its page is touched again."""

    page: int
    row: Class
    size: int  # of its request
    clock: int
    time: int | None = None  # until its page was touched again

    def reaches(self, age: int) -> bool:
        """Whether the page was not touched again before that age, as far as observed."""
        return self.time is None or self.time >= STARTS[age]


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
        self.overprice = 0.0  # surcharge of a write budget
        self.limit = max(pages, 1)
        self.taken = 0  # pages admitted before there are statistics
        self.admits = admits
        self.replaces = replaces
        self.clock = self.draws = 0
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
        self.held: list[int] = []
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
            kind = first_kind(write, position, self.regions.rest, self.regions.size)
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
        sample.row.reach(0)
        sample.row.forget()

    def count_reached(self, age: int) -> None:
        """Count the samples that have reached an age."""
        for number in range(max(self.passed[age], len(self.samples) - RING), len(self.samples)):
            sample = self.samples[number]
            if self.clock - sample.clock < STARTS[age]:
                self.passed[age] = number
                return
            if sample.reaches(age):
                sample.row.reach(age)
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
        is_known = page in self.pages
        clock = self.pages[page].clock if is_known else self.clock
        size = self.pages[page].size if is_known else 0
        self.promise[page] = self.class_of(page), clock, size, is_known

    def admit(self, page: int) -> None:
        """Append a new page."""
        self.held.append(page)
        self.note(page)

    def remove(self, page: int) -> None:
        """Remove a page; the last held page takes its position."""
        del self.promise[page]
        at = self.held.index(page)
        self.held[at] = self.held[-1]
        self.held.pop()

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
        drawn = []
        for _ in range(DRAWN):
            drawn.append(self.held[mixed(self.draws) * len(self.held) // 2**31])
            self.draws += 1
        return min(
            drawn,
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
