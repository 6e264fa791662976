"""Open CAS (2.13): lines with sectors, modes, promotion, cutoff and cleaning."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import cycle

from hybridsim.foundation.cache_parameters import OpenCasParameters
from hybridsim.foundation.codes import (
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
from hybridsim.reference.clock import Clock, Done, Parts, Step, each_of, in_turn
from hybridsim.reference.opencas_lines import (
    SECTOR,
    Chunks,
    Claim,
    Job,
    Line,
    Lines,
    Nhit,
    Resumed,
    Send,
    Streams,
    Thread,
    Way,
)
from hybridsim.reference.page import runs
from hybridsim.reference.throttle import Slow
from hybridsim.reference.tier import Tier
from hybridsim.reference.timers import expiry

PAGE = 4096
SECOND = 10**9
CHUNK_BYTES = 100 * 2**20
PIECE_LINES, LARGE_PIECE_LINES, MANY_LINES = 128, 1024, 4096  # of a pass, which goes by pieces


class OpenCas:
    """Sits between the source and the tiers."""

    def __init__(self, clock: Clock, parameters: OpenCasParameters, slow: Slow, fast: Tier) -> None:
        p = parameters
        self.clock, self.parameters = clock, p
        self.slow, self.fast = slow, fast
        self.lines = Lines(p.lines)
        self.resumed = Resumed(clock)
        self.threads = cycle([Thread(clock) for _ in range(p.queues)])
        self.passes = cycle([next(self.threads) for _ in range(p.queues)])
        self.streams = Streams(p.sequential_cutoff_bytes)
        self.nhit = Nhit(p.insertion_threshold, 2 * p.lines)
        self.cleaner = Cleaner(self)
        self.lines.on_dirty = self.cleaner.chunks.changed
        self.last_io = 0
        self.dirtied = 0
        self.backfills = 0
        self.blocked = False
        self.counts: Counter[str] = Counter()

    def after(self, old: OpenCas, how: Restart) -> None:
        """Start now, with what the medium of another one that has stopped has (2.17)."""
        self.counts = old.counts
        self.last_io = self.clock.now
        self.dirtied = old.dirtied
        if how == Restart.UNCLEAN:
            self.lines.recover(old.lines)
            for line in self.lines.all:
                if line.dirty:
                    self.dirtied += 1
                    line.dirtied = self.clock.now, self.dirtied
        else:
            self.lines.load(old.lines)
        self.cleaner.chunks.load(line.holds or 0 for lines in self.lines.dirty for line in lines)
        if any(self.lines.dirty) and self.parameters.cleaning != Cleaning.NOP:
            self.cleaner.asleep = False
            self.clock.at(self.clock.now, self.cleaner.run)

    def submit(self, op: Op, offset: int, length: int, done: Done, flags: int = 0) -> Verdict:
        """Submit a request; the verdict is final when the request completes."""
        thread = next(self.threads)
        if op == Op.DISCARD and length > 0:
            self.slow.submit(op, offset, length, lambda: self.discarded(offset, length, done))
            return Verdict(Path.BYPASS, Reason.DISCARD, 0)
        if op in (Op.FLUSH, Op.DISCARD) or length == 0:
            self.flush(done, thread)
            return Verdict(Path.BYPASS, Reason.FLUSH, 0)
        self.last_io = self.clock.now
        job = Job(op, offset, length, self.parameters.line_bytes, done, flags, thread)
        if op == Op.WRITE and flags & PREFLUSH:
            self.flush(lambda: self.route(job), thread)
        else:
            self.route(job)
        return job.verdict

    def flush(self, done: Done, thread: Thread) -> None:
        """Flush both tiers."""

        def start() -> None:
            both = Parts(done)
            thread.send(self.flush_origin, both.another())
            self.fast.submit(Op.FLUSH, 0, 0, both.another())

        thread.start(start)

    def flush_origin(self, done: Done, let_in: Done) -> bool:
        """Flush the core; return whether that waits."""
        return self.slow.submit_background(Op.FLUSH, 0, 0, done, let_in)

    def discarded(self, offset: int, length: int, done: Done) -> None:
        """Invalidate the sectors that lie entirely in a range."""
        first, end = -(-offset // SECTOR), (offset + length) // SECTOR
        each = self.parameters.line_bytes // SECTOR
        core_lines = range(first // each, -(-end // each)) if first < end else range(0)
        if len(core_lines) > self.parameters.lines:
            lines = [line for line in self.lines.all if line.holds in core_lines]
        else:
            lines = [self.lines.of[k] for k in core_lines if k in self.lines.of]
        for line in lines:
            if not line.is_in_use:
                base = (line.holds or 0) * each
                self.lines.invalidate(line, set(range(first - base, end - base)))
        done()

    # Where a request goes.

    def route(self, job: Job) -> None:
        """Choose how a job uses the cache, and begin it, or let it wait for its thread."""
        self.choose(job)
        if self.is_fast(job):
            self.begin(job)
        else:
            job.thread.start(lambda: self.begin(job))

    def is_fast(self, job: Job) -> bool:
        """Whether a job begins without its thread."""
        if self.parameters.mode not in (CasMode.WB, CasMode.WO):
            return False
        if job.way not in (Way.INSERT, Way.OVERLAY):
            return False
        lines = {each: self.lines.of.get(each) for each in job.core_lines}
        return all(
            line is not None and (job.op == Op.WRITE or job.sectors(each) <= line.valid)
            for each, line in lines.items()
        )

    def choose(self, job: Job) -> None:
        """Choose how a job uses the cache."""
        mode = self.parameters.mode
        if len(job.core_lines) > self.parameters.lines or mode == CasMode.PT:
            self.past(job, Path.BYPASS, Reason.NO_CACHE)
            return
        job.cut = self.cuts_off(job)
        if job.cut:
            self.past(job, Path.BYPASS, Reason.SEQUENTIAL)
            return
        if job.op == Op.READ:
            if mode != CasMode.WO and self.blocked:
                self.past(job, Path.MISS, Reason.BUSY)
                return
            job.way = Way.OVERLAY if mode == CasMode.WO else Way.INSERT
        else:
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

    def begin(self, job: Job) -> None:
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
        granted = self.resumed.later(lambda: job.thread.do(lambda: self.go(job)))
        job.claim = Claim(lines, not shared, granted)
        if job.claim.wanting == 0:
            self.go(job)

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

    def go(self, job: Job) -> None:
        """Carry out a job that has all its locks."""
        job.lines = {each: line for each, line in job.lines.items() if line.holds == each}
        is_hit = self.is_hit(job)
        if job.way == Way.INSERT:
            shared_miss = job.op == Op.READ and not job.claim.exclusive and not is_hit
            if len(job.lines) < len(job.core_lines) or shared_miss:
                job.claim.give_back()
                job.cut = False
                self.past(job, Path.MISS, Reason.BUSY)
                self.begin(job)
                return
        if job.op == Op.READ and (job.way == Way.PASS or (job.way == Way.INSERT and not is_hit)):
            dirty = [line for _, line in sorted(job.lines.items()) if line.dirty]
            if dirty:
                in_turn(self.cleaner.cleaning(dirty, lambda: self.go(job), job.thread))
                return
        self.count(job, is_hit)
        if job.op == Op.WRITE:
            in_turn(self.writing(job))
        elif is_hit and job.way != Way.PASS:
            job.judge(Path.HIT, Reason.NONE)
            job.verdict.pages_hit = len(job.core_lines)
            each_of(self.places(job, Op.READ), lambda: self.end(job))
        else:
            in_turn(self.reading(job))

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
        yield lambda then: self.to_origin(Op.READ, job.offset, job.length, then)
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
        for each in job.core_lines:
            valid = job.lines[each].valid if each in job.lines else set()
            if not job.sectors(each) <= valid:
                return Reason.COLD if valid else self.lines.last_seen.get(each, Reason.COLD)
        raise AssertionError("a hit misses nothing")

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

        def to_origin(then: Done) -> None:
            self.to_origin(job.flagged, job.offset, job.length, then)

        if job.way == Way.INVALIDATE:
            yield lambda then: to_origin(later(then))
            changed = [line for sectors, line in lines if line.dirty & sectors]
            for sectors, line in lines:
                self.lines.invalidate(line, sectors)
        else:
            self.make_valid(job)
            places = self.places(job, job.flagged)
            if self.parameters.mode not in (CasMode.WB, CasMode.WO):
                yield lambda then: each_of([*places, to_origin], then)
                self.end(job)
                return
            yield lambda then: each_of(places, later(then))
            changed = [line for sectors, line in lines if not sectors <= line.dirty]
            for sectors, line in lines:
                self.lines.change(line, line.valid, line.dirty | sectors)
                self.cleaner.chunks.changed(line.holds or 0, 0)
                self.dirtied += 1
                line.dirtied = self.clock.now, self.dirtied
                self.cleaner.wake()
        # The metadata of the lines that it changed.
        yield lambda then: self.write_metadata(changed, job.flagged, then, job.thread)
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
        left = deque((each, job.lines[each].number) for each in job.core_lines)
        numbers = [number for _, number in left]
        is_one = numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        result = []
        while left:
            first, number = left.popleft()
            if first in but and not is_one:
                continue
            last = first
            while left and left[0] == (last + 1, number + last + 1 - first):
                last, _ = left.popleft()
            start, end = job.part(first)[0], (last - first) * size + job.part(last)[1]
            result.append(self.in_cache(op, number * size + start, end - start))
        return result

    def in_cache(self, op: int, at: int, length: int) -> Step:
        """Return a read or write of the fast tier."""

        def submit(then: Done) -> None:
            self.moved("cache", op, length)
            self.fast.submit(op, at, length, then)

        return submit

    def to_origin(self, op: int, at: int, length: int, done: Done) -> None:
        """Read or write the slow tier."""
        self.moved("core", op, length)
        self.slow.submit(op, at, length, done)

    def write_metadata(self, lines: list[Line], op: int, done: Done, thread: Thread) -> None:
        """Write the metadata pages of lines."""
        size = self.parameters.line_bytes
        each = PAGE // (10 + size // 2048)
        pages = {line.number // each for line in lines}
        start = self.parameters.lines * size

        def write(first: int, end: int) -> Step:
            self.counts["metadata_writes"] += 1
            at, length = start + first * PAGE, (end - first) * PAGE
            return lambda then: self.fast.submit(op, at, length, then)

        if pages:
            each_of([write(*run) for run in runs(pages)], thread.later(done))
        else:
            done()

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
        dirty = sum(map(len, self.lines.dirty)) * each
        clean = sum(map(len, self.lines.clean)) * each
        kinds = ("hits", "deferred", "partial_misses", "full_misses", "total")
        by_op = {
            f"{op}_{kind}": counts[f"{op}_{kind}"] for op in ("read", "write") for kind in kinds
        }
        past = {name: counts[name] for name in ("pass_through_reads", "pass_through_writes")}
        serviced = by_op["read_total"] + by_op["write_total"]
        moved = [
            f"{way}_{place}"
            for place in ("core", "cache", "exported_object")
            for way in ("reads_from", "writes_to")
        ]
        return {
            "occupancy": dirty + clean,
            "free": self.lines.free_count * each,
            "clean": clean,
            "dirty": dirty,
            **by_op,
            **past,
            "serviced_requests": serviced,
            "total_requests": serviced + sum(past.values()),
            **{name: counts[name] // PAGE for name in moved},
            "cleaned_blocks": counts["cleaned"] // PAGE,
            "evictions": self.lines.evictions,
            "pages_present": (dirty + clean) // each,
            "metadata_writes": counts["metadata_writes"],
        }


class Cleaner:
    """Writes dirty lines to the core, on request and by the cleaning policy (2.13.4)."""

    def __init__(self, cache: OpenCas) -> None:
        self.cache = cache
        self.clock = cache.clock
        self.parameters = cache.parameters
        self.asleep = True
        self.evicting = False
        self.chunks = Chunks(CHUNK_BYTES // cache.parameters.line_bytes)
        self.empty_s = -(10**9)  # second of the last pass without a stale line (ALRU)

    def cleaning(self, lines: list[Line], done: Done, thread: Thread) -> Iterator[Step]:
        """Clean locked lines, in order of core lines."""
        cache, size = self.cache, self.parameters.line_bytes

        def read(line: Line) -> Step:
            return lambda then: cache.fast.submit(Op.READ, line.number * size, size, then)

        def write(line: Line, first: int, end: int) -> Send:
            assert line.holds is not None
            at, length = line.holds * size + first * SECTOR, (end - first) * SECTOR

            def submit(then: Done, let_in: Done) -> bool:
                cache.counts["cleaned"] += length
                return cache.slow.submit_background(Op.WRITE, at, length, then, let_in)

            return submit

        def writes() -> Iterator[Send]:
            # What is dirty is seen when it is sent: the thread may have slept.
            for line in lines:
                at = 0
                while left := [run for run in runs(line.dirty) if run[1] > at]:
                    first, at = left[0]
                    yield write(line, first, at)

        yield lambda then: each_of([read(line) for line in lines], thread.later(then))
        yield lambda then: thread.send_all(writes(), thread.later(then))
        yield lambda then: thread.send(cache.flush_origin, thread.later(then))
        for line in lines:
            cache.lines.change(line, line.valid, set())
        yield lambda then: cache.write_metadata(lines, Op.WRITE, then, thread)
        yield lambda then: cache.fast.submit(Op.FLUSH, 0, 0, thread.later(then))
        done()

    def clean_batch(self, lines: list[Line], done: Done, thread: Thread) -> None:
        """Lock and clean lines that are not locked yet."""
        lines = sorted(lines, key=lambda line: line.holds or 0)
        claim = Claim(lines, False, lambda: None)

        def end() -> None:
            claim.give_back()
            done()

        in_turn(self.cleaning(lines, end, thread))

    def make_room(self, thread: Thread) -> None:
        """Clean up to 32 lines, so that a later miss can take them."""
        if self.evicting:
            return
        lines = self.cache.lines.choose_dirty(32)
        if lines:
            self.evicting = True
            self.clean_batch(lines, partial(setattr, self, "evicting", False), thread)

    # The cleaning policy.

    def wake(self) -> None:
        """Schedule the policy after a line has become dirty."""
        if self.asleep and self.parameters.cleaning != Cleaning.NOP:
            self.asleep = False
            alru = self.parameters.cleaning == Cleaning.ALRU
            period = expiry(0, self.parameters.wake_up_ns if alru else SECOND)
            self.clock.at((self.clock.now // period + 1) * period, self.run)

    def run(self) -> None:
        """Clean the lines that the policy chooses; sleep if no line is dirty."""
        if not any(self.cache.lines.dirty):
            self.asleep = True
            self.chunks.now = None
            return
        if self.parameters.cleaning == Cleaning.ALRU:
            lines, pause = self.oldest(), 0
        elif self.chunks.choose():
            lines, pause = self.of_chunk(), self.parameters.wake_up_ns
        else:
            self.run_after(SECOND)
            return
        if lines:
            begun, thread = self.clock.now, next(self.cache.passes)
            lines = sorted(lines, key=lambda line: line.holds or 0)
            limit = LARGE_PIECE_LINES if len(lines) > MANY_LINES else PIECE_LINES
            pieces = [lines[at : at + limit] for at in range(0, len(lines), limit)]

            def cleaned(piece: list[Line]) -> Step:
                return lambda then: self.clean_batch(piece, then, thread)

            each_of(map(cleaned, pieces), lambda: self.run_after(self.pause(begun, pause)))
        else:
            self.run_after(self.parameters.wake_up_ns)

    def pause(self, begun: int, usual: int) -> int:
        """Return the pause after a pass: a second instead of none if a query waits for its end."""
        p = self.parameters
        if p.stats_interval_ns == 0 or usual:
            return usual
        # The first query after the begin.
        ahead = max(0, (begun - p.stats_start_ns) // p.stats_interval_ns + 1)
        return SECOND if p.stats_start_ns + ahead * p.stats_interval_ns <= self.clock.now else usual

    def run_after(self, pause: int) -> None:
        """Run the policy again after a pause in nanoseconds."""
        self.clock.at(expiry(self.clock.now, pause), self.run)

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
        chunks, limit = self.chunks, self.parameters.flush_max_buffers
        assert chunks.now is not None
        end = (chunks.now + 1) * chunks.lines_each
        lines = self.cache.lines.all_dirty(lambda line: chunks.next <= (line.holds or 0) < end)
        if len(lines) >= limit:
            chunks.next = (lines[limit - 1].holds or 0) + 1
        if len(lines) < limit or chunks.next == end:
            chunks.now = None
        return lines[:limit]
