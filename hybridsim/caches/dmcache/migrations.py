"""The background work of dm-cache: locks, copies, commits (DESIGN.md 2.14.2, 2.14.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.dmcache.bios import COMMITTED, Bios, Cells, Fifo
from hybridsim.caches.dmcache.discards import Discards
from hybridsim.caches.dmcache.smq import Smq
from hybridsim.caches.dmcache.work import (
    COMMIT,
    COPIES,
    DEMOTE,
    EVERYBODY,
    HOLDERS,
    HOLDERS_AGAIN,
    LANES,
    METADATA_LOCK,
    PROMOTE,
    WRITE_BACK,
    WRITES,
)
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.cache_parameters import DmCacheParameters
from hybridsim.foundation.codes import DmMode, Op, Restart
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import JIFFY_NS

NOTHING = -1
IDLE_JIFFIES = 250
SENT_MAX = 256  # requests of the copier under way: nr_requests of a queue
LOG_BYTES, SUPERBLOCK_BYTES = 16 * 1024, 4 * 1024
METADATA_BYTES = LOG_BYTES + SUPERBLOCK_BYTES  # after the blocks, on the fast tier

READ, WRITE, FLUSH = int(Op.READ), int(Op.WRITE), int(Op.FLUSH)
PASSTHROUGH = int(DmMode.PASSTHROUGH)

# A tier request's tag is number << 2 | one of these.
BIO, COPY_READ, COPY_WRITE, METADATA = range(4)
# The number of an event is the worker to run.
WAKER, MIGRATOR, DEFERRER, COPIER, COMMITTER = range(5)

COUNTERS = (
    "read_hits", "read_misses", "write_hits", "write_misses", "demotions", "promotions",
    "dirty_blocks", "pages_present", "write_backs", "commits",
)  # fmt: skip
(READ_HITS, READ_MISSES, WRITE_HITS, WRITE_MISSES, DEMOTIONS, PROMOTIONS,
 DIRTY, PRESENT, WRITE_BACKS, COMMITS) = range(len(COUNTERS))  # fmt: skip
(ACCOUNTED, IDLE_SINCE, RUNNING, CHANGED, COMMITTING, MIGRATOR_AWAKE, DEFERRER_AWAKE,
 COPIER_SLEEPS, SENT, COMMITTER_AWAKE, MIGRATOR_WAITS) = range(11)  # fmt: skip
# Queues of the copier: parts to begin, parts to read or write, parts that are written.
TO_BEGIN, TO_SEND, WRITTEN = range(3)


@state_machine
class Migrations(NamedTuple):
    """The locks of blocks, and the work in progress for them."""

    block_bytes: int
    blocks: int
    mode: int
    migration_threshold_bytes: int
    worker_delay_ns: int  # from waking a kernel worker to its first step
    part_bytes: int  # maximum length of one read or write of a copy
    smq: Smq
    bios: Bios
    cells: Cells
    holders: Int32s  # by slot: number of bios in flight
    discards: Discards
    deferred: Fifo  # bios for the worker
    waiting_items: Fifo  # for the next commit
    waiting_bios: Fifo
    committing_items: Fifo  # for the commit in progress
    committing_bios: Fifo
    locked_items: Fifo  # wait for the end of the commit to change the metadata
    counts: Ints  # COUNTERS
    first: Ints  # by queue of the copier: item and lane, or NOTHING
    last: Ints
    state: Ints  # [ACCOUNTED ... MIGRATOR_WAITS]

    @classmethod
    def new(cls, parameters: DmCacheParameters, origin_bytes: int, room: int) -> Migrations:
        """Return no work in progress."""
        p = parameters
        block_bytes, blocks, mode = p.block_bytes, p.blocks, int(p.mode)
        parts = (
            block_bytes,
            blocks,
            mode,
            p.migration_threshold_bytes,
            p.worker_delay_ns,
            p.part_bytes,
            Smq.new(blocks, block_bytes, origin_bytes, mode != PASSTHROUGH),
            Bios.new(room),
            Cells.new(room),
            np.zeros(blocks, np.int32),
            Discards.new(block_bytes, origin_bytes),
            *(Fifo.new() for _ in range(6)),
            np.zeros(len(COUNTERS), np.int64),
            np.full(3, NOTHING, np.int64),
            np.full(3, NOTHING, np.int64),
            np.zeros(11, np.int64),
        )
        return cls._make(parts)

    def loaded(self, now_ns: int, how: Restart) -> Migrations:
        """Return the same cache after its table is loaded at that time."""
        smq = self.smq.loaded(
            now_ns // JIFFY_NS,
            has_hints=how == Restart.CLEAN,
            all_dirty=how == Restart.UNCLEAN,
            cleans=how == Restart.CLEANER,
        )
        discards = self.discards
        if how == Restart.UNCLEAN:
            discards = discards._replace(is_discarded=np.zeros_like(discards.is_discarded))
        counts = self.counts.copy()
        counts[DIRTY] = int(smq.is_dirty.sum())
        room = len(self.bios.request)
        return self._replace(
            mode=int(DmMode.WRITETHROUGH) if how == Restart.CLEANER else self.mode,
            smq=smq,
            bios=Bios.new(room),
            cells=Cells.new(len(self.cells.holders)),
            holders=np.zeros(self.blocks, np.int32),
            discards=discards,
            deferred=Fifo.new(),
            waiting_items=Fifo.new(),
            waiting_bios=Fifo.new(),
            committing_items=Fifo.new(),
            committing_bios=Fifo.new(),
            locked_items=Fifo.new(),
            counts=counts,
            first=np.full(3, NOTHING, np.int64),
            last=np.full(3, NOTHING, np.int64),
            state=np.zeros(11, np.int64),
        )

    @method
    def item_of(self, block, slot):
        """Return the pending item of a block, or -1."""
        if slot != NOTHING:
            return self.smq.item[slot]
        cell = self.cells.table.find(block)
        return NOTHING if cell == NOTHING else self.cells.item[cell]

    @method
    def is_held(self, item):
        """Return whether bios are in flight in the block of an item."""
        work = self.smq.work
        if work.kind[item] == PROMOTE:
            return self.cells.holders[self.cells.table.find(work.block[item])] > 0
        return self.holders[work.slot[item]] > 0

    # Workers.

    @method
    def wake_migrator(self, now, events):
        """Schedule the worker that starts queued items."""
        if self.state[MIGRATOR_AWAKE] == 0:
            self.state[MIGRATOR_AWAKE] = 1
            events.push(now + self.worker_delay_ns, CACHE, MIGRATOR)

    @method
    def wake_deferrer(self, now, events):
        """Schedule the worker that takes deferred bios."""
        if self.state[DEFERRER_AWAKE] == 0:
            self.state[DEFERRER_AWAKE] = 1
            events.push(now + self.worker_delay_ns, CACHE, DEFERRER)

    @method
    def migrate(self, now, below):
        """Start one item, and schedule the next one at the same time."""
        item = NOTHING
        if self.mode != PASSTHROUGH:
            item = self.smq.next_work(self.is_idle(now))
        if item == NOTHING:
            self.state[MIGRATOR_AWAKE] = 0
            return
        self.state[RUNNING] += 1
        self.smq.work.lock[item] = WRITES
        self.smq.work.waits_for[item] = HOLDERS
        self.go_on(now, item, below)
        self.copy_on(now, below)
        if self.smq.work.waits_for[item] == METADATA_LOCK:
            self.state[MIGRATOR_WAITS] = 1
        else:
            below.events.push(now, CACHE, MIGRATOR)

    @method
    def is_idle(self, now):
        """Return whether write-backs may start: idle for a second, and few copies in progress."""
        if self.state[ACCOUNTED] > 0 or now // JIFFY_NS <= self.state[IDLE_SINCE] + IDLE_JIFFIES:
            return False
        return (self.state[RUNNING] + 1) * self.block_bytes <= self.migration_threshold_bytes

    @method
    def can_write_back(self):
        """Return whether there is anything to write back in idle times."""
        return (
            self.counts[DIRTY] > 0
            and self.mode != PASSTHROUGH
            and (self.smq.cleans or self.block_bytes <= self.migration_threshold_bytes)
        )

    @method
    def account(self, bio):
        """Count a bio during which the cache is not idle."""
        self.bios.accounted[bio] = 1
        self.state[ACCOUNTED] += self.bios.length[bio]

    # One item, from start to end.

    @method
    def overwrite(self, now, item, bio, below):
        """Start a promotion whose data is a write."""
        work = self.smq.work
        work.bio[item] = bio
        work.lock[item] = EVERYBODY
        work.waits_for[item] = HOLDERS
        self.bios.item[bio] = item
        self.go_on(now, item, below)

    @method
    def go_on(self, now, item, below):
        """Continue an item that waited for the bios in its block, if they have ended."""
        work = self.smq.work
        if work.waits_for[item] == HOLDERS and not self.is_held(item):
            if self.copy(now, item, below):
                return
            self.lock_out(item)
        if work.waits_for[item] == HOLDERS_AGAIN and not self.is_held(item):
            self.update(now, item, below)

    @method
    def lock_out(self, item):
        """Lock the block exclusively, and wait until its bios have ended."""
        self.smq.work.lock[item] = EVERYBODY
        self.smq.work.waits_for[item] = HOLDERS_AGAIN

    @method
    def copy(self, now, item, below):
        """Start the copy of the block; return whether there is something to copy.

        If a write provides the data, submit the write instead.
        """
        work, bios = self.smq.work, self.bios
        work.waits_for[item] = COPIES
        bio = work.bio[item]
        if bio != NOTHING:
            self.account(bio)
            at = work.slot[item] * self.block_bytes + bios.offset[bio] % self.block_bytes
            tag = bio << 2 | BIO
            below.fast.submit(now, tag, bios.op[bio], at, bios.length[bio], below.events)
            return True
        needless = work.kind[item] != PROMOTE and self.smq.is_dirty[work.slot[item]] == 0
        if needless or self.discards.has(work.block[item] * self.block_bytes):
            return False
        for lane in range(min(LANES, (self.block_bytes + self.part_bytes - 1) // self.part_bytes)):
            work.lanes[item] += 1
            self.copy_part(item, lane)
        return True

    @method
    def copy_part(self, item, lane):
        """Queue the next part of a block for the copier."""
        work = self.smq.work
        number = item * LANES + lane
        work.lane_start[number] = work.copied_bytes[item]
        work.lane_step[number] = COPY_READ
        self.push(TO_BEGIN, number)
        work.copied_bytes[item] += self.lane_bytes(number)

    # The copier: one kernel thread, which sleeps while the disk holds back one of its writes.

    @method
    def push(self, queue, number):
        """Append a part to a queue."""
        links = self.smq.work.lane_next
        links[number] = NOTHING
        if self.first[queue] == NOTHING:
            self.first[queue] = number
        else:
            links[self.last[queue]] = number
        self.last[queue] = number

    @method
    def pop(self, queue):
        """Remove and return the first part of a queue, which is not empty."""
        number = self.first[queue]
        self.first[queue] = self.smq.work.lane_next[number]
        return number

    @method
    def part_read(self, now, number, below):
        """Queue the write of a part that is read."""
        self.state[SENT] -= 1
        self.smq.work.lane_step[number] = COPY_WRITE
        self.push(TO_SEND, number)
        self.copy_on(now, below)

    @method
    def part_written(self, now, number, below):
        """Queue the end of a part that is written."""
        self.state[SENT] -= 1
        self.push(WRITTEN, number)
        self.copy_on(now, below)

    @method
    def copier_woken(self, now, below):
        """Continue after a write that was held back."""
        self.state[COPIER_SLEEPS] = 0
        self.copy_on(now, below)

    @method
    def copy_on(self, now, below):
        """Let the copier work until its queues are empty or it sleeps."""
        state = self.state
        while True:
            while self.first[TO_SEND] != NOTHING:
                if state[COPIER_SLEEPS] == 1 or state[SENT] == SENT_MAX:
                    return
                number = self.pop(TO_SEND)
                state[SENT] += 1
                self.submit_part(now, number, self.smq.work.lane_step[number], below)
            if state[COPIER_SLEEPS] == 1:
                return
            if self.first[WRITTEN] == NOTHING and self.first[TO_BEGIN] == NOTHING:
                return
            while self.first[WRITTEN] != NOTHING:
                self.end_part(now, self.pop(WRITTEN), below)
            while self.first[TO_BEGIN] != NOTHING:
                self.push(TO_SEND, self.pop(TO_BEGIN))

    @method
    def lane_bytes(self, number):
        """Return the length of the part in a lane, in bytes."""
        return min(self.part_bytes, self.block_bytes - self.smq.work.lane_start[number])

    @method
    def submit_part(self, now, number, what, below):
        """Read a part from its source, or write it to its destination."""
        work = self.smq.work
        item = number // LANES
        place = work.block[item]
        is_fast = (work.kind[item] == PROMOTE) == (what == COPY_WRITE)
        if is_fast:
            place = work.slot[item]
        start = place * self.block_bytes + work.lane_start[number]
        op = READ if what == COPY_READ else WRITE
        length = self.lane_bytes(number)
        tag = np.int64(number) << 2 | what
        if is_fast:
            below.fast.submit(now, tag, op, start, length, below.events)
        elif what == COPY_READ:
            below.slow.submit(now, tag, op, start, length, below.events)
        else:
            below.slow.submit_background(now, tag, op, start, length, below.events)
            self.state[COPIER_SLEEPS] = 1 if below.slow.holds_back() else 0

    @method
    def end_part(self, now, number, below):
        """Copy the next part in this lane; after the last one continue the item."""
        work = self.smq.work
        item = number // LANES
        if work.copied_bytes[item] < self.block_bytes:
            self.copy_part(item, number % LANES)
            return
        work.lanes[item] -= 1
        if work.lanes[item] == 0:
            self.lock_out(item)
            self.go_on(now, item, below)

    @method
    def update(self, now, item, below):
        """Change the mapping; a demotion waits until that is durable."""
        work = self.smq.work
        if work.kind[item] != WRITE_BACK and self.state[COMMITTING] > 0:
            work.waits_for[item] = METADATA_LOCK
            self.locked_items.append(item, work.following)
            return
        if work.kind[item] == PROMOTE:
            self.state[CHANGED] = 1
        elif work.kind[item] == DEMOTE:
            self.state[CHANGED] = 1
            work.waits_for[item] = COMMIT
            self.waiting_items.append(item, work.following)
            self.commit(now, below)
            return
        self.end(now, item, below)

    @method
    def end(self, now, item, below):
        """End an item: update the policy, and resume the bios that its lock kept out."""
        work, smq, counts = self.smq.work, self.smq, self.counts
        slot, kind, block = work.slot[item], work.kind[item], work.block[item]
        if kind == PROMOTE:
            cell = self.cells.table.find(block)
            self.cells.item[cell] = NOTHING
            self.cells.release_unused(cell)
            self.discards.clear(block * self.block_bytes)
            smq.promoted(slot, block)
            counts[PROMOTIONS] += 1
            counts[PRESENT] += 1
        else:
            counts[DIRTY] -= smq.is_dirty[slot]
            if kind == DEMOTE:
                smq.demoted(slot)
                counts[DEMOTIONS] += 1
                counts[PRESENT] -= 1
            else:
                smq.written_back(slot)
                counts[WRITE_BACKS] += 1
        if work.bio[item] == NOTHING:
            self.state[RUNNING] -= 1
        else:
            smq.set_dirty(slot)
            counts[DIRTY] += 1
        bio = work.first_parked[item]
        while bio != NOTHING:
            following = self.bios.following[bio]
            self.deferred.append(bio, self.bios.following)
            self.wake_deferrer(now, below.events)
            bio = following
        work.release(item)
        self.wake_migrator(now, below.events)

    @method
    def park(self, item, bio):
        """Make a bio wait for the end of an item."""
        work = self.smq.work
        self.bios.following[bio] = NOTHING
        if work.first_parked[item] == NOTHING:
            work.first_parked[item] = bio
        else:
            self.bios.following[work.last_parked[item]] = bio
        work.last_parked[item] = bio

    # Commits of the metadata.

    @method
    def commit(self, now, below):
        """Wake the worker that commits; one in progress is followed by another."""
        if self.state[COMMITTER_AWAKE] == 0:
            self.state[COMMITTER_AWAKE] = 1
            if self.state[COMMITTING] == 0:
                self.wake_committer(now, below)

    @method
    def wake_committer(self, now, below):
        """Schedule the worker that commits, which also sleeps during each of its requests."""
        below.events.push(now + self.worker_delay_ns, CACHE, COMMITTER)

    @method
    def commit_on(self, now, below):
        """Begin a commit, or go on with its next step; after the last one unlock the metadata."""
        state = self.state
        if state[COMMITTING] == 0:
            self.begin_commit(now, below)
        elif state[COMMITTING] < 4:
            state[COMMITTING] += 1
            self.commit_step(now, below)
        else:
            state[COMMITTING] = 0
            follows = state[COMMITTER_AWAKE] == 1
            self.unlock_metadata(now, below)
            self.committed(now, below)
            if follows:
                self.begin_commit(now, below)

    @method
    def begin_commit(self, now, below):
        """Start a commit for all that wait for one."""
        self.state[COMMITTER_AWAKE] = 0
        self.committing_items.take_over(self.waiting_items)
        self.committing_bios.take_over(self.waiting_bios)
        if self.state[CHANGED] == 0:
            self.committed(now, below)
            return
        self.state[CHANGED] = 0
        self.state[COMMITTING] = 1
        self.counts[COMMITS] += 1
        self.commit_step(now, below)

    @method
    def unlock_metadata(self, now, below):
        """Continue the items that waited for the end of a commit, and the migrator."""
        while not self.locked_items.is_empty():
            self.update(now, self.locked_items.pop(self.smq.work.following), below)
        if self.state[MIGRATOR_WAITS] == 1:
            self.state[MIGRATOR_WAITS] = 0
            below.events.push(now, CACHE, MIGRATOR)

    @method
    def commit_step(self, now, below):
        """Write the changes, flush, write the superblock, flush."""
        step = self.state[COMMITTING]
        at = self.blocks * self.block_bytes
        if step == 1:
            below.fast.submit(now, METADATA, WRITE, at, LOG_BYTES, below.events)
        elif step == 3:
            at += LOG_BYTES
            below.fast.submit(now, METADATA, WRITE, at, SUPERBLOCK_BYTES, below.events)
        else:
            below.fast.submit(now, METADATA, FLUSH, 0, 0, below.events)

    @method
    def committed(self, now, below):
        """Continue the items and bios that waited for the commit."""
        while not self.committing_items.is_empty():
            item = self.committing_items.pop(self.smq.work.following)
            self.end(now, item, below)
        while not self.committing_bios.is_empty():
            bio = self.committing_bios.pop(self.bios.following)
            self.bios.extra[bio] = COMMITTED
            self.deferred.append(bio, self.bios.following)
            self.wake_deferrer(now, below.events)
