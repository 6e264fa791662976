"""The page cache (2.3): pages with granules, and slots for them on the fast tier."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import chain, groupby
from typing import Any

from hybridsim.foundation.cache_parameters import CacheParameters
from hybridsim.foundation.codes import FUA, PREFLUSH, Fill, FillWhen, Mode, Op, Path, Reason
from hybridsim.foundation.machine_parameters import LimitParameters
from hybridsim.reference.clock import Alarm, Done, Parts, Step, each_of, in_turn, nothing
from hybridsim.reference.device import Cache, Part
from hybridsim.reference.limits import Bucket
from hybridsim.reference.policies import Admission, Replacement
from hybridsim.reference.runs import Runs, runs, split, touched

Granules = set[int]


State = Enum("State", "ABSENT FILLING PRESENT")  # of a page; if filling, no granule is valid


@dataclass(frozen=True)
class Sizes:
    """Sizes in bytes; the last granule of a page and the last page may be shorter."""

    page_bytes: int
    granule_bytes: int
    volume_bytes: int

    def granule_start(self, granule: int) -> int:
        """Return the offset of a granule in its page; for the granule after the last, the end."""
        return min(granule * self.granule_bytes, self.page_bytes)


@dataclass(eq=False)
class Page:
    """A page of the slow tier."""

    number: int
    sizes: Sizes
    state: State = State.ABSENT
    reason: Reason = Reason.COLD  # why the page is not present
    slot: int = -1
    valid: Granules = field(default_factory=set)
    filling: Granules = field(default_factory=set)
    dirty: Granules = field(default_factory=set)
    flying: Granules = field(default_factory=set)
    is_being_filled: bool = False
    is_being_preloaded: bool = False  # the current fill is a preload
    is_fresh: bool = False  # kept or preloaded, not used since
    is_being_cleaned: bool = False

    @property
    def start(self) -> int:
        """The first byte of the page in the volume."""
        return self.number * self.sizes.page_bytes

    @property
    def end(self) -> int:
        """The end of the page, limited to the end of the slow tier."""
        return min(self.start + self.sizes.page_bytes, self.sizes.volume_bytes)

    @property
    def granules(self) -> Granules:
        """All granules of the page that begin before the end of the slow tier."""
        return {*touched(0, self.end - self.start, self.sizes.granule_bytes)}

    @property
    def reason_missing(self) -> Reason:
        """The reason of a miss in the current state of the page."""
        if self.state == State.FILLING or self.is_being_filled:
            return Reason.FILLING
        return self.reason if self.state == State.ABSENT else Reason.COLD

    @property
    def is_movable(self) -> bool:
        """Whether the page can be evicted now."""
        return not (self.dirty or self.is_being_filled or self.is_being_cleaned)

    @property
    def at(self) -> int:
        """The byte offset of the page's slot on the fast tier."""
        return self.slot * self.sizes.page_bytes

    def range_of(self, first: int, last: int) -> tuple[int, int]:
        """Return the byte range of granules, limited to the end of the slow tier."""
        start = self.start + self.sizes.granule_start(first)
        end = self.start + self.sizes.granule_start(last + 1)
        return start, min(end, self.end)

    def flying_ranges(self) -> list[tuple[int, int]]:
        """Return the byte ranges of the flying granules."""
        return [self.range_of(first, end - 1) for first, end in runs(self.flying)]

    def forget(self, granules: Iterable[int]) -> None:
        """Clear all states of granules."""
        for each in (self.valid, self.filling, self.dirty, self.flying):
            each.difference_update(granules)


@dataclass
class Piece:
    """The part of a request that lies in one page."""

    page: Page
    start: int
    end: int

    @property
    def touched(self) -> Granules:
        """The granules of which the piece has at least one byte."""
        first, size = self.page.start, self.page.sizes.granule_bytes
        return {*touched(self.start - first, self.end - first, size)}

    @property
    def covered(self) -> Granules:
        """The granules of which the piece has all bytes."""
        ranges = [(granule, *self.page.range_of(granule, granule)) for granule in self.touched]
        return {each for each, start, end in ranges if self.start <= start and end <= self.end}

    @property
    def is_here(self) -> bool:
        """Whether all touched granules are valid."""
        return self.page.state == State.PRESENT and self.touched <= self.page.valid

    def within(self, granules: Granules) -> Piece:
        """Return the part that lies from the first to the last of these granules; may be empty."""
        if not granules:
            return Piece(self.page, self.start, self.start)
        start, end = self.page.range_of(min(granules), max(granules))
        return Piece(self.page, max(start, self.start), min(end, self.end))

    def storable(self) -> Piece:
        """Return the storable part: covered granules and valid ones."""
        return self.within((self.page.valid & self.touched) | self.covered)

    def parts(self) -> Iterator[tuple[bool, Piece]]:
        """Yield the parts in order of address, each with whether it is valid."""
        for is_valid, run in groupby(sorted(self.touched), self.page.valid.__contains__):
            yield is_valid, self.within({*run})


DRAWS_MAX = 8  # maximum number of victims that replacement is asked for
BURST_NS = 10**8


@dataclass
class Verdict:
    """The path of a request, decided when the request is submitted."""

    path: Path
    reason: Reason
    pages: int
    pages_hit: int = 0


@dataclass
class Job:
    """A request under way: its parts, and the pages to fill after their completion."""

    op: Op
    offset: int
    length: int
    flags: int
    parts: Parts = field(init=False)
    reserved: list[Page] = field(default_factory=list)


@dataclass
class Gathered:
    """Adjacent parts that are merged into one request to the slow tier."""

    send: Callable[[int, int], None]
    start: int = 0
    end: int = 0

    def add(self, start: int, end: int) -> None:
        """Append an adjacent part; otherwise send the merged range and begin a new one."""
        if start >= end:
            return
        if self.end != start:
            self.close()
            self.start = start
        self.end = end

    def close(self) -> None:
        """Send the merged range, if any."""
        if self.end > self.start:
            self.send(self.start, self.end - self.start)
        self.start = self.end = 0


class PageCache(Cache[CacheParameters]):
    """A cache of pages, with policies."""

    def __init__(self, admission: Admission, replacement: Replacement, *given: Any) -> None:
        super().__init__(*given)
        self.admission, self.replacement = admission, replacement
        p = self.parameters
        self.sizes = Sizes(p.page_bytes, p.granule_bytes or p.page_bytes, self.slow.capacity_bytes)
        self.pages: dict[int, Page] = {}
        self.free = [*reversed(range(p.pages))]  # slots; the one freed last is taken
        self.is_full = False  # whether every slot has been used at least once
        self.runs = Runs()
        self.fills = Fills(self)
        self.cleaner = Cleaner(self)
        self.preloader = Preloader(self)

    @property
    def writes_back(self) -> bool:
        """Whether the fast tier may hold dirty data."""
        return self.parameters.mode == Mode.WRITE_BACK and self.parameters.pages > 0

    def submit(self, op: Op, offset: int, length: int, done: Done, flags: int = 0) -> Verdict:
        """Submit a request and return its path.

        The `flags` of a WRITE are passed to the slow tier.  `done` is called when the request
        completes, never from within this call.
        """
        job = Job(op, offset, length, flags)
        job.parts = Parts(partial(self.finish, job, done))
        if op == Op.FLUSH or length == 0:
            self.flush(done)
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
                self.flush(partial(self.write, job, pieces))
            else:
                self.write(job, pieces)
            return Verdict(Path.BYPASS, Reason.WRITE, len(pieces))
        return self.read(job, pieces)

    def finish(self, job: Job, done: Done) -> None:
        """Complete a request and fill its pages, in the order that `fill_when` sets."""
        if self.parameters.fill_when == FillWhen.BACKGROUND:
            done()
            done = nothing
        each_of([partial(in_turn, self.fills.filling(page, job)) for page in job.reserved], done)

    def pieces(self, offset: int, length: int) -> list[Piece]:
        """Split a request at page borders."""
        if self.parameters.pages == 0:
            return []
        parts = split(offset, offset + length, self.parameters.page_bytes)
        return [Piece(self.page(number), start, end) for number, start, end in parts]

    def page(self, number: int) -> Page:
        """Look a page up; a page not seen before is absent and cold."""
        if number not in self.pages:
            self.pages[number] = Page(number, self.sizes)
        return self.pages[number]

    # Requests.

    def flush(self, done: Done) -> None:
        """Flush the slow tier and, with write-back, the fast tier."""
        tiers = [self.slow, self.fast] if self.writes_back else [self.slow]
        each_of([partial(tier.submit, Op.FLUSH, 0, 0) for tier in tiers], done)

    def discard(self, job: Job, pieces: list[Piece]) -> None:
        """Invalidate the discarded granules; dirty ones only if they are covered entirely."""
        for piece in pieces:
            self.invalidate(piece.page, piece.touched - (piece.page.dirty - piece.covered))
        self.to_slow(job, Op.DISCARD, job.offset, job.length)

    def is_sequential(self, job: Job) -> bool:
        """Record a request in its run and with admission; return whether it is sequential."""
        run = self.runs.extend(job.offset, job.length)
        self.admission.request(job.offset, job.length, job.op == Op.WRITE)
        return 0 < self.parameters.sequential_cutoff_bytes <= run.length

    def write(self, job: Job, pieces: list[Piece]) -> None:
        """Carry out a WRITE in the mode of the cache."""
        sequential = self.is_sequential(job)
        if self.writes_back:
            through = Gathered(
                lambda start, size: self.to_slow(job, Op.WRITE | job.flags & FUA, start, size)
            )
            for piece in pieces:
                if not self.write_back(job, piece, through, sequential):
                    self.counts["writes_limited"] += self.cleaner.is_limited and not sequential
                    through.add(piece.start, piece.end)
            through.close()
            self.cleaner.go_on()
            return
        for piece in pieces:
            if self.parameters.mode == Mode.READ_ONLY:
                self.invalidate(piece.page, piece.touched)
            else:
                self.write_through(job, piece, sequential)
        self.to_slow(job, Op.WRITE | job.flags, job.offset, job.length)

    def write_through(self, job: Job, piece: Piece, sequential: bool) -> None:
        """Keep a page consistent with a write to the slow tier."""
        page = piece.page
        if page.state == State.PRESENT:
            self.use(page, write=True)
            self.store(job, piece)
        elif page.state == State.FILLING:
            page.filling -= piece.touched
        elif not sequential:
            self.admit(job, piece, write=True)

    def write_back(self, job: Job, piece: Piece, through: Gathered, sequential: bool) -> bool:
        """Store a part as dirty if allowed; return False if it must go to the slow tier."""
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
            if not self.reserve(page):
                return False
        self.store_dirty(job, piece, through)
        return True

    def store_dirty(self, job: Job, piece: Piece, through: Gathered) -> None:
        """Store the storable range of a part; send its head and tail to the slow tier."""
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
        """Read valid granules from the fast tier and the rest from the slow tier."""
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
                is_wanted = not is_here and not sequential and not page.is_being_filled
                if is_wanted and self.fills.may_begin(piece):
                    self.fills.begin(job, piece)
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
        """Return the path of a READ from the state of its pages before it changes any."""
        missing = [piece.page for piece in pieces if not piece.is_here]
        if not missing:
            return Verdict(Path.HIT, Reason.NONE, len(pieces))
        if sequential:
            return Verdict(Path.BYPASS, Reason.SEQUENTIAL, len(pieces))
        return Verdict(Path.MISS, missing[0].reason_missing, len(pieces))

    def to_slow(self, job: Job, op: int, offset: int, length: int) -> None:
        """Submit a part of a request to the slow tier."""
        self.slow.submit(op, offset, length, job.parts.another())

    def to_fast(self, job: Job, op: int, piece: Piece) -> None:
        """Submit a part of a request to the fast tier, in the slot of its page."""
        offset = piece.page.at + piece.start - piece.page.start
        self.fast.submit(op, offset, piece.end - piece.start, job.parts.another())

    def store(self, job: Job, piece: Piece) -> None:
        """Write the storable range of a part to the slot of its page."""
        page, stored = piece.page, piece.storable()
        page.filling -= piece.touched
        page.flying -= piece.touched
        if stored.start < stored.end:
            flags = job.flags & FUA if self.writes_back else 0
            self.to_fast(job, Op.WRITE | flags, stored)
            page.valid |= stored.touched

    # Pages.

    def consider(self, page: Page, write: bool) -> bool:
        """Report an access to admission; return whether it admits the page."""
        return self.admission.consider(self.clock.now, page.number, write, self.is_full)

    def use(self, page: Page, write: bool) -> None:
        """Report an access to a present page to both policies."""
        self.consider(page, write)
        self.replacement.touch(page.number)
        self.counts["warm_pages_used"] += page.is_fresh
        page.is_fresh = False

    def is_wanted(self, page: Page, write: bool) -> bool:
        """Return whether admission admits an absent page; otherwise set the reason."""
        if self.consider(page, write):
            return True
        if page.reason not in (Reason.EVICTED, Reason.OVERWRITTEN):
            page.reason = Reason.NOT_HOT
        return False

    def admit(self, job: Job, piece: Piece, write: bool) -> None:
        """Reserve a slot for an absent page, if it is admitted and a slot is available."""
        page = piece.page
        if not self.is_wanted(page, write):
            return
        if not self.fills.may_begin(piece):
            page.reason = Reason.BUSY
        elif self.reserve(page):
            self.fills.begin(job, piece)

    def reserve(self, page: Page) -> bool:
        """Give an absent page a slot if there is one or a page can be evicted; return whether."""
        if not self.make_room(page):
            page.reason = Reason.BUSY
            return False
        self.take_slot(page)
        return True

    def take_slot(self, page: Page) -> None:
        """Give an absent page a free slot."""
        page.slot = self.free.pop()
        self.is_full |= not self.free
        page.state = State.FILLING

    def make_room(self, page: Page) -> bool:
        """Evict a page if no slot is free; return whether a slot is free now."""
        self.replacement.missed(page.number)
        if self.free:
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
                self.counts["evictions"] += 1
                return True
            self.cleaner.clean_at_once(victim)
            self.replacement.missed(number)
            self.replacement.admit(number)
        self.counts["stalls"] += 1
        return False

    def invalidate(self, page: Page, granules: set[int]) -> None:
        """Invalidate granules of a page; drop the page if it has no valid granule."""
        page.forget(granules)
        self.cleaner.has_cleaned(page)
        if page.state == State.PRESENT and not page.valid:
            self.replacement.remove(page.number)
            page.state = State.FILLING
            self.release(page)

    def release(self, page: Page) -> None:
        """Free the slot of an empty page, unless a fill or clean of it is under way."""
        if page.state == State.FILLING and page.is_movable:
            at = page.at
            self.leave(page, Reason.OVERWRITTEN)
            if self.parameters.discards:
                self.fast.submit(Op.DISCARD, at, self.parameters.page_bytes, nothing)

    def leave(self, page: Page, reason: Reason) -> None:
        """Free the slot of a page and mark the page absent."""
        self.free.append(page.slot)
        page.slot = -1
        page.is_fresh = False
        page.forget(page.granules)
        page.state = State.ABSENT
        page.reason = reason


class Fills(Part["PageCache", CacheParameters]):
    """Fills of pages (2.3.2), limited in number and rate."""

    def __init__(self, cache: PageCache) -> None:
        super().__init__(cache)
        self.piggyback = self.parameters.fill == Fill.PIGGYBACK
        self.under_way = 0
        self.bucket = Bucket(LimitParameters([Op.READ], 1, self.parameters.fill_rate, BURST_NS))

    def may_begin(self, piece: Piece) -> bool:
        """Whether a fill for a piece may begin; if so, charge the rate limit."""
        if self.under_way >= self.parameters.max_fills:
            return False
        now, size = self.clock.now, self.parameters.page_bytes
        if self.bucket.free > now:
            self.counts["fills_over_rate"] += 1
            return False
        if self.parameters.sub_page:
            size = len(piece.touched) * self.cache.sizes.granule_bytes
        self.bucket.charge(now, size)
        return True

    def begin(self, job: Job, piece: Piece) -> None:
        """Mark the granules to fill; the request fills them when it completes."""
        page = piece.page
        wanted = piece.touched if self.parameters.sub_page else page.granules
        page.filling = wanted - page.valid
        page.is_being_filled = True
        job.reserved.append(page)
        self.under_way += 1
        self.counts["fills_started"] += 1

    def filling(self, page: Page, job: Job) -> Iterator[Step]:
        """Read what is to be filled, piece by piece, unless the request has it; then write it."""
        if page.filling and not (self.piggyback and job.op == Op.READ):
            at, end = page.range_of(min(page.filling), max(page.filling))
            if at < job.offset or job.offset + job.length < end:
                while page.filling and at < (end := page.range_of(0, max(page.filling))[1]):
                    length = min(end - at, self.parameters.fill_piece_bytes or end - at)
                    yield partial(self.slow.submit, Op.READ, at, length)
                    at += length
        yield from self.writing(page)

    def writing(self, page: Page) -> Iterator[Step]:
        """Write what remains to be filled to the slot; it is valid unless overwritten meanwhile."""
        places = [map(self.cache.sizes.granule_start, run) for run in runs(page.filling)]
        submit = partial(self.fast.submit, Op.WRITE)
        writes = [partial(submit, page.at + start, end - start) for start, end in places]
        yield partial(each_of, writes)
        is_doomed = not page.filling
        if page.is_being_preloaded:
            self.counts["preloads_doomed" if is_doomed else "pages_preloaded"] += 1
        else:
            self.under_way -= 1
            self.counts["fills_doomed" if is_doomed else "fills_completed"] += 1
        page.is_being_filled = page.is_being_preloaded = False
        page.valid |= page.filling
        page.filling = set()
        if is_doomed:
            self.cache.release(page)
            return
        if page.state == State.FILLING:
            page.state = State.PRESENT
            self.cache.replacement.admit(page.number)


class Cleaner(Part["PageCache", CacheParameters]):
    """Tracks the dirty pages and writes them to the slow tier in the background (2.3.4)."""

    def __init__(self, cache: PageCache) -> None:
        super().__init__(cache)
        self.dirty: set[int] = set()  # pages
        self.waiting: dict[int, Page] = {}  # no clean under way; oldest first
        self.under_way = 0
        self.is_limited = False
        self.last = 0  # time of the last request
        self.position = 0
        self.rate = Alarm(self.clock, self.go_on)
        self.idle = Alarm(self.clock, self.go_on)
        self.bucket = Bucket(LimitParameters([Op.WRITE], 1, cache.parameters.clean_rate))

    def has_dirtied(self, page: Page) -> None:
        """Record that granules of a page became dirty."""
        if page.number not in self.dirty:
            self.dirty.add(page.number)
            self.is_limited |= len(self.dirty) >= self.parameters.dirty_high
        if not page.is_being_cleaned and page.number not in self.waiting:
            self.waiting[page.number] = page

    def has_cleaned(self, page: Page) -> None:
        """Record that granules of a page may have become clean."""
        if page.number in self.dirty and not page.dirty:
            self.dirty.remove(page.number)
            self.waiting.pop(page.number, None)
            self.is_limited &= len(self.dirty) > self.parameters.dirty_low

    @property
    def has_reason(self) -> bool:
        """Whether cleaning is due: enough pages wait, or the cache is idle."""
        is_idle = self.clock.now - self.last >= self.parameters.clean_idle_ns
        return is_idle or len(self.waiting) > self.parameters.clean_above

    @property
    def can_begin(self) -> bool:
        """Whether a page waits and fewer than max_cleans cleans are under way."""
        return bool(self.waiting) and self.under_way < self.parameters.max_cleans

    def go_on(self) -> None:
        """Begin the cleans that may begin now; set timers for the next ones."""
        while self.can_begin and self.has_reason and self.bucket.free <= self.clock.now:
            in_turn(self.cleaning(self.choose()))
        if self.can_begin and self.has_reason:
            self.rate.set(self.bucket.free)
        elif self.can_begin:
            self.idle.set(self.last + self.parameters.clean_idle_ns)

    def choose(self) -> Page:
        """Choose the next page in disk order among the clean_window oldest waiting pages."""
        oldest = list(self.waiting.values())[: self.parameters.clean_window]
        ahead = [page for page in oldest if page.number >= self.position]
        return min(ahead or oldest, key=lambda page: page.number)

    def clean_at_once(self, page: Page) -> None:
        """Begin a clean of a dirty victim, whatever the rate limit."""
        if page.number in self.waiting and self.under_way < self.parameters.max_cleans:
            in_turn(self.cleaning(page))

    def with_neighbours(self, page: Page) -> list[Page]:
        """Return the page with its neighbours that can be written in one request."""
        first, end, most = page.number, page.number + 1, self.parameters.clean_merge_pages
        while end - first < most and self.are_joined(first - 1):
            first -= 1
        while end - first < most and self.are_joined(end - 1):
            end += 1
        return [self.waiting[number] for number in range(first, end)]

    def are_joined(self, number: int) -> bool:
        """Whether a page and the next one wait, and are dirty at their common border."""
        page, behind = self.waiting.get(number), self.waiting.get(number + 1)
        return bool(page and behind and max(page.granules) in page.dirty and 0 in behind.dirty)

    def cleaning(self, page: Page) -> Iterator[Step]:
        """Read dirty granules; write those not overwritten since in as few requests as possible."""
        pages = self.with_neighbours(page)
        self.under_way += 1
        self.position = pages[-1].number + 1
        for each in pages:
            del self.waiting[each.number]
            each.is_being_cleaned = True
            each.flying = set(each.dirty)
        granules = sum(len(each.flying) for each in pages)
        self.bucket.charge(self.clock.now, granules * self.cache.sizes.granule_bytes)
        reads = [
            partial(self.fast.submit, Op.READ, each.at + start - each.start, end - start)
            for each in pages
            for start, end in each.flying_ranges()
        ]
        yield partial(each_of, reads)
        writes: list[tuple[int, int]] = []
        joined = Gathered(lambda start, size: writes.append((start, size)))
        for each in pages:
            for place in each.flying_ranges():
                joined.add(*place)
        joined.close()
        self.counts["write_backs"] += len(writes)
        self.counts["cleaned_bytes"] += sum(size for _, size in writes)
        yield partial(each_of, [partial(self.slow.submit, Op.WRITE, *place) for place in writes])
        self.under_way -= 1
        for each in pages:
            each.is_being_cleaned = False
            each.dirty -= each.flying
            each.flying = set()
            self.has_cleaned(each)
            if each.dirty:
                self.waiting[each.number] = each
            self.cache.release(each)
        self.go_on()


class Preloader(Part["PageCache", CacheParameters]):
    """The warm start (2.3.5): restores kept pages and loads a list of pages in the background."""

    def __init__(self, cache: PageCache) -> None:
        super().__init__(cache)
        self.left = list(self.parameters.preload)
        self.bucket = Bucket(LimitParameters([Op.READ], 1, self.parameters.preload_rate))

    def start(self) -> None:
        """Restore the kept pages and schedule the loading of the list."""
        cache = self.cache
        for number, valid in self.parameters.kept:
            page = cache.page(number)
            page.valid = {granule for granule in range(64) if valid >> granule & 1}
            cache.take_slot(page)
            page.state = State.PRESENT
            page.is_fresh = True
            self.counts["pages_kept"] += 1
            cache.replacement.missed(number)
            cache.replacement.admit(number)
        if self.left:
            in_turn(self.loading())

    def loading(self) -> Iterator[Step]:
        """Load a round of pages when the cache is idle or the rate allows it, else look later."""
        idle_ns, has_rate = self.parameters.preload_idle_ns, self.parameters.preload_rate > 0
        yield partial(self.clock.at, idle_ns)
        while True:
            now, quiet = self.clock.now, self.cache.cleaner.last + idle_ns
            is_idle = self.slow.is_idle and quiet <= now
            if is_idle or (has_rate and self.bucket.free <= now):
                reads = [self.next_pages() for _ in range(self.parameters.preload_reads)]
                reads = [pages for pages in reads if pages]
                if not reads:
                    return
                length = sum(pages[-1].end - pages[0].start for pages in reads)
                self.counts["preload_reads"] += len(reads)
                self.counts["preload_bytes"] += length
                if not is_idle:
                    self.bucket.charge(now, length)
                yield partial(each_of, [partial(self.read, pages) for pages in reads])
                for page in chain(*reads):
                    in_turn(self.cache.fills.writing(page))
            else:
                again = quiet if quiet > now else now + idle_ns
                yield partial(self.clock.at, min(again, self.bucket.free) if has_rate else again)

    def next_pages(self) -> list[Page]:
        """Take the next absent pages that can be read in one request."""
        pages: list[Page] = []
        while self.left:
            page = self.cache.page(self.left[0])
            if page.state == State.ABSENT:
                if (pages and not self.joins(pages, page)) or not self.cache.free:
                    break
                self.cache.replacement.missed(page.number)
                self.cache.take_slot(page)
                page.filling = page.granules
                page.is_being_filled = page.is_being_preloaded = page.is_fresh = True
                pages.append(page)
            self.left.pop(0)
        return pages

    def joins(self, pages: list[Page], page: Page) -> bool:
        """Whether a page can be read in one request with the pages before it."""
        size = self.parameters.page_bytes
        hole = (page.number - pages[-1].number - 1) * size
        whole = (page.number - pages[0].number + 1) * size
        return (
            0 <= hole <= self.parameters.preload_gap_bytes
            and whole <= self.parameters.preload_chunk_bytes
        )

    def read(self, pages: list[Page], done: Done) -> None:
        """Read the range of these pages."""
        start = pages[0].start
        self.slow.submit(Op.READ, start, pages[-1].end - start, done)
