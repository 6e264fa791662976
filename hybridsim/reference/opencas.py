"""Open CAS (2.13): lines with sectors, modes, promotion, cutoff and cleaning."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from itertools import cycle, dropwhile, groupby
from typing import Any

from hybridsim.foundation.cache_parameters import OpenCasParameters
from hybridsim.foundation.codes import (
    FUA,
    OP_MASK,
    PREFLUSH,
    CasMode,
    Cleaning,
    Cutoff,
    Op,
    Path,
    Promotion,
    Reason,
    Restart,
)
from hybridsim.reference.cache import Verdict
from hybridsim.reference.clock import (
    Alarm,
    Clock,
    Done,
    Parts,
    Step,
    each_of,
    expiry,
    in_turn,
    nothing,
)
from hybridsim.reference.device import Cache, Part
from hybridsim.reference.runs import Run, covered, runs, split, touched

LISTS = 32
CHUNK = 256


@dataclass(eq=False)
class Line:
    """A line of the cache; sectors are counted from its start."""

    number: int
    holds: int = -1  # a core line; -1: none
    valid: set[int] = field(default_factory=set)
    dirty: set[int] = field(default_factory=set)
    dirtied: tuple[int, int] = (0, 0)  # time of the last one, and its serial number
    owners: list[Claim] = field(default_factory=list)
    waiting: deque[Claim] = field(default_factory=deque)

    @property
    def list(self) -> int:
        """The number of the lists in which it stands."""
        return self.number // CHUNK % LISTS

    @property
    def is_in_use(self) -> bool:
        """Whether a job locks the line or waits for it."""
        return bool(self.owners or self.waiting)


class Claim:
    """The lock of one job on some lines; `granted` is called later if the job must wait."""

    def __init__(self, lines: list[Line], exclusive: bool, granted: Done) -> None:
        self.lines = lines
        self.exclusive = exclusive
        self.granted = granted
        self.wanting = 0
        for line in lines:
            if line.waiting or not self.may_enter(line):
                line.waiting.append(self)
                self.wanting += 1
            else:
                line.owners.append(self)
        self.waited = self.wanting > 0

    def may_enter(self, line: Line) -> bool:
        """Whether the current owners of a line allow this lock."""
        if self.exclusive:
            return not line.owners
        return not any(owner.exclusive for owner in line.owners)

    def give_back(self) -> None:
        """Unlock all lines and grant the waiting locks."""
        for line in self.lines:
            line.owners.remove(self)
            while line.waiting and line.waiting[0].may_enter(line):
                entering = line.waiting.popleft()
                line.owners.append(entering)
                entering.wanting -= 1
                if entering.wanting == 0:
                    entering.granted()


class Resumed:
    """Jobs whose locks were granted, resumed one per event."""

    def __init__(self, clock: Clock) -> None:
        self.next = Alarm(clock, self.take)
        self.queue: deque[Done] = deque()  # the first is being resumed

    def enter(self, job: Done) -> None:
        """Resume a job after those before it."""
        self.queue.append(job)
        if len(self.queue) == 1:
            self.next.set()

    def take(self) -> None:
        """Resume the first job."""
        self.queue[0]()
        self.queue.popleft()
        if self.queue:
            self.next.set()


class Lines:
    """All lines of the cache."""

    def __init__(self, count: int, chunks: Chunks) -> None:
        self.all = [Line(number) for number in range(count)]
        self.free: list[deque[Line]] = [deque() for _ in range(LISTS)]
        for line in self.all:
            self.free[line.list].append(line)
        self.of: dict[int, Line] = {}  # by core line
        self.clean: list[list[Line]] = [[] for _ in range(LISTS)]  # heads first
        self.dirty: list[list[Line]] = [[] for _ in range(LISTS)]
        self.last_seen: dict[int, Reason] = {}  # by core line: why it last left the cache
        self.chunks = chunks
        self.cursor = 0
        self.evictions = 0

    def begin_again(self) -> None:
        """Begin again, after the cache has stopped in order; no lock is left."""
        self.cursor = 0
        for line in self.all:
            line.owners, line.waiting = [], deque()

    def recover(self, old: Lines) -> None:
        """Take over the dirty sectors of a cache that has crashed; all other lines are free."""
        self.last_seen, self.evictions = old.last_seen, old.evictions
        for line, before in zip(self.all, old.all, strict=True):
            if before.dirty:
                self.free[line.list].remove(line)
                line.valid, line.dirty = set(before.dirty), set(before.dirty)
                self.hold(line, before.holds)

    def standing(self, line: Line) -> list[Line]:
        """Return the LRU list of a line."""
        lists = self.dirty if line.dirty else self.clean
        return lists[line.list]

    @property
    def free_count(self) -> int:
        """How many lines hold nothing."""
        return sum(map(len, self.free))

    def next_list(self) -> int:
        """Where the next search for lines begins."""
        self.cursor += 1
        return (self.cursor - 1) % LISTS

    def is_cold(self, line: Line) -> bool:
        """Whether a line is in the second half of its list."""
        standing = self.standing(line)
        return standing.index(line) >= len(standing) // 2

    def look_up(self, core_line: int) -> Line | None:
        """Return the line of a core line, or None; a cold line moves to the head of its list."""
        line = self.of.get(core_line)
        if line and self.is_cold(line):
            standing = self.standing(line)
            standing.remove(line)
            standing.insert(0, line)
        return line

    def hold(self, line: Line, core_line: int) -> None:
        """Assign an empty line to a core line."""
        line.holds = core_line
        self.of[core_line] = line
        self.standing(line).insert(0, line)

    def change(self, line: Line, valid: set[int], dirty: set[int]) -> None:
        """Set the valid and dirty sectors of a line; the line may change lists."""
        before, by = self.standing(line), bool(dirty) - bool(line.dirty)
        line.valid, line.dirty = valid, dirty
        if by:
            self.chunks.changed(line.holds, by)
        after = self.standing(line)
        if before is not after:
            before.remove(line)
            after.insert(0, line)

    def invalidate(self, line: Line, sectors: set[int]) -> None:
        """Invalidate sectors of a line; an empty line becomes free."""
        self.change(line, line.valid - sectors, line.dirty - sectors)
        if not line.valid:
            self.last_seen[line.holds] = Reason.OVERWRITTEN
            self.empty(line)
            self.free[line.list].append(line)

    def empty(self, line: Line) -> None:
        """Detach a clean line from its core line."""
        self.standing(line).remove(line)
        del self.of[line.holds]
        line.holds = -1
        line.valid = set()

    # Taking lines (2.13.3).

    def take(self, count: int, own: range) -> list[Line] | None:
        """Take `count` empty lines, evicting as needed; None if there are too few."""
        taken: list[Line] = []
        if self.free_count:
            for each in around(self.next_list()):
                while self.free[each] and len(taken) < count:
                    taken.append(self.free[each].popleft())
        last: Line | None = None  # the line evicted last
        while len(taken) < count:
            last = self.victim(last, own)
            if last is None:
                for line in taken:
                    self.free[line.list].append(line)
                return None
            self.evictions += 1
            self.last_seen[last.holds] = Reason.EVICTED
            self.empty(last)
            taken.append(last)
        return taken

    def victim(self, last: Line | None, own: range) -> Line | None:
        """Choose a victim from the clean lists; None if every clean line is in use."""

        def can_be_taken(line: Line) -> bool:
            return not line.is_in_use and line.holds not in own

        if last is not None and last.number + 1 < len(self.all):
            beside = self.all[last.number + 1]
            is_clean = beside.holds >= 0 and not beside.dirty
            if is_clean and self.is_cold(beside) and can_be_taken(beside):
                return beside
        for number in around(self.next_list() if last is None else last.list):
            for line in reversed(self.clean[number]):
                if can_be_taken(line):
                    return line
        return None

    def choose_dirty(self, limit: int) -> list[Line]:
        """Choose up to `limit` dirty lines to clean, from the tail of one list after the other."""
        lists = [reversed(self.dirty[number]) for number in around(self.next_list())]
        chosen = [line for lines in lists for line in lines if not line.is_in_use]
        return chosen[:limit]

    def all_dirty(self, fits: Callable[[Line], bool]) -> list[Line]:
        """Return the dirty lines that fit and are not in use, in order of core lines."""
        dirty = [line for each in self.dirty for line in each]
        matches = [line for line in dirty if not line.is_in_use and fits(line)]
        return in_order(matches)


def in_order(lines: Iterable[Line]) -> list[Line]:
    """Return lines in order of core lines."""
    return sorted(lines, key=lambda line: line.holds)


def around(start: int) -> Iterator[int]:
    """Yield the numbers of all lists, cyclically from `start`."""
    return ((start + step) % LISTS for step in range(LISTS))


# Sends a request, with what to call when it is complete, and when it is let in if it waits.
Send = Callable[[Done, Done], bool]


class Thread:
    """Does one thing after another, unless it sleeps."""

    def __init__(self, clock: Clock) -> None:
        self.asleep = False
        self.next = Alarm(clock, self.take)
        self.high: deque[Done] = deque()
        self.low: deque[Done] = deque()

    @property
    def busy(self) -> bool:
        """Whether what comes now has to wait."""
        return self.asleep or bool(self.high or self.low)

    def do(self, what: Done, starts: bool = False) -> None:
        """Go on with a job, now or when the thread has time, or start one behind those."""
        if self.busy:
            (self.low if starts else self.high).append(what)
        else:
            what()

    def later(self, what: Done) -> Done:
        """Return a callback that goes on with a job."""
        return partial(self.do, what)

    def take(self) -> None:
        """Do the first thing that waits."""
        if not self.asleep:
            (self.high or self.low).popleft()()
            self.call()

    def call(self) -> None:
        """Have it take something in this instant, if something waits."""
        if not self.asleep and self.busy:
            self.next.set()

    def send(self, what: Send, done: Done) -> None:
        """Send one request, and sleep until it is let in."""
        self.asleep = what(done, self.let_in)

    def let_in(self) -> None:
        """Wake up."""
        self.asleep = False
        self.call()

    def send_all(self, requests: Iterator[Send], done: Done) -> None:
        """Send requests, and sleep whenever one waits; `done` when all are complete, or none is."""
        parts = Parts(done)
        unsent = parts.another()

        def send_rest() -> None:
            for each in requests:
                self.asleep = each(parts.another(), woken)
                if self.asleep:
                    return
            unsent()

        def woken() -> None:
            self.asleep = False
            send_rest()
            self.call()

        send_rest()


SECTOR = 512
NO_CLAIM = Claim([], False, nothing)


Way = Enum("Way", "INSERT UPDATE INVALIDATE OVERLAY PASS")  # how a job uses the cache


@dataclass(eq=False)
class Job:
    """A READ or WRITE of whole sectors."""

    op: Op
    flagged: int  # the op with FUA
    offset: int
    length: int
    line_bytes: int
    thread: Thread
    done: Done
    way: Way = Way.INSERT
    cut: bool = False
    lines: dict[int, Line] = field(default_factory=dict)  # by core line
    claim: Claim = NO_CLAIM

    def __post_init__(self) -> None:
        self.end = self.offset + self.length
        self.core_lines = touched(self.offset, self.end, self.line_bytes)
        self.verdict = Verdict(Path.BYPASS, Reason.WRITE, len(self.core_lines))

    def part(self, core_line: int) -> tuple[int, int]:
        """Return the byte range of the job in a core line, relative to the line's start."""
        start = core_line * self.line_bytes
        return max(self.offset - start, 0), min(self.end - start, self.line_bytes)

    def sectors(self, core_line: int) -> set[int]:
        """Return the sectors of the job in a core line."""
        return {*touched(*self.part(core_line), SECTOR)}

    def judge(self, path: Path, reason: Reason) -> None:
        """Set the path of a READ."""
        if self.op == Op.READ:
            self.verdict.path, self.verdict.reason = path, reason


BUCKETS = 10
NEW_STREAMS, ESTABLISHED_STREAMS, ESTABLISHING_REQUESTS = 64, 128, 8


class Streams:
    """The recent runs of each direction; both lists are in order of use, the most recent first."""

    def __init__(self, sequential_cutoff_bytes: int) -> None:
        self.sequential_cutoff_bytes = sequential_cutoff_bytes
        self.new: list[Run] = []
        self.established: list[Run] = []

    def extend(self, op: Op, offset: int, length: int) -> bool:
        """Add a request to its stream; return whether that had begun before, and is long."""
        streams = [*self.new, *self.established]
        stream = next((each for each in streams if (each.op, each.end) == (op, offset)), None)
        if stream is None:
            stream = Run(offset, op)
            self.new = [stream, *self.new][:NEW_STREAMS]
        stream.extend(length)
        is_long = stream.requests > 1 and stream.length >= self.sequential_cutoff_bytes
        within = self.new if stream in self.new else self.established
        within.remove(stream)
        if is_long or stream.requests >= ESTABLISHING_REQUESTS:
            within = self.established
        within.insert(0, stream)
        del self.established[ESTABLISHED_STREAMS:]
        return is_long


class Chunks:
    """Parts of the core by their numbers of dirty lines, in buckets, for ACP."""

    def __init__(self, lines_each: int, core_lines: Iterable[int] = ()) -> None:
        self.lines_each = lines_each
        self.dirty = Counter(core_line // lines_each for core_line in core_lines)
        self.bucket: Counter[int] = Counter()  # of each chunk; those in bucket 0 are not cleaned
        self.order: list[list[int]] = [[] for _ in range(BUCKETS + 1)]
        self.now: int | None = None  # the chunk that is being cleaned
        self.next = 0  # its core line from which on lines were not looked at
        for chunk in sorted(self.dirty):
            self.bucket[chunk] = BUCKETS * self.dirty[chunk] // lines_each
            self.order[self.bucket[chunk]].append(chunk)

    def changed(self, core_line: int, by: int) -> None:
        """Count a core line that became dirty (1), clean (-1) or was written again (0)."""
        chunk = core_line // self.lines_each
        self.dirty[chunk] += by
        share, bucket = BUCKETS * self.dirty[chunk], self.bucket[chunk]
        if share > bucket * self.lines_each:
            self.move(chunk, bucket + 1, len(self.order[bucket + 1]))
        elif bucket and share <= (bucket - 1) * self.lines_each:
            self.move(chunk, bucket - 1, 0)

    def move(self, chunk: int, bucket: int, place: int) -> None:
        """Put a chunk into another bucket."""
        if chunk in self.order[self.bucket[chunk]]:
            self.order[self.bucket[chunk]].remove(chunk)
        self.order[bucket].insert(place, chunk)
        self.bucket[chunk] = bucket

    def choose(self) -> bool:
        """Choose a chunk unless one is being cleaned; return whether there is one."""
        if self.now is None:
            first = [chunks[0] for chunks in reversed(self.order[1:]) if chunks]
            if not first:
                return False
            self.now, self.next = first[0], first[0] * self.lines_each
        return True


class Nhit:
    """Counts misses of core lines that are not cached."""

    def __init__(self, threshold: int, room: int) -> None:
        self.threshold = threshold
        self.room = room
        self.misses: dict[int, int] = {}  # in order of insertion

    def refuses(self, core_lines: range) -> bool:
        """Count a miss of each core line; return whether any has too few misses."""
        refused = False
        for core_line in core_lines:
            is_new = core_line not in self.misses
            if is_new and len(self.misses) == self.room:
                del self.misses[next(iter(self.misses))]
            self.misses[core_line] = self.misses.get(core_line, 0) + 1
            refused |= is_new or self.misses[core_line] < self.threshold
        return refused

    def forget(self, core_lines: range) -> None:
        """Reset the counts of these core lines."""
        self.misses |= dict.fromkeys(self.misses.keys() & core_lines, 0)


PAGE = 4096
SECOND = 10**9
CHUNK_BYTES = 100 * 2**20
PIECE_LINES, LARGE_PIECE_LINES, MANY_LINES = 128, 1024, 4096  # of a pass, which goes by pieces


class OpenCas(Cache[OpenCasParameters]):
    """Open CAS: where a request goes, and jobs with their locks."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        p = self.parameters
        self.lines = Lines(p.lines, Chunks(CHUNK_BYTES // p.line_bytes))
        self.resumed = Resumed(self.clock)
        self.threads = cycle([Thread(self.clock) for _ in range(p.queues)])
        self.passes = cycle([next(self.threads) for _ in range(p.queues)])
        self.streams = Streams(p.sequential_cutoff_bytes)
        self.nhit = Nhit(p.insertion_threshold, 2 * p.lines)
        self.cleaner = Cleaner(self)
        self.flush_origin: Send = partial(self.slow.submit_background, Op.FLUSH, 0, 0)
        self.last_io = 0
        self.dirtied = 0
        self.backfills = 0
        self.blocked = False

    def after(self, old: OpenCas, how: Restart) -> None:
        """Start now, with what the medium of another one that has stopped has (2.17)."""
        super().after(old, how)
        self.last_io = self.clock.now
        self.dirtied = old.dirtied
        if how == Restart.UNCLEAN:
            self.lines.recover(old.lines)
            for line in self.lines.all:
                if line.dirty:
                    self.dirtied += 1
                    line.dirtied = self.clock.now, self.dirtied
        else:
            self.lines = old.lines
            self.lines.begin_again()
        dirty = (line.holds for lines in self.lines.dirty for line in lines)
        self.lines.chunks = Chunks(self.lines.chunks.lines_each, dirty)
        if any(self.lines.dirty) and self.parameters.cleaning != Cleaning.NOP:
            self.cleaner.asleep = False
            self.clock.at(self.clock.now, partial(in_turn, self.cleaner.working()))

    def submit(self, op: Op, offset: int, length: int, done: Done, flags: int = 0) -> Verdict:
        """Submit a request; the verdict is final when the request completes."""
        thread = next(self.threads)
        if op == Op.DISCARD and length > 0:
            self.slow.submit(op, offset, length, partial(self.discarded, offset, length, done))
            return Verdict(Path.BYPASS, Reason.DISCARD, 0)
        if op in (Op.FLUSH, Op.DISCARD) or length == 0:
            self.flush(done, thread)
            return Verdict(Path.BYPASS, Reason.FLUSH, 0)
        self.last_io = self.clock.now
        sectors = touched(offset, offset + length, SECTOR)
        extent = sectors.start * SECTOR, len(sectors) * SECTOR
        job = Job(op, op | flags & FUA, *extent, self.parameters.line_bytes, thread, done)
        if op == Op.WRITE and flags & PREFLUSH:
            self.flush(partial(self.route, job), thread)
        else:
            self.route(job)
        return job.verdict

    def flush(self, done: Done, thread: Thread) -> None:
        """Flush both tiers."""
        flushes: list[Step] = [partial(thread.send, self.flush_origin)]
        flushes.append(partial(self.fast.submit, Op.FLUSH, 0, 0))
        thread.do(partial(each_of, flushes, done), starts=True)

    def discarded(self, offset: int, length: int, done: Done) -> None:
        """Invalidate the sectors that lie entirely in a range."""
        sectors = covered(offset, offset + length, SECTOR)
        each = self.parameters.line_bytes // SECTOR
        core_lines = touched(sectors.start, sectors.stop, each) if sectors else range(0)
        if len(core_lines) > self.parameters.lines:
            lines = [line for line in self.lines.all if line.holds in core_lines]
        else:
            lines = [self.lines.of[k] for k in core_lines if k in self.lines.of]
        for line in lines:
            if not line.is_in_use:
                base = line.holds * each
                self.lines.invalidate(line, set(range(sectors.start - base, sectors.stop - base)))
        done()

    # Where a request goes.

    def route(self, job: Job) -> None:
        """Choose how a job uses the cache, and begin it, or let it wait for its thread."""
        self.choose(job)
        begin = partial(in_turn, self.serving(job))
        if self.is_fast(job):
            begin()
        else:
            job.thread.do(begin, starts=True)

    def is_fast(self, job: Job) -> bool:
        """Whether a job begins without its thread."""
        if self.parameters.mode not in (CasMode.WB, CasMode.WO):
            return False
        if job.way not in (Way.INSERT, Way.OVERLAY):
            return False
        job.lines = {each: self.lines.of[each] for each in job.core_lines if each in self.lines.of}
        return len(job.lines) == len(job.core_lines) and (job.op == Op.WRITE or self.is_hit(job))

    def choose(self, job: Job) -> None:
        """Choose how a job uses the cache."""
        mode = self.parameters.mode
        if len(job.core_lines) > self.parameters.lines or mode == CasMode.PT:
            self.past(job, Path.BYPASS, Reason.NO_CACHE)
            return
        job.cut = self.cuts_off(job)
        if job.cut:
            self.past(job, Path.BYPASS, Reason.SEQUENTIAL)
        elif job.op == Op.READ and mode == CasMode.WO:
            job.way = Way.OVERLAY
        elif job.op == Op.READ and self.blocked:
            self.past(job, Path.MISS, Reason.BUSY)
        elif job.op == Op.WRITE:
            ways = {CasMode.WA: Way.UPDATE, CasMode.WI: Way.INVALIDATE}
            job.way = ways.get(mode, Way.INSERT)

    def cuts_off(self, job: Job) -> bool:
        """Whether the sequential cutoff makes a request bypass the cache."""
        p = self.parameters
        if p.sequential_cutoff_policy == Cutoff.NEVER:
            return False
        is_long = self.streams.extend(job.op, job.offset, job.length)
        is_full = self.lines.free_count <= p.margin_lines + len(job.core_lines)
        return is_long and (p.sequential_cutoff_policy == Cutoff.ALWAYS or is_full)

    def past(self, job: Job, path: Path, reason: Reason) -> None:
        """Make a job bypass the cache."""
        job.judge(path, reason)
        job.way = Way.PASS if job.op == Op.READ else Way.INVALIDATE

    def lock(self, job: Job, then: Done) -> None:
        """Look up the core lines of a job, allocate missing lines, and lock them."""
        matches = [(each, self.lines.look_up(each)) for each in job.core_lines]
        job.lines = {core_line: line for core_line, line in matches if line}
        if job.cut and job.op == Op.READ and self.holds_all(job, lambda line: line.dirty):
            job.way = Way.INSERT
        if job.way == Way.UPDATE:
            job.way = Way.INSERT if self.is_hit(job) else Way.INVALIDATE
        if job.way == Way.INSERT and len(job.lines) < len(job.core_lines):
            self.allocate_lines(job)
        shared = job.way in (Way.OVERLAY, Way.PASS) or (job.op == Op.READ and self.is_hit(job))
        lines = [job.lines[each] for each in job.core_lines if each in job.lines]
        granted = partial(self.resumed.enter, job.thread.later(then))
        job.claim = Claim(lines, not shared, granted)
        if job.claim.wanting == 0:
            then()

    def allocate_lines(self, job: Job) -> None:
        """Allocate lines for the core lines without one, or make the job bypass the cache."""
        p = self.parameters
        nhit = p.promotion == Promotion.NHIT
        used = p.lines - self.lines.free_count
        if nhit and used >= p.trigger_threshold_lines and not job.lines:
            if self.nhit.refuses(job.core_lines):
                self.past(job, Path.MISS, Reason.NOT_HOT)
                return
        missing = [each for each in job.core_lines if each not in job.lines]
        taken = self.lines.take(len(missing), job.core_lines)
        if taken is None:
            self.cleaner.make_room(job.thread)
            self.past(job, Path.MISS, Reason.BUSY)
            return
        for core_line, line in zip(missing, taken, strict=True):
            self.lines.hold(line, core_line)
            job.lines[core_line] = line
        if nhit:
            self.nhit.forget(job.core_lines)

    def holds_all(self, job: Job, of: Callable[[Line], set[int]]) -> bool:
        """Whether every sector of a job is in the set `of` of its line."""
        return all(
            each in job.lines and job.sectors(each) <= of(job.lines[each])
            for each in job.core_lines
        )

    def is_hit(self, job: Job) -> bool:
        """Whether all sectors of a job are valid."""
        return self.holds_all(job, lambda line: line.valid)

    # Jobs with their locks.

    def serving(self, job: Job) -> Iterator[Step]:
        """Carry out a job when it has all its locks; lines that it would read past are cleaned."""
        yield partial(self.lock, job)
        while True:
            job.lines = {each: line for each, line in job.lines.items() if line.holds == each}
            is_hit = self.is_hit(job)
            if job.way == Way.INSERT:
                shared_miss = job.op == Op.READ and not job.claim.exclusive and not is_hit
                if len(job.lines) < len(job.core_lines) or shared_miss:
                    job.claim.give_back()
                    job.cut = False
                    self.past(job, Path.MISS, Reason.BUSY)
                    yield partial(self.lock, job)
                    continue
            reads_core = job.way == Way.PASS or (job.way == Way.INSERT and not is_hit)
            dirty = [line for _, line in sorted(job.lines.items()) if line.dirty]
            if job.op != Op.READ or not reads_core or not dirty:
                break
            yield from self.cleaner.cleaning(dirty, job.thread)
        self.count(job, is_hit)
        if job.op == Op.WRITE:
            yield from self.writing(job)
        elif is_hit and job.way != Way.PASS:
            job.judge(Path.HIT, Reason.NONE)
            job.verdict.pages_hit = len(job.core_lines)
            yield partial(each_of, self.places(job, Op.READ))
            self.end(job)
        else:
            yield from self.reading(job)

    def reading(self, job: Job) -> Iterator[Step]:
        """Read a job from the core, then end or backfill it."""
        hits = frozenset(k for k, line in job.lines.items() if job.sectors(k) <= line.valid)
        if job.way != Way.PASS:
            job.judge(Path.MISS, self.why_missing(job))
        if job.way == Way.OVERLAY:
            job.verdict.pages_hit = len(hits)
        elif job.way == Way.INSERT:
            self.make_valid(job)
            self.backfills += 1
            self.blocked |= self.backfills > self.parameters.backfills_max
        yield self.at_origin(Op.READ, job)
        do, later = job.thread.do, job.thread.later
        if job.way == Way.INSERT:
            job.done()
            yield lambda then: do(lambda: each_of(self.places(job, Op.WRITE, hits), later(then)))
            job.claim.give_back()
            self.backfills -= 1
            self.blocked &= self.backfills >= self.parameters.backfills_resume
            return
        if job.way == Way.OVERLAY:
            yield lambda then: do(lambda: each_of(self.valid_runs(job), then))
        self.end(job)

    def why_missing(self, job: Job) -> Reason:
        """Return the reason of the first core line that is not entirely valid."""
        valid = defaultdict(set, {each: line.valid for each, line in job.lines.items()})
        first = next(each for each in job.core_lines if not job.sectors(each) <= valid[each])
        return Reason.COLD if valid[first] else self.lines.last_seen.get(first, Reason.COLD)

    def valid_runs(self, job: Job) -> list[Step]:
        """Return the reads of the valid runs of a job."""
        size = self.parameters.line_bytes
        return [
            self.in_cache(Op.READ, line.number * size + first * SECTOR, (end - first) * SECTOR)
            for each, line in sorted(job.lines.items())
            for first, end in runs(job.sectors(each) & line.valid)
        ]

    def make_valid(self, job: Job) -> None:
        """Mark the sectors of a job valid."""
        for each, line in job.lines.items():
            self.lines.change(line, line.valid | job.sectors(each), line.dirty)

    def writing(self, job: Job) -> Iterator[Step]:
        """Write a job to cache, core or both."""
        later = job.thread.later
        lines = [(job.sectors(each), line) for each, line in sorted(job.lines.items())]
        if job.way == Way.INVALIDATE:
            write = self.at_origin(job.flagged, job)
            yield lambda then: write(later(then))
            changed = [line for sectors, line in lines if line.dirty & sectors]
            for sectors, line in lines:
                self.lines.invalidate(line, sectors)
        else:
            self.make_valid(job)
            places = self.places(job, job.flagged)
            if self.parameters.mode not in (CasMode.WB, CasMode.WO):
                yield partial(each_of, [*places, self.at_origin(job.flagged, job)])
                self.end(job)
                return
            yield lambda then: each_of(places, later(then))
            changed = [line for sectors, line in lines if not sectors <= line.dirty]
            for sectors, line in lines:
                self.lines.change(line, line.valid, line.dirty | sectors)
                self.lines.chunks.changed(line.holds, 0)
                self.dirtied += 1
                line.dirtied = self.clock.now, self.dirtied
                self.cleaner.wake()
        # The metadata of the lines that it changed.
        yield partial(self.write_metadata, changed, job.flagged, job.thread)
        self.end(job)

    def end(self, job: Job) -> None:
        """Complete a job and unlock its lines."""
        job.claim.give_back()
        job.done()

    # Tiers.

    def places(self, job: Job, op: int, but: frozenset[int] = frozenset()) -> list[Step]:
        """Return the accesses of a job to the cache, one for each run of consecutive lines.

        Runs that begin at one of the core lines `but` begin after it, unless there is only one run.
        """
        size = self.parameters.line_bytes
        groups = groupby(job.core_lines, lambda each: job.lines[each].number - each)
        together = [[*group] for _, group in groups]
        if len(together) > 1:
            together = [[*dropwhile(but.__contains__, each)] for each in together]
        result = []
        for run in filter(None, together):
            first, last = run[0], run[-1]
            start, end = job.part(first)[0], (last - first) * size + job.part(last)[1]
            result.append(self.in_cache(op, job.lines[first].number * size + start, end - start))
        return result

    def in_cache(self, op: int, at: int, length: int) -> Step:
        """Return a read or write of the fast tier, to be begun now."""
        self.moved("cache", op, length)
        return partial(self.fast.submit, op, at, length)

    def at_origin(self, op: int, job: Job) -> Step:
        """Return a job's read or write of the slow tier, to be begun now."""
        self.moved("core", op, job.length)
        return partial(self.slow.submit, op, job.offset, job.length)

    def write_metadata(self, lines: list[Line], op: int, thread: Thread, done: Done) -> None:
        """Write the metadata pages of lines."""
        size = self.parameters.line_bytes
        each = PAGE // (10 + size // 2048)
        start = self.parameters.lines * size
        writes = [
            partial(self.fast.submit, op, start + first * PAGE, (end - first) * PAGE)
            for first, end in runs({line.number // each for line in lines})
        ]
        self.counts["metadata_writes"] += len(writes)
        each_of(writes, thread.later(done) if writes else done)

    # Counters.

    def moved(self, place: str, op: int, length: int) -> None:
        """Count bytes read from or written to a place."""
        self.counts[f"{'reads_from' if op & OP_MASK == Op.READ else 'writes_to'}_{place}"] += length

    def count(self, job: Job, is_hit: bool) -> None:
        """Count a request in casadm's categories."""
        name = "read" if job.op == Op.READ else "write"
        self.moved("exported_object", job.op, job.length)
        if job.way in (Way.PASS, Way.INVALIDATE):
            self.counts[f"pass_through_{name}s"] += 1
            return
        self.counts[f"{name}_total"] += 1
        some = any(line.valid & job.sectors(each) for each, line in job.lines.items())
        if is_hit:
            self.counts[f"{name}_{'deferred' if job.claim.waited else 'hits'}"] += 1
        else:
            self.counts[f"{name}_{'partial' if some else 'full'}_misses"] += 1

    @property
    def counters(self) -> dict[str, int]:
        """The counters of `casadm --stats`, and additional ones."""
        counts = self.counts
        each = self.parameters.line_bytes // PAGE
        dirty, clean = (
            sum(map(len, lists)) * each for lists in (self.lines.dirty, self.lines.clean)
        )
        serviced = counts["read_total"] + counts["write_total"]
        passed = counts["pass_through_reads"] + counts["pass_through_writes"]
        moved = [name for name in counts if name.startswith(("reads_from_", "writes_to_"))]
        return {
            **counts,
            "occupancy": dirty + clean,
            "free": self.lines.free_count * each,
            "clean": clean,
            "dirty": dirty,
            "serviced_requests": serviced,
            "total_requests": serviced + passed,
            **{name: counts[name] // PAGE for name in moved},
            "cleaned_blocks": counts["cleaned"] // PAGE,
            "evictions": self.lines.evictions,
            "pages_present": (dirty + clean) // each,
        }


class Cleaner(Part["OpenCas", OpenCasParameters]):
    """Writes dirty lines to the core, on request and by the cleaning policy (2.13.4)."""

    def __init__(self, cache: OpenCas) -> None:
        super().__init__(cache)
        self.asleep = True
        self.evicting = False
        self.empty_s = -(10**9)  # second of the last pass without a stale line (ALRU)

    def cleaning(self, lines: list[Line], thread: Thread) -> Iterator[Step]:
        """Clean locked lines, in order of core lines."""
        cache, size = self.cache, self.parameters.line_bytes

        def writes() -> Iterator[Send]:
            # What is dirty is seen when it is sent: the thread may have slept.
            for line in lines:
                end = 0
                while left := [run for run in runs(line.dirty) if run[1] > end]:
                    first, end = left[0]
                    at, length = line.holds * size + first * SECTOR, (end - first) * SECTOR
                    self.counts["cleaned"] += length
                    yield partial(self.slow.submit_background, Op.WRITE, at, length)

        reads = [partial(self.fast.submit, Op.READ, line.number * size, size) for line in lines]
        yield lambda then: each_of(reads, thread.later(then))
        yield lambda then: thread.send_all(writes(), thread.later(then))
        yield lambda then: thread.send(cache.flush_origin, thread.later(then))
        for line in lines:
            cache.lines.change(line, line.valid, set())
        yield partial(cache.write_metadata, lines, Op.WRITE, thread)
        yield lambda then: self.fast.submit(Op.FLUSH, 0, 0, thread.later(then))

    def cleaning_batch(self, lines: list[Line], thread: Thread) -> Iterator[Step]:
        """Lock and clean lines that are not locked yet."""
        claim = Claim(lines, False, nothing)
        yield from self.cleaning(lines, thread)
        claim.give_back()

    def make_room(self, thread: Thread) -> None:
        """Clean up to 32 lines, so that a later miss can take them."""
        if self.evicting:
            return
        lines = self.cache.lines.choose_dirty(32)
        if lines:
            self.evicting = True
            is_over = partial(setattr, self, "evicting", False)
            in_turn(self.cleaning_batch(in_order(lines), thread), is_over)

    # The cleaning policy.

    def wake(self) -> None:
        """Schedule the policy after a line has become dirty."""
        if self.asleep and self.parameters.cleaning != Cleaning.NOP:
            self.asleep = False
            alru = self.parameters.cleaning == Cleaning.ALRU
            period = expiry(0, self.parameters.wake_up_ns if alru else SECOND)
            begin = partial(in_turn, self.working())
            self.clock.at((self.clock.now // period + 1) * period, begin)

    def working(self) -> Iterator[Step]:
        """Clean the lines that the policy chooses, pass after pass, until no line is dirty."""
        is_alru = self.parameters.cleaning == Cleaning.ALRU
        wake_up_ns = self.parameters.wake_up_ns
        while any(self.cache.lines.dirty):
            lines: list[Line] = []
            pause = wake_up_ns
            if is_alru:
                lines = self.oldest()
            elif self.cache.lines.chunks.choose():
                lines = self.of_chunk()
            else:
                pause = SECOND
            if lines:
                begun, thread = self.clock.now, next(self.cache.passes)
                lines = in_order(lines)
                limit = LARGE_PIECE_LINES if len(lines) > MANY_LINES else PIECE_LINES
                pieces = [lines[first:end] for _, first, end in split(0, len(lines), limit)]
                batches = [partial(in_turn, self.cleaning_batch(piece, thread)) for piece in pieces]
                yield partial(each_of, batches)
                pause = self.pause(begun, 0 if is_alru else wake_up_ns)
            yield partial(self.clock.at, expiry(self.clock.now, pause))
        self.asleep = True
        self.cache.lines.chunks.now = None

    def pause(self, begun: int, usual: int) -> int:
        """Return the pause after a pass: a second instead of none if a query waits for its end."""
        p = self.parameters
        if p.stats_interval_ns == 0 or usual:
            return usual
        # The first query after the begin.
        ahead = max(0, (begun - p.stats_start_ns) // p.stats_interval_ns + 1)
        return SECOND if p.stats_start_ns + ahead * p.stats_interval_ns <= self.clock.now else usual

    def oldest(self) -> list[Line]:
        """Return the least recently dirtied stale lines, if the cache is idle (ALRU)."""
        p, now = self.parameters, self.clock.now
        if now - self.cache.last_io < p.activity_threshold_ns:
            return []
        if now // SECOND - self.empty_s <= p.wake_up_ns // SECOND:
            return []
        before = (now - p.staleness_time_ns) // SECOND
        stale = self.cache.lines.all_dirty(lambda line: line.dirtied[0] // SECOND < before)
        if not stale:
            self.empty_s = now // SECOND
        return sorted(stale, key=lambda line: line.dirtied)[: p.flush_max_buffers]

    def of_chunk(self) -> list[Line]:
        """Return the next dirty lines of the chunk that is being cleaned (ACP)."""
        chunks, limit = self.cache.lines.chunks, self.parameters.flush_max_buffers
        assert chunks.now is not None
        end = (chunks.now + 1) * chunks.lines_each
        lines = self.cache.lines.all_dirty(lambda line: chunks.next <= line.holds < end)
        if len(lines) >= limit:
            chunks.next = lines[limit - 1].holds + 1
        if len(lines) < limit or chunks.next == end:
            chunks.now = None
        return lines[:limit]
