"""bcache (2.12): extents in a log of buckets, what bypasses it, and the write-back (2.12.3)."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any

from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import (
    FUA,
    PREFLUSH,
    SYNC,
    BcacheMode,
    Kernel,
    Op,
    Path,
    Reason,
    Restart,
)
from hybridsim.reference.bcache_buckets import SECTOR, Bucket, Buckets, Key, Mark
from hybridsim.reference.cache import Verdict
from hybridsim.reference.clock import (
    JIFFY,
    Alarm,
    Done,
    Parts,
    Step,
    each_of,
    expiry,
    in_turn,
    nothing,
)
from hybridsim.reference.device import Cache, Part
from hybridsim.reference.parameters import Request
from hybridsim.reference.runs import touched


@dataclass(eq=False)
class Stream:
    """A sequential stream."""

    last: int = -1
    size: int = 0
    expiry: int = 0


@dataclass
class Task:
    """The current and mean stream length of a task, in bytes."""

    seq: int = 0
    avg: int = 0


class Bypass:
    """Streams, tasks and congestion."""

    def __init__(self, parameters: BcacheParameters, draw: Callable[[], int]) -> None:
        self.parameters = parameters
        self.draw = draw
        self.streams = [Stream() for _ in range(128)]  # the least recently used first
        self.tasks: dict[int, Task] = {}
        self.c = 0
        self.stamp = 0

    def why(self, now: int, request: Request) -> Reason | None:
        """Return the reason why a request is bypassed, or None."""
        congested = self.congested(now)
        cutoff = self.parameters.sequential_cutoff_bytes
        length = request.length
        if congested == 0 and cutoff == 0:
            return None
        task = self.tasks.setdefault(request.stream, Task())
        jiffies = now // JIFFY
        live = [stream for stream in reversed(self.streams) if jiffies < stream.expiry]
        stream = next((each for each in live if each.last == request.offset), None)
        if stream is None:
            stream = self.streams[0]
            stream.size = 0
            task.avg = (7 * task.avg + task.seq) % 2**32 // 8
        self.streams.remove(stream)
        self.streams.append(stream)
        if stream.size + length < 2**32:
            stream.size += length
        stream.last = request.offset + length
        stream.expiry = jiffies + 1250
        task.seq = stream.size
        sectors = max(task.seq, task.avg) // 512
        if cutoff > 0 and sectors >= cutoff // 512:
            return Reason.SEQUENTIAL
        return Reason.CONGESTED if 0 < congested <= sectors else None

    def served(self, issued: int, now: int, is_write: bool) -> None:
        """Record the service time of a request to the fast tier."""
        p = self.parameters
        threshold = p.congested_write_us if is_write else p.congested_read_us
        took = (now - issued) // 1024
        if threshold == 0:
            return
        if took > threshold:
            self.stamp = now // 1024
            self.c -= min(took // 1024, 1024 + self.c)
        elif self.c < 0:
            self.c += 1

    def congested(self, now: int) -> int:
        """Return the stream length in sectors from which requests are bypassed; 0: none."""
        p = self.parameters
        if p.congested_read_us == 0 and p.congested_write_us == 0:
            return 0
        i = (now // 1024 - self.stamp) // 1024 + self.c
        if i >= 0:
            return 0
        i += 1024
        if i > 0:
            i = (64 + i % 64) * 2 ** (i // 64) // 64
        for _ in range(2):
            i -= (self.draw() % 2**16).bit_count()
        return max(i, 1)


SECOND = 10**9
UNLIMITED = 2**31 - 1
SCANNED_KEYS = 500  # maximum of one scan
GROUP_KEYS, GROUP_SECTORS = 5, 5000
UNDER_WAY_KEYS = 64
UPDATE = 5  # seconds between two updates of the rate, as the kernel sets its timer
PERIOD = expiry(0, UPDATE * SECOND)


@dataclass(eq=False)
class Gathered:
    """A dirty key as collected by the last scan."""

    key: Key
    taken: bool = False  # for cleaning
    written: Done | None = None  # called when it is; known when it is read from the cache
    is_sent: bool = False  # to the slow tier


def toward_zero(number: int, divisor: int) -> int:
    """Divide and round toward zero."""
    return abs(number) // divisor * (1 if number >= 0 else -1)


class WriteBack(Part["Bcache", BcacheParameters]):
    """The write-back thread."""

    def __init__(self, cache: Bcache) -> None:
        super().__init__(cache)
        self.buckets = cache.buckets
        self.asleep = True
        self.wants_lock = False  # about to gather keys, for which no WRITE may be under way
        self.call = Alarm(self.clock, self.try_again)  # to gather them
        self.writers = 0  # WRITEs and DISCARDs of users under way
        self.on_unlock = nothing  # how the thread goes on that waits for the lock,
        self.on_written = nothing  # and the one that waits for the keys under way
        self.has_dirty = False
        self.scanned = 0  # byte of the volume from which the next scan starts
        self.gathered: list[Gathered] = []
        self.ahead: Gathered | None = None  # taken, the first of the next group
        self.under_way: list[Gathered] = []  # in order of their begin
        self.next = 0  # ns: when the next group may begin
        self.rate = 1024  # sectors per second
        self.integral = 0
        self.idle = 0  # updates of the rate since the last request
        self.unlimited = False  # the rate, because the cache is idle
        self.timer = Alarm(self.clock, self.update_rate)
        self.bytes = 0  # written back

    def request_comes(self) -> None:
        """Record a request: end the unlimited rate of an idle cache."""
        self.idle = 0
        if self.unlimited:
            self.unlimited = False
            self.rate = 1

    def dirtied(self) -> None:
        """Wake the thread after data became dirty."""
        self.has_dirty = True
        if self.parameters.writeback_percent:
            self.timer.set((self.clock.now // PERIOD + 1) * PERIOD)
        if self.asleep:
            self.asleep = False
            self.wants_lock = True
            self.on_unlock = lambda: in_turn(self.clean())
            self.call.set()

    def ends(self) -> None:
        """Count a WRITE or DISCARD that has ended; after the last one keys may be gathered."""
        self.writers -= 1
        if self.writers == 0 and self.wants_lock:
            self.call.set()

    def try_again(self) -> None:
        """Let the thread look whether a WRITE is under way; WRITEs that waited may go on."""
        self.on_unlock()
        self.cache.wake_sleepers()

    def overlaps(self, begin: int, end: int) -> bool:
        """Whether a range overlaps a key taken for cleaning; forget overlapping keys not taken."""
        hit = [one for one in self.gathered if one.key.begin < end and begin < one.key.end]
        self.gathered = [one for one in self.gathered if one.taken or one not in hit]
        return any(one.taken for one in hit)

    # The thread.

    def clean(self) -> Iterator[Step]:
        """Clean keys until none is dirty; gather them when no WRITE is under way."""
        while True:
            while self.writers:
                self.wants_lock = True
                yield partial(setattr, self, "on_unlock")
            self.wants_lock = False
            is_full_pass = self.gather()
            self.ahead = self.take()
            while group := self.next_group():
                for one in group:
                    while len(self.under_way) == UNDER_WAY_KEYS:
                        yield partial(setattr, self, "on_written")
                    in_turn(self.cleaning(one))
                yield from self.limit(sum(one.key.size for one in group) // SECTOR)
            while self.under_way:
                yield partial(setattr, self, "on_written")
            self.gathered = []
            if is_full_pass:
                pause = self.parameters.writeback_delay_ns
                yield partial(self.clock.at, expiry(self.clock.now, pause))
                self.next = self.clock.now
                if not self.has_dirty:
                    self.asleep = True
                    return

    def gather(self) -> bool:
        """Collect the next dirty keys; return whether these are all."""
        dirty = [key for key in self.buckets.keys.all if key.dirty]
        chosen = sorted(dirty, key=lambda key: key.begin < self.scanned)[:SCANNED_KEYS]
        is_full_pass = len(chosen) < SCANNED_KEYS
        if not is_full_pass:
            self.scanned = chosen[-1].begin + 1
        keys = [Gathered(Key(key.begin, key.end, key.place)) for key in chosen]
        self.gathered = sorted(keys, key=lambda one: one.key.begin)
        self.has_dirty = bool(keys)
        return is_full_pass

    def take(self) -> Gathered | None:
        """Take the next collected key, or None."""
        one = next((one for one in self.gathered if not one.taken), None)
        if one:
            one.taken = True
        return one

    def next_group(self) -> list[Gathered]:
        """Return the next group of adjacent keys."""
        group: list[Gathered] = []
        sectors = 0
        while self.ahead and len(group) < GROUP_KEYS and sectors < GROUP_SECTORS:
            if group and group[-1].key.end != self.ahead.key.begin:
                break
            group.append(self.ahead)
            sectors += self.ahead.key.size // SECTOR
            self.ahead = self.take()
        return group

    def limit(self, sectors: int) -> Iterator[Step]:
        """Count `sectors` against the rate; wait until the rate allows the next group."""
        while self.parameters.writeback_percent:
            now = self.clock.now
            self.next += sectors * SECOND // self.rate
            self.next = max(min(self.next, now + 5 * SECOND // 2), now - 2 * SECOND)
            jiffies = (self.next - now) // JIFFY
            if jiffies <= 0:
                break
            yield partial(self.clock.at, expiry(now, jiffies * JIFFY))
            sectors = 0

    # One key.

    def cleaning(self, one: Gathered) -> Iterator[Step]:
        """Read a key's data from the cache, write them, and mark what is still cached as clean."""
        self.under_way.append(one)
        yield partial(self.fast.submit, Op.READ, one.key.place, one.key.size)
        yield partial(self.write_in_order, one)
        self.gathered.remove(one)
        at = one.key.begin
        while True:
            keys = self.buckets.keys.overlapping(at, one.key.end)
            shift = one.key.place - one.key.begin
            same = [key for key in keys if key.dirty and key.place - key.begin == shift]
            if not same:
                break
            start, stop = max(at, same[0].begin), min(one.key.end, same[0].end)
            self.buckets.enter(Key(start, stop, one.key.place + start - one.key.begin))
            at = stop
        self.under_way.remove(one)
        self.bytes += one.key.size
        go_on, self.on_written = self.on_written, nothing
        go_on()

    def write_in_order(self, read: Gathered, written: Done) -> None:
        """Write the keys that are read, in order of their begin."""
        read.written = written
        for one in self.under_way:
            if one.written is None:
                break
            if not one.is_sent:
                one.is_sent = True
                at, size = one.key.begin, one.key.size
                self.slow.submit_background(Op.WRITE, at, size, one.written)

    # The rate.

    def update_rate(self) -> None:
        """Update the rate, a PI controller of the dirty sectors (2.12.3, *Rate*)."""
        if not self.has_dirty:
            return
        self.timer.set(self.clock.now + PERIOD)
        self.idle += 1
        if self.idle >= 6 and not self.buckets.gc_running:
            self.unlimited = True
            self.rate = UNLIMITED
            return
        if self.wants_lock:
            return
        buckets, bucket_sectors = len(self.buckets.all), self.buckets.size // SECTOR
        dirty = self.buckets.keys.dirty_bytes // SECTOR
        error = dirty - buckets * bucket_sectors * self.parameters.writeback_percent // 100
        proportional = toward_zero(error, 40)
        in_use = self.buckets.in_use  # percent
        if in_use > 50 and dirty > 0:  # faster if little dirty data holds many buckets
            held = buckets - self.buckets.avail
            factor = (in_use - 64) * 1000
            if in_use <= 57:
                factor = in_use - 50
            elif in_use <= 64:
                factor = (in_use - 57) * 10
            if held * bucket_sectors // dirty > 3:
                proportional = max(proportional, dirty // held * factor)
        keeping_up = self.clock.now < self.next + 1_000_000
        if (error < 0 and self.integral > 0) or (error > 0 and keeping_up):
            self.integral += error * UPDATE
        self.rate = max(8, min(proportional + toward_zero(self.integral, 10_000), 10**9))


MIB = 1 << 20
UNKNOWN = -1  # a task that the trace does not name
INTERVAL = 3409 * JIFFY
Kind = Enum("Kind", "FILL THROUGH BACK")  # the origin of inserted data: a read, or a write


@dataclass
class OpenBucket:
    """A bucket that is open for new data."""

    bucket: Bucket
    left: int = 0
    end: int = -1
    task: int | None = None


@dataclass(eq=False)
class Insert:
    """A range that is being inserted into the cache."""

    kind: Kind
    next: int  # the first byte not written or skipped yet
    end: int
    task: int
    done: Done
    waits: bool = False  # until the journal is written
    to_slow: Callable[..., None] = nothing  # of a write-back: writes a range of it
    keys: int = 0
    pending: int = 0
    parts: list[Key] = field(default_factory=list)


@dataclass(eq=False)
class Job:
    """A request, which waits as long as its task sleeps, and how its READ went."""

    request: Request
    done: Done
    verdict: Verdict  # set when the request is served
    missed: bool = False
    raced: bool = False
    fill: Insert | None = None
    hit_bytes: int = 0


class Bcache(Cache[BcacheParameters]):
    """bcache: requests and inserts; a task sleeps while its insert waits for a bucket."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.begin(Buckets(self))
        self.pending = 0  # parts of inserts that are being written
        self.waiting: deque[Insert] = deque()  # for a bucket; their tasks sleep
        self.resuming = False  # an event is scheduled that goes on with one of them
        self.hung_writes = 0
        open_buckets = self.parameters.open_buckets
        self.open = [OpenBucket(self.buckets.all[0]) for _ in range(open_buckets)]
        self.pending_counts: Counter[str] = Counter()
        self.shown: Counter[str] = Counter()
        self.sysfs = Alarm(self.clock, self.show)
        self.sleepers: list[Job] = []  # in the order in which they came
        self.server = Alarm(self.clock, self.serve_sleeper)

    def begin(self, buckets: Buckets) -> None:
        """Begin with these buckets."""
        self.buckets = buckets
        self.keys = buckets.keys
        self.bypass = Bypass(self.parameters, buckets.draw)
        self.write_back = WriteBack(self)

    @property
    def counters(self) -> dict[str, int]:
        """The counters of sysfs, and additional ones."""
        buckets = self.buckets
        cached = sum(key.size for key in self.keys.all if not key.fill)
        return {
            **self.counts,
            **{f"sysfs_{name}": number for name, number in self.shown.items()},
            "pages_present": cached // 4096,
            "dirty_data": self.keys.dirty_bytes,
            "cached_data": cached,
            "keys": len(self.keys.all),
            "index_entries": buckets.entries,
            "cache_available_percent": 100 - buckets.in_use,
            "available_buckets": buckets.avail,
            "writeback_rate": self.write_back.rate,
            "written_back": self.write_back.bytes,
            "journal_writes": buckets.journal.count,
            "gc_runs": buckets.gcs,
            "hung_writes": self.hung_writes,
            "invalidated_buckets": buckets.invalidations,
        }

    def count(self, name: str, number: int = 1) -> None:
        """Count an event that sysfs shows after a delay."""
        self.counts[name] += number
        self.pending_counts[name] += number
        self.sysfs.set((self.clock.now // INTERVAL + 1) * INTERVAL)

    def show(self) -> None:
        """Add the pending counts to those that sysfs shows."""
        for name, number in self.pending_counts.items():
            self.shown[name] += number % 65_536
        self.pending_counts.clear()

    def after(self, old: Bcache, how: Restart) -> None:
        """Start now, with the index and the buckets of another one that has stopped (2.17)."""
        super().after(old, how)
        self.parameters = old.parameters
        if how == Restart.CLEANER:
            at_once: dict[str, Any] = {"writeback_percent": 0, "writeback_delay_ns": 0}
            self.parameters = replace(old.parameters, mode=BcacheMode.NONE, **at_once)
        self.begin(old.buckets)
        self.shown = old.shown
        self.write_back.bytes = old.write_back.bytes
        self.hung_writes = old.hung_writes
        self.buckets.restart(self)
        if self.dirty_bytes:
            self.write_back.dirtied()

    @property
    def dirty_bytes(self) -> int:
        """How much is dirty."""
        return self.keys.dirty_bytes

    # Requests.

    def submit(self, request: Request, done: Done) -> Verdict:
        """Submit a request; the verdict is final when the request completes."""
        job = Job(request, done, Verdict(Path.BYPASS, Reason.WRITE, 0))
        if self.must_wait(request, self.sleepers):
            self.sleepers.append(job)
        else:
            self.serve(job)
        return job.verdict

    def must_wait(self, request: Request, earlier: list[Job]) -> bool:
        """Whether the task of a request sleeps, has to at its begin, or has an earlier request."""
        is_locking = request.op in (Op.WRITE, Op.DISCARD) and request.length > 0
        if self.write_back.wants_lock and is_locking:
            return True
        asleep = [insert.task for insert in self.waiting] + [job.request.stream for job in earlier]
        return request.stream != UNKNOWN and request.stream in asleep

    def next_sleeper(self) -> Job | None:
        """Return the first of the requests that wait which need not wait any more."""
        for i, job in enumerate(self.sleepers):
            if not self.must_wait(job.request, self.sleepers[:i]):
                return job
        return None

    def wake_sleepers(self) -> None:
        """Schedule the next of the requests that wait, if one need not wait any more."""
        if self.next_sleeper():
            self.server.set()

    def serve_sleeper(self) -> None:
        """Serve the first request that need not wait any more."""
        job = self.next_sleeper()
        if job:
            self.sleepers.remove(job)
            self.serve(job)
            self.wake_sleepers()

    def serve(self, job: Job) -> None:
        """Serve a request whose task is awake."""
        request, verdict = job.request, job.verdict
        self.write_back.request_comes()
        op, offset, length = request.op, request.offset, request.length
        if op == Op.FLUSH or length == 0:
            verdict.reason = Reason.FLUSH
            flush_slow: Step = partial(self.slow.submit, Op.FLUSH, 0, 0)
            each_of([partial(self.buckets.journal.add, 0), flush_slow], job.done)
            return
        why = self.why_bypassed(request)
        if why is None:
            self.buckets.age(length)
        else:
            self.count("bypassed_sectors", length // SECTOR)
        if op == Op.DISCARD:
            verdict.reason = Reason.DISCARD
        else:
            verdict.pages = len(touched(offset, offset + length, SECTOR))
        if op == Op.READ:
            self.read(job, why)
            return
        self.write_back.writers += 1

        def ended() -> None:
            job.done()
            self.write_back.ends()

        self.write(request, ended, why is not None)

    def why_bypassed(self, request: Request) -> Reason | None:
        """Return the reason of a bypass; None if the request is not bypassed."""
        mode, block = self.parameters.mode, self.parameters.block_bytes
        if request.op == Op.DISCARD:
            return Reason.BUSY
        if self.buckets.in_use > 95:
            if self.parameters.kernel >= Kernel.LINUX_6_12 and not self.write_back.has_dirty:
                self.buckets.force_gc()
            return Reason.BUSY
        if mode == BcacheMode.NONE:
            return Reason.NO_CACHE
        if mode == BcacheMode.WRITEAROUND and request.op == Op.WRITE:
            return Reason.NO_CACHE
        if request.offset % block or request.length % block:
            return Reason.NO_CACHE
        return self.bypass.why(self.clock.now, request)

    # Reads.

    def read(self, job: Job, why: Reason | None) -> None:
        """Read cached parts from the cache and the rest from the backing device."""
        request, verdict = job.request, job.verdict
        verdict.path, verdict.reason = Path.HIT, Reason.NONE
        parts = Parts(lambda: self.read_done(job, why is not None))
        at, end = request.offset, request.offset + request.length
        while at < end:
            keys = [key for key in self.keys.overlapping(at, end) if not key.fill]
            if keys and keys[0].begin <= at:
                part = keys[0].part(at, min(keys[0].end, end))
                in_turn(self.reading(job, part), parts.another())
                at = part.end
                continue
            stop = keys[0].begin if keys else end
            if not job.missed:
                job.missed = True
                verdict.path = Path.MISS if why is None else Path.BYPASS
                verdict.reason = self.keys.why_missing(at) if why is None else why
                if why is None:
                    stop = min(stop, at + MIB)
                    job.fill = Insert(Kind.FILL, at, stop, request.stream, nothing)
                    self.buckets.enter(Key(at, stop, fill=job.fill))
            self.slow.submit(Op.READ, at, stop - at, parts.another())
            at = stop
        verdict.pages_hit = job.hit_bytes // SECTOR

    def reading(self, job: Job, part: Key) -> Iterator[Step]:
        """Read a part from the cache."""
        bucket = self.buckets.of(part.place)
        bucket.prio = 32_768
        generation, issued = bucket.generation, self.clock.now
        job.hit_bytes += part.size
        yield partial(self.fast.submit, Op.READ, part.place, part.size)
        self.bypass.served(issued, self.clock.now, is_write=False)
        job.raced |= bucket.generation != generation

    def read_done(self, job: Job, bypassed: bool) -> None:
        """Complete a READ whose parts are all complete; retry a raced one."""
        what = "misses" if job.missed else "hits"
        self.count(f"cache_bypass_{what}" if bypassed else f"cache_{what}")
        if job.raced:
            self.counts["cache_read_races"] += 1
            if job.fill:
                self.keys.drop_placeholder(job.fill)
            self.slow.submit(Op.READ, job.request.offset, job.request.length, job.done)
            return
        job.done()
        if job.fill:
            self.insert(job.fill)

    # Writes.

    def write(self, request: Request, done: Done, bypassed: bool) -> None:
        """Write to one tier or to both."""
        offset, end = request.offset, request.offset + request.length
        flags = request.flags if request.op == Op.WRITE else 0
        waits = bool(flags & (FUA | PREFLUSH))
        overlaps = self.write_back.overlaps(offset, end)
        back = request.op == Op.WRITE and (overlaps or self.is_back(flags, bypassed))
        parts = Parts(done)
        if not back:
            op = request.op | flags & (FUA | PREFLUSH)
            self.slow.submit(op, offset, request.length, parts.another())
        elif flags & PREFLUSH:
            self.slow.submit(Op.FLUSH, 0, 0, parts.another())
        if bypassed and not back:
            self.buckets.erase(offset, end)
            self.buckets.journal.add(1, parts.another() if waits else None)
            return
        kind = Kind.BACK if back else Kind.THROUGH
        if back:
            self.write_back.dirtied()

        def to_slow(begin: int, end: int) -> None:
            self.slow.submit(Op.WRITE | flags & FUA, begin, end - begin, parts.another())

        self.insert(Insert(kind, offset, end, request.stream, parts.another(), waits, to_slow))

    def is_back(self, flags: int, bypassed: bool) -> bool:
        """Whether a WRITE is written back, by mode and cache use."""
        in_use = self.buckets.in_use
        if self.parameters.mode != BcacheMode.WRITEBACK or bypassed or in_use > 70:
            return False
        return bool(flags & (FUA | PREFLUSH | SYNC)) or in_use <= 40

    # Inserts.

    def insert(self, insert: Insert) -> None:
        """Begin an insert."""
        self.buckets.to_gc -= insert.end - insert.next
        self.buckets.wake_gc()
        if not self.go_on(insert):
            self.waiting.append(insert)

    def go_on(self, insert: Insert) -> bool:
        """Write as much as there is space for; return False if the insert must wait for space."""
        while insert.next < insert.end:
            at = insert.next
            part = self.space(at, insert.end, insert.task)
            if part:
                in_turn(self.writing(insert, part))
                continue
            if insert.kind == Kind.BACK:
                return False
            if insert.kind == Kind.THROUGH:  # what is left, for which there is no bucket
                self.drop_rest(insert)
            insert.next = insert.end
        if insert.pending == 0:
            self.end(insert)
        return True

    def drop_rest(self, insert: Insert) -> None:
        """Drop what is cached of the range that is not written."""
        insert.keys += 1
        self.buckets.erase(insert.next, insert.end)
        insert.next = insert.end

    def resume_one(self) -> None:
        """Schedule the first insert that waits, if a bucket is free."""
        if self.waiting and not self.resuming and self.buckets.lists["none"]:
            self.resuming = True
            self.clock.at(self.clock.now, self.resume)

    def resume(self) -> None:
        """Go on with the first insert that waits for a bucket."""
        over = self.go_on(self.waiting[0])
        self.resuming = False
        if over:
            self.waiting.popleft()
            self.resume_one()
        self.wake_sleepers()

    def end_standstill(self) -> None:
        """After a gc: the rest of a write-back goes to the slow tier if no bucket will be free."""
        is_on_its_way = self.resuming or self.buckets.lists["none"]
        is_exhausted = self.waiting and not is_on_its_way and self.buckets.avail == 0
        if not is_exhausted or not self.buckets.gc_wanted or self.pending:
            return
        if self.write_back.wants_lock:
            self.hung_writes += 1
            insert = self.waiting.popleft()
            insert.to_slow(insert.next, insert.end)
            self.drop_rest(insert)
            self.end(insert)
            self.wake_sleepers()

    def space(self, begin: int, end: int, task: int) -> Key | None:
        """Allocate space for the first part of a range; None if no bucket is free."""
        place = self.choose(begin, task)
        if place.left == 0:
            bucket = self.buckets.take_for_data()
            if bucket is None:
                return None
            place.bucket = bucket
            place.left = self.buckets.size
        length = min(end - begin, place.left)
        at = (place.bucket.number + 1) * self.buckets.size - place.left
        place.left -= length
        place.end, place.task = begin + length, task
        self.open.remove(place)
        self.open.append(place)
        place.bucket.pins += 1
        if place.left < self.parameters.block_bytes:
            place.left = 0
            place.bucket.pins -= 1  # the pin of the open bucket
        return Key(begin, begin + length, at)

    def choose(self, begin: int, task: int) -> OpenBucket:
        """Return the open bucket for a range: by address, by task, else the oldest."""
        by_address = [place for place in reversed(self.open) if place.end == begin]
        by_task = [place for place in self.open if place.task == task]
        return [*by_address, *by_task, *self.open][0]

    def writing(self, insert: Insert, part: Key) -> Iterator[Step]:
        """Write a part of an insert."""
        if insert.kind == Kind.BACK:
            self.buckets.of(part.place).mark = Mark.DIRTY
        insert.parts.append(part)
        insert.pending += 1
        self.pending += 1
        insert.next = part.end
        self.counts["cache_inserts"] += 1
        issued = self.clock.now
        yield partial(self.fast.submit, Op.WRITE, part.place, part.size)
        self.bypass.served(issued, self.clock.now, is_write=True)
        insert.pending -= 1
        self.pending -= 1
        if insert.pending == 0 and insert.next == insert.end:
            self.end(insert)

    def end(self, insert: Insert) -> None:
        """Enter the keys of an insert whose data are written."""
        collides = False
        for part in insert.parts:
            end = part.end
            if insert.kind == Kind.FILL:
                end = self.placeholder_end(insert, part)
            if end > part.begin:
                new = part.part(part.begin, end)
                new.dirty = insert.kind == Kind.BACK
                self.buckets.enter(new)
                insert.keys += 1
            else:
                collides = True
            self.buckets.of(part.place).pins -= 1
        self.buckets.changed_since = True
        if insert.kind == Kind.FILL:
            self.keys.drop_placeholder(insert)
            if collides:
                self.count("cache_miss_collisions")
        elif insert.waits:
            self.buckets.journal.add(insert.keys, insert.done)
        else:
            self.buckets.journal.add(insert.keys)
            insert.done()

    def placeholder_end(self, insert: Insert, part: Key) -> int:
        """Return the end of a fill's placeholder within a part, up to the first gap."""
        at = part.begin
        for key in self.keys.overlapping(part.begin, part.end):
            if key.fill is not insert or key.begin > at:
                break
            at = min(key.end, part.end)
        return at
