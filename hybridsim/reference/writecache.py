"""dm-writecache (2.15): writes go to the fast tier and are written back later."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, groupby, takewhile
from operator import itemgetter
from typing import Any

from hybridsim.foundation.cache_parameters import WritecacheParameters
from hybridsim.foundation.codes import FUA, PREFLUSH, Op, Path, Reason, Restart
from hybridsim.reference.cache import Verdict
from hybridsim.reference.clock import (
    Alarm,
    Done,
    Parts,
    Step,
    each_of,
    expiry,
    in_turn,
    nothing,
)
from hybridsim.reference.device import Cache, Copier, Part
from hybridsim.reference.runs import covered, runs, touched

SUPERBLOCK_BYTES, REGION_BYTES, REGION_SLOTS = 4 * 1024, 64 * 1024, 4096


@dataclass
class Awaited:
    """Requests under way, for the end of which something may wait."""

    number: int = 0
    waits: Done | None = None

    def wait(self, done: Done) -> None:
        """Call `done` when none is under way."""
        if self.number:
            self.waits = done
        else:
            done()

    def one(self, done: Done) -> Done:
        """Count one more; return what ends it, before it calls `done`."""
        self.number += 1

        def ended() -> None:
            self.number -= 1
            if self.waits and not self.number:
                waits, self.waits = self.waits, None
                waits()
            done()

        return ended


class Commits(Part["Writecache", WritecacheParameters]):
    """Makes written data and metadata durable."""

    def __init__(self, cache: Writecache) -> None:
        super().__init__(cache)
        self.start = len(cache.slots) * cache.size
        self.locked = False
        self.allocated = 0  # slots since the last commit began
        self.overwrote = False
        self.freed: set[int] = set()  # regions of the metadata with slots that were freed
        self.new: set[int] = set()  # and with slots that were allocated
        self.reads, self.writes = Awaited(), Awaited()  # of data on the fast tier, under way
        self.count = 0

    def begin(self, parts: Parts | None = None) -> None:
        """Begin a commit if data were written; the commit becomes a part of `parts`."""
        if self.allocated or self.overwrote:
            in_turn(self.committing(), parts.another() if parts else nothing)

    def committing(self) -> Iterator[Step]:
        """Yield the steps of a commit."""
        cache = self.cache
        has_allocated = self.allocated > 0
        self.allocated, self.overwrote = 0, False
        self.count += 1
        self.locked = True
        if has_allocated:
            yield self.writing(self.freed, self.new)
        yield self.writes.wait
        yield partial(self.fast.submit, Op.FLUSH, 0, 0)
        if has_allocated:
            yield partial(self.fast.submit, Op.WRITE | FUA, self.start, SUPERBLOCK_BYTES)
        self.locked = False
        if has_allocated:
            for slot in cache.slots:
                slot.committed = True
        if cache.chooses:
            cache.chooses = False
            cache.choose()
        cache.unlock()

    def noting_freed(self) -> Iterator[Step]:
        """Yield the steps that make it durable that slots were freed."""
        self.locked = True
        yield self.reads.wait
        yield self.writing(self.freed)
        yield partial(self.fast.submit, Op.FLUSH, 0, 0)
        self.locked = False

    def writing(self, *kinds: set[int]) -> Step:
        """Return as a step: write the regions of these kinds, each run of them at once."""
        regions = set().union(*kinds)
        for kind in kinds:
            kind.clear()
        at = self.start + SUPERBLOCK_BYTES
        sizes = [(at + first * REGION_BYTES, (end - first) * REGION_BYTES)
                 for first, end in runs(regions)]  # fmt: skip
        return partial(each_of, [partial(self.fast.submit, Op.WRITE, *size) for size in sizes])


QUEUE_MAX = 256
READ_BYTES = 1280 * 1024


class RunCopier(Copier["Writecache", WritecacheParameters]):
    """Copies runs of slots in order."""

    def __init__(self, cache: Writecache) -> None:
        super().__init__(cache)
        self.to_read: deque[list[Slot]] = deque()
        self.to_write: deque[list[Slot]] = deque()
        self.done: deque[list[Slot]] = deque()
        self.reading = self.writing = 0

    def work(self) -> None:
        """Write what is read, read what is added, and report what is done, until it sleeps."""
        while self.to_write and self.writing < QUEUE_MAX and not self.sleeps:
            in_turn(self.write(self.to_write.popleft()))
        if self.sleeps or self.to_write:
            return
        while self.to_read and self.reading < QUEUE_MAX:
            in_turn(self.read())
        if self.to_read:
            return
        while self.done:
            self.cache.landed.append(self.done.popleft())
            if not self.cache.flushing:
                in_turn(self.cache.freeing())
        self.cache.call_writer()

    @property
    def is_busy(self) -> bool:
        """Whether it sleeps, or waits for room in a queue."""
        return self.sleeps or bool(self.to_write or self.to_read)

    def read(self) -> Iterator[Step]:
        """Read the first copy, and those behind it that lie in the next slots."""
        together, size = [self.to_read.popleft()], self.cache.size
        first, length = together[0][0].number, len(together[0]) * size
        while self.to_read and self.to_read[0][0].number == first + length // size:
            if length + len(self.to_read[0]) * size > READ_BYTES:
                break
            together.append(self.to_read.popleft())
            length += len(together[-1]) * size
        self.reading += 1
        yield partial(self.fast.submit, Op.READ, first * size, length)
        self.reading -= 1
        self.to_write.extend(together)
        self.work()

    def write(self, copy: list[Slot]) -> Iterator[Step]:
        """Write a copy, and sleep if the disk holds it back."""
        self.writing += 1
        yield partial(self.write_back, *self.cache.extent([slot.block for slot in copy]))
        self.writing -= 1
        self.done.append(copy)
        self.counts["blocks_written_back"] += len(copy)
        self.work()


PASS_BLOCKS = 64
COPY_BLOCKS = 256


@dataclass(eq=False)
class Slot:
    """A slot for a block on the fast tier."""

    number: int
    block: int = -1  # -1: free
    flies: bool = False  # being written back
    committed: bool = False
    older: Slot | None = None  # slot of the same block that is being written back


@dataclass(eq=False)
class Job:
    """A request under way."""

    op: Op
    offset: int
    end: int
    blocks: range  # of a WRITE those that are not written
    parts: Parts
    verdict: Verdict
    held: Done | None = None  # a part that is open while the job waits for a slot


class Writecache(Cache[WritecacheParameters]):
    """dm-writecache, with its queue of requests and its writer."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.size = self.parameters.block_bytes
        self.slots = [Slot(number) for number in range(self.parameters.blocks)]
        self.free = deque(self.slots)
        self.cached: dict[int, Slot] = {}
        self.order: dict[Slot, None] = {}  # not being written back, in order of allocation
        self.queue: deque[Job] = deque()
        self.commits = Commits(self)
        self.timer = Alarm(self.clock, self.autocommit)
        self.commits_next = False  # whether the timer found the cache locked
        self.server = Alarm(self.clock, self.serve_first)
        self.writer = Alarm(self.clock, lambda: in_turn(self.begin_pass()))
        self.drains = False
        self.copier = RunCopier(self)
        self.around = 0
        self.next_pass = 0  # the earliest begin of the next pass
        self.landed: list[list[Slot]] = []  # copies that are written
        self.flushing = False
        self.chooses = False  # whether a commit is the writer's, which then chooses
        self.frees: Done | None = None  # frees copies, when the lock is free
        p = self.parameters
        self.high, self.low = p.high_watermark_blocks, p.low_watermark_blocks
        self.quiet, self.pause_writeback_ns = -p.pause_writeback_ns, p.pause_writeback_ns
        self.cleans = False  # whether it caches no more blocks

    def after(self, old: Writecache, how: Restart) -> None:
        """Start now, with the blocks of another one that has stopped (2.17)."""
        super().after(old, how)
        self.commits.count = old.commits.count
        self.cleans = how == Restart.CLEANER
        if self.cleans:
            self.high = self.low = self.pause_writeback_ns = 0
        held = [slot for slot in old.slots if slot.block >= 0]
        kept = [slot for slot in held if slot.committed or how != Restart.UNCLEAN]
        kept.sort(key=lambda slot: not slot.flies)  # of a block's two slots the older one flies
        newest = {slot.block: slot.number for slot in kept}
        for block, number in sorted(newest.items(), key=itemgetter(1)):
            self.slots[number].block, self.slots[number].committed = block, True
            self.cached[block] = self.slots[number]
            self.order[self.slots[number]] = None
        self.free = deque(slot for slot in self.slots if slot.block < 0)
        self.check()

    @property
    def dirty_bytes(self) -> int:
        """How much is cached: all of it is dirty."""
        return (len(self.slots) - len(self.free)) * self.size

    @property
    def counters(self) -> dict[str, int]:
        """The counters of `dmsetup status`, and additional ones."""
        return self.counts | {
            "free_blocks": len(self.free),
            "blocks_under_writeback": sum(slot.flies for slot in self.slots),
            "commits": self.commits.count,
            "pages_present": len(self.slots) - len(self.free),
        }

    def submit(self, op: Op, offset: int, length: int, done: Done, flags: int = 0) -> Verdict:
        """Submit a request; the verdict is final when the request completes."""
        if op == Op.FLUSH or length == 0:
            op, offset, length, flags = Op.FLUSH, 0, 0, 0
        blocks = len(touched(offset, offset + length, self.size))
        verdict = Verdict(Path.HIT, Reason.NONE, blocks)
        if op != Op.READ:
            verdict = Verdict(Path.BYPASS, Reason[op.name], blocks if op == Op.WRITE else 0)

        def jobs() -> Iterator[Step]:
            if flags & PREFLUSH:
                yield partial(self.enqueue, Op.FLUSH, 0, 0, verdict)
            yield partial(self.enqueue, op, offset, offset + length, verdict)
            if flags & FUA:
                yield partial(self.enqueue, Op.FLUSH, 0, 0, verdict)

        in_turn(jobs(), done)
        return verdict

    # The queue.

    def enqueue(self, op: Op, offset: int, end: int, verdict: Verdict, done: Done) -> None:
        """Serve a job now, or queue it."""
        job = Job(op, offset, end, touched(offset, end, self.size), Parts(done), verdict)
        if self.queue or self.commits.locked or not self.serve(job):
            self.queue.append(job)

    def serve_first(self) -> None:
        """Serve the first job of the queue, if possible."""
        if not self.commits.locked and self.serve(self.queue[0]):
            self.queue.popleft()
            if self.queue:
                self.server.set()

    def serve(self, job: Job) -> bool:
        """Serve a job; return whether it is served completely."""
        match job.op:
            case Op.READ:
                self.read(job)
            case Op.FLUSH:
                self.counts["flushes"] += 1
                in_turn(self.passing(Op.FLUSH, 0, 0), job.parts.another())
                self.commits.begin(job.parts)
            case Op.DISCARD:
                self.discard(job)
            case _:
                return self.write(job)
        return True

    def read(self, job: Job) -> None:
        """Read each block from the tier that holds it."""
        for is_cached, blocks in groupby(job.blocks, lambda block: block in self.cached):
            if not is_cached:
                self.slow.submit(Op.READ, *self.extent([*blocks]), job.parts.another())
                continue
            for block in blocks:
                job.verdict.pages_hit += 1
                at, read = self.cached[block].number, self.commits.reads.one(job.parts.another())
                self.fast.submit(Op.READ, at * self.size, self.size, read)
        self.counts["reads"] += len(job.blocks)
        self.counts["read_hits"] += job.verdict.pages_hit
        if job.verdict.pages_hit < len(job.blocks):
            job.verdict.path, job.verdict.reason = Path.MISS, Reason.NOT_WRITTEN

    def extent(self, blocks: Sequence[int]) -> tuple[int, int]:
        """Return offset and length of consecutive blocks on the slow tier, in bytes."""
        start = blocks[0] * self.size
        return start, min((blocks[-1] + 1) * self.size, self.slow.capacity_bytes) - start

    def discard(self, job: Job) -> None:
        """Drop the discarded whole blocks, and pass the DISCARD to the slow tier."""
        self.counts["discards"] += 1
        for block in covered(job.offset, job.end, self.size):
            slot = self.cached.get(block)
            if slot is not None and not slot.flies and slot.older is None:
                del self.cached[block], self.order[slot]
                self.give_back(slot)
        self.slow.submit(Op.DISCARD, job.offset, job.end - job.offset, job.parts.another())

    def give_back(self, slot: Slot) -> None:
        """Free a slot."""
        slot.block = -1
        self.free.append(slot)
        self.commits.freed.add(slot.number // REGION_SLOTS)

    # Writes.

    def write(self, job: Job) -> bool:
        """Write as many blocks as possible; return whether all are written."""
        while job.blocks:
            slot = self.cached.get(job.blocks[0])
            if slot is not None and not slot.flies:
                number = self.overwrite(job)
            elif self.free and not (self.cleans and slot is None):
                number = self.allocate(job)
            elif slot is None:
                number = self.write_around(job)
            else:
                break
            job.blocks = job.blocks[number:]
            self.counts["writes"] += number
        if job.blocks and not job.held:
            job.held = job.parts.another()
            self.counts["writes_blocked"] += 1
        if not job.blocks and job.held:
            job.held()
        self.check()
        if self.commits.allocated >= self.parameters.autocommit_blocks:
            self.commits.begin()
        elif self.commits.allocated:
            self.timer.set(expiry(self.clock.now, self.parameters.autocommit_time_ns))
        return not job.blocks

    def autocommit(self) -> None:
        """Commit the allocations that have waited for long enough."""
        if self.commits.locked:
            self.commits_next = True
        elif self.commits.allocated:
            self.commits.begin()

    def overwrite(self, job: Job) -> int:
        """Overwrite cached blocks in place; return their number."""
        first = self.cached[job.blocks[0]].number
        number = 0
        for at, block in enumerate(job.blocks):
            slot = self.cached.get(block)
            if slot is None or slot.flies or slot.number != first + at:
                break
            kind = f"write_hits_{'' if slot.committed else 'un'}committed"
            self.counts["writes_allocated" if at else kind] += 1
            self.commits.overwrote |= slot.committed
            number += 1
        self.write_fast(job, first, number)
        return number

    def allocate(self, job: Job) -> int:
        """Write blocks to free slots; return their number."""
        first = self.free[0].number
        number = 0
        for at, block in enumerate(job.blocks):
            old = self.cached.get(block)
            is_next = self.free and self.free[0].number == first + at
            if not is_next or (old is not None and not old.flies):
                break
            slot = self.free.popleft()
            slot.block, slot.older, slot.committed = block, old, False
            self.cached[block] = slot
            self.order[slot] = None
            self.commits.new.add(slot.number // REGION_SLOTS)
            number += 1
        self.commits.allocated += number
        self.counts["writes_allocated"] += number
        self.write_fast(job, first, number)
        return number

    def write_fast(self, job: Job, first: int, number: int) -> None:
        """Write consecutive slots."""
        written = self.commits.writes.one(job.parts.another())
        self.fast.submit(Op.WRITE, first * self.size, number * self.size, written)

    def write_around(self, job: Job) -> int:
        """Write blocks to the slow tier; return their number."""
        blocks = [*takewhile(lambda block: block not in self.cached, job.blocks)]
        self.counts["writes_around"] += len(blocks)
        in_turn(self.passing(Op.WRITE, *self.extent(blocks)), job.parts.another())
        return len(blocks)

    def passing(self, op: Op, offset: int, length: int) -> Iterator[Step]:
        """Send a WRITE or FLUSH to the slow tier, past the cache: it puts write-back off."""
        self.around += 1
        yield partial(self.slow.submit, op, offset, length)
        self.around -= 1
        self.quiet = self.clock.now
        if not self.around:
            self.call_writer()

    def unlock(self) -> None:
        """Let go on what waits for the lock, unless it is taken again."""
        if not self.commits.locked and self.frees:
            frees, self.frees = self.frees, None
            frees()
        if not self.commits.locked and self.commits_next:
            self.commits_next = False
            if self.commits.allocated:
                self.commits.begin()
        if not self.commits.locked:
            if self.queue:
                self.server.set()
            self.call_writer()

    # Write-back.

    def check(self) -> None:
        """Start draining if more than high_watermark_blocks are used."""
        if not self.drains and len(self.order) > self.high:
            self.drains = True
            self.call_writer()

    def call_writer(self, at: int | None = None) -> None:
        """Schedule the next pass."""
        if self.drains:
            self.writer.set(at)

    def begin_pass(self) -> Iterator[Step]:
        """Choose copies, if possible."""
        if self.commits.locked or self.copier.is_busy:
            return
        if self.clock.now < self.next_pass:
            self.call_writer(self.next_pass)
            return
        if self.pause_writeback_ns:
            if self.around:
                return
            if self.clock.now < self.quiet + self.pause_writeback_ns:
                self.call_writer(self.quiet + self.pause_writeback_ns)
                return
        if len(self.order) <= self.low:
            self.drains = False
            return
        if self.commits.overwrote and self.commits.writes.number:
            self.commits.locked = True
            yield self.commits.writes.wait
            self.commits.locked = False
            self.choose()
            self.unlock()
        else:
            self.choose()

    def choose(self) -> None:
        """Choose copies, or begin a commit first."""
        oldest = self.oldest()
        if oldest is None:
            return
        if not oldest.committed:
            self.chooses = True
            self.commits.begin()
            return
        self.next_pass = self.clock.now + self.parameters.pass_time_ns
        chosen = 0
        while oldest is not None and oldest.committed:
            copy = list(self.run(oldest))
            for slot in copy:
                slot.flies = True
                del self.order[slot]
            self.copier.to_read.append(copy)
            chosen += len(copy)
            if len(self.order) <= self.low:
                self.drains = False
                break
            if chosen >= PASS_BLOCKS:
                break
            oldest = self.oldest()
        self.copier.work()

    def oldest(self) -> Slot | None:
        """Return the slot to copy first."""
        return next((slot for slot in self.order if slot.older is None), None)

    def run(self, oldest: Slot) -> Iterator[Slot]:
        """Yield the slots that are copied together with the oldest one."""
        yield oldest
        for slot in self.slots[oldest.number + 1 : oldest.number + COPY_BLOCKS]:
            is_next = slot.block == oldest.block + slot.number - oldest.number
            if not is_next or slot.flies or not slot.committed or slot.older is not None:
                return
            yield slot

    def freeing(self) -> Iterator[Step]:
        """Flush the slow tier for all written copies, free their slots, and make that durable."""
        self.flushing = True
        copies, self.landed = self.landed, []
        yield partial(self.slow.submit, Op.FLUSH, 0, 0)
        if self.commits.locked:
            yield partial(setattr, self, "frees")
        for slot in chain.from_iterable(reversed(copies)):
            newest = self.cached[slot.block]
            if newest is slot:
                del self.cached[slot.block]
            else:
                newest.older = None
            slot.flies = False
            self.give_back(slot)
        yield from self.commits.noting_freed()
        self.flushing = False
        if self.landed:
            in_turn(self.freeing())
        self.unlock()
