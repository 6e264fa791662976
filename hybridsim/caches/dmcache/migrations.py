"""The background work of dm-cache: bios, locks, copies, commits (DESIGN.md 2.14.2, 2.14.3).

Bios are the parts of requests within one block, items the work that the policy asks for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.dmcache import smq as policy
from hybridsim.caches.dmcache.smq import Smq
from hybridsim.caches.lists import NOTHING, Fifos, Table, give_back, taken
from hybridsim.foundation.arrays import (
    Bytes,
    Int32s,
    Ints,
    free_list,
    longer,
    pool_of,
    with_room,
)
from hybridsim.foundation.cache_parameters import DmCacheParameters
from hybridsim.foundation.codes import DmMode, Op, Restart
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import JIFFY_NS

# Special treatment of a bio.
PLAIN, MARKED, COMMITTED = 0, 1, 2
# The lock that it holds.
NONE, OF_SLOT, OF_CELL = range(3)


@state_machine
class Bios(NamedTuple):
    """A pool of bios in flight."""

    request: Int32s  # slot of the request
    op: Bytes
    offset: Ints
    length: Ints
    parts: Int32s  # number of its parts that the tiers have not completed
    extra: Bytes  # PLAIN, MARKED (its completion is a tick), COMMITTED (it waited for a commit)
    accounted: Bytes  # 1: the cache is not idle while it is in flight
    holds: Bytes  # NONE, OF_SLOT, OF_CELL
    place: Int32s  # the slot or the cell
    item: Int32s  # the promotion that this write performs, or NOTHING
    following: Int32s  # next in its list, or in the free list
    free: Ints  # [first free, number of free]

    @method
    def take(self, request, op, offset, length):
        """Allocate a bio."""
        bio = taken(self.free, self.following)
        self.request[bio] = request
        self.op[bio] = op
        self.offset[bio] = offset
        self.length[bio] = length
        self.parts[bio] = 1
        self.extra[bio] = PLAIN
        self.accounted[bio] = 0
        self.holds[bio] = NONE
        self.item[bio] = NOTHING
        return bio

    @method
    def release(self, bio):
        """Free a bio."""
        give_back(self.free, self.following, bio)

    @method
    def are_none(self):
        """Return whether no bio is in flight."""
        return self.free[1] == len(self.request)


@state_machine
class Cells(NamedTuple):
    """Blocks that are not cached, with a bio or a promotion in progress."""

    table: Table  # block -> cell
    holders: Int32s
    item: Int32s  # the promotion, or NOTHING
    following: Int32s  # free list
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls, capacity: int) -> Cells:
        """Return room for `capacity` cells."""
        return cls(
            Table.new(capacity),
            np.zeros(capacity, np.int32),
            np.full(capacity, NOTHING, np.int32),
            free_list(capacity),
            np.array([0, capacity]),
        )

    def grown(self, capacity: int) -> Cells:
        """Return the same cells with room for `capacity`."""
        cells = with_room(self, capacity, ("holders",), "following")._replace(
            table=Table.new(capacity), item=longer(self.item, capacity, NOTHING)
        )
        for cell in range(len(self.holders)):
            if self.is_used(cell):
                cells.table.insert(cell, int(self.table.number[cell]))
        return cells

    @method
    def of(self, block):
        """Return the cell of a block; allocate one if there is none."""
        cell = self.table.find(block)
        if cell == NOTHING:
            cell = taken(self.free, self.following)
            self.table.insert(cell, block)
            self.holders[cell] = 0
            self.item[cell] = NOTHING
        return cell

    @method
    def release_unused(self, cell):
        """Free a cell if nothing is in progress for its block."""
        if not self.is_used(cell):
            self.table.remove(cell)
            give_back(self.free, self.following, cell)

    @method
    def is_used(self, cell):
        """Return whether something is in progress for its block."""
        return self.holders[cell] > 0 or self.item[cell] != NOTHING


DISCARD_BLOCKS_MAX = 16_384


@state_machine
class Discards(NamedTuple):
    """A bit for each discard block."""

    discard_bytes: int
    is_discarded: Bytes

    @classmethod
    def new(cls, block_bytes: int, origin_bytes: int) -> Discards:
        """Return no discards; the discard block is doubled until there are few enough blocks."""
        discard_bytes = block_bytes
        while origin_bytes // discard_bytes > DISCARD_BLOCKS_MAX:
            discard_bytes *= 2
        blocks = -(-origin_bytes // discard_bytes)
        return cls(discard_bytes, np.zeros(blocks, np.uint8))

    @method
    def has(self, offset):
        """Return whether the block of a byte is discarded."""
        return self.is_discarded[offset // self.discard_bytes] == 1

    @method
    def set(self, offset, length):
        """Mark the blocks that lie completely in a range."""
        first = -(-offset // self.discard_bytes)
        self.is_discarded[first : (offset + length) // self.discard_bytes] = 1

    @method
    def clear(self, offset):
        """Clear the mark of a block that is written."""
        self.is_discarded[offset // self.discard_bytes] = 0


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
# Queues: bios for the worker; items and bios that wait for the next commit, or for the one in
# progress; items that wait for the end of that to change the metadata; parts for the copier to
# begin, parts to read or write, parts that are written.
(DEFERRED, WAITING_ITEMS, WAITING_BIOS, COMMITTING_ITEMS, COMMITTING_BIOS, LOCKED_ITEMS,
 TO_BEGIN, TO_SEND, WRITTEN) = range(9)  # fmt: skip


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
    queues: Fifos  # DEFERRED ... WRITTEN; a part's number is its item and lane
    counts: Ints  # COUNTERS
    state: Ints  # [ACCOUNTED ... MIGRATOR_WAITS]

    @classmethod
    def new(cls, parameters: DmCacheParameters, origin_bytes: int, room: int) -> Migrations:
        """Return no work in progress."""
        p = parameters
        block_bytes, blocks, mode = p.block_bytes, p.blocks, int(p.mode)
        return cls(
            block_bytes,
            blocks,
            mode,
            p.migration_threshold_bytes,
            p.worker_delay_ns,
            p.part_bytes,
            Smq.new(blocks, block_bytes, origin_bytes, mode != PASSTHROUGH),
            pool_of(Bios, room),
            Cells.new(room),
            np.zeros(blocks, np.int32),
            Discards.new(block_bytes, origin_bytes),
            Fifos.new(9),
            np.zeros(len(COUNTERS), np.int64),
            np.zeros(11, np.int64),
        )

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
        return self._replace(
            mode=int(DmMode.WRITETHROUGH) if how == Restart.CLEANER else self.mode,
            smq=smq,
            bios=pool_of(Bios, len(self.bios.request)),
            cells=Cells.new(len(self.cells.holders)),
            holders=np.zeros(self.blocks, np.int32),
            discards=discards,
            queues=Fifos.new(9),
            counts=counts,
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
        if work.kind[item] == policy.PROMOTE:
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
        self.smq.work.lock[item] = policy.WRITES
        self.smq.work.waits_for[item] = policy.HOLDERS
        self.go_on(now, item, below)
        self.copy_on(now, below)
        if self.smq.work.waits_for[item] == policy.METADATA_LOCK:
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
        work.lock[item] = policy.EVERYBODY
        work.waits_for[item] = policy.HOLDERS
        self.bios.item[bio] = item
        self.go_on(now, item, below)

    @method
    def go_on(self, now, item, below):
        """Continue an item that waited for the bios in its block, if they have ended."""
        work = self.smq.work
        if work.waits_for[item] == policy.HOLDERS and not self.is_held(item):
            if self.copy(now, item, below):
                return
            self.lock_out(item)
        if work.waits_for[item] == policy.HOLDERS_AGAIN and not self.is_held(item):
            self.update(now, item, below)

    @method
    def lock_out(self, item):
        """Lock the block exclusively, and wait until its bios have ended."""
        self.smq.work.lock[item] = policy.EVERYBODY
        self.smq.work.waits_for[item] = policy.HOLDERS_AGAIN

    @method
    def copy(self, now, item, below):
        """Start the copy of the block; return whether there is something to copy.

        If a write provides the data, submit the write instead.
        """
        work, bios = self.smq.work, self.bios
        work.waits_for[item] = policy.COPIES
        bio = work.bio[item]
        if bio != NOTHING:
            self.account(bio)
            at = work.slot[item] * self.block_bytes + bios.offset[bio] % self.block_bytes
            tag = bio << 2 | BIO
            below.fast.submit(now, tag, bios.op[bio], at, bios.length[bio], below.events)
            return True
        needless = work.kind[item] != policy.PROMOTE and self.smq.is_dirty[work.slot[item]] == 0
        if needless or self.discards.has(work.block[item] * self.block_bytes):
            return False
        parts = (self.block_bytes + self.part_bytes - 1) // self.part_bytes
        for lane in range(min(policy.LANES, parts)):
            work.lanes[item] += 1
            self.copy_part(item, lane)
        return True

    @method
    def copy_part(self, item, lane):
        """Queue the next part of a block for the copier."""
        work = self.smq.work
        number = item * policy.LANES + lane
        work.lane_start[number] = work.copied_bytes[item]
        work.lane_step[number] = COPY_READ
        self.queues.append(TO_BEGIN, number, work.lane_next)
        work.copied_bytes[item] += self.lane_bytes(number)

    # The copier: one kernel thread, which sleeps while the disk holds back one of its writes.

    @method
    def part_done(self, now, number, what, below):
        """Queue the write of a part that is read, or the end of one that is written."""
        work = self.smq.work
        self.state[SENT] -= 1
        work.lane_step[number] = COPY_WRITE
        self.queues.append(TO_SEND if what == COPY_READ else WRITTEN, number, work.lane_next)
        self.copy_on(now, below)

    @method
    def copy_on(self, now, below):
        """Let the copier work until its queues are empty or it sleeps."""
        state, queues, links = self.state, self.queues, self.smq.work.lane_next
        while True:
            while not queues.is_empty(TO_SEND):
                if state[COPIER_SLEEPS] == 1 or state[SENT] == SENT_MAX:
                    return
                number = queues.pop(TO_SEND, links)
                state[SENT] += 1
                self.submit_part(now, number, self.smq.work.lane_step[number], below)
            if state[COPIER_SLEEPS] == 1:
                return
            if queues.is_empty(WRITTEN) and queues.is_empty(TO_BEGIN):
                return
            while not queues.is_empty(WRITTEN):
                self.end_part(now, queues.pop(WRITTEN, links), below)
            queues.move_all(TO_BEGIN, TO_SEND, links)

    @method
    def lane_bytes(self, number):
        """Return the length of the part in a lane, in bytes."""
        return min(self.part_bytes, self.block_bytes - self.smq.work.lane_start[number])

    @method
    def submit_part(self, now, number, what, below):
        """Read a part from its source, or write it to its destination."""
        work = self.smq.work
        item = number // policy.LANES
        place = work.block[item]
        is_fast = (work.kind[item] == policy.PROMOTE) == (what == COPY_WRITE)
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
        item = number // policy.LANES
        if work.copied_bytes[item] < self.block_bytes:
            self.copy_part(item, number % policy.LANES)
            return
        work.lanes[item] -= 1
        if work.lanes[item] == 0:
            self.lock_out(item)
            self.go_on(now, item, below)

    @method
    def update(self, now, item, below):
        """Change the mapping; a demotion waits until that is durable."""
        work = self.smq.work
        if work.kind[item] != policy.WRITE_BACK and self.state[COMMITTING] > 0:
            work.waits_for[item] = policy.METADATA_LOCK
            self.queues.append(LOCKED_ITEMS, item, work.following)
            return
        if work.kind[item] == policy.PROMOTE:
            self.state[CHANGED] = 1
        elif work.kind[item] == policy.DEMOTE:
            self.state[CHANGED] = 1
            work.waits_for[item] = policy.COMMIT
            self.queues.append(WAITING_ITEMS, item, work.following)
            self.commit(now, below)
            return
        self.end(now, item, below)

    @method
    def end(self, now, item, below):
        """End an item: update the policy, and resume the bios that its lock kept out."""
        work, smq, counts = self.smq.work, self.smq, self.counts
        slot, kind, block = work.slot[item], work.kind[item], work.block[item]
        if kind == policy.PROMOTE:
            cell = self.cells.table.find(block)
            self.cells.item[cell] = NOTHING
            self.cells.release_unused(cell)
            self.discards.clear(block * self.block_bytes)
            smq.promoted(slot, block)
            counts[PROMOTIONS] += 1
            counts[PRESENT] += 1
        else:
            counts[DIRTY] -= smq.is_dirty[slot]
            if kind == policy.DEMOTE:
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
        bio = work.parked.pop(item, self.bios.following)
        while bio != NOTHING:
            self.queues.append(DEFERRED, bio, self.bios.following)
            self.wake_deferrer(now, below.events)
            bio = work.parked.pop(item, self.bios.following)
        work.release(item)
        self.wake_migrator(now, below.events)

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
            while not self.queues.is_empty(LOCKED_ITEMS):
                self.update(now, self.queues.pop(LOCKED_ITEMS, self.smq.work.following), below)
            if self.state[MIGRATOR_WAITS] == 1:
                self.state[MIGRATOR_WAITS] = 0
                below.events.push(now, CACHE, MIGRATOR)
            self.committed(now, below)
            if follows:
                self.begin_commit(now, below)

    @method
    def begin_commit(self, now, below):
        """Start a commit for all that wait for one."""
        self.state[COMMITTER_AWAKE] = 0
        self.queues.move_all(WAITING_ITEMS, COMMITTING_ITEMS, self.smq.work.following)
        self.queues.move_all(WAITING_BIOS, COMMITTING_BIOS, self.bios.following)
        if self.state[CHANGED] == 0:
            self.committed(now, below)
            return
        self.state[CHANGED] = 0
        self.state[COMMITTING] = 1
        self.counts[COMMITS] += 1
        self.commit_step(now, below)

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
        while not self.queues.is_empty(COMMITTING_ITEMS):
            item = self.queues.pop(COMMITTING_ITEMS, self.smq.work.following)
            self.end(now, item, below)
        while not self.queues.is_empty(COMMITTING_BIOS):
            bio = self.queues.pop(COMMITTING_BIOS, self.bios.following)
            self.bios.extra[bio] = COMMITTED
            self.queues.append(DEFERRED, bio, self.bios.following)
            self.wake_deferrer(now, below.events)
