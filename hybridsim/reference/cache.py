"""The page cache (2.3): keeps pages of the slow tier on the fast tier."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from hybridsim.foundation.codes import FUA, PREFLUSH, FillWhen, Mode, Op, Path, Reason
from hybridsim.reference.cleaner import Cleaner
from hybridsim.reference.clock import Clock, Done, Parts
from hybridsim.reference.fills import Fills
from hybridsim.reference.page import Page, Piece, Sizes, Slots, State
from hybridsim.reference.parameters import CacheParameters
from hybridsim.reference.policies import Admission, Replacement
from hybridsim.reference.preloader import Preloader
from hybridsim.reference.runs import Runs
from hybridsim.reference.throttle import Slow
from hybridsim.reference.tier import Tier

DRAWS_MAX = 8  # how often replacement is asked for a page that can go


@dataclass
class Verdict:
    """Which way a request goes, which is decided when it is submitted."""

    path: Path
    reason: Reason
    pages: int
    pages_hit: int = 0


@dataclass
class Job:
    """A request under way: its parts, and the pages to fill when they are complete."""

    op: Op
    offset: int
    length: int
    flags: int
    done: Done
    cache: "PageCache"
    reserved: list[Page] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.parts = Parts(self.finish)

    def finish(self) -> None:
        """Tell of the completion, then fill the pages; or the other way round."""
        fills = self.cache.fills
        if not self.reserved or self.cache.parameters.fill_when == FillWhen.BACKGROUND:
            self.done()
            for page in self.reserved:
                fills.fill(page, self, lambda: None)
        else:
            filled = Parts(self.done)
            ends = [filled.another() for _ in self.reserved]
            for page, end in zip(self.reserved, ends, strict=True):
                fills.fill(page, self, end)


@dataclass
class Gathered:
    """Parts next to each other, to be made one request of the slow tier."""

    send: Callable[[int, int], None]
    start: int = 0
    end: int = 0

    def add(self, start: int, end: int) -> None:
        """Let the part follow, or send what was gathered and begin anew."""
        if start >= end:
            return
        if self.end != start:
            self.close()
            self.start = start
        self.end = end

    def close(self) -> None:
        """Send what was gathered."""
        if self.end > self.start:
            self.send(self.start, self.end - self.start)
        self.start = self.end = 0


class PageCache:
    """Sits between the source and the tiers."""

    def __init__(
        self,
        clock: Clock,
        parameters: CacheParameters,
        admission: Admission,
        replacement: Replacement,
        slow: Slow,
        fast: Tier | None,
    ) -> None:
        self.clock = clock
        self.parameters = parameters
        self.admission = admission
        self.replacement = replacement
        self.slow = slow
        self.fast = fast
        granule_bytes = parameters.granule_bytes or parameters.page_bytes
        self.sizes = Sizes(parameters.page_bytes, granule_bytes, slow.capacity_bytes)
        self.pages: dict[int, Page] = {}
        self.slots = Slots(parameters.pages)
        self.runs = Runs()
        self.counters: Counter[str] = Counter(
            fills_started=0, fills_completed=0, fills_doomed=0, evictions=0
        )
        self.fills = Fills(self)
        self.cleaner = Cleaner(self)
        self.preloader = Preloader(self)

    @property
    def writes_back(self) -> bool:
        """Whether the fast tier may have what the slow tier lacks."""
        return self.parameters.mode == Mode.WRITE_BACK and self.parameters.pages > 0

    def submit(self, op: Op, offset: int, length: int, done: Done, flags: int = 0) -> Verdict:
        """Send a request on its way, and return which way that is.

        `flags` of a WRITE go with it to the slow tier.  `done` is called when it completes, never
        from within this call.
        """
        job = Job(op, offset, length, flags, done, self)
        if op == Op.FLUSH or length == 0:
            self.flush(job)
            return Verdict(Path.BYPASS, Reason.FLUSH, 0)
        self.cleaner.last = self.clock.now
        pieces = self.pieces(offset, length)
        if op == Op.DISCARD:
            self.discard(job, pieces)
            return Verdict(Path.BYPASS, Reason.DISCARD, len(pieces))
        if self.parameters.pages == 0:
            self.to_slow(job, op | flags, offset, length)
            return Verdict(Path.BYPASS, Reason.NO_CACHE, 0)
        if op == Op.WRITE:
            if self.writes_back and flags & PREFLUSH:
                self.flush(job)
                job.parts.done = lambda: self.go_on_after_flush(job, pieces)
            else:
                self.write(job, pieces)
            return Verdict(Path.BYPASS, Reason.WRITE, len(pieces))
        return self.read(job, pieces)

    def pieces(self, offset: int, length: int) -> list[Piece]:
        """Cut a request at the borders of pages."""
        if self.parameters.pages == 0:
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
            self.pages[number] = Page(number, self.sizes)
        return self.pages[number]

    # Requests.

    def flush(self, job: Job) -> None:
        """Make what was acknowledged durable, wherever it is."""
        self.to_slow(job, Op.FLUSH, 0, 0)
        if self.writes_back:
            assert self.fast is not None
            self.fast.submit(Op.FLUSH, 0, 0, job.parts.another())

    def go_on_after_flush(self, job: Job, pieces: list[Piece]) -> None:
        """Write what had to wait for a flush."""
        job.parts.done = job.finish
        self.write(job, pieces)

    def discard(self, job: Job, pieces: list[Piece]) -> None:
        """Forget what is discarded; a dirty granule only if all of it is."""
        for piece in pieces:
            self.give_up(piece.page, piece.touched - (piece.page.dirty - piece.covered))
        self.to_slow(job, Op.DISCARD, job.offset, job.length)

    def is_sequential(self, job: Job) -> bool:
        """Note the request's place; tell admission of it, and whether it goes on a long run."""
        run = self.runs.extend(job.offset, job.length)
        self.admission.request(job.offset, job.length, job.op == Op.WRITE)
        return 0 < self.parameters.cutoff_bytes <= run.length

    def write(self, job: Job, pieces: list[Piece]) -> None:
        """Carry out a WRITE by the mode."""
        sequential = self.is_sequential(job)
        if self.writes_back:
            through = Gathered(
                lambda start, size: self.to_slow(job, Op.WRITE | job.flags & FUA, start, size)
            )
            for piece in pieces:
                if not self.write_back(job, piece, through, sequential):
                    self.counters["writes_limited"] += self.cleaner.is_limited and not sequential
                    through.add(piece.start, piece.end)
            through.close()
            self.cleaner.go_on()
            return
        for piece in pieces:
            if self.parameters.mode == Mode.READ_ONLY:
                self.give_up(piece.page, piece.touched)
            else:
                self.write_through(job, piece, sequential)
        self.to_slow(job, Op.WRITE | job.flags, job.offset, job.length)

    def write_through(self, job: Job, piece: Piece, sequential: bool) -> None:
        """Keep a page true to what is written to the slow tier."""
        page = piece.page
        if page.state == State.PRESENT:
            self.use(page, write=True)
            self.store(job, piece)
        elif page.state == State.FILLING:
            page.filling -= piece.touched
        elif not sequential:
            self.admit(job, piece, write=True)

    def write_back(self, job: Job, piece: Piece, through: Gathered, sequential: bool) -> bool:
        """Store a part dirty if that may be; returns whether it need not go to the slow tier."""
        page = piece.page
        goes_through = sequential or self.cleaner.is_limited
        if page.state == State.PRESENT:
            self.use(page, write=True)
            if not page.dirty and goes_through:
                self.store(job, piece)
                return False
        elif goes_through:
            page.filling -= piece.touched
            return False
        elif page.state == State.ABSENT:
            stored = piece.storable()
            if not self.is_wanted(page, write=True) or stored.start == stored.end:
                return False
            if not self.make_room(page):
                page.reason = Reason.BUSY
                return False
            page.slot = self.slots.take()
            page.state = State.FILLING
        self.store_dirty(job, piece, through)
        return True

    def store_dirty(self, job: Job, piece: Piece, through: Gathered) -> None:
        """Store what can be, and send head and tail to the slow tier."""
        page, stored = piece.page, piece.storable()
        if stored.start == stored.end:
            page.filling -= piece.touched
            through.add(piece.start, piece.end)
            return
        if page.state == State.FILLING:
            page.state = State.PRESENT
            self.replacement.admit(page.number)
        through.add(piece.start, stored.start)
        through.close()
        self.store(job, piece)
        page.dirty |= stored.touched
        self.cleaner.has_dirtied(page)
        through.add(stored.end, piece.end)

    def read(self, job: Job, pieces: list[Piece]) -> Verdict:
        """Read what is valid from the fast tier, the rest from the slow tier."""
        sequential = self.is_sequential(job)
        verdict = self.judge(pieces, sequential)
        missing = Gathered(lambda start, size: self.to_slow(job, Op.READ, start, size))
        for piece in pieces:
            page = piece.page
            is_here = piece.is_here
            verdict.pages_hit += is_here
            reserved = len(job.reserved)
            if page.state == State.PRESENT:
                self.use(page, write=False)
                if not is_here and not sequential:
                    self.fills.complete(job, piece)
            elif page.state == State.ABSENT and not sequential:
                self.admit(job, piece, write=False)
            is_read_whole = self.fills.piggyback and len(job.reserved) > reserved
            if is_read_whole:
                missing.add(*page.range_of(min(page.filling), max(page.filling)))
            for is_valid, part in piece.parts():
                if is_valid:
                    missing.close()
                    self.to_fast(job, Op.READ, part)
                elif not is_read_whole:
                    missing.add(part.start, part.end)
        missing.close()
        return verdict

    def judge(self, pieces: list[Piece], sequential: bool) -> Verdict:
        """Say which way a READ goes, by the pages as they are before it changes any."""
        missing = [piece.page for piece in pieces if not piece.is_here]
        if not missing:
            return Verdict(Path.HIT, Reason.NONE, len(pieces))
        if sequential:
            return Verdict(Path.BYPASS, Reason.SEQUENTIAL, len(pieces))
        return Verdict(Path.MISS, missing[0].reason_missing, len(pieces))

    def to_slow(self, job: Job, op: int, offset: int, length: int) -> None:
        """Make a part of a request on the slow tier."""
        self.slow.submit(op, offset, length, job.parts.another())

    def to_fast(self, job: Job, op: int, piece: Piece) -> None:
        """Make a part of a request on the fast tier, in the slot of its page."""
        assert self.fast is not None
        offset = piece.page.at + piece.start - piece.page.start
        self.fast.submit(op, offset, piece.end - piece.start, job.parts.another())

    def store(self, job: Job, piece: Piece) -> None:
        """Write what can be valid of a part to the slot of its page."""
        page, stored = piece.page, piece.storable()
        page.filling -= piece.touched
        page.flying -= piece.touched
        if stored.start < stored.end:
            flags = job.flags & FUA if self.writes_back else 0
            self.to_fast(job, Op.WRITE | flags, stored)
            page.valid |= stored.touched

    # Pages.

    def consider(self, page: Page, write: bool) -> bool:
        """Tell admission of an access; returns whether it wants the page."""
        return self.admission.consider(self.clock.now, page.number, write, self.slots.full)

    def use(self, page: Page, write: bool) -> None:
        """Tell both policies of an access to a page that is present."""
        self.consider(page, write)
        self.replacement.touch(page.number)
        self.counters["warm_pages_used"] += page.is_fresh
        page.is_fresh = False

    def is_wanted(self, page: Page, write: bool) -> bool:
        """Ask admission for an absent page."""
        if self.consider(page, write):
            return True
        if page.reason not in (Reason.EVICTED, Reason.OVERWRITTEN):
            page.reason = Reason.NOT_HOT
        return False

    def admit(self, job: Job, piece: Piece, write: bool) -> None:
        """Reserve a slot for an absent page, if it is wanted and there is one."""
        page = piece.page
        if not self.is_wanted(page, write):
            return
        if not self.fills.may_begin(piece) or not self.make_room(page):
            page.reason = Reason.BUSY
            return
        page.slot = self.slots.take()
        page.state = State.FILLING
        self.fills.begin(job, piece)

    def make_room(self, page: Page) -> bool:
        """See to it that a slot is free, by evicting a page if need be; returns whether one is."""
        self.replacement.missed(page.number)
        if self.slots.have_one:
            return True
        for _ in range(DRAWS_MAX):
            number = self.replacement.evict()
            if number < 0:
                return False
            victim = self.pages[number]
            if victim.is_movable:
                if not victim.is_fresh:
                    self.admission.evicted(number)
                self.leave(victim, Reason.EVICTED)
                self.counters["evictions"] += 1
                return True
            self.cleaner.clean_at_once(victim)
            self.replacement.missed(number)
            self.replacement.admit(number)
        self.counters["stalls"] += 1
        return False

    def give_up(self, page: Page, granules: set[int]) -> None:
        """Forget granules of a page, and the page if nothing is left of it."""
        page.forget(granules)
        self.cleaner.has_cleaned(page)
        if page.state == State.PRESENT and not page.valid:
            self.replacement.remove(page.number)
            page.state = State.FILLING
            self.let_go(page)

    def let_go(self, page: Page) -> None:
        """Give the slot of a page back that has nothing in it, if nothing is under way for it."""
        if page.state == State.FILLING and page.is_movable:
            at = page.at
            self.leave(page, Reason.OVERWRITTEN)
            if self.parameters.discards:
                assert self.fast is not None
                self.fast.submit(Op.DISCARD, at, self.parameters.page_bytes, lambda: None)

    def leave(self, page: Page, reason: Reason) -> None:
        """Take a page out of its slot."""
        self.slots.free(page.slot)
        page.slot = -1
        page.is_fresh = False
        page.forget(page.granules)
        page.state = State.ABSENT
        page.reason = reason
