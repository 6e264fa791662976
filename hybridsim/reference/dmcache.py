"""dm-cache (2.14): fixed blocks, the policy smq, and copies in the background."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from hybridsim.foundation.cache_parameters import DmCacheParameters
from hybridsim.foundation.codes import FUA, PREFLUSH, DmMode, Op, Path, Reason, Restart
from hybridsim.reference.cache import Verdict
from hybridsim.reference.clock import Clock, Done, Parts, Step, in_turn
from hybridsim.reference.smq import Kind, Lock, Slot, Smq, Work
from hybridsim.reference.throttle import Slow
from hybridsim.reference.tier import Tier
from hybridsim.reference.timers import JIFFY


@dataclass(eq=False)
class Bio:
    """The part of a request that lies in one block."""

    op: Op
    offset: int
    length: int
    done: Done
    verdict: Verdict
    marked: bool = False
    accounted: bool = False
    holds: int = -1  # the block that the bio holds
    overwrites: Work | None = None
    fua: bool = False
    send: Done | None = None  # called after the commit that the bio waits for

    @property
    def flagged_op(self) -> int:
        """The op for a tier, with FUA."""
        return self.op | (FUA if self.fua else 0)


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


class Copier:
    """Copies parts of blocks: one thread, which sleeps while the disk holds back its write."""

    def __init__(self, slow: Slow, fast: Tier) -> None:
        self.slow, self.fast = slow, fast
        self.to_begin: deque[Done] = deque()
        self.to_send: deque[Done] = deque()
        self.written: deque[Done] = deque()
        self.sent = 0
        self.sleeps = self.works = False

    def copy(self, promotes: bool, at_slow: int, at_fast: int, length: int, done: Done) -> None:
        """Queue a part to be read and written; `done` is called by the thread when it works."""

        def completed() -> None:
            self.sent -= 1
            self.written.append(done)
            self.work()

        def write() -> None:
            if promotes:
                self.fast.submit(Op.WRITE, at_fast, length, completed)
            else:
                self.sleeps = self.slow.submit_background(
                    Op.WRITE, at_slow, length, completed, self.wake
                )

        def was_read() -> None:
            self.sent -= 1
            self.to_send.append(write)
            self.work()

        def read() -> None:
            if promotes:
                self.slow.submit(Op.READ, at_slow, length, was_read)
            else:
                self.fast.submit(Op.READ, at_fast, length, was_read)

        self.to_begin.append(read)

    def wake(self) -> None:
        """Continue after a write that was held back."""
        self.sleeps = False
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


class Commits:
    """Writes the metadata, once for all waiters, and keeps them locked meanwhile (2.14.3)."""

    def __init__(
        self, clock: Clock, delay: int, fast: Tier, start: int, unlocked: Callable[[], None]
    ) -> None:
        self.clock, self.delay = clock, delay
        self.fast = fast
        self.start = start
        self.unlocked = unlocked
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
                self.clock.at(self.clock.now + self.delay, self.begin)

    def begin(self) -> None:
        """Begin a commit for all that wait."""
        in_turn(self.committing())

    def committing(self) -> Iterator[Step]:
        """Commit what has changed; then unlock the metadata, and resume the waiters."""
        self.awake = follows = False
        served = sorted(self.waiting, key=lambda each: each[0])
        self.waiting = []
        if self.changed:
            self.changed, self.under_way = False, True
            self.count += 1
            yield self.sending(Op.WRITE, self.start, LOG_BYTES)
            yield self.sending(Op.FLUSH, 0, 0)
            yield self.sending(Op.WRITE, self.start + LOG_BYTES, SUPERBLOCK_BYTES)
            yield self.sending(Op.FLUSH, 0, 0)
            self.under_way = False
            follows = self.awake
            locked, self.locked = self.locked, []
            for change in locked:
                change()
            self.unlocked()
        for _, done in served:
            done()
        if follows:
            self.begin()

    def sending(self, op: Op, at: int, length: int) -> Step:
        """Return a request to the fast tier, after which the worker takes its time, as a step."""

        def send(then: Done) -> None:
            def completed() -> None:
                self.clock.at(self.clock.now + self.delay, then)

            self.fast.submit(op, at, length, completed)

        return send


WAKE_NS = 1_024_000_000  # 250 jiffies of 4 ms, as a kernel's timer rounds them up


class DmCache:
    """Sits between the source and the tiers."""

    def __init__(self, clock: Clock, parameters: DmCacheParameters, slow: Slow, fast: Tier) -> None:
        self.clock = clock
        self.parameters = parameters
        self.slow, self.fast = slow, fast
        self.size = parameters.block_bytes
        self.whole = slow.capacity_bytes // self.size
        migrates = parameters.mode != DmMode.PASSTHROUGH
        self.smq = Smq(parameters.blocks, self.size, slow.capacity_bytes, migrates)
        self.mode = parameters.mode
        self.locks = Locks()
        self.copier = Copier(slow, fast)
        self.migrator = Worker(clock, parameters.worker_delay_ns, self.migrate)
        metadata = parameters.blocks * self.size
        self.commits = Commits(
            clock, parameters.worker_delay_ns, fast, metadata, self.migrator.let_go
        )
        self.deferrer = Worker(clock, parameters.worker_delay_ns, self.take_deferred)
        self.deferred: deque[Bio] = deque()
        self.bios: set[Bio] = set()  # bios under way
        self.in_flight = 0  # accounted bytes under way
        self.idle_since = 0  # jiffies
        self.marked = False  # whether a bio is marked
        self.running = 0
        self.since = 0  # when the cache was started
        self.wakes = 0  # number of the waker's next period
        self.waker_runs = False
        self.discard_bytes = self.size
        while slow.capacity_bytes // self.discard_bytes > 16_384:
            self.discard_bytes *= 2
        self.discarded: set[int] = set()
        self.counts: Counter[str] = Counter()

    @property
    def counters(self) -> dict[str, int]:
        """The counters of `dmsetup status`, and additional ones."""
        names = "read_hits read_misses write_hits write_misses demotions promotions write_backs"
        dirty = sum(slot.dirty for slot in self.smq.cached.values())
        return {name: self.counts[name] for name in names.split()} | {
            "dirty_blocks": dirty,
            "used_blocks": self.parameters.blocks - len(self.smq.free),
            "pages_present": len(self.smq.cached),
            "commits": self.commits.count,
        }

    # Requests.

    def submit(self, op: Op, offset: int, length: int, done: Done, flags: int = 0) -> Verdict:
        """Submit a request; the verdict is final when the request completes."""
        self.start_waker()
        parts = Parts(done)
        if op == Op.DISCARD and length > 0:
            self.defer(self.bio(Op.DISCARD, offset, length, parts.another()))
            return Verdict(Path.BYPASS, Reason.DISCARD, 0)
        if op in (Op.FLUSH, Op.DISCARD) or length == 0:
            self.defer(self.bio(Op.FLUSH, 0, 0, parts.another()))
            return Verdict(Path.BYPASS, Reason.FLUSH, 0)
        end = offset + length
        blocks = (end - 1) // self.size - offset // self.size + 1
        if op == Op.WRITE:
            verdict = Verdict(Path.BYPASS, Reason.WRITE, blocks)
        elif end > self.whole * self.size:
            verdict = Verdict(Path.BYPASS, Reason.NO_CACHE, blocks)
        else:
            verdict = Verdict(Path.HIT, Reason.NONE, blocks)
        if flags & PREFLUSH:
            flushed = parts.another()

            def begin() -> None:
                self.cut(op, offset, length, flags, parts, verdict)
                flushed()

            self.defer(self.bio(Op.FLUSH, 0, 0, begin))
        else:
            self.cut(op, offset, length, flags, parts, verdict)
        return verdict

    def cut(
        self, op: Op, offset: int, length: int, flags: int, parts: Parts, verdict: Verdict
    ) -> None:
        """Split a request at block borders, and map or defer each bio."""
        start, end = offset, offset + length
        while start < end:
            block = start // self.size
            stop = min(end, (block + 1) * self.size)
            bio = self.bio(op, start, stop - start, parts.another(), verdict)
            bio.fua = bool(flags & FUA)
            if bio.fua and block < self.whole:
                self.defer(bio)
            else:
                self.map(bio)
            start = stop

    def bio(
        self, op: Op, offset: int, length: int, done: Done, verdict: Verdict | None = None
    ) -> Bio:
        """Return a new bio, which calls `done` when it ends."""
        bio = Bio(op, offset, length, done, verdict or Verdict(Path.BYPASS, Reason.NONE, 0))
        self.bios.add(bio)
        return bio

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
        answer = self.smq.miss(block, is_write, fast)
        if fast and answer.promotion:
            if not is_write:
                bio.verdict.pages_hit += 1
            self.overwrite(bio, answer.promotion)
            return
        if answer.wanted and not fast:
            self.migrator.wake()
        if is_write:
            self.counts["write_misses"] += 1
            self.discarded.discard(bio.offset // self.discard_bytes)
        else:
            self.counts["read_misses"] += 1
            if bio.verdict.path == Path.HIT:
                bio.verdict.path = Path.MISS
                is_busy = answer.wanted and not answer.promotion
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
        self.slow.submit(bio.flagged_op, bio.offset, bio.length, done)

    def to_fast(self, bio: Bio, slot: Slot, done: Done) -> None:
        """Send a bio to its block's slot."""
        at = slot.number * self.size + bio.offset % self.size
        self.fast.submit(bio.flagged_op, at, bio.length, done)

    def mark(self, bio: Bio) -> None:
        """Mark a bio whose end is a tick, unless one is marked."""
        if not self.marked:
            self.marked = bio.marked = True

    def account(self, bio: Bio) -> None:
        """Add a bio's bytes to those in flight until it ends."""
        bio.accounted = True
        self.in_flight += bio.length

    def end(self, bio: Bio) -> None:
        """End a bio."""
        self.bios.remove(bio)
        if bio.marked:
            self.smq.tick(self.clock.now)
            self.marked = False
        if bio.overwrites:
            self.update(bio.overwrites, bio)
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
        work.lock = Lock.WRITES
        self.locks.when_free(work.block, lambda: self.copy(work))
        self.migrator.is_held = work.is_locked_out
        return True

    def overwrite(self, bio: Bio, work: Work) -> None:
        """Promote a block by a bio that overwrites it."""
        work.lock = Lock.ALL
        bio.overwrites = work

        def begin() -> None:
            self.account(bio)
            self.to_fast(bio, work.slot, partial(self.end, bio))

        self.locks.when_free(work.block, begin)

    def copy(self, work: Work) -> None:
        """Copy a block, with up to eight parts under way."""
        discarded = work.block * self.size // self.discard_bytes in self.discarded
        if discarded or (work.kind != Kind.PROMOTION and not work.slot.dirty):
            self.copied(work)
            return
        offsets = range(0, self.size, self.parameters.part_bytes)
        starts = iter(offsets)
        parts = Parts(lambda: self.copied(work))

        def next_part(done: Done) -> None:
            start = next(starts, None)
            if start is None:
                done()
                return
            length = min(self.parameters.part_bytes, self.size - start)
            at_slow, at_fast = work.block * self.size + start, work.slot.number * self.size + start
            promotes = work.kind == Kind.PROMOTION
            self.copier.copy(promotes, at_slow, at_fast, length, partial(next_part, done))

        for _ in range(min(8, len(offsets))):
            next_part(parts.another())
        self.copier.work()

    def copied(self, work: Work) -> None:
        """Lock out all bios, and update the mapping when none holds the block."""
        work.lock = Lock.ALL
        self.locks.when_free(work.block, lambda: self.update(work))

    def update(self, work: Work, overwriting: Bio | None = None) -> None:
        """Update the mapping, after a commit if the work is a demotion."""
        work.is_locked_out = work.kind != Kind.WRITE_BACK and self.commits.under_way
        if work.is_locked_out:
            self.commits.locked.append(lambda: self.update(work, overwriting))
            return
        if work.kind != Kind.WRITE_BACK:
            self.commits.changed = True
        if work.kind == Kind.DEMOTION:
            self.commits.wait(DEMOTIONS, lambda: self.ended(work))
        else:
            self.ended(work, overwriting)

    def ended(self, work: Work, overwriting: Bio | None = None) -> None:
        """End work: release the bios that waited for it."""
        if work.kind == Kind.PROMOTION:
            self.discarded.discard(work.block * self.size // self.discard_bytes)
        self.smq.ended(work)
        self.counts[f"{work.kind.value.replace('-', '_')}s"] += 1
        if overwriting:
            self.smq.dirtied(work.slot)
        else:
            self.running -= 1
        for bio in self.locks.parked.pop(work, []):
            self.defer(bio)
        self.migrator.wake()

    # Restarts (2.17).

    def after(self, old: DmCache, how: Restart) -> None:
        """Start now, with the blocks of another one that has stopped."""
        self.smq = old.smq
        self.smq.restart(self.clock.now, how)
        self.mode = DmMode.WRITETHROUGH if how == Restart.CLEANER else old.mode
        if how != Restart.UNCLEAN:
            self.discarded = old.discarded
        self.counts = old.counts
        self.commits.count = old.commits.count
        self.since = self.clock.now
        self.waker_runs = True
        self.clock.at(self.since, self.woken)

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
            first = -(-bio.offset // self.discard_bytes)
            self.discarded |= set(range(first, (bio.offset + bio.length) // self.discard_bytes))
            self.to_slow(bio, partial(self.end, bio))
        elif bio.send:
            self.account(bio)
            bio.send()
        elif bio.op == Op.FLUSH:
            bio.send = lambda: self.flush(bio)
            self.commits.wait(BIOS, lambda: self.defer(bio))
        else:
            self.map(bio)
        return True

    def flush(self, bio: Bio) -> None:
        """Flush both tiers."""
        both = Parts(partial(self.end, bio))
        self.slow.submit(Op.FLUSH, 0, 0, both.another())
        self.fast.submit(Op.FLUSH, 0, 0, both.another())

    def start_waker(self) -> None:
        """Start the waker: run the ticks of the periods missed, and set the timer."""
        if self.waker_runs:
            return
        while self.since + self.wakes * WAKE_NS <= self.clock.now:
            self.smq.tick(self.since + self.wakes * WAKE_NS)
            self.wakes += 1
        self.waker_runs = True
        self.clock.at(self.since + self.wakes * WAKE_NS, self.woken)

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
            self.clock.at(self.clock.now + WAKE_NS, self.woken)
        else:
            self.waker_runs = False
