"""Open CAS (2.13): lines with sectors, modes, promotion, cutoff and cleaning."""

from collections import Counter
from collections.abc import Callable

from hybridsim.foundation.codes import (
    OP_MASK,
    PREFLUSH,
    CasMode,
    Cutoff,
    Op,
    Path,
    Promotion,
    Reason,
)
from hybridsim.reference.cache import Verdict
from hybridsim.reference.clock import Clock, Done, Parts
from hybridsim.reference.opencas_cleaning import Cleaner, each_of
from hybridsim.reference.opencas_jobs import SECTOR, Job, Way
from hybridsim.reference.opencas_lines import Claim, Line, Lines, Resumed, runs
from hybridsim.reference.opencas_policies import Nhit, Streams
from hybridsim.reference.parameters import OpenCasParameters
from hybridsim.reference.throttle import Slow
from hybridsim.reference.tier import Tier

PAGE = 4096


class OpenCas:
    """Sits between the source and the tiers."""

    def __init__(self, clock: Clock, parameters: OpenCasParameters, slow: Slow, fast: Tier) -> None:
        p = parameters
        self.clock, self.parameters = clock, p
        self.slow, self.fast = slow, fast
        self.lines = Lines(p.lines)
        self.resumed = Resumed(clock)
        self.streams = Streams(p.cutoff_bytes)
        self.nhit = Nhit(p.insertion_threshold, 2 * p.lines)
        self.cleaner = Cleaner(self)
        self.last_io = 0
        self.made_dirty = 0
        self.backfills = 0
        self.blocked = False
        self.counts: Counter[str] = Counter()

    def submit(self, op: Op, offset: int, length: int, done: Done, flags: int = 0) -> Verdict:
        """Send a request on its way; the verdict is final when it completes."""
        if op == Op.DISCARD and length > 0:
            self.slow.submit(op, offset, length, lambda: self.discarded(offset, length, done))
            return Verdict(Path.BYPASS, Reason.DISCARD, 0)
        if op in (Op.FLUSH, Op.DISCARD) or length == 0:
            self.flush(done)
            return Verdict(Path.BYPASS, Reason.FLUSH, 0)
        self.last_io = self.clock.now
        job = Job(op, offset, length, self.parameters.line_bytes, done, flags)
        if op == Op.WRITE and flags & PREFLUSH:
            self.flush(lambda: self.route(job))
        else:
            self.route(job)
        return job.verdict

    def flush(self, done: Done) -> None:
        """Flush both tiers."""
        both = Parts(done)
        self.slow.submit(Op.FLUSH, 0, 0, both.another())
        self.fast.submit(Op.FLUSH, 0, 0, both.another())

    def discarded(self, offset: int, length: int, done: Done) -> None:
        """Forget what lies wholly in a range."""
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
        """Choose the way of a job, and begin it."""
        mode = self.parameters.mode
        if len(job.core_lines) > self.parameters.lines or mode == CasMode.PT:
            self.begin_past(job, Path.BYPASS, Reason.NO_CACHE)
            return
        job.cut = self.cuts_off(job)
        if job.cut:
            self.begin_past(job, Path.BYPASS, Reason.SEQUENTIAL)
            return
        if job.op == Op.READ:
            if mode != CasMode.WO and self.blocked:
                self.begin_past(job, Path.MISS, Reason.BUSY)
                return
            job.way = Way.OVERLAY if mode == CasMode.WO else Way.INSERT
        else:
            ways = {CasMode.WA: Way.UPDATE, CasMode.WI: Way.INVALIDATE}
            job.way = ways.get(mode, Way.INSERT)
        self.begin(job)

    def cuts_off(self, job: Job) -> bool:
        """Tell whether a request belongs to a stream that is to pass."""
        p = self.parameters
        if p.cutoff == Cutoff.NEVER:
            return False
        is_long = self.streams.extend(job.op, job.offset, job.length)
        is_full = self.lines.free_count <= p.margin_lines + len(job.core_lines)
        return is_long and (p.cutoff == Cutoff.ALWAYS or is_full)

    def past(self, job: Job, path: Path, reason: Reason) -> None:
        """Have a job pass the cache."""
        job.judge(path, reason)
        job.way = Way.PASS if job.op == Op.READ else Way.INVALIDATE

    def begin_past(self, job: Job, path: Path, reason: Reason) -> None:
        """Begin a job that passes the cache."""
        self.past(job, path, reason)
        self.begin(job)

    def begin(self, job: Job) -> None:
        """Look its core lines up, find it lines if it needs some, and lock them."""
        found = [(each, self.lines.look_up(each)) for each in job.core_lines]
        job.lines = {core_line: line for core_line, line in found if line}
        if job.cut and job.op == Op.READ and self.holds_all(job, lambda line: line.dirty):
            job.way = Way.INSERT
        if job.way == Way.UPDATE:
            job.way = Way.INSERT if self.is_hit(job) else Way.INVALIDATE
        if job.way == Way.INSERT and len(job.lines) < len(job.core_lines):
            self.find_lines(job)
        shared = job.way in (Way.OVERLAY, Way.PASS) or (job.op == Op.READ and self.is_hit(job))
        lines = [job.lines[each] for each in job.core_lines if each in job.lines]
        job.claim = Claim(lines, not shared, self.resumed.later(lambda: self.go(job)))
        if job.claim.wanting == 0:
            self.go(job)

    def find_lines(self, job: Job) -> None:
        """Find lines for what has none, or have the job pass."""
        p = self.parameters
        nhit = p.promotion == Promotion.NHIT
        used = p.lines - self.lines.free_count
        if nhit and used >= p.trigger_lines and not job.lines:
            if self.nhit.refuses(job.core_lines):
                self.past(job, Path.MISS, Reason.NOT_HOT)
                return
        missing = [each for each in job.core_lines if each not in job.lines]
        taken = self.lines.take(len(missing), job.core_lines)
        if taken is None:
            self.cleaner.make_room()
            self.past(job, Path.MISS, Reason.BUSY)
            return
        for core_line, line in zip(missing, taken, strict=True):
            self.lines.hold(line, core_line)
            job.lines[core_line] = line
        if nhit:
            self.nhit.forget(job.core_lines)

    def holds_all(self, job: Job, of: Callable[[Line], set[int]]) -> bool:
        """Whether all sectors of a job are in a set of their lines."""
        return all(
            each in job.lines and job.sectors(each) <= of(job.lines[each])
            for each in job.core_lines
        )

    def is_hit(self, job: Job) -> bool:
        """Whether all of it is valid."""
        return self.holds_all(job, lambda line: line.valid)

    # What it does there.

    def go(self, job: Job) -> None:
        """Do what a job is for; it has its locks."""
        job.lines = {each: line for each, line in job.lines.items() if line.holds == each}
        is_hit = self.is_hit(job)
        if job.way == Way.INSERT:
            shared_miss = job.op == Op.READ and not job.claim.exclusive and not is_hit
            if len(job.lines) < len(job.core_lines) or shared_miss:
                job.claim.give_back()
                job.cut = False
                self.begin_past(job, Path.MISS, Reason.BUSY)
                return
        if job.op == Op.READ and (job.way == Way.PASS or (job.way == Way.INSERT and not is_hit)):
            dirty = [line for _, line in sorted(job.lines.items()) if line.dirty]
            if dirty:
                self.cleaner.clean(dirty, lambda: self.go(job))
                return
        self.count(job, is_hit)
        if job.op == Op.WRITE:
            self.write(job)
        elif is_hit and job.way != Way.PASS:
            job.judge(Path.HIT, Reason.NONE)
            job.verdict.pages_hit = len(job.core_lines)
            each_of(self.places(job, Op.READ), lambda: self.end(job))
        else:
            self.read_missing(job)

    def read_missing(self, job: Job) -> None:
        """Read from the core."""

        def after() -> None:
            if job.way == Way.OVERLAY:
                each_of(self.valid_runs(job), lambda: self.end(job))
            elif job.way == Way.PASS:
                self.end(job)
            else:
                job.done()
                each_of(self.places(job, Op.WRITE), lambda: self.backfilled(job))

        if job.way != Way.PASS:
            job.judge(Path.MISS, self.why_missing(job))
        if job.way == Way.OVERLAY:
            whole = [k for k, line in job.lines.items() if job.sectors(k) <= line.valid]
            job.verdict.pages_hit = len(whole)
        elif job.way == Way.INSERT:
            self.make_valid(job)
            self.backfills += 1
            self.blocked |= self.backfills > self.parameters.backfills_max
        self.to_origin(Op.READ, job.offset, job.length, after)

    def why_missing(self, job: Job) -> Reason:
        """Why the first core line that is not all valid is so."""
        for each in job.core_lines:
            valid = job.lines[each].valid if each in job.lines else set()
            if not job.sectors(each) <= valid:
                return Reason.COLD if valid else self.lines.last_seen.get(each, Reason.COLD)
        raise AssertionError("a hit misses nothing")

    def valid_runs(self, job: Job) -> list[Callable[[Done], None]]:
        """What the cache has of a job, to be read."""
        size = self.parameters.line_bytes
        return [
            self.part_of_cache(Op.READ, line.number * size + first * SECTOR, (end - first) * SECTOR)
            for each, line in sorted(job.lines.items())
            for first, end in runs(job.sectors(each) & line.valid)
        ]

    def make_valid(self, job: Job) -> None:
        """Let its sectors be valid."""
        for each, line in job.lines.items():
            self.lines.change(line, line.valid | job.sectors(each), line.dirty)

    def backfilled(self, job: Job) -> None:
        """What was read from the core is in the cache."""
        job.claim.give_back()
        self.backfills -= 1
        if self.backfills < self.parameters.backfills_resume:
            self.blocked = False

    def write(self, job: Job) -> None:
        """Write to cache, core or both."""
        if job.way == Way.INVALIDATE:
            self.to_origin(job.flagged, job.offset, job.length, lambda: self.invalidate(job))
            return
        self.make_valid(job)
        if self.parameters.mode in (CasMode.WB, CasMode.WO):
            each_of(self.places(job, job.flagged), lambda: self.make_dirty(job))
            return
        to_origin = [lambda then: self.to_origin(job.flagged, job.offset, job.length, then)]
        each_of([*self.places(job, job.flagged), *to_origin], lambda: self.end(job))

    def invalidate(self, job: Job) -> None:
        """Forget what was overwritten in the core."""
        changed = []
        for each, line in sorted(job.lines.items()):
            if line.dirty & job.sectors(each):
                changed.append(line)
            self.lines.invalidate(line, job.sectors(each))
        self.write_metadata(changed, job.flagged, lambda: self.end(job))

    def make_dirty(self, job: Job) -> None:
        """Note what the core does not have yet."""
        changed = []
        for each, line in sorted(job.lines.items()):
            if not job.sectors(each) <= line.dirty:
                changed.append(line)
            self.lines.change(line, line.valid, line.dirty | job.sectors(each))
            self.made_dirty += 1
            line.made_dirty = self.clock.now, self.made_dirty
            self.cleaner.wake()
        self.write_metadata(changed, job.flagged, lambda: self.end(job))

    def end(self, job: Job) -> None:
        """A job is complete."""
        job.claim.give_back()
        job.done()

    # Tiers.

    def places(self, job: Job, op: int) -> list[Callable[[Done], None]]:
        """Where a job lies in the cache."""
        size = self.parameters.line_bytes
        lines = [job.lines[each] for each in job.core_lines]
        first = lines[0].number
        if [line.number for line in lines] == list(range(first, first + len(lines))):
            at = first * size + job.offset % size
            return [self.part_of_cache(op, at, job.length)]
        result = []
        for each, line in zip(job.core_lines, lines, strict=True):
            start, end = job.part(each)
            result.append(self.part_of_cache(op, line.number * size + start, end - start))
        return result

    def part_of_cache(self, op: int, at: int, length: int) -> Callable[[Done], None]:
        """A part of a job, to be submitted."""
        return lambda then: self.to_cache(op, at, length, then)

    def to_cache(self, op: int, at: int, length: int, done: Done) -> None:
        """Read or write the fast tier."""
        self.moved("cache", op, length)
        self.fast.submit(op, at, length, done)

    def to_origin(self, op: int, at: int, length: int, done: Done) -> None:
        """Read or write the slow tier."""
        self.moved("core", op, length)
        self.slow.submit(op, at, length, done)

    def write_metadata(self, lines: list[Line], op: int, done: Done) -> None:
        """Write the metadata of lines."""
        size = self.parameters.line_bytes
        each = PAGE // (10 + size // 2048)
        pages = {line.number // each for line in lines}
        start = self.parameters.lines * size

        def write(first: int, end: int) -> Callable[[Done], None]:
            length = (end - first) * PAGE

            def submit(then: Done) -> None:
                self.counts["metadata_writes"] += 1
                self.fast.submit(op, start + first * PAGE, length, then)

            return submit

        each_of([write(*run) for run in runs(pages)], done)

    # Counters.

    def moved(self, place: str, op: int, length: int) -> None:
        """Count bytes read or written."""
        self.counts[f"{'reads_from' if op & OP_MASK == Op.READ else 'writes_to'}_{place}"] += length

    def count(self, job: Job, is_hit: bool) -> None:
        """Count a request, as casadm does."""
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
        """What `casadm --stats` prints, and some more."""
        counts = self.counts
        each = self.parameters.line_bytes // PAGE
        dirty = sum(map(len, self.lines.dirty)) * each
        clean = sum(map(len, self.lines.clean)) * each
        kinds = ("hits", "deferred", "partial_misses", "full_misses", "total")
        found = {
            f"{op}_{kind}": counts[f"{op}_{kind}"] for op in ("read", "write") for kind in kinds
        }
        past = {name: counts[name] for name in ("pass_through_reads", "pass_through_writes")}
        serviced = found["read_total"] + found["write_total"]
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
            **found,
            **past,
            "serviced_requests": serviced,
            "total_requests": serviced + sum(past.values()),
            **{name: counts[name] // PAGE for name in moved},
            "cleaned_blocks": counts["cleaned"] // PAGE,
            "evictions": self.lines.evictions,
            "pages_present": (dirty + clean) // each,
            "metadata_writes": counts["metadata_writes"],
        }
