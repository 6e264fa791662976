"""smq, dm-cache's policy: promotions, demotions, write-backs (DESIGN.md 2.14.4, 2.14.5).

Despite its name (stochastic multiqueue) it uses no random numbers.  Written from a description of
the behaviour of Linux 6.1's dm-cache-policy-smq, including its peculiarities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.dmcache.hotspot import THRESHOLD, Hotspot
from hybridsim.caches.dmcache.multiqueue import LEVELS, Links, MultiQueue
from hybridsim.caches.dmcache.table import Table
from hybridsim.caches.dmcache.work import (
    DEMOTE,
    DEMOTIONS,
    PROMOTE,
    QUEUED,
    WRITE_BACK,
    Work,
)
from hybridsim.foundation.arrays import Bytes, Int32s, Ints
from hybridsim.jit import method, state_machine
from hybridsim.jit.jiffies import JIFFY_NS

NOTHING = -1
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
        dirty = MultiQueue.new(Links.new(blocks, 2 * LEVELS))
        put_sentinels(dirty)
        return cls(
            migrates,
            False,
            blocks * 25 // 100,
            Hotspot.new(blocks, block_bytes, origin_bytes),
            Table.new(blocks),
            MultiQueue.new(dirty.nodes),
            dirty,
            np.zeros(blocks, np.uint8),
            np.full(blocks, NOTHING, np.int32),
            np.zeros(blocks, np.int64),
            np.arange(blocks, dtype=np.int32),
            Work.new(),
            np.array([-1, -1, WRITE_BACK_PERIOD - 1, 1, 1, 0, blocks]),
        )

    def reloaded(self, jiffies: int) -> Smq:
        """Return the policy as it is after its table is loaded from the medium at that time.

        Blocks keep dirty state and level; each is put before those already at its level, in order
        of slots; the hotspot queue is empty, and all periods restart.
        """
        return self.loaded(jiffies)

    def loaded(
        self, jiffies: int, *, has_hints: bool = True, all_dirty: bool = False, cleans: bool = False
    ) -> Smq:
        """Return the policy after its table is loaded at that time; pending work had no effect.

        Without hints the level of each block is a hash of its slot.  `all_dirty`: the dirty bits
        were not written before the cache stopped.  `cleans`: the policy is `cleaner`.
        """
        blocks = len(self.free)
        free = (self.state[FIRST_FREE] + np.arange(self.state[FREE_SLOTS])) % blocks
        nodes = Links.new(blocks, 2 * LEVELS)
        nodes.level[:blocks] = self.clean.nodes.level[:blocks]
        if not has_hints:
            hashed = np.arange(blocks, dtype=np.int64) * GOLDEN_RATIO % (1 << 32)
            nodes.level[:blocks] = (hashed >> LEVEL_SHIFT) % LEVELS
        clean, dirty = MultiQueue.new(nodes), MultiQueue.new(nodes)
        put_sentinels(dirty)
        pending = np.flatnonzero(self.item != NOTHING)
        filling = pending[self.work.kind[self.item[pending]] == PROMOTE]
        unused = np.concatenate([self.free[free], filling.astype(np.int32)])
        used = np.setdiff1d(np.arange(blocks), unused)
        is_dirty = np.zeros(blocks, np.uint8)
        is_dirty[used] = 1 if all_dirty else self.is_dirty[used]
        for slot in used:
            (dirty if is_dirty[slot] else clean).push_first(slot)
        order = np.zeros(blocks, np.int32)
        order[: len(unused)] = np.sort(unused)
        due = (jiffies - 1, jiffies - 1, jiffies - 1 + WRITE_BACK_PERIOD)
        return self._replace(
            cleans=cleans,
            hotspot=self.hotspot.forgotten(),
            clean=clean,
            dirty=dirty,
            is_dirty=is_dirty,
            item=np.full(blocks, NOTHING, np.int32),
            work=Work.new(),
            hit_epoch=np.zeros(blocks, np.int64),
            free=order,
            state=np.array([*due, 1, 1, 0, len(unused)]),
        )

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
        return self.clean.nodes.entries + 2 * level + mark

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
        level = self.dirty.nodes.level[slot]
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
            if self.work.state[DEMOTIONS] < self.demotions_max:
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
        self.clean.nodes.level[slot] = LEVELS - 1
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


def put_sentinels(dirty: MultiQueue) -> None:
    """Put the two sentinels of each level into empty lists; their nodes come after the entries."""
    nodes = dirty.nodes
    for mark in range(2):
        for level in range(LEVELS):
            sentinel = nodes.entries + 2 * level + mark
            nodes.level[sentinel] = level
            dirty.push(sentinel)
