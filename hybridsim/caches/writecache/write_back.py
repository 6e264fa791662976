"""What a dm-writecache does besides serving requests: commits and write-back (DESIGN.md 2.15).

Slots have blocks, in the order in which they were taken.  Commits make the metadata, and with it
the data, durable; so does what follows a write-back; both hold a lock, for which requests wait.
Data is written back from the high watermark down to the low one, oldest first, by one worker.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled
from hybridsim.foundation.cache_parameters import WritecacheParameters
from hybridsim.foundation.codes import FUA, Op
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.instructions import along
from hybridsim.jit.lists import NOTHING, Chains, Fifos, Table

RUN_BLOCKS = 256  # maximum length of one write-back
IS_FREE, HOLDS, FLIES = range(3)
FIRST_FREE, FREE, FLYING = range(3)


@state_machine
class Slots(NamedTuple):
    """Slots by number; a block that is written during its write-back gets a second slot."""

    table: Table  # block -> its newest slot
    what: Bytes  # IS_FREE, HOLDS, FLIES: is being written back
    epoch: Ints  # number of completed commits when the slot was taken
    order: Chains  # of slots that hold a block: that in which they were taken
    twin: Int32s  # the other slot of the same block, one of them being written back; or NOTHING
    free: Int32s  # ring of free slots, the one free for longest first
    state: Ints  # [FIRST_FREE, FREE, FLYING]

    @classmethod
    def new(cls, blocks: int) -> Slots:
        """Return free slots."""
        return filled(
            cls,
            blocks,
            table=Table.new(blocks),
            order=Chains.new(blocks),
            twin=np.full(blocks, NOTHING, np.int32),
            free=np.arange(blocks, dtype=np.int32),
            state=np.array([0, blocks, 0]),
        )

    def restarted(self, uncommitted: int, epoch: int) -> Slots:
        """Return the slots as they are loaded: in order, without those of the epoch `uncommitted`.

        Of two slots of a block the newer one counts.  All get the epoch `epoch`.
        """
        is_loaded = (self.what != IS_FREE) & (self.epoch != uncommitted)
        # A slot that flies is the older one if it has a twin that is loaded too.
        is_older = (self.what == FLIES) & (self.twin != NOTHING) & is_loaded[self.twin]
        kept = np.flatnonzero(is_loaded & ~is_older)
        slots = Slots.new(len(self.what))
        unused = np.setdiff1d(np.arange(len(self.what)), kept)
        slots.free[:] = np.concatenate([kept, unused])
        for slot in kept.tolist():
            slots.take(int(self.table.number[slot]), epoch)
        return slots

    @method
    def first_free(self):
        """Return the slot that has been free for longest, or -1."""
        return self.free[self.state[FIRST_FREE]] if self.state[FREE] > 0 else NOTHING

    @method
    def used(self):
        """Return how many slots hold blocks that are not being written back."""
        return len(self.free) - self.state[FREE] - self.state[FLYING]

    @method
    def take(self, block, epoch):
        """Return a slot for a block that has none, or only one that is being written back."""
        state = self.state
        slot = self.first_free()
        state[FIRST_FREE] = (state[FIRST_FREE] + 1) % len(self.free)
        state[FREE] -= 1
        flying = self.table.find(block)
        self.twin[slot] = flying
        if flying != NOTHING:
            self.twin[flying] = slot
            self.table.remove(flying)
        self.table.insert(slot, block)
        self.epoch[slot] = epoch
        self.what[slot] = HOLDS
        self.order.add(0, slot)
        return slot

    @method
    def drop(self, slot):
        """Drop the block of a slot that has no twin."""
        self.order.remove(0, slot)
        self.table.remove(slot)
        self.give_back(slot)

    @method
    def give_back(self, slot):
        """Append a slot to the free slots."""
        state = self.state
        self.what[slot] = IS_FREE
        self.free[(state[FIRST_FREE] + state[FREE]) % len(self.free)] = slot
        state[FREE] += 1

    @method
    def to_write_back(self):
        """Return the oldest slot without a twin, or -1."""
        slot = self.order.oldest[0]
        while slot != NOTHING and self.twin[slot] != NOTHING:
            slot = np.int64(self.order.newer[slot])
        return slot

    @method
    def run_of(self, slot, epoch):
        """Return how many adjacent slots from this one on can be written back together."""
        block = self.table.number[slot]
        number = 1
        while number < RUN_BLOCKS and slot + number < len(self.free):
            following = slot + number
            if (
                self.what[following] != HOLDS
                or self.table.number[following] != block + number
                or self.twin[following] != NOTHING
                or self.epoch[following] == epoch
            ):
                break
            number += 1
        return number

    @method
    def landed(self, slot):
        """Free a slot whose write-back is complete."""
        self.state[FLYING] -= 1
        if self.twin[slot] == NOTHING:
            self.table.remove(slot)
        else:
            self.twin[self.twin[slot]] = NOTHING
            self.twin[slot] = NOTHING
        self.give_back(slot)


SUPERBLOCK_BYTES = 4 * 1024
REGION_BYTES = 64 * 1024
REGION_SLOTS = REGION_BYTES // 16  # a slot has 16 bytes of metadata

# Who has the lock, and what they wait for: nobody; a commit; slots that are freed; the writer.
(IDLE, REGIONS, WRITES, FLUSHING, SUPERBLOCK, READS, FREED_REGIONS, FREED_FLUSHING,
 CHOOSING) = range(9)  # fmt: skip
(STAGE, PENDING, EPOCH, UNCOMMITTED, OVERWROTE, WRITES_UNDER_WAY, WAITER, COUNT, HAS_NEW,
 READS_UNDER_WAY) = range(10)  # fmt: skip
UNDER_WAY, COMMITTED, FREED = range(3)  # what `go_on` says: what is over


def metadata_bytes(blocks: int) -> int:
    """Return the bytes of metadata after the blocks on the fast tier."""
    return SUPERBLOCK_BYTES + -(-blocks // REGION_SLOTS) * REGION_BYTES


@state_machine
class Commits(NamedTuple):
    """The lock: while a commit, or what else takes it, is in progress, no request is served."""

    place: int  # of the metadata on the fast tier, bytes
    tag: int  # of its requests to the fast tier
    is_dirty: Bytes  # by region of the metadata: whether a slot of it was freed
    is_new: Bytes  # whether one was allocated, which the next commit writes
    state: Ints  # [STAGE ... READS_UNDER_WAY]

    @classmethod
    def new(cls, blocks: int, block_bytes: int, tag: int) -> Commits:
        """Return commits with nothing to commit."""
        state = np.array([IDLE, 0, 0, 0, 0, 0, NOTHING, 0, 0, 0])
        regions = -(-blocks // REGION_SLOTS)
        return filled(cls, regions, place=blocks * block_bytes, tag=tag, state=state)

    def restarted(self) -> Commits:
        """Return commits with nothing to commit; what is cached is committed."""
        count, epoch = self.state[COUNT], self.state[EPOCH] + 1
        state = np.array([IDLE, 0, epoch, 0, 0, 0, NOTHING, count, 0, 0])
        return filled(Commits, len(self.is_dirty), self, state=state)

    @method
    def note(self, slot):
        """Mark the metadata of a slot that is freed."""
        self.is_dirty[slot // REGION_SLOTS] = 1

    @method
    def begin(self, now, below):
        """Start a commit; return whether there is anything to wait for."""
        state = self.state
        changed = state[UNCOMMITTED] > 0
        if not changed and state[OVERWROTE] == 0:
            return False
        state[COUNT] += 1
        state[UNCOMMITTED] = state[OVERWROTE] = 0
        state[HAS_NEW] = changed
        state[STAGE] = REGIONS
        if not changed or self.write_regions(now, True, below) == 0:
            state[STAGE] = WRITES
            self.flush(now, below)
        return True

    @method
    def on_read(self, now, below):
        """Go on, if freed slots wait for reads and none is under way."""
        state = self.state
        if state[STAGE] == READS and state[READS_UNDER_WAY] == 0:
            state[STAGE] = FREED_REGIONS
            if self.write_regions(now, False, below) == 0:
                state[STAGE] = FREED_FLUSHING
                below.fast.submit(now, self.tag, Op.FLUSH, 0, 0, below.events)

    @method
    def write_regions(self, now, with_new, below):
        """Write each run of regions that changed; return the number of runs."""
        first = NOTHING
        self.state[PENDING] = 0
        regions = len(self.is_dirty)
        for region in range(regions + 1):
            changed = region < regions and (
                self.is_dirty[region] == 1 or (with_new and self.is_new[region] == 1)
            )
            if changed:
                first = region if first == NOTHING else first
                self.is_dirty[region] = 0
                if with_new:
                    self.is_new[region] = 0
            elif first != NOTHING:
                self.state[PENDING] += 1
                at = self.place + SUPERBLOCK_BYTES + first * REGION_BYTES
                length = (region - first) * REGION_BYTES
                below.fast.submit(now, self.tag, Op.WRITE, at, length, below.events)
                first = NOTHING
        return self.state[PENDING]

    @method
    def flush(self, now, below):
        """Flush, if a commit waits for that and no data is being written to the fast tier."""
        if self.state[STAGE] == WRITES and self.state[WRITES_UNDER_WAY] == 0:
            self.state[STAGE] = FLUSHING
            below.fast.submit(now, self.tag, Op.FLUSH, 0, 0, below.events)

    @method
    def go_on(self, now, below):
        """Start the next step; return what is over: UNDER_WAY (nothing), COMMITTED or FREED."""
        state = self.state
        if state[STAGE] == REGIONS or state[STAGE] == FREED_REGIONS:
            state[PENDING] -= 1
            if state[PENDING] > 0:
                return UNDER_WAY
            if state[STAGE] == REGIONS:
                state[STAGE] = WRITES
                self.flush(now, below)
            else:
                state[STAGE] = FREED_FLUSHING
                below.fast.submit(now, self.tag, Op.FLUSH, 0, 0, below.events)
            return UNDER_WAY
        if state[STAGE] == FLUSHING and state[HAS_NEW] == 1:
            state[STAGE] = SUPERBLOCK
            write = Op.WRITE | FUA
            below.fast.submit(now, self.tag, write, self.place, SUPERBLOCK_BYTES, below.events)
            return UNDER_WAY
        if state[STAGE] == SUPERBLOCK:
            state[EPOCH] += 1
        is_freed = state[STAGE] == FREED_FLUSHING
        state[STAGE] = IDLE
        return FREED if is_freed else COMMITTED


QUEUE_MAX = 256  # requests that the queue of a drive takes (nr_requests); then the worker sleeps
READ_BYTES = 1280 * 1024  # maximum of one read (max_sectors_kb)

# In the low bits of a tier request's tag; the number of a slot is in the high bits.
COPY_READ, COPY_WRITE, COPY_FLUSH = 4, 5, 6
TAG_BITS = 3

# Queues of copies: that wait to be read and written, and that are written but not reported.
TO_READ, TO_WRITE, DONE = range(3)
READING, WRITING, SLEEPS = range(3)


@state_machine
class Copier(NamedTuple):
    """Copies in order; each is a run of slots that is identified by the first one.

    There is one worker.  While the disk holds back one of its writes it sleeps: it starts no other
    copy, and reports none that is complete.
    """

    block_bytes: int
    slots: Slots
    run: Ints  # by first slot: length of the run
    read_with: Ints  # by first slot of a read: length of all runs in it
    queues: Fifos  # TO_READ, TO_WRITE, DONE
    next: Int32s  # by first slot: the next one in its queue, or NOTHING
    state: Ints  # [READING, WRITING, SLEEPS]

    @classmethod
    def new(cls, block_bytes: int, slots: Slots) -> Copier:
        """Return a worker without work."""
        parts = {"slots": slots, "queues": Fifos.new(3), "state": np.zeros(3, np.int64)}
        return filled(cls, len(slots.free), block_bytes=block_bytes, **parts)

    @method
    def add(self, slot, number):
        """Add a copy of a run of slots."""
        self.run[slot] = number
        self.queues.append(TO_READ, slot, self.next)

    @method
    def work(self, now, below):
        """Write what is read, then read what is added, until the worker sleeps."""
        state, queues = self.state, self.queues
        while state[SLEEPS] == 0 and state[WRITING] < QUEUE_MAX and not queues.is_empty(TO_WRITE):
            self.write(now, queues.pop(TO_WRITE, self.next), below)
        if state[SLEEPS] == 1 or not queues.is_empty(TO_WRITE):
            return
        while state[READING] < QUEUE_MAX and not queues.is_empty(TO_READ):
            self.read(now, queues.pop(TO_READ, self.next), below)

    @method
    def read(self, now, slot, below):
        """Read a copy, and those behind it that lie in the next slots: the kernel merges them."""
        number = self.run[slot]
        following = self.queues.first[TO_READ]
        while (
            following == slot + number
            and (number + self.run[following]) * self.block_bytes <= READ_BYTES
        ):
            number += self.run[following]
            self.queues.pop(TO_READ, self.next)
            following = self.queues.first[TO_READ]
        self.read_with[slot] = number
        self.state[READING] += 1
        at, tag = slot * self.block_bytes, slot << TAG_BITS | COPY_READ
        below.fast.submit(now, tag, Op.READ, at, number * self.block_bytes, below.events)

    @method
    def on_read(self, first):
        """Queue the copies of a read that is complete."""
        self.state[READING] -= 1
        slot = first
        while slot < first + self.read_with[first]:
            self.queues.append(TO_WRITE, slot, self.next)
            slot += self.run[slot]

    @method
    def write(self, now, slot, below):
        """Write a copy; the worker sleeps if the disk holds the write back."""
        at = self.slots.table.number[slot] * self.block_bytes
        length = min(self.run[slot] * self.block_bytes, below.slow.capacity_bytes - at)
        tag = slot << TAG_BITS | COPY_WRITE
        self.state[WRITING] += 1
        below.slow.submit_background(now, tag, Op.WRITE, at, length, below.events)
        self.state[SLEEPS] = 1 if below.slow.holds_back() else 0

    @method
    def on_written(self, slot):
        """Note that a copy is written."""
        self.state[WRITING] -= 1
        self.queues.append(DONE, slot, self.next)

    @method
    def is_busy(self):
        """Return whether the worker sleeps, or waits for room in a queue: it reports nothing."""
        is_idle = self.queues.is_empty(TO_WRITE) and self.queues.is_empty(TO_READ)
        return self.state[SLEEPS] == 1 or not is_idle


PASS_BLOCKS = 64  # blocks after which a pass ends, and the next one begins (WRITEBACK_LATENCY)

NO, YES = range(2)  # whether to write back
# The number of an event is the routine to run.
SERVER, WRITER, AUTOCOMMIT, COPIER = range(4)

DRAINS, IS_CALLED, AROUND, QUIET_SINCE, LANDED, FLUSHED, BEGUN, FREES, COMMITS = range(9)


@state_machine
class WriteBack(NamedTuple):
    """Chooses what is copied; each copy is a run of slots that is identified by the first one."""

    high_watermark_blocks: int
    low_watermark_blocks: int
    pause_writeback_ns: int
    pass_time_ns: int  # of the CPU, for one pass
    slots: Slots
    commits: Commits
    copier: Copier
    following: Int32s  # by first slot: the next copy that waits for the same flush, or NOTHING
    state: Ints  # [DRAINS ... COMMITS]

    @classmethod
    def new(
        cls,
        block_bytes: int,
        parameters: WritecacheParameters | WriteBack,
        slots: Slots,
        commits: Commits,
    ) -> WriteBack:
        """Return a structure with nothing to copy, with these watermarks and times."""
        p, copier = parameters, Copier.new(block_bytes, slots)
        begun = (-p.pause_writeback_ns, NOTHING, NOTHING, -p.pass_time_ns)
        parts = {"slots": slots, "commits": commits, "copier": copier}
        return filled(cls, len(slots.free), p, **parts, state=np.array([NO, 0, 0, *begun, 0, 0]))

    @method
    def call(self, now, events):
        """Schedule the writer, if it has work."""
        if self.state[DRAINS] != NO:
            self.call_at(now, events)

    @method
    def call_at(self, then, events):
        """Schedule the writer for a time, unless it is scheduled."""
        events.push_once(self.state, IS_CALLED, then, CACHE, WRITER)

    @method
    def check(self, now, events):
        """Start write-back if more than the high watermark is used."""
        if self.state[DRAINS] == NO and self.slots.used() > self.high_watermark_blocks:
            self.state[DRAINS] = YES
            self.call(now, events)

    @method
    def run_writer(self, now, below):
        """Run one pass, or schedule it for when it may begin."""
        state, events = self.state, below.events
        state[IS_CALLED] = 0
        if self.commits.state[STAGE] != IDLE or self.copier.is_busy():
            return
        if now < state[BEGUN] + self.pass_time_ns:
            self.call_at(state[BEGUN] + self.pass_time_ns, events)
            return
        if self.pause_writeback_ns > 0:
            if state[AROUND] > 0:
                return
            if now < state[QUIET_SINCE] + self.pause_writeback_ns:
                self.call_at(state[QUIET_SINCE] + self.pause_writeback_ns, events)
                return
        if self.slots.used() <= self.low_watermark_blocks:
            state[DRAINS] = NO
            return
        commits = self.commits.state
        if commits[OVERWROTE] == 1 and commits[WRITES_UNDER_WAY] > 0:
            commits[STAGE] = CHOOSING
        else:
            self.choose(now, below)

    @method
    def choose(self, now, below):
        """Begin a pass, or first a commit."""
        state = self.state
        slot = self.slots.to_write_back()
        if slot == NOTHING:
            return
        if self.slots.epoch[slot] == self.commits.state[EPOCH]:
            state[COMMITS] = self.commits.begin(now, below)  # then it chooses
            return
        state[BEGUN] = now
        self.run_pass(slot)
        self.work(now, below)

    @method
    def run_pass(self, slot):
        """Choose copies, the oldest slots first."""
        chosen = 0
        while slot != NOTHING and self.slots.epoch[slot] != self.commits.state[EPOCH]:
            number = self.slots.run_of(slot, self.commits.state[EPOCH])
            for each in range(slot, slot + number):
                self.slots.order.remove(0, each)
                self.slots.what[each] = FLIES
                self.slots.state[FLYING] += 1
            self.copier.add(slot, number)
            chosen += number
            if self.slots.used() <= self.low_watermark_blocks:
                self.state[DRAINS] = NO
                return
            if chosen >= PASS_BLOCKS:
                return
            slot = self.slots.to_write_back()

    # Copies.

    @method
    def work(self, now, below):
        """Let the worker go on, take the copies that it reports, and call the writer."""
        self.copier.work(now, below)
        if self.copier.is_busy():
            return
        queues = self.copier.queues
        while not queues.is_empty(DONE):
            self.written(now, queues.pop(DONE, self.copier.next), below)
        self.call(now, below.events)

    @method
    def written(self, now, slot, below):
        """Queue a written copy for a flush; one flush is in progress at a time."""
        self.following[slot] = self.state[LANDED]
        self.state[LANDED] = slot
        if self.state[FLUSHED] == NOTHING:
            self.flush(now, below)

    @method
    def flush(self, now, below):
        """Flush the slow tier for all queued copies."""
        self.state[FLUSHED] = self.state[LANDED]
        self.state[LANDED] = NOTHING
        below.slow.submit(now, COPY_FLUSH, Op.FLUSH, 0, 0, below.events)

    @method
    def flushed(self, now, below):
        """Free the slots of the flushed copies, once the lock is free."""
        if self.commits.state[STAGE] == IDLE:
            self.free_flushed(now, below)
        else:
            self.state[FREES] = 1

    @method
    def free_flushed(self, now, below):
        """Free the slots of the flushed copies, the copy written last first."""
        self.state[FREES] = 0
        for slot in along(self.state[FLUSHED], self.following):
            for each in range(slot, slot + self.copier.run[slot]):
                self.slots.landed(each)
                self.commits.note(each)
        self.commits.state[STAGE] = READS
        self.commits.on_read(now, below)
