"""bcache (2.12): extents in a log of buckets, and what bypasses it."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from enum import Enum

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
from hybridsim.reference.bcache_writeback import WriteBack
from hybridsim.reference.cache import Verdict
from hybridsim.reference.clock import Clock, Done, Parts
from hybridsim.reference.parameters import Request
from hybridsim.reference.throttle import Slow
from hybridsim.reference.tier import Tier
from hybridsim.reference.timers import JIFFY


@dataclass
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
        self.streams = OrderedDict((number, Stream()) for number in range(128))  # oldest first
        self.tasks: dict[int, Task] = {}
        self.c = 0
        self.stamp = 0

    def why(self, now: int, task_number: int, offset: int, length: int) -> Reason:
        """Return the reason why a request is bypassed, or NONE."""
        congested = self.congested(now)
        cutoff = self.parameters.sequential_cutoff_bytes
        if congested == 0 and cutoff == 0:
            return Reason.NONE
        task = self.tasks.setdefault(task_number, Task())
        jiffies = now // JIFFY
        number = self.find(offset, jiffies)
        if number is None:
            number = next(iter(self.streams))
            self.streams[number].size = 0
            task.avg = (7 * task.avg + task.seq) % 2**32 // 8
        stream = self.streams[number]
        self.streams.move_to_end(number)
        if stream.size + length < 2**32:
            stream.size += length
        stream.last = offset + length
        stream.expiry = jiffies + 1250
        task.seq = stream.size
        sectors = max(task.seq, task.avg) // 512
        if cutoff > 0 and sectors >= cutoff // 512:
            return Reason.SEQUENTIAL
        if 0 < congested <= sectors:
            return Reason.CONGESTED
        return Reason.NONE

    def find(self, offset: int, jiffies: int) -> int | None:
        """Return the most recently used live stream that ends at `offset`, or None."""
        for number in reversed(self.streams):
            stream = self.streams[number]
            if stream.last == offset and jiffies < stream.expiry:
                return number
        return None

    def served(self, took_ns: int, now: int, is_write: bool) -> None:
        """Record the service time of a request to the fast tier."""
        p = self.parameters
        threshold = p.congested_write_us if is_write else p.congested_read_us
        took = took_ns // 1024
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


MIB = 1 << 20
UNKNOWN = -1  # a task that the trace does not name
INTERVAL = 3409 * JIFFY
SHOWN = [
    "cache_hits",
    "cache_misses",
    "cache_bypass_hits",
    "cache_bypass_misses",
    "cache_miss_collisions",
    "bypassed_sectors",
]


Kind = Enum("Kind", "FILL THROUGH BACK")  # the origin of inserted data: a read, or a write


@dataclass
class OpenBucket:
    """A bucket that is open for new data."""

    bucket: Bucket | None = None
    left: int = 0
    end: int = -1
    task: int | None = None


@dataclass(eq=False)
class Insert:
    """A range that is being inserted into the cache."""

    kind: Kind
    begin: int
    end: int
    task: int
    done: Done
    waits: bool = False  # until the journal is written
    rest_to_slow: Callable[[int, int], None] | None = None  # of a write-back: a range of it
    keys: int = 0
    pending: int = 0
    parts: list[Key] = field(default_factory=list)
    next: int = -1  # the first byte not written or skipped yet

    def __post_init__(self) -> None:
        self.next = self.begin


@dataclass
class Reading:
    """A READ under way."""

    request: Request
    done: Done
    verdict: Verdict
    bypassed: bool
    missed: bool = False
    raced: bool = False
    fill: Insert | None = None
    hit_bytes: int = 0


@dataclass(eq=False)
class Sleeper:
    """A request, which waits as long as its task sleeps."""

    request: Request
    done: Done
    verdict: Verdict  # set when the request is served


class Bcache:
    """Sits between the source and the tiers."""

    def __init__(self, clock: Clock, parameters: BcacheParameters, slow: Slow, fast: Tier) -> None:
        self.clock = clock
        self.parameters = parameters
        self.slow, self.fast = slow, fast
        self.buckets = Buckets(clock, parameters, fast)
        self.keys = self.buckets.keys
        self.bypass = Bypass(parameters, self.buckets.draw)
        self.write_back = WriteBack(clock, parameters, self.buckets, slow, fast)
        self.write_back.unlocked = self.wake_sleepers
        self.buckets.filled, self.buckets.collected = self.resume_one, self.end_standstill
        self.writing = 0  # parts of inserts
        self.waiting: deque[Insert] = deque()  # for a bucket; their tasks sleep
        self.resuming = False  # an event is scheduled that goes on with one of them
        self.hung_writes = 0
        self.open = [OpenBucket() for _ in range(parameters.open_buckets)]  # oldest first
        self.counts: Counter[str] = Counter()
        self.pending_counts: Counter[str] = Counter()
        self.shown: Counter[str] = Counter()
        self.timed = False
        self.sleepers: list[Sleeper] = []  # in the order in which they came
        self.going_on = False  # an event is scheduled that serves one of them

    @property
    def counters(self) -> dict[str, int]:
        """The counters of sysfs, and additional ones."""
        buckets = self.buckets
        names = [*SHOWN, "cache_read_races", "cache_inserts"]
        return (
            {name: self.counts[name] for name in names}
            | {f"sysfs_{name}": self.shown[name] for name in SHOWN}
            | {
                "pages_present": sum(key.size for key in self.keys.all if not key.fill) // 4096,
                "dirty_data": self.keys.dirty_bytes,
                "cached_data": sum(key.size for key in self.keys.all if not key.fill),
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
        )

    def count(self, name: str, number: int = 1) -> None:
        """Count an event that sysfs shows after a delay."""
        self.counts[name] += number
        self.pending_counts[name] += number
        if not self.timed:
            self.timed = True
            self.clock.at((self.clock.now // INTERVAL + 1) * INTERVAL, self.show)

    def show(self) -> None:
        """Add the pending counts to those that sysfs shows."""
        self.timed = False
        for name, number in self.pending_counts.items():
            self.shown[name] += number % 65_536
        self.pending_counts.clear()

    def after(self, old: Bcache, how: Restart) -> None:
        """Start now, with the index and the buckets of another one that has stopped (2.17)."""
        parameters = old.parameters
        if how == Restart.CLEANER:
            parameters = replace(
                parameters, mode=BcacheMode.NONE, writeback_percent=0, writeback_delay_ns=0
            )
        self.parameters = parameters
        self.buckets, self.keys = old.buckets, old.keys
        self.counts, self.shown = old.counts, old.shown
        self.bypass = Bypass(parameters, self.buckets.draw)
        self.write_back = WriteBack(self.clock, parameters, self.buckets, self.slow, self.fast)
        self.write_back.bytes = old.write_back.bytes
        self.write_back.unlocked = self.wake_sleepers
        self.buckets.filled, self.buckets.collected = self.resume_one, self.end_standstill
        self.hung_writes = old.hung_writes
        self.buckets.restart(self.clock, self.fast)
        if self.dirty_bytes:
            self.write_back.dirtied()

    @property
    def dirty_bytes(self) -> int:
        """How much is dirty."""
        return self.keys.dirty_bytes

    # Requests.

    def submit(self, request: Request, done: Done) -> Verdict:
        """Submit a request; the verdict is final when the request completes."""
        sleeper = Sleeper(request, done, Verdict(Path.BYPASS, Reason.WRITE, 0))
        if self.must_wait(request) or self.has_earlier(request, self.sleepers):
            self.sleepers.append(sleeper)
        else:
            self.serve(sleeper)
        return sleeper.verdict

    def must_wait(self, request: Request) -> bool:
        """Whether the task of a request sleeps, or has to at its begin."""
        is_locking = request.op in (Op.WRITE, Op.DISCARD) and request.length > 0
        if self.write_back.wants_lock and is_locking:
            return True
        waiting = [insert.task for insert in self.waiting]
        return request.stream != UNKNOWN and request.stream in waiting

    @staticmethod
    def has_earlier(request: Request, sleepers: list[Sleeper]) -> bool:
        """Whether one of the requests that wait is of the same task, if that is known."""
        tasks = [one.request.stream for one in sleepers]
        return request.stream != UNKNOWN and request.stream in tasks

    def next_sleeper(self) -> Sleeper | None:
        """Return the first of the requests that wait which need not wait any more."""
        for i, one in enumerate(self.sleepers):
            if not self.must_wait(one.request):
                if not self.has_earlier(one.request, self.sleepers[:i]):
                    return one
        return None

    def wake_sleepers(self) -> None:
        """Schedule the next of the requests that wait, if one need not wait any more."""
        if not self.going_on and self.next_sleeper():
            self.going_on = True
            self.clock.at(self.clock.now, self.serve_sleeper)

    def serve_sleeper(self) -> None:
        """Serve the first request that need not wait any more."""
        self.going_on = False
        sleeper = self.next_sleeper()
        if sleeper:
            self.sleepers.remove(sleeper)
            self.serve(sleeper)
            self.wake_sleepers()

    def serve(self, sleeper: Sleeper) -> None:
        """Serve a request whose task is awake."""
        request, done, verdict = sleeper.request, sleeper.done, sleeper.verdict
        self.write_back.request_comes()
        op, offset, length = request.op, request.offset, request.length
        if op == Op.FLUSH or length == 0:
            verdict.reason = Reason.FLUSH
            both = Parts(done)
            self.buckets.journal.add(0, both.another())
            self.slow.submit(Op.FLUSH, 0, 0, both.another())
            return
        why = self.why_bypassed(request)
        if why is None:
            self.buckets.age(length)
        else:
            self.count("bypassed_sectors", length // SECTOR)
        if op == Op.DISCARD:
            verdict.reason = Reason.DISCARD
        else:
            verdict.pages = (offset + length - 1) // SECTOR - offset // SECTOR + 1
        if op == Op.READ:
            self.read(request, done, why, verdict)
            return
        self.write_back.writers += 1

        def ended() -> None:
            done()
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
        where = request.offset, request.length
        why = self.bypass.why(self.clock.now, request.stream, *where)
        return None if why == Reason.NONE else why

    # Reads.

    def read(self, request: Request, done: Done, why: Reason | None, verdict: Verdict) -> None:
        """Read cached parts from the cache and the rest from the backing device."""
        verdict.path, verdict.reason = Path.HIT, Reason.NONE
        reading = Reading(request, done, verdict, why is not None)
        parts = Parts(lambda: self.read_done(reading))
        at, end = request.offset, request.offset + request.length
        while at < end:
            keys = [key for key in self.keys.overlapping(at, end) if not key.fill]
            if keys and keys[0].begin <= at:
                part = keys[0].part(at, min(keys[0].end, end))
                self.read_hit(reading, part, parts.another())
                at = part.end
                continue
            stop = keys[0].begin if keys else end
            if not reading.missed:
                reading.missed = True
                verdict.path = Path.MISS if why is None else Path.BYPASS
                verdict.reason = self.keys.why_missing(at) if why is None else why
                if why is None:
                    stop = min(stop, at + MIB)
                    reading.fill = Insert(Kind.FILL, at, stop, request.stream, lambda: None)
                    self.buckets.enter(Key(at, stop, fill=reading.fill))
            self.slow.submit(Op.READ, at, stop - at, parts.another())
            at = stop
        verdict.pages_hit = reading.hit_bytes // SECTOR

    def read_hit(self, reading: Reading, part: Key, done: Done) -> None:
        """Read a part from the cache."""
        bucket = self.buckets.of(part.place)
        bucket.prio = 32_768
        generation, issued = bucket.generation, self.clock.now
        reading.hit_bytes += part.size

        def served() -> None:
            now = self.clock.now
            self.bypass.served(now - issued, now, is_write=False)
            if bucket.generation != generation:
                reading.raced = True
            done()

        self.fast.submit(Op.READ, part.place, part.size, served)

    def read_done(self, reading: Reading) -> None:
        """Complete a READ whose parts are all complete; retry a raced one."""
        what = "misses" if reading.missed else "hits"
        self.count(f"cache_bypass_{what}" if reading.bypassed else f"cache_{what}")
        if reading.raced:
            self.counts["cache_read_races"] += 1
            if reading.fill:
                self.keys.drop_placeholder(reading.fill)
            request = reading.request
            self.slow.submit(Op.READ, request.offset, request.length, reading.done)
            return
        reading.done()
        if reading.fill:
            self.insert(reading.fill)

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
        self.buckets.to_gc -= insert.end - insert.begin
        self.buckets.wake_gc()
        if not self.go_on(insert):
            self.waiting.append(insert)

    def go_on(self, insert: Insert) -> bool:
        """Write as much as there is space for; return False if the insert must wait for space."""
        while insert.next < insert.end:
            at = insert.next
            part = self.space(at, insert.end, insert.task)
            if part:
                self.write_part(insert, part)
                continue
            if insert.kind == Kind.BACK:
                return False
            if insert.kind == Kind.THROUGH:  # drop what is left, for which there is no bucket
                insert.keys += 1
                self.buckets.erase(at, insert.end)
            insert.next = insert.end
        if insert.pending == 0:
            self.end(insert)
        return True

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
        """After a gc: let an insert give way if no bucket will ever be free (2.12.2)."""
        is_on_its_way = self.resuming or self.buckets.lists["none"]
        is_exhausted = self.waiting and not is_on_its_way and self.buckets.avail == 0
        if not is_exhausted or not self.buckets.gc_wanted or self.writing:
            return
        if self.write_back.wants_lock:
            self.hung_writes += 1
            self.give_way(self.waiting.popleft())
            self.wake_sleepers()

    def give_way(self, insert: Insert) -> None:
        """Write the rest of a write-back to the backing device."""
        assert insert.rest_to_slow is not None
        insert.rest_to_slow(insert.next, insert.end)
        insert.keys += 1
        self.buckets.erase(insert.next, insert.end)
        insert.next = insert.end
        self.end(insert)

    def space(self, begin: int, end: int, task: int) -> Key | None:
        """Allocate space for the first part of a range; None if no bucket is free."""
        place = self.choose(begin, task)
        if place.left == 0:
            bucket = self.buckets.take_for_data()
            if bucket is None:
                return None
            place.bucket, place.left = bucket, self.buckets.size
        assert place.bucket is not None
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
        for place in reversed(self.open):
            if place.end == begin:
                return place
        return next((place for place in self.open if place.task == task), self.open[0])

    def write_part(self, insert: Insert, part: Key) -> None:
        """Write a part of an insert."""
        if insert.kind == Kind.BACK:
            self.buckets.of(part.place).mark = Mark.DIRTY
        insert.parts.append(part)
        insert.pending += 1
        self.writing += 1
        insert.next = part.end
        self.counts["cache_inserts"] += 1
        issued = self.clock.now

        def written() -> None:
            now = self.clock.now
            self.bypass.served(now - issued, now, is_write=True)
            insert.pending -= 1
            self.writing -= 1
            if insert.pending == 0 and insert.next == insert.end:
                self.end(insert)

        self.fast.submit(Op.WRITE, part.place, part.size, written)

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
        completes_now = False
        if insert.kind == Kind.FILL:
            self.keys.drop_placeholder(insert)
            if collides:
                self.count("cache_miss_collisions")
        elif insert.waits:
            self.buckets.journal.add(insert.keys, insert.done)
        else:
            self.buckets.journal.add(insert.keys)
            completes_now = True
        self.buckets.changed_since = True
        if completes_now:
            insert.done()

    def placeholder_end(self, insert: Insert, part: Key) -> int:
        """Return the end of a fill's placeholder within a part, up to the first gap."""
        at = part.begin
        for key in self.keys.overlapping(part.begin, part.end):
            if key.fill is not insert or key.begin > at:
                break
            at = min(key.end, part.end)
        return at
