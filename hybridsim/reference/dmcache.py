"""dm-cache (2.14): fixed blocks, the policy smq, and copies in the background."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from hybridsim.foundation.cache_parameters import DmCacheParameters
from hybridsim.foundation.codes import FUA, PREFLUSH, DmMode, Op, Path, Reason, Restart
from hybridsim.reference.cache import Verdict
from hybridsim.reference.clock import (
    JIFFY,
    Alarm,
    Clock,
    Done,
    Parts,
    Step,
    each_of,
    in_turn,
    nothing,
)
from hybridsim.reference.device import Cache, Copier, Part
from hybridsim.reference.runs import covered, split, touched
from hybridsim.reference.smq import Kind, Lock, Slot, Smq, Work


@dataclass(eq=False)
class Bio:
    """The part of a request that lies in one block."""

    op: Op
    offset: int
    length: int
    verdict: Verdict = field(default_factory=lambda: Verdict(Path.BYPASS, Reason.NONE, 0))
    fua: int = 0  # the flag
    done: Done = nothing
    marked: bool = False
    accounted: bool = False
    holds: int = -1  # the block that the bio holds
    overwrites: Work | None = None
    send: Done | None = None  # called after the commit that the bio waits for


class Locks:
    """Blocks held by bios; bios and work that wait for them."""

    def __init__(self) -> None:
        self.holders: Counter[int] = Counter()
        self.waiting: dict[int, Done] = {}  # by block: work that waits for the last holder
        self.parked: dict[Work, list[Bio]] = {}

    def hold(self, bio: Bio, block: int) -> None:
        """Make a bio hold a block."""
        bio.holds = block
        self.holders[block] += 1

    def release(self, bio: Bio) -> None:
        """Release a bio's block; resume work that waits for it."""
        if bio.holds < 0:
            return
        self.holders[bio.holds] -= 1
        if self.holders[bio.holds] == 0 and bio.holds in self.waiting:
            self.waiting.pop(bio.holds)()

    def when_free(self, block: int, then: Done) -> None:
        """Call `then` when no bio holds the block."""
        if self.holders[block]:
            self.waiting[block] = then
        else:
            then()


LOG_BYTES, SUPERBLOCK_BYTES = 16 * 1024, 4 * 1024
SENT_MAX = 256
DEMOTIONS, BIOS = range(2)  # the order in which they resume after a commit


class Worker:
    """Processes one item per event until none remains."""

    def __init__(self, clock: Clock, delay: int, take: Callable[[], bool]) -> None:
        self.clock = clock
        self.delay = delay
        self.take = take
        self.awake = False
        self.is_held = False

    def wake(self) -> None:
        """Schedule the worker, unless it is scheduled."""
        if not self.awake:
            self.awake = True
            self.clock.at(self.clock.now + self.delay, self.run)

    def run(self) -> None:
        """Process one item; run again if there was one, unless that holds the worker."""
        if not self.take():
            self.awake = False
        elif not self.is_held:
            self.clock.at(self.clock.now, self.run)

    def let_go(self) -> None:
        """Run again if an item held the worker."""
        if self.is_held:
            self.is_held = False
            self.clock.at(self.clock.now, self.run)


class PartCopier(Copier["DmCache", DmCacheParameters]):
    """Copies parts of blocks."""

    def __init__(self, cache: DmCache) -> None:
        super().__init__(cache)
        self.to_begin: deque[Done] = deque()
        self.to_send: deque[Done] = deque()
        self.written: deque[Done] = deque()
        self.sent = 0
        self.works = False

    def copying(self, promotes: bool, at_slow: int, at_fast: int, length: int) -> Iterator[Step]:
        """Read and write a part when the thread sends it; it goes on when the thread works."""
        yield self.to_begin.append
        source, at = (self.slow, at_slow) if promotes else (self.fast, at_fast)
        yield partial(source.submit, Op.READ, at, length)
        yield partial(self.queue, self.to_send)
        if promotes:
            yield partial(self.fast.submit, Op.WRITE, at_fast, length)
        else:
            yield partial(self.write_back, at_slow, length)
        yield partial(self.queue, self.written)

    def queue(self, queue: deque[Done], then: Done) -> None:
        """Go on after an access when the thread takes it from a queue."""
        self.sent -= 1
        queue.append(then)
        self.work()

    def work(self) -> None:
        """Do all that is queued, until it sleeps; calls from within have no effect."""
        if self.works:
            return
        self.works = True
        while True:
            while self.to_send and not self.sleeps and self.sent < SENT_MAX:
                self.sent += 1
                self.to_send.popleft()()
            if self.sleeps or self.to_send or not (self.written or self.to_begin):
                break
            while self.written:
                self.written.popleft()()
            self.to_send.extend(self.to_begin)
            self.to_begin.clear()
        self.works = False


class Commits(Part["DmCache", DmCacheParameters]):
    """Writes the metadata, once for all waiters, and keeps them locked meanwhile (2.14.3)."""

    def __init__(self, cache: DmCache) -> None:
        super().__init__(cache)
        self.delay = self.parameters.worker_delay_ns
        self.start = self.parameters.blocks * self.parameters.block_bytes
        self.changed = False
        self.awake = False
        self.under_way = False
        self.waiting: list[tuple[int, Done]] = []
        self.locked: list[Done] = []  # changes of the metadata that wait for the end
        self.count = 0

    def wait(self, rank: int, done: Done) -> None:
        """Call `done` when all changes up to now are on the medium; lower ranks first."""
        self.waiting.append((rank, done))
        if not self.awake:
            self.awake = True
            if not self.under_way:
                self.clock.at(self.clock.now + self.delay, lambda: in_turn(self.committing()))

    def committing(self) -> Iterator[Step]:
        """Commit what has changed; then unlock the metadata, and resume the waiters."""
        self.awake = follows = False
        served = sorted(self.waiting, key=lambda each: each[0])
        self.waiting = []
        if self.changed:
            self.changed, self.under_way = False, True
            self.count += 1
            for at, length in ((0, LOG_BYTES), (LOG_BYTES, SUPERBLOCK_BYTES)):
                for request in ((Op.WRITE, self.start + at, length), (Op.FLUSH, 0, 0)):
                    yield partial(self.fast.submit, *request)
                    yield partial(self.clock.at, self.clock.now + self.delay)
            self.under_way = False
            follows = self.awake
            locked, self.locked = self.locked, []
            for change in locked:
                change()
            self.cache.migrator.let_go()
        for _, done in served:
            done()
        if follows:
            in_turn(self.committing())


WAKE_NS = 1_024_000_000  # 250 jiffies of 4 ms, as a kernel's timer rounds them up


class DmCache(Cache[DmCacheParameters]):
    """dm-cache, with its bios and workers."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        p, capacity_bytes = self.parameters, self.slow.capacity_bytes
        self.size = p.block_bytes
        self.whole = capacity_bytes // self.size
        self.smq = Smq(p.blocks, self.size, capacity_bytes, p.mode != DmMode.PASSTHROUGH)
        self.mode = p.mode
        self.locks = Locks()
        self.copier = PartCopier(self)
        self.migrator = Worker(self.clock, p.worker_delay_ns, self.migrate)
        self.commits = Commits(self)
        self.deferrer = Worker(self.clock, p.worker_delay_ns, self.take_deferred)
        self.deferred: deque[Bio] = deque()
        self.bios: set[Bio] = set()  # bios under way
        self.in_flight = 0  # accounted bytes under way
        self.idle_since = 0  # jiffies
        self.running = 0
        self.since = 0  # when the cache was started
        self.wakes = 0  # number of the waker's next period
        self.waker = Alarm(self.clock, self.woken)
        self.discard_bytes = self.size
        while capacity_bytes // self.discard_bytes > 16_384:
            self.discard_bytes *= 2
        self.discarded: set[int] = set()

    @property
    def counters(self) -> dict[str, int]:
        """The counters of `dmsetup status`, and additional ones."""
        return self.counts | {
            "dirty_blocks": self.dirty_bytes // self.size,
            "used_blocks": self.parameters.blocks - len(self.smq.free),
            "pages_present": len(self.smq.cached),
            "commits": self.commits.count,
        }

    # Requests.

    def submit(self, op: Op, offset: int, length: int, done: Done, flags: int = 0) -> Verdict:
        """Submit a request; the verdict is final when the request completes."""
        self.start_waker()
        if op == Op.FLUSH or length == 0:
            op, offset, length = Op.FLUSH, 0, 0
        if op in (Op.FLUSH, Op.DISCARD):
            self.begin(Bio(op, offset, length), done)
            return Verdict(Path.BYPASS, Reason[op.name], 0)
        end = offset + length
        blocks = touched(offset, end, self.size)
        verdict = Verdict(Path.HIT, Reason.NONE, len(blocks))
        if op == Op.WRITE:
            verdict.path, verdict.reason = Path.BYPASS, Reason.WRITE
        elif blocks.stop > self.whole:
            verdict.path, verdict.reason = Path.BYPASS, Reason.NO_CACHE

        def bios() -> Iterator[Step]:
            if flags & PREFLUSH:
                yield partial(self.begin, Bio(Op.FLUSH, 0, 0))
            parts = split(offset, end, self.size)
            data = [Bio(op, first, last - first, verdict, flags & FUA) for _, first, last in parts]
            yield partial(each_of, [partial(self.begin, bio) for bio in data])

        in_turn(bios(), done)
        return verdict

    def begin(self, bio: Bio, done: Done) -> None:
        """Map or defer a bio, which calls `done` when it ends."""
        bio.done = done
        self.bios.add(bio)
        is_data = bio.op in (Op.READ, Op.WRITE)
        if is_data and not (bio.fua and bio.offset // self.size < self.whole):
            self.map(bio)
        else:
            self.defer(bio)

    def map(self, bio: Bio) -> None:
        """Look up a bio's block and route the bio."""
        block = bio.offset // self.size
        if block >= self.whole:
            self.account(bio)
            self.to_slow(bio, partial(self.end, bio))
            return
        slot = self.smq.cached.get(block)
        work = slot.work if slot else self.smq.pending.promotions.get(block)
        excludes_writes = work and work.lock == Lock.WRITES
        if work and (work.lock == Lock.ALL or (excludes_writes and bio.op == Op.WRITE)):
            self.locks.parked.setdefault(work, []).append(bio)
            return
        if slot:
            self.hit(bio, slot)
        else:
            self.miss(bio, block)

    def hit(self, bio: Bio, slot: Slot) -> None:
        """Serve a bio whose block is in the cache."""
        self.smq.hit(slot)
        self.locks.hold(bio, slot.block)
        goes_through = False
        if bio.op == Op.READ:
            self.counts["read_hits"] += 1
            bio.verdict.pages_hit += 1
        else:
            self.counts["write_hits"] += 1
            self.discarded.discard(bio.offset // self.discard_bytes)
            goes_through = self.mode == DmMode.WRITETHROUGH and not slot.dirty
            if not goes_through and not slot.dirty:
                self.smq.dirtied(slot)
        parts = Parts(partial(self.end, bio))
        if goes_through:
            self.to_slow(bio, parts.another())
        last = parts.another()
        if bio.fua:
            self.wait_as_fua(bio, lambda: self.to_fast(bio, slot, last))
            return
        if goes_through:
            self.account(bio)
        else:
            self.mark(bio)
        self.to_fast(bio, slot, last)

    def miss(self, bio: Bio, block: int) -> None:
        """Serve a bio whose block is not in the cache."""
        is_write = bio.op == Op.WRITE
        fast = self.mode == DmMode.WRITEBACK and (
            bio.offset // self.discard_bytes in self.discarded
            or (is_write and bio.length == self.size)
        )
        filling = block in self.smq.pending.promotions
        is_known = block // self.smq.hotspot.each in self.smq.hotspot.by_number
        is_wanted, promotion = self.smq.miss(block, is_write, fast)
        if fast and promotion:
            if not is_write:
                bio.verdict.pages_hit += 1
            in_turn(self.overwriting(bio, promotion))
            return
        if is_wanted and not fast:
            self.migrator.wake()
        if is_write:
            self.counts["write_misses"] += 1
            self.discarded.discard(bio.offset // self.discard_bytes)
        else:
            self.counts["read_misses"] += 1
            if bio.verdict.path == Path.HIT:
                bio.verdict.path = Path.MISS
                is_busy = is_wanted and not promotion
                bio.verdict.reason = Reason.BUSY if is_busy else Reason.NOT_HOT
                if not is_known:
                    bio.verdict.reason = Reason.COLD
                if filling:
                    bio.verdict.reason = Reason.FILLING
        self.locks.hold(bio, block)
        if bio.fua:
            self.wait_as_fua(bio, lambda: self.to_slow(bio, partial(self.end, bio)))
            return
        self.account(bio)
        self.mark(bio)
        self.to_slow(bio, partial(self.end, bio))

    def wait_as_fua(self, bio: Bio, send: Done) -> None:
        """Send a bio after a commit; it does not count as activity until then."""
        if self.in_flight == 0:
            self.idle_since = self.clock.now // JIFFY
        bio.send = send
        self.commits.wait(BIOS, lambda: self.defer(bio))

    def to_slow(self, bio: Bio, done: Done) -> None:
        """Send a bio to the origin."""
        self.slow.submit(bio.op | bio.fua, bio.offset, bio.length, done)

    def to_fast(self, bio: Bio, slot: Slot, done: Done) -> None:
        """Send a bio to its block's slot."""
        at = slot.number * self.size + bio.offset % self.size
        self.fast.submit(bio.op | bio.fua, at, bio.length, done)

    def mark(self, bio: Bio) -> None:
        """Mark a bio whose end is a tick, unless one is marked."""
        bio.marked = not any(other.marked for other in self.bios)

    def account(self, bio: Bio) -> None:
        """Add a bio's bytes to those in flight until it ends."""
        bio.accounted = True
        self.in_flight += bio.length

    def end(self, bio: Bio) -> None:
        """End a bio."""
        self.bios.remove(bio)
        if bio.marked:
            self.smq.tick(self.clock.now)
        if bio.overwrites:
            in_turn(self.updating(bio.overwrites, is_overwritten=True))
        self.locks.release(bio)
        if bio.accounted:
            self.in_flight -= bio.length
            if self.in_flight == 0:
                self.idle_since = self.clock.now // JIFFY
        bio.done()

    # Work.

    def migrate(self) -> bool:
        """Begin one item of work; return False if there is none."""
        if self.mode == DmMode.PASSTHROUGH:
            return False
        quiet = self.in_flight == 0 and self.clock.now // JIFFY > self.idle_since + 250
        few = (self.running + 1) * self.size <= self.parameters.migration_threshold_bytes
        work = self.smq.next_work(quiet and few)
        if work is None:
            return False
        self.running += 1
        in_turn(self.migrating(work))
        self.migrator.is_held = work.is_locked_out
        return True

    def overwriting(self, bio: Bio, work: Work) -> Iterator[Step]:
        """Promote a block by a bio that overwrites it."""
        work.lock = Lock.ALL
        bio.overwrites = work
        yield partial(self.locks.when_free, work.block)
        self.account(bio)
        yield partial(self.to_fast, bio, work.slot)
        self.end(bio)

    def migrating(self, work: Work) -> Iterator[Step]:
        """Copy a block if it must be, then lock out all bios, and update the mapping."""
        work.lock = Lock.WRITES
        yield partial(self.locks.when_free, work.block)
        discarded = work.block * self.size // self.discard_bytes in self.discarded
        if not discarded and (work.kind == Kind.PROMOTION or work.slot.dirty):
            yield partial(self.copy, work)
        work.lock = Lock.ALL
        yield partial(self.locks.when_free, work.block)
        yield from self.updating(work)

    def copy(self, work: Work, done: Done) -> None:
        """Copy a block, with up to eight parts under way."""
        parts = split(0, self.size, self.parameters.part_bytes)
        at_slow, at_fast = work.block * self.size, work.slot.number * self.size

        def lane() -> Iterator[Step]:
            for _, first, last in parts:
                place = at_slow + first, at_fast + first, last - first
                yield from self.copier.copying(work.kind == Kind.PROMOTION, *place)

        lanes = min(8, len(touched(0, self.size, self.parameters.part_bytes)))
        each_of([partial(in_turn, lane()) for _ in range(lanes)], done)
        self.copier.work()

    def updating(self, work: Work, is_overwritten: bool = False) -> Iterator[Step]:
        """Update the mapping, after a commit if it demotes; release the bios that waited."""
        work.is_locked_out = work.kind != Kind.WRITE_BACK and self.commits.under_way
        if work.is_locked_out:
            yield self.commits.locked.append
            work.is_locked_out = False
        if work.kind != Kind.WRITE_BACK:
            self.commits.changed = True
        if work.kind == Kind.DEMOTION:
            yield partial(self.commits.wait, DEMOTIONS)
        if work.kind == Kind.PROMOTION:
            self.discarded.discard(work.block * self.size // self.discard_bytes)
        self.smq.ended(work)
        self.counts[f"{work.kind.name.lower()}s"] += 1
        if is_overwritten:
            self.smq.dirtied(work.slot)
        else:
            self.running -= 1
        for bio in self.locks.parked.pop(work, []):
            self.defer(bio)
        self.migrator.wake()

    # Restarts (2.17).

    def after(self, old: DmCache, how: Restart) -> None:
        """Start now, with the blocks of another one that has stopped."""
        super().after(old, how)
        self.smq = old.smq
        self.smq.restart(self.clock.now, how)
        self.mode = DmMode.WRITETHROUGH if how == Restart.CLEANER else old.mode
        if how != Restart.UNCLEAN:
            self.discarded = old.discarded
        self.commits.count = old.commits.count
        self.since = self.clock.now
        self.waker.set()

    @property
    def dirty_bytes(self) -> int:
        """How much is dirty."""
        return self.size * sum(slot.dirty for slot in self.smq.cached.values())

    # Workers.

    def defer(self, bio: Bio) -> None:
        """Queue a bio for the deferrer."""
        self.deferred.append(bio)
        self.deferrer.wake()

    def take_deferred(self) -> bool:
        """Process one deferred bio; return False if there is none."""
        if not self.deferred:
            return False
        bio = self.deferred.popleft()
        if bio.op == Op.DISCARD:
            self.discarded |= {*covered(bio.offset, bio.offset + bio.length, self.discard_bytes)}
            self.to_slow(bio, partial(self.end, bio))
        elif bio.send:
            self.account(bio)
            bio.send()
        elif bio.op == Op.FLUSH:
            flushes = [partial(tier.submit, Op.FLUSH, 0, 0) for tier in (self.slow, self.fast)]
            bio.send = partial(each_of, flushes, partial(self.end, bio))
            self.commits.wait(BIOS, lambda: self.defer(bio))
        else:
            self.map(bio)
        return True

    def start_waker(self) -> None:
        """Start the waker: run the ticks of the periods missed, and set the timer."""
        if self.waker.is_set:
            return
        while self.since + self.wakes * WAKE_NS <= self.clock.now:
            self.smq.tick(self.since + self.wakes * WAKE_NS)
            self.wakes += 1
        self.waker.set(self.since + self.wakes * WAKE_NS)

    def woken(self) -> None:
        """Tick once a period; stop when there is no work."""
        self.smq.tick(self.clock.now)
        self.wakes += 1
        writes_back = (
            self.mode != DmMode.PASSTHROUGH
            and (self.smq.cleans or self.size <= self.parameters.migration_threshold_bytes)
            and any(slot.dirty for slot in self.smq.cached.values())
        )
        if self.bios or self.smq.pending.all or writes_back:
            self.migrator.wake()
            self.waker.set(self.clock.now + WAKE_NS)
