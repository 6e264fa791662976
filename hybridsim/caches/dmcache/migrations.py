"""The background work of dm-cache: bios, locks, copies, commits (DESIGN.md 2.14.2, 2.14.3).

Bios are the parts of requests within one block, items the work that the policy asks for.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.dmcache import smq as policy
from hybridsim.foundation.arrays import Bytes, Int32s, Ints, grown_pool, longer, pool_of
from hybridsim.foundation.codes import DmMode, Op
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import JIFFY_NS
from hybridsim.jit.lists import NOTHING, Table, give_back, taken

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
        bio = taken(self)
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
        item = np.full(capacity, NOTHING, np.int32)
        return pool_of(cls, capacity, table=Table.new(capacity), item=item)

    def grown(self, capacity: int) -> Cells:
        """Return the same cells with room for `capacity`."""
        cells = grown_pool(self, capacity, ("holders",))._replace(
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
            cell = taken(self)
            self.table.insert(cell, block)
            self.holders[cell] = 0
            self.item[cell] = NOTHING
        return cell

    @method
    def release_unused(self, cell):
        """Free a cell if nothing is in progress for its block."""
        if not self.is_used(cell):
            self.table.remove(cell)
            give_back(self, cell)

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
 COPIER_SLEEPS, SENT, COMMITTER_AWAKE, MIGRATOR_WAITS, IS_ARMED, WAKES, SINCE_NS,
 WANTS_TICK) = range(15)  # fmt: skip
AT_FIRST = [*[0] * WANTS_TICK, 1]  # its state
# Queues: bios for the worker; items and bios that wait for the next commit, or for the one in
# progress; items that wait for the end of that to change the metadata; parts for the copier to
# begin, parts to read or write, parts that are written; a part's number is its item and lane.
(DEFERRED, WAITING_ITEMS, WAITING_BIOS, COMMITTING_ITEMS, COMMITTING_BIOS, LOCKED_ITEMS,
 TO_BEGIN, TO_SEND, WRITTEN) = range(9)  # fmt: skip
QUEUES = 9


@kernel
def item_of(cache, block, slot):
    """Return the pending item of a block, or -1."""
    if slot != NOTHING:
        return cache.smq.item[slot]
    cell = cache.cells.table.find(block)
    return NOTHING if cell == NOTHING else cache.cells.item[cell]


@kernel
def is_held(cache, item):
    """Return whether bios are in flight in the block of an item."""
    work = cache.smq.work
    if work.kind[item] == policy.PROMOTE:
        return cache.cells.holders[cache.cells.table.find(work.block[item])] > 0
    return cache.holders[work.slot[item]] > 0


# Workers.


@kernel
def wake_migrator(cache, now, events):
    """Schedule the worker that starts queued items."""
    events.push_once(cache.state, MIGRATOR_AWAKE, now + cache.worker_delay_ns, CACHE, MIGRATOR)


@kernel
def defer(cache, now, bio, events):
    """Leave a bio to the worker that takes deferred ones."""
    cache.queues.append(DEFERRED, bio, cache.bios.following)
    events.push_once(cache.state, DEFERRER_AWAKE, now + cache.worker_delay_ns, CACHE, DEFERRER)


@kernel
def migrate(cache, now, below):
    """Start one item, and schedule the next one at the same time."""
    item = NOTHING
    if cache.mode != DmMode.PASSTHROUGH:
        item = cache.smq.next_work(is_idle(cache, now))
    if item == NOTHING:
        cache.state[MIGRATOR_AWAKE] = 0
        return
    cache.state[RUNNING] += 1
    cache.smq.work.lock[item] = policy.WRITES
    cache.smq.work.waits_for[item] = policy.HOLDERS
    go_on(cache, now, item, below)
    copy_on(cache, now, below)
    if cache.smq.work.waits_for[item] == policy.METADATA_LOCK:
        cache.state[MIGRATOR_WAITS] = 1
    else:
        below.events.push(now, CACHE, MIGRATOR)


@kernel
def is_idle(cache, now):
    """Return whether write-backs may start: idle for a second, and few copies in progress."""
    if cache.state[ACCOUNTED] > 0 or now // JIFFY_NS <= cache.state[IDLE_SINCE] + IDLE_JIFFIES:
        return False
    return (cache.state[RUNNING] + 1) * cache.page_bytes <= cache.migration_threshold_bytes


@kernel
def can_write_back(cache):
    """Return whether there is anything to write back in idle times."""
    return (
        cache.counts[DIRTY] > 0
        and cache.mode != DmMode.PASSTHROUGH
        and (cache.smq.cleans or cache.page_bytes <= cache.migration_threshold_bytes)
    )


@kernel
def account(cache, bio):
    """Count a bio during which the cache is not idle."""
    cache.bios.accounted[bio] = 1
    cache.state[ACCOUNTED] += cache.bios.length[bio]


# One item, from start to end.


@kernel
def overwrite(cache, now, item, bio, below):
    """Start a promotion whose data is a write."""
    work = cache.smq.work
    work.bio[item] = bio
    work.lock[item] = policy.EVERYBODY
    work.waits_for[item] = policy.HOLDERS
    cache.bios.item[bio] = item
    go_on(cache, now, item, below)


@kernel
def go_on(cache, now, item, below):
    """Continue an item that waited for the bios in its block, if they have ended."""
    work = cache.smq.work
    if work.waits_for[item] == policy.HOLDERS and not is_held(cache, item):
        if copy(cache, now, item, below):
            return
        lock_out(cache, item)
    if work.waits_for[item] == policy.HOLDERS_AGAIN and not is_held(cache, item):
        update(cache, now, item, below)


@kernel
def lock_out(cache, item):
    """Lock the block exclusively, and wait until its bios have ended."""
    cache.smq.work.lock[item] = policy.EVERYBODY
    cache.smq.work.waits_for[item] = policy.HOLDERS_AGAIN


@kernel
def copy(cache, now, item, below):
    """Start the copy of the block; return whether there is something to copy.

    If a write provides the data, submit the write instead.
    """
    work, bios = cache.smq.work, cache.bios
    work.waits_for[item] = policy.COPIES
    bio = work.bio[item]
    if bio != NOTHING:
        account(cache, bio)
        at = work.slot[item] * cache.page_bytes + bios.offset[bio] % cache.page_bytes
        tag = bio << 2 | BIO
        below.fast.submit(now, tag, bios.op[bio], at, bios.length[bio], below.events)
        return True
    needless = work.kind[item] != policy.PROMOTE and cache.smq.is_dirty[work.slot[item]] == 0
    if needless or cache.discards.has(work.block[item] * cache.page_bytes):
        return False
    parts = (cache.page_bytes + cache.part_bytes - 1) // cache.part_bytes
    for lane in range(min(policy.LANES, parts)):
        work.lanes[item] += 1
        copy_part(cache, item, lane)
    return True


@kernel
def copy_part(cache, item, lane):
    """Queue the next part of a block for the copier."""
    work = cache.smq.work
    number = item * policy.LANES + lane
    work.lane_start[number] = work.copied_bytes[item]
    work.lane_step[number] = COPY_READ
    cache.queues.append(TO_BEGIN, number, work.lane_next)
    work.copied_bytes[item] += lane_bytes(cache, number)


# The copier: one kernel thread, which sleeps while the disk holds back one of its writes.


@kernel
def part_done(cache, now, number, what, below):
    """Queue the write of a part that is read, or the end of one that is written."""
    work = cache.smq.work
    cache.state[SENT] -= 1
    work.lane_step[number] = COPY_WRITE
    cache.queues.append(TO_SEND if what == COPY_READ else WRITTEN, number, work.lane_next)
    copy_on(cache, now, below)


@kernel
def copy_on(cache, now, below):
    """Let the copier work until its queues are empty or it sleeps."""
    state, queues, links = cache.state, cache.queues, cache.smq.work.lane_next
    while True:
        while not queues.is_empty(TO_SEND):
            if state[COPIER_SLEEPS] == 1 or state[SENT] == SENT_MAX:
                return
            number = queues.pop(TO_SEND, links)
            state[SENT] += 1
            submit_part(cache, now, number, cache.smq.work.lane_step[number], below)
        if state[COPIER_SLEEPS] == 1:
            return
        if queues.is_empty(WRITTEN) and queues.is_empty(TO_BEGIN):
            return
        while not queues.is_empty(WRITTEN):
            end_part(cache, now, queues.pop(WRITTEN, links), below)
        queues.move_all(TO_BEGIN, TO_SEND, links)


@kernel
def lane_bytes(cache, number):
    """Return the length of the part in a lane, in bytes."""
    return min(cache.part_bytes, cache.page_bytes - cache.smq.work.lane_start[number])


@kernel
def submit_part(cache, now, number, what, below):
    """Read a part from its source, or write it to its destination."""
    work = cache.smq.work
    item = number // policy.LANES
    place = work.block[item]
    is_fast = (work.kind[item] == policy.PROMOTE) == (what == COPY_WRITE)
    if is_fast:
        place = work.slot[item]
    start = place * cache.page_bytes + work.lane_start[number]
    op = Op.READ if what == COPY_READ else Op.WRITE
    length = lane_bytes(cache, number)
    tag = np.int64(number) << 2 | what
    if is_fast:
        below.fast.submit(now, tag, op, start, length, below.events)
    elif what == COPY_READ:
        below.slow.submit(now, tag, op, start, length, below.events)
    else:
        below.slow.submit_background(now, tag, op, start, length, below.events)
        cache.state[COPIER_SLEEPS] = 1 if below.slow.holds_back() else 0


@kernel
def end_part(cache, now, number, below):
    """Copy the next part in this lane; after the last one continue the item."""
    work = cache.smq.work
    item = number // policy.LANES
    if work.copied_bytes[item] < cache.page_bytes:
        copy_part(cache, item, number % policy.LANES)
        return
    work.lanes[item] -= 1
    if work.lanes[item] == 0:
        lock_out(cache, item)
        go_on(cache, now, item, below)


@kernel
def update(cache, now, item, below):
    """Change the mapping; a demotion waits until that is durable."""
    work = cache.smq.work
    if work.kind[item] != policy.WRITE_BACK and cache.state[COMMITTING] > 0:
        work.waits_for[item] = policy.METADATA_LOCK
        cache.queues.append(LOCKED_ITEMS, item, work.following)
        return
    if work.kind[item] == policy.PROMOTE:
        cache.state[CHANGED] = 1
    elif work.kind[item] == policy.DEMOTE:
        cache.state[CHANGED] = 1
        work.waits_for[item] = policy.COMMIT
        cache.queues.append(WAITING_ITEMS, item, work.following)
        commit(cache, now, below)
        return
    end(cache, now, item, below)


@kernel
def end(cache, now, item, below):
    """End an item: update the policy, and resume the bios that its lock kept out."""
    work, smq, counts = cache.smq.work, cache.smq, cache.counts
    slot, kind, block = work.slot[item], work.kind[item], work.block[item]
    if kind == policy.PROMOTE:
        cell = cache.cells.table.find(block)
        cache.cells.item[cell] = NOTHING
        cache.cells.release_unused(cell)
        cache.discards.clear(block * cache.page_bytes)
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
        cache.state[RUNNING] -= 1
    else:
        smq.set_dirty(slot)
        counts[DIRTY] += 1
    while not work.parked.is_empty(item):
        defer(cache, now, work.parked.pop(item, cache.bios.following), below.events)
    work.release(item)
    wake_migrator(cache, now, below.events)


# Commits of the metadata.


@kernel
def commit(cache, now, below):
    """Wake the worker that commits; one in progress is followed by another."""
    if cache.state[COMMITTER_AWAKE] == 0:
        cache.state[COMMITTER_AWAKE] = 1
        if cache.state[COMMITTING] == 0:
            wake_committer(cache, now, below)


@kernel
def wake_committer(cache, now, below):
    """Schedule the worker that commits, which also sleeps during each of its requests."""
    below.events.push(now + cache.worker_delay_ns, CACHE, COMMITTER)


@kernel
def commit_on(cache, now, below):
    """Begin a commit, or go on with its next step; after the last one unlock the metadata."""
    state = cache.state
    if state[COMMITTING] == 0:
        begin_commit(cache, now, below)
    elif state[COMMITTING] < 4:
        state[COMMITTING] += 1
        commit_step(cache, now, below)
    else:
        state[COMMITTING] = 0
        follows = state[COMMITTER_AWAKE] == 1
        while not cache.queues.is_empty(LOCKED_ITEMS):
            update(cache, now, cache.queues.pop(LOCKED_ITEMS, cache.smq.work.following), below)
        if cache.state[MIGRATOR_WAITS] == 1:
            cache.state[MIGRATOR_WAITS] = 0
            below.events.push(now, CACHE, MIGRATOR)
        committed(cache, now, below)
        if follows:
            begin_commit(cache, now, below)


@kernel
def begin_commit(cache, now, below):
    """Start a commit for all that wait for one."""
    cache.state[COMMITTER_AWAKE] = 0
    cache.queues.move_all(WAITING_ITEMS, COMMITTING_ITEMS, cache.smq.work.following)
    cache.queues.move_all(WAITING_BIOS, COMMITTING_BIOS, cache.bios.following)
    if cache.state[CHANGED] == 0:
        committed(cache, now, below)
        return
    cache.state[CHANGED] = 0
    cache.state[COMMITTING] = 1
    cache.counts[COMMITS] += 1
    commit_step(cache, now, below)


@kernel
def commit_step(cache, now, below):
    """Write the changes, flush, write the superblock, flush."""
    step = cache.state[COMMITTING]
    at = cache.blocks * cache.page_bytes
    if step == 1:
        below.fast.submit(now, METADATA, Op.WRITE, at, LOG_BYTES, below.events)
    elif step == 3:
        at += LOG_BYTES
        below.fast.submit(now, METADATA, Op.WRITE, at, SUPERBLOCK_BYTES, below.events)
    else:
        below.fast.submit(now, METADATA, Op.FLUSH, 0, 0, below.events)


@kernel
def committed(cache, now, below):
    """Continue the items and bios that waited for the commit."""
    while not cache.queues.is_empty(COMMITTING_ITEMS):
        item = cache.queues.pop(COMMITTING_ITEMS, cache.smq.work.following)
        end(cache, now, item, below)
    while not cache.queues.is_empty(COMMITTING_BIOS):
        bio = cache.queues.pop(COMMITTING_BIOS, cache.bios.following)
        cache.bios.extra[bio] = COMMITTED
        defer(cache, now, bio, below.events)
