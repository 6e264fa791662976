"""smq, dm-cache's policy: promotions, demotions, write-backs (DESIGN.md 2.14.4, 2.14.5).

Despite its name (stochastic multiqueue) it uses no random numbers.  Written from a description of
the behaviour of Linux 6.1's dm-cache-policy-smq, including its peculiarities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, columns_of, filled, pool_of
from hybridsim.jit import method, state_machine
from hybridsim.jit.jiffies import JIFFY_NS
from hybridsim.jit.lists import NOTHING, Chains, Fifos, Table, give_back, taken

LEVELS = 64
SIZE, TARGETS_FOR = 0, 1


@state_machine
class MultiQueue(NamedTuple):
    """Lists of nodes by level: entries, and behind these sentinels, which mark places in lists."""

    top_levels: int  # number of levels that share
    in_top: int  #   this number of entries
    entries: int
    level: Ints  # by node
    lists: Chains
    filled: Ints  # entries, without sentinels
    target: Ints
    state: Ints  # [SIZE, TARGETS_FOR]

    @classmethod
    def new(
        cls, entries: int, level: Ints, lists: Chains, top_levels: int = 0, in_top: int = 0
    ) -> MultiQueue:
        """Return a queue of these lists, which are empty."""
        filled, target = np.zeros((2, LEVELS), np.int64)
        state = np.zeros(2, np.int64)
        return cls(top_levels, in_top, entries, level, lists, filled, target, state)

    @method
    def push(self, node):
        """Append a node to the list of its level."""
        self.push_before(NOTHING, node)

    @method
    def push_before(self, mark, node):
        """Insert a node before another one of its level; NOTHING: append it."""
        self.lists.add_before(self.level[node], node, mark)
        self.add(node, 1)

    @method
    def push_first(self, node):
        """Make a node the oldest of its level."""
        self.push_before(self.lists.oldest[self.level[node]], node)

    @method
    def remove(self, node):
        """Remove a node from its list."""
        self.lists.remove(self.level[node], node)
        self.add(node, -1)

    @method
    def add(self, node, number):
        """Add to the counts of entries; sentinels are not counted."""
        if node < self.entries:
            self.filled[self.level[node]] += number
            self.state[SIZE] += number

    @method
    def first_entry(self, node, links):
        """Return the first entry from a node on, or -1."""
        while node >= self.entries:
            node = np.int64(links[node])
        return node

    @method
    def peek(self, levels, crosses):
        """Return the oldest entry of the lowest level below `levels` that has one, or -1.

        With `crosses` False only entries before the first sentinel of each level count.
        """
        for level in range(levels):
            if self.filled[level] == 0:
                continue
            node = self.lists.oldest[level]
            if node < self.entries:
                return node
            if crosses:
                return self.first_entry(node, self.lists.newer)
        return NOTHING

    @method
    def requeue(self, entry, up, first_mark, second_mark):
        """Raise an entry by `up` levels, as the newest of its level.

        The oldest of that level moves to the entry's old level: with marks, before the mark that
        has as many sentinels before it; else as the newest.
        """
        level = self.level[entry]
        risen = min(LEVELS - 1, level + up)
        if risen > level:
            passed = 0
            other = self.lists.oldest[risen]
            while other >= self.entries:
                passed += 1
                other = np.int64(self.lists.newer[other])
            if other != NOTHING:
                self.remove(other)
                self.level[other] = level
                mark = first_mark if passed == 0 else second_mark if passed == 1 else NOTHING
                self.push_before(mark, other)
        self.remove(entry)
        self.level[entry] = risen
        self.push(entry)

    @method
    def move(self, entry, level):
        """Append an entry to the list of another level."""
        self.remove(entry)
        self.level[entry] = level
        self.push(entry)

    @method
    def redistribute(self):
        """Move entries until every level has its target length, from the lowest up."""
        self.set_targets()
        lists = self.lists
        above = 0  # all levels between `level` and `above` are empty
        for level in range(LEVELS - 1):
            above = max(above, level + 1)
            while self.filled[level] < self.target[level]:
                while above < LEVELS and self.filled[above] == 0:
                    above += 1
                if above == LEVELS:
                    break
                self.move(self.first_entry(lists.oldest[above], lists.newer), level)
            while self.filled[level] > self.target[level]:
                self.move(self.first_entry(lists.newest[level], lists.older), level + 1)
                above = level + 1

    @method
    def set_targets(self):
        """Set target lengths, separately for the top levels; only if the size has changed."""
        size = self.state[SIZE]
        if self.state[TARGETS_FOR] == size:
            return
        self.state[TARGETS_FOR] = size
        cut = LEVELS - self.top_levels
        if self.top_levels > 0:
            self.spread(self.in_top, cut, LEVELS)
        self.spread(max(0, size - self.in_top), 0, cut)

    @method
    def spread(self, number, begin, end):
        """Distribute a number over levels begin..end-1; the lowest get one more of the rest."""
        each = number // (end - begin)
        more = number % (end - begin)
        for level in range(begin, end):
            self.target[level] = each + (1 if level - begin < more else 0)


TOP_LEVELS = 8
HIT_LEVEL = 3 * LEVELS // 4
FULL = 256  # unit of the share of hits
POOR, FAIR = FULL // 16, FULL // 8
HITS, MISSES, JUMP, TICKS, USED, THRESHOLD = range(6)
NOBODY_PASSES = LEVELS


@state_machine
class Hotspot(NamedTuple):
    """Coarse blocks of the origin, in a multiqueue."""

    blocks_each: int  # cache blocks per coarse block
    queue: MultiQueue
    table: Table
    hit_epoch: Ints  # by entry: tick of its last hit
    state: Ints  # [HITS ... THRESHOLD]

    @classmethod
    def new(cls, blocks: int, block_bytes: int, origin_bytes: int) -> Hotspot:
        """Return a queue that covers about four times the cache, at most the origin."""
        entries = max(blocks // 4, 1024)
        each = 16
        while each > 1 and each * block_bytes * entries > origin_bytes:
            each //= 2
        in_top = min(entries // 64, blocks // each)
        return cls.empty(each, entries, in_top)

    @classmethod
    def empty(cls, blocks_each: int, entries: int, in_top: int) -> Hotspot:
        """Return an empty queue of that size."""
        lists = Chains.new(entries, LEVELS)
        queue = MultiQueue.new(entries, np.zeros(entries, np.int64), lists, TOP_LEVELS, in_top)
        return filled(
            cls,
            entries,
            blocks_each=blocks_each,
            queue=queue,
            table=Table.new(entries),
            state=np.array([0, 0, 1, 1, 0, NOBODY_PASSES]),
        )

    @method
    def touch(self, block):
        """Record a miss of a cache block; return the new level of its coarse block."""
        queue, state = self.queue, self.state
        level = queue.level
        number = block // self.blocks_each
        entry = self.table.find(number)
        if entry == NOTHING:
            state[MISSES] += 1
            entry = self.take()
            self.table.insert(entry, number)
            queue.push(entry)
            return level[entry]
        if level[entry] >= HIT_LEVEL:
            state[HITS] += 1
        else:
            state[MISSES] += 1
        again = self.hit_epoch[entry] == state[TICKS]
        self.hit_epoch[entry] = state[TICKS]
        queue.requeue(entry, 0 if again else state[JUMP], NOTHING, NOTHING)
        return level[entry]

    @method
    def knows(self, block):
        """Return whether the coarse block of a cache block is in the queue."""
        return self.table.find(block // self.blocks_each) != NOTHING

    @method
    def take(self):
        """Return an entry for a new block: a free one, or the oldest of the lowest level."""
        if self.state[USED] < self.queue.entries:
            self.state[USED] += 1
            return self.state[USED] - 1
        entry = self.queue.peek(LEVELS, True)
        self.queue.remove(entry)
        self.table.remove(entry)
        self.hit_epoch[entry] = 0
        return entry

    @method
    def tick(self):
        """Start a new tick, and set the level from which on a miss is promoted."""
        self.state[TICKS] += 1
        confidence = self.confidence()
        if confidence < POOR:
            self.state[THRESHOLD] = HIT_LEVEL
        elif confidence < FAIR:
            self.state[THRESHOLD] = LEVELS // 2
        else:
            self.state[THRESHOLD] = 0

    @method
    def end_period(self):
        """Redistribute the queue over the levels, and reset the counts of hits."""
        confidence = self.confidence()
        self.state[JUMP] = 4 if confidence < POOR else 2 if confidence < FAIR else 1
        self.queue.redistribute()
        self.state[HITS] = self.state[MISSES] = 0

    @method
    def confidence(self):
        """Return the share of misses whose block was at a high level, in 256ths."""
        total = self.state[HITS] + self.state[MISSES]
        return FULL * self.state[HITS] // total if total > 0 else 0


ITEMS_MAX = 4096
LANES = 8  # parts of a copy in progress at once
PROMOTE, DEMOTE, WRITE_BACK = range(3)
QUEUED, DEMOTING = range(2)
# What an item waits for.
ITS_TURN, HOLDERS, COPIES, HOLDERS_AGAIN, COMMIT, METADATA_LOCK = range(6)
# The requests that the lock of its block excludes, as `level`.
NOBODY, WRITES, EVERYBODY = -1, 0, 1


@state_machine
class Work(NamedTuple):
    """Items, and the lists that they are in."""

    kind: Bytes  # PROMOTE, DEMOTE, WRITE_BACK
    block: Ints  # of the origin
    slot: Ints  # of the cache
    waits_for: Bytes
    lock: Ints  # NOBODY, WRITES or EVERYBODY
    bio: Int32s  # the write that fills the slot instead of a copy, or NOTHING
    copied_bytes: Ints  # of the block: assigned to lanes
    lanes: Int32s  # in progress
    lane_start: Ints  # by item and lane: start of its part within the block
    lane_step: Bytes  # COPY_READ or COPY_WRITE, whichever is next
    lane_next: Int32s  # the next part in its queue, or NOTHING
    parked: Fifos  # by item: bios that wait for the lock
    state: Ints  # [QUEUED, DEMOTIONS]
    following: Int32s  # next in the queue, in the free list, or in a list that waits for a commit
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls) -> Work:
        """Return an empty queue."""
        names = ("lane_start", "lane_step", "lane_next")
        lanes = dict(zip(names, columns_of(cls, ITEMS_MAX * LANES, names), strict=True))
        state = np.array([NOTHING, 0])
        return pool_of(cls, ITEMS_MAX, **lanes, parked=Fifos.new(ITEMS_MAX), state=state)

    @method
    def is_empty(self):
        """Return whether there is no item."""
        return self.free[1] == ITEMS_MAX

    @method
    def has_room(self):
        """Return whether one more item can be allocated."""
        return self.free[1] > 0

    @method
    def take(self, kind, block, slot):
        """Allocate an item."""
        item = taken(self)
        if kind == DEMOTE:
            self.state[DEMOTING] += 1
        self.kind[item] = kind
        self.block[item] = block
        self.slot[item] = slot
        self.waits_for[item] = ITS_TURN
        self.lock[item] = NOBODY
        self.bio[item] = NOTHING
        self.copied_bytes[item] = self.lanes[item] = 0
        return item

    @method
    def queue(self, item):
        """Put an item at the front of the queue."""
        self.following[item] = self.state[QUEUED]
        self.state[QUEUED] = item

    @method
    def pop(self):
        """Remove and return the next item to start, or -1."""
        item = self.state[QUEUED]
        if item != NOTHING:
            self.state[QUEUED] = self.following[item]
        return item

    @method
    def release(self, item):
        """Free an item."""
        if self.kind[item] == DEMOTE:
            self.state[DEMOTING] -= 1
        give_back(self, item)


SECOND = 250  # jiffies
HOTSPOT_PERIOD, CACHE_PERIOD, WRITE_BACK_PERIOD = SECOND, 60 * SECOND, 10 * SECOND
NEXT_HOTSPOT, NEXT_CACHE, NEXT_WRITE_BACK, EPOCH, MARK, FIRST_FREE, FREE_SLOTS = range(7)
# The level of a block that is loaded without a hint: a hash of its slot (`random_level`).
GOLDEN_RATIO, LEVEL_SHIFT = 0x61C88647, 23

# The result of a miss; numbers from 0 on are items: its promotion.
NOT_HOT, WANTED = -2, -1


@state_machine
class Smq(NamedTuple):
    """Entries of the cache by slot, and the hotspot queue."""

    migrates: bool  # False: passthrough
    cleans: bool  # True: the policy `cleaner`, which writes back in busy times too
    demotions_max: int
    hotspot: Hotspot
    table: Table  # block of the origin -> slot
    clean: MultiQueue
    dirty: MultiQueue
    is_dirty: Bytes  # by slot
    item: Int32s  # by slot: its pending item, or NOTHING
    hit_epoch: Ints  # by slot: the period of 60 s of its last hit
    free: Int32s  # ring of free slots, the one freed first is first
    work: Work
    state: Ints  # [NEXT_HOTSPOT ... FREE_SLOTS]

    @classmethod
    def new(cls, blocks: int, block_bytes: int, origin_bytes: int, migrates: bool = True) -> Smq:
        """Return the policy of an empty cache."""
        hotspot = Hotspot.new(blocks, block_bytes, origin_bytes)
        table, levels = Table.new(blocks), np.zeros(blocks + 2 * LEVELS, np.int64)
        return cls.started(0, migrates, hotspot, table, levels, np.arange(blocks))

    @classmethod
    def started(
        cls,
        jiffies: int,
        migrates: bool,
        hotspot: Hotspot,
        table: Table,
        levels: Ints,
        unused: Ints,
    ) -> Smq:
        """Return the policy without work and with empty queues, whose periods start.

        Each level of the queue of dirty entries has two sentinels.
        """
        blocks, lists = len(levels) - 2 * LEVELS, Chains.new(len(levels), LEVELS)
        clean = MultiQueue.new(blocks, levels, lists)
        dirty = MultiQueue.new(blocks, levels, lists.beside())
        for mark in range(2):
            for level in range(LEVELS):
                sentinel = blocks + 2 * level + mark
                levels[sentinel] = level
                dirty.push(sentinel)
        free = np.zeros(blocks, np.int32)
        free[: len(unused)] = unused
        due = (jiffies - 1, jiffies - 1, jiffies - 1 + WRITE_BACK_PERIOD)
        return filled(
            cls,
            blocks,
            migrates=migrates,
            cleans=False,
            demotions_max=blocks * 25 // 100,
            hotspot=hotspot,
            table=table,
            clean=clean,
            dirty=dirty,
            item=np.full(blocks, NOTHING, np.int32),
            free=free,
            work=Work.new(),
            state=np.array([*due, 1, 1, 0, len(unused)]),
        )

    def loaded(
        self, jiffies: int, *, has_hints: bool = True, all_dirty: bool = False, cleans: bool = False
    ) -> Smq:
        """Return the policy after its table is loaded at that time; pending work had no effect.

        Blocks are put before those already at their level, in order of slots; the hotspot queue is
        empty, and all periods restart.

        Without hints the level of each block is a hash of its slot.  `all_dirty`: the dirty bits
        were not written before the cache stopped.  `cleans`: the policy is `cleaner`.
        """
        blocks = len(self.free)
        free = (self.state[FIRST_FREE] + np.arange(self.state[FREE_SLOTS])) % blocks
        levels = self.clean.level.copy()
        if not has_hints:
            hashed = np.arange(blocks, dtype=np.int64) * GOLDEN_RATIO % (1 << 32)
            levels[:blocks] = (hashed >> LEVEL_SHIFT) % LEVELS
        pending = np.flatnonzero(self.item != NOTHING)
        filling = pending[self.work.kind[self.item[pending]] == PROMOTE]
        unused = np.concatenate([self.free[free], filling.astype(np.int32)])
        old = self.hotspot
        hotspot = Hotspot.empty(old.blocks_each, old.queue.entries, old.queue.in_top)
        order = np.sort(unused)
        smq = Smq.started(jiffies, self.migrates, hotspot, self.table, levels, order)
        used = np.setdiff1d(np.arange(blocks), unused)
        smq.is_dirty[used] = 1 if all_dirty else self.is_dirty[used]
        for slot in used:
            (smq.dirty if smq.is_dirty[slot] else smq.clean).push_first(slot)
        return smq._replace(cleans=cleans)

    @method
    def tick(self, now):
        """Update the periods; called with completions, and once a second."""
        state = self.state
        jiffies = now // JIFFY_NS
        if jiffies > state[NEXT_WRITE_BACK]:
            state[NEXT_WRITE_BACK] = jiffies + WRITE_BACK_PERIOD
            state[MARK] = 1 - state[MARK]
            for level in range(LEVELS):
                self.dirty.move(self.sentinel(level, state[MARK]), level)
        self.hotspot.tick()
        if jiffies > state[NEXT_HOTSPOT]:
            state[NEXT_HOTSPOT] = jiffies + HOTSPOT_PERIOD
            self.hotspot.end_period()
        if jiffies > state[NEXT_CACHE]:
            state[NEXT_CACHE] = jiffies + CACHE_PERIOD
            state[EPOCH] += 1
            self.dirty.redistribute()
            self.clean.redistribute()

    @method
    def sentinel(self, level, mark):
        """Return one of the two sentinels of a level."""
        return self.clean.entries + 2 * level + mark

    @method
    def hit(self, slot):
        """Record a hit: the block rises at most once in 60 s."""
        state = self.state
        if self.item[slot] != NOTHING or self.hit_epoch[slot] == state[EPOCH]:
            return
        self.hit_epoch[slot] = state[EPOCH]
        if self.is_dirty[slot] == 0:
            self.clean.requeue(slot, 1, NOTHING, NOTHING)
            return
        level = self.dirty.level[slot]
        other = self.sentinel(level, 1 - state[MARK])
        self.dirty.requeue(slot, 1, other, self.sentinel(level, state[MARK]))

    @method
    def miss(self, block, write, fast, is_pending):
        """Record a miss; return the item of its promotion, WANTED or NOT_HOT.

        `fast`: the caller starts the promotion, it is not queued; a write is then promoted as long
        as there is a free slot.  `is_pending`: the block is being promoted.
        """
        level = self.hotspot.touch(block)
        if not (write and fast and self.state[FREE_SLOTS] > 0):
            if level < self.hotspot.state[THRESHOLD]:
                return NOT_HOT
        if not self.migrates:
            return WANTED
        if self.state[FREE_SLOTS] == 0:
            if self.work.state[DEMOTING] < self.demotions_max:
                self.queue_demotion()
            return WANTED
        if is_pending:
            return WANTED
        if not self.work.has_room():  # the kernel takes a slot before the list refuses the work
            self.give_slot(self.take_slot())
            return WANTED
        item = self.work.take(PROMOTE, block, self.take_slot())
        self.item[self.work.slot[item]] = item
        if not fast:
            self.work.queue(item)
        return item

    @method
    def queue_demotion(self):
        """Queue the demotion of the least used clean block; if there is none, a write-back."""
        slot = self.clean.peek(LEVELS // 2, True)
        if slot == NOTHING:
            self.queue_write_back(False)
        elif self.work.has_room():
            self.clean.remove(slot)
            self.queue(DEMOTE, slot)

    @method
    def queue_write_back(self, crosses):
        """Queue the write-back of the least used dirty block; without `crosses` of an old one.

        A block that the full list refuses becomes the oldest of its level, before the sentinels.
        """
        slot = self.dirty.peek(LEVELS, crosses)
        if slot == NOTHING:
            return
        self.dirty.remove(slot)
        if self.work.has_room():
            self.queue(WRITE_BACK, slot)
        else:
            self.dirty.push_first(slot)

    @method
    def queue(self, kind, slot):
        """Queue work for a cached block."""
        item = self.work.take(kind, self.table.number[slot], slot)
        self.item[slot] = item
        self.work.queue(item)

    @method
    def next_work(self, is_idle):
        """Return the next item to start, or -1.

        Write-backs are only queued in idle times; `cleaner` queues old ones in busy times too.
        """
        if (is_idle or self.cleans) and self.work.state[QUEUED] == NOTHING:
            self.queue_write_back(is_idle)
        return self.work.pop()

    @method
    def promoted(self, slot, block):
        """Add a promoted block, clean."""
        self.item[slot] = NOTHING
        self.table.insert(slot, block)
        self.is_dirty[slot] = 0
        self.clean.level[slot] = LEVELS - 1
        self.clean.push(slot)

    @method
    def demoted(self, slot):
        """Remove a demoted block; its slot is the last in the free ring."""
        self.item[slot] = NOTHING
        self.is_dirty[slot] = 0
        self.table.remove(slot)
        self.give_slot(slot)

    @method
    def written_back(self, slot):
        """Make a block clean, at its level."""
        self.item[slot] = NOTHING
        self.is_dirty[slot] = 0
        self.clean.push(slot)

    @method
    def set_dirty(self, slot):
        """Make a cached block dirty."""
        if self.item[slot] == NOTHING:
            self.clean.remove(slot)
            self.dirty.push(slot)
        self.is_dirty[slot] = 1

    @method
    def take_slot(self):
        """Remove and return the slot that has been free longest."""
        first = self.state[FIRST_FREE]
        self.state[FIRST_FREE] = (first + 1) % len(self.free)
        self.state[FREE_SLOTS] -= 1
        return self.free[first]

    @method
    def give_slot(self, slot):
        """Append a slot to the free ones."""
        blocks = len(self.free)
        self.free[(self.state[FIRST_FREE] + self.state[FREE_SLOTS]) % blocks] = slot
        self.state[FREE_SLOTS] += 1
