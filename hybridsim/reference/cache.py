"""The page cache (2.3): keeps pages of the slow tier on the fast tier."""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from hybridsim.codes import Mode, Op, Path, Reason
from hybridsim.reference.clock import Clock, Done, Parts
from hybridsim.reference.controller import Controller
from hybridsim.reference.parameters import CacheParameters
from hybridsim.reference.policies import Admission, Replacement
from hybridsim.reference.runs import Runs
from hybridsim.reference.tier import Tier


class State(Enum):
    """Where a page is in its life in the cache."""

    ABSENT = "absent"
    FILLING = "filling"
    DOOMED = "doomed"  # filling, but overwritten meanwhile
    PRESENT = "present"


@dataclass
class Page:
    """A page of the slow tier."""

    number: int
    state: State = State.ABSENT
    reason: Reason = Reason.COLD  # why it is not present
    slot: int = -1

    @property
    def reason_missing(self) -> Reason:
        """The reason of a miss that finds the page like this."""
        return self.reason if self.state == State.ABSENT else Reason.FILLING


@dataclass
class Piece:
    """The part of a request that lies in one page."""

    page: Page
    start: int
    end: int


@dataclass
class Verdict:
    """Which way a request goes, which is decided when it is submitted."""

    path: Path
    reason: Reason
    pages: int
    pages_hit: int = 0


class Slots:
    """The places for pages on the fast tier."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.used = 0  # the lowest never used
        self.freed: list[int] = []

    @property
    def full(self) -> bool:
        """Whether every slot has been used: the first filling is over."""
        return self.used == self.count

    def take(self) -> int:
        """Give the slot freed last, else the lowest never used."""
        if self.freed:
            return self.freed.pop()
        self.used += 1
        return self.used - 1

    def free(self, slot: int) -> None:
        """Take a slot back."""
        self.freed.append(slot)


@dataclass
class Job:
    """A request under way: its parts, and the pages to fill when they are complete."""

    done: Done
    cache: "PageCache"
    reserved: list[Piece] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts = Parts(self.finish)

    def finish(self) -> None:
        """Tell of the completion first, then fill the reserved pages."""
        self.done()
        for piece in self.reserved:
            self.cache.fill(piece)


class PageCache:
    """Sits between the source and the tiers."""

    def __init__(
        self,
        clock: Clock,
        parameters: CacheParameters,
        admission: Admission,
        replacement: Replacement,
        slow: Tier | Controller,
        fast: Tier | None,
    ) -> None:
        self.clock = clock
        self.parameters = parameters
        self.admission = admission
        self.replacement = replacement
        self.slow = slow
        self.fast = fast
        self.pages: dict[int, Page] = {}
        self.slots = Slots(parameters.pages)
        self.runs = Runs()
        self.fills = 0  # under way
        self.counters: Counter[str] = Counter(
            fills_started=0, fills_completed=0, fills_doomed=0, evictions=0
        )

    def submit(self, op: Op, offset: int, length: int, done: Done, flags: int = 0) -> Verdict:
        """Send a request on its way, and return which way that is.

        `flags` of a WRITE go with it to the slow tier.  `done` is called when it completes, never
        from within this call.
        """
        job = Job(done, self)
        pieces = self.pieces(offset, length)
        if op == Op.FLUSH or length == 0:
            self.to_slow(job, Op.FLUSH, 0, 0)
            return Verdict(Path.BYPASS, Reason.FLUSH, 0)
        if op == Op.DISCARD:
            for piece in pieces:
                self.invalidate(piece.page)
            self.to_slow(job, Op.DISCARD, offset, length)
            return Verdict(Path.BYPASS, Reason.DISCARD, len(pieces))
        if self.parameters.pages == 0:
            self.to_slow(job, op | flags, offset, length)
            return Verdict(Path.BYPASS, Reason.NO_CACHE, 0)
        run = self.runs.extend(offset, length)
        sequential = 0 < self.parameters.cutoff_bytes <= run.length
        self.admission.request(offset, length, op == Op.WRITE)
        if op == Op.WRITE:
            self.write(job, pieces, sequential)
            self.to_slow(job, Op.WRITE | flags, offset, length)
            return Verdict(Path.BYPASS, Reason.WRITE, len(pieces))
        return self.read(job, pieces, sequential)

    def pieces(self, offset: int, length: int) -> list[Piece]:
        """Cut a request at the borders of pages."""
        if length == 0 or self.parameters.pages == 0:
            return []
        size = self.parameters.page_bytes
        end = offset + length
        return [
            Piece(self.page(number), max(offset, number * size), min(end, (number + 1) * size))
            for number in range(offset // size, (end - 1) // size + 1)
        ]

    def page(self, number: int) -> Page:
        """Look a page up; one never seen is absent and cold."""
        if number not in self.pages:
            self.pages[number] = Page(number)
        return self.pages[number]

    # Requests.

    def write(self, job: Job, pieces: list[Piece], sequential: bool) -> None:
        """Bring the cache up to date with a WRITE, which goes to the slow tier in any case."""
        for piece in pieces:
            page = piece.page
            if self.parameters.mode == Mode.READ_ONLY:
                self.invalidate(page)
            elif page.state == State.PRESENT:
                self.consider(page, write=True)
                self.replacement.touch(page.number)
                self.to_fast(job, Op.WRITE, piece)
            elif page.state == State.FILLING:
                page.state = State.DOOMED
            elif page.state == State.ABSENT and not sequential:
                self.admit(job, piece, write=True)

    def read(self, job: Job, pieces: list[Piece], sequential: bool) -> Verdict:
        """Read what is present from the fast tier, the rest from the slow tier."""
        verdict = self.judge(pieces, sequential)
        missing: list[Piece] = []  # next to each other
        for piece in pieces:
            page = piece.page
            if page.state == State.PRESENT:
                self.read_missing(job, missing)
                missing = []
                self.consider(page, write=False)
                self.replacement.touch(page.number)
                self.to_fast(job, Op.READ, piece)
                verdict.pages_hit += 1
            else:
                missing.append(piece)
                if page.state == State.ABSENT and not sequential:
                    self.admit(job, piece, write=False)
        self.read_missing(job, missing)
        return verdict

    def judge(self, pieces: list[Piece], sequential: bool) -> Verdict:
        """Say which way a READ goes, by the pages as they are before it changes any."""
        absent = [piece.page for piece in pieces if piece.page.state != State.PRESENT]
        if not absent:
            return Verdict(Path.HIT, Reason.NONE, len(pieces))
        if sequential:
            return Verdict(Path.BYPASS, Reason.SEQUENTIAL, len(pieces))
        return Verdict(Path.MISS, absent[0].reason_missing, len(pieces))

    def read_missing(self, job: Job, missing: list[Piece]) -> None:
        """Read neighbouring missing parts in one go."""
        if missing:
            start, end = missing[0].start, missing[-1].end
            self.to_slow(job, Op.READ, start, end - start)

    def to_slow(self, job: Job, op: int, offset: int, length: int) -> None:
        """Make a part of a request on the slow tier."""
        self.slow.submit(op, offset, length, job.parts.another())

    def to_fast(self, job: Job, op: Op, piece: Piece) -> None:
        """Make a part of a request on the fast tier, in the slot of its page."""
        assert self.fast is not None
        size = self.parameters.page_bytes
        offset = piece.page.slot * size + piece.start % size
        self.fast.submit(op, offset, piece.end - piece.start, job.parts.another())

    # Pages.

    def consider(self, page: Page, write: bool) -> bool:
        """Tell admission of an access; returns whether it wants the page."""
        return self.admission.consider(self.clock.now, page.number, write, self.slots.full)

    def admit(self, job: Job, piece: Piece, write: bool) -> None:
        """Reserve a slot for an absent page, if it is wanted and there is one."""
        page = piece.page
        if not self.consider(page, write):
            if page.reason not in (Reason.EVICTED, Reason.OVERWRITTEN):
                page.reason = Reason.NOT_HOT
        elif self.fills >= self.parameters.fills_max or not self.make_room(page):
            page.reason = Reason.BUSY
        else:
            page.slot = self.slots.take()
            page.state = State.FILLING
            job.reserved.append(piece)
            self.fills += 1
            self.counters["fills_started"] += 1

    def make_room(self, page: Page) -> bool:
        """See to it that a slot is free, by evicting a page if need be; returns whether one is."""
        self.replacement.missed(page.number)
        if self.slots.freed or not self.slots.full:
            return True
        number = self.replacement.evict()
        if number < 0:
            return False
        self.leave(self.pages[number], Reason.EVICTED)
        self.admission.evicted(number)
        self.counters["evictions"] += 1
        return True

    def fill(self, piece: Piece) -> None:
        """Fill a reserved page, with the data in hand if they are all of it."""
        size = self.parameters.page_bytes
        start = piece.page.number * size
        if piece.end - piece.start == size:
            self.fill_slot(piece.page)
        else:
            end = min(start + size, self.slow.capacity_bytes)
            self.slow.submit(Op.READ, start, end - start, lambda: self.fill_slot(piece.page))

    def fill_slot(self, page: Page) -> None:
        """Write a page to its slot."""
        assert self.fast is not None
        size = self.parameters.page_bytes
        self.fast.submit(Op.WRITE, page.slot * size, size, lambda: self.filled(page))

    def filled(self, page: Page) -> None:
        """End a fill: the page is present, unless it was overwritten meanwhile."""
        self.fills -= 1
        if page.state == State.DOOMED:
            self.leave(page, Reason.OVERWRITTEN)
            self.counters["fills_doomed"] += 1
        else:
            page.state = State.PRESENT
            self.replacement.admit(page.number)
            self.counters["fills_completed"] += 1

    def invalidate(self, page: Page) -> None:
        """Give up what the cache holds, or is about to hold, of a page."""
        if page.state == State.PRESENT:
            self.replacement.remove(page.number)
            self.leave(page, Reason.OVERWRITTEN)
        elif page.state == State.FILLING:
            page.state = State.DOOMED

    def leave(self, page: Page, reason: Reason) -> None:
        """Take a page out of its slot."""
        self.slots.free(page.slot)
        page.slot = -1
        page.state = State.ABSENT
        page.reason = reason
