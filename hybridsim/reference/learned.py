"""The learned policy (2.4.1), plain: who promises most is let in, who promises least leaves."""

from dataclasses import dataclass

from hybridsim.reference.classes import (
    AGES,
    STARTS,
    WEIGHT,
    Class,
    Coarser,
    Page,
    Regions,
    age_of,
    first_kind,
    mixed,
    rows,
)
from hybridsim.reference.policies import Admission, Replacement

RING = 2**18
EARLY = 2**16
LOOKED = 16
USUAL = 2**16  # bytes of a page that the price of writing is of
TOGETHER = 64  # accesses
PENDING = 64
DRAWN = 32


@dataclass
class Sample:
    """An access under observation."""

    page: int
    row: Class
    clock: int
    time: int | None = None  # until its page was touched again

    def reaches(self, age: int) -> bool:
        """Whether it was untouched until that age, as far as is known."""
        return self.time is None or self.time >= STARTS[age]


@dataclass
class Touch:
    """A page of the request under way was touched again."""

    row: Class  # of the sample
    is_held: bool
    kept: float  # what it saves beside the read


class Learned(Admission, Replacement):
    """Both in one, or one of them beside another policy."""

    def __init__(
        self,
        pages: int,
        price: int = 500,
        admits: bool = True,
        replaces: bool = True,
        page_bytes: int = USUAL,
    ) -> None:
        self.page_bytes = page_bytes
        self.reading = min(price / 1000 * 0.8, 0.4)  # what a fill costs, in reads of the disks
        self.writing = (price / 1000 - self.reading) * min(page_bytes / USUAL, 1.0)
        self.own_price = self.writing + self.reading  # of a fill of the request under way
        self.overprice = 0.0
        self.most = max(pages, 1)
        self.taken = 0  # pages wanted while nothing is known yet
        self.admits = admits
        self.replaces = replaces
        self.clock = self.draws = 0
        self.regions = Regions()
        self.pages: dict[int, Page] = {}
        self.rows = rows()
        self.turn = 0  # of a row
        self.rent = 0.0
        self.samples: list[Sample] = []
        self.open: dict[int, Sample] = {}
        self.passed = [0] * AGES
        self.touches: list[Touch] = []
        self.accessed = {False: 0, True: 0}  # pages of the request, by whether they were held
        self.horizon = 2 * pages * 64
        self.held: list[int] = []
        self.promise: dict[int, tuple[Class, int, bool]] = {}  # of a page held; was it accessed
        self.victim: int | None = None
        self.ring: list[int] = []  # pages of the request under way
        self.before: dict[int, int] = {}
        self.gone: tuple[int, Class, int] | None = None  # who left last, as it was last touched
        self.gone_at = 0  # clock

    @property
    def price(self) -> float:
        """Of a fill now."""
        return self.own_price + self.overprice

    @property
    def border(self) -> int:
        """The age that a page reaches before it is evicted."""
        return min(age_of(self.horizon // 64) + 1, AGES - 1)

    def request(self, offset: int, length: int, write: bool) -> None:
        """Learn what the last one's touches were worth; note where this one goes."""
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

    def consider(self, now: int, page: int, write: bool, full: bool) -> bool:
        """Learn, and compare with the price and with who would have to leave."""
        is_new, is_held = page not in self.pages, page in self.promise
        row = self.hear(page, write)
        if not full or (self.taken < self.most and not is_new and not is_held):
            self.taken += not is_held
            return True
        if row.sure < self.price or page in self.promise:
            return False
        if not self.held:
            return True
        self.victim = self.choose()
        density = self.density(self.victim)
        self.rent += (density - self.rent) / 64
        return row.density[0] >= density

    def hear(self, page: int, write: bool) -> Class:
        """Learn from an access; its class."""
        if self.ring:
            self.before[page] = self.ring[-1]
        self.ring.append(page)
        row = self.classify(page, int(write))
        row.is_used = True
        is_held = page in self.promise
        self.accessed[is_held] += 1
        if page in self.open:
            self.close(self.open.pop(page), min(row.value, self.price), is_held)
        period = max(self.horizon // 64 // 2**15, 2)
        if self.clock < EARLY or mixed(self.clock) < 2**31 // period:
            self.observe(Sample(page, row, self.clock))
        turn = self.clock % 64
        if 0 < turn < AGES:
            self.look_at(turn)
        if self.clock < EARLY or turn % 4 == 0:
            self.let_rows_have_turns()
        self.clock += 1
        self.victim = None
        return row

    def classify(self, number: int, write: int) -> Class:
        """The class of an access, by what is known at that moment."""
        position, rest = self.regions.position(), self.regions.rest
        if number in self.pages:
            self.pages[number].come_again(self.clock, write, rest)
        else:
            kind = first_kind(write, position, rest, self.regions.size)
            self.pages[number] = Page(self.clock, kind)
        return self.class_of(number)

    def class_of(self, page: int) -> Class:
        """The class of a page's last access; of one never accessed, the first."""
        row = self.rows[self.pages[page].kind if page in self.pages else 0]
        assert isinstance(row, Class)
        return row

    def close(self, sample: Sample, kept: float, is_held: bool) -> None:
        """The page of a sample was touched again."""
        sample.time = self.clock - sample.clock
        sample.row.touched[age_of(sample.time)] += WEIGHT
        if len(self.touches) == PENDING:
            self.settle(1, PENDING)
        self.touches.append(Touch(sample.row, is_held, kept))

    def settle(self, missed: int, held: int) -> None:
        """Touches of a request of so many pages share one read."""
        for touch in self.touches:
            others = (held + 1) // 2 if touch.is_held else 0
            touch.row.tell(1 / max(missed + others, 1) + touch.kept)
        self.touches = []

    def observe(self, sample: Sample) -> None:
        """Take a sample; the oldest is no longer looked at."""
        if len(self.samples) >= RING:
            oldest = self.samples[-RING]
            if oldest.time is None:
                del self.open[oldest.page]
        self.samples.append(sample)
        self.open[sample.page] = sample
        sample.row.reach(0)
        sample.row.forget()

    def look_at(self, age: int) -> None:
        """Count who has come to that age."""
        for number in range(max(self.passed[age], len(self.samples) - RING), len(self.samples)):
            sample = self.samples[number]
            if self.clock - sample.clock < STARTS[age]:
                self.passed[age] = number
                return
            if sample.reaches(age):
                sample.row.reach(age)
        self.passed[age] = len(self.samples)

    def let_rows_have_turns(self) -> None:
        """Go round, up to the first that has something to compute."""
        for _ in range(LOOKED):
            row = self.rows[self.turn]
            self.turn = (self.turn + 1) % len(self.rows)
            if isinstance(row, Coarser):
                row.take_turn()
                return
            if row.reached[0] > 0:
                row.hand_up()
            if row.is_used:
                row.is_used = False
                row.appraise(age_of(self.clock) + 1, self.border, self.rent)
                return

    def evicted(self, page: int) -> None:
        """Let the horizon follow, and the rent if another policy chose."""
        age = self.clock - self.pages[page].clock
        self.horizon += age - self.horizon // 64
        if not self.replaces:
            self.rent += (self.class_of(page).density[age_of(age)] - self.rent) / 64

    def missed(self, page: int) -> None:
        """Alone, this is how an access is heard of.  Who left just now could not go."""
        if self.gone is not None and (self.gone[0], self.gone_at) == (page, self.clock):
            self.gone = None
        if not self.admits:
            self.hear(page, False)

    def touch(self, page: int) -> None:
        """The page promises something else now."""
        if not self.admits:
            self.hear(page, False)
        self.note(page)

    def note(self, page: int) -> None:
        """Take a page's promise as it was last known."""
        is_known = page in self.pages
        clock = self.pages[page].clock if is_known else self.clock
        self.promise[page] = self.class_of(page), clock, is_known

    def admit(self, page: int) -> None:
        """Newcomers are the last."""
        self.held.append(page)
        self.note(page)

    def remove(self, page: int) -> None:
        """The last of those held takes the page's position."""
        del self.promise[page]
        at = self.held.index(page)
        self.held[at] = self.held[-1]
        self.held.pop()

    def density(self, page: int) -> float:
        """What a page held promises at its age."""
        row, clock, _ = self.promise[page]
        return row.density[age_of(self.clock - clock)]

    def choose(self) -> int:
        """Who was touched together with the last one that left, if that goes too; or draw."""
        if self.gone is not None:
            page, row, clock = self.gone
            companion = self.before.get(page)
            if companion in self.promise:
                is_together = abs(self.promise[companion][1] - clock) < TOGETHER
                if (
                    is_together
                    and self.density(companion) <= row.density[age_of(self.clock - clock)]
                ):
                    return companion
        return self.draw()

    def draw(self) -> int:
        """The least dense of 32, of equals the one untouched longest."""
        drawn = []
        for _ in range(DRAWN):
            drawn.append(self.held[mixed(self.draws) * len(self.held) // 2**31])
            self.draws += 1
        return min(drawn, key=lambda page: (self.density(page), *self.promise[page][1:]))

    def evict(self) -> int:
        """Whom the newcomer was compared with, if it is still there."""
        if not self.held:
            return -1
        victim, self.victim = self.victim, None
        if victim is None or victim not in self.promise:
            victim = self.choose()
        self.gone, self.gone_at = (victim, *self.promise[victim][:2]), self.clock
        self.remove(victim)
        if not self.admits and victim in self.pages:
            self.evicted(victim)
        return victim
