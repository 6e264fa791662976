"""The slots of a dm-writecache: which block lies where, and which has been there for longest."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.dmcache.table import Table
from hybridsim.foundation.arrays import Bytes, Int32s, Ints
from hybridsim.jit import method, state_machine

NOTHING = -1
RUN_BLOCKS = 256  # most that is written back as one
IS_FREE, HOLDS, FLIES = range(3)
OLDEST, NEWEST, FIRST_FREE, FREE, FLYING = range(5)


@state_machine
class Slots(NamedTuple):
    """Slots by number; a block that is written while its slot flies gets a second one."""

    table: Table  # block -> its newest slot
    what: Bytes  # IS_FREE, HOLDS, FLIES: is being written back
    epoch: Ints  # commits that were over when the slot was taken
    older: Int32s  # those that hold a block, in the order in which they were taken
    newer: Int32s
    twin: Int32s  # the other slot of the same block, of which one flies; or NOTHING
    free: Int32s  # ring, the one free for longest first
    state: Ints  # [OLDEST ... FLYING]

    @classmethod
    def new(cls, blocks: int) -> Slots:
        """Make free slots."""
        older, newer, twin = (np.full(blocks, NOTHING, np.int32) for _ in range(3))
        return cls(
            Table.new(blocks),
            np.zeros(blocks, np.uint8),
            np.zeros(blocks, np.int64),
            older,
            newer,
            twin,
            np.arange(blocks, dtype=np.int32),
            np.array([NOTHING, NOTHING, 0, blocks, 0]),
        )

    @method
    def first_free(self):
        """Return the slot that has been free for longest, or -1."""
        return self.free[self.state[FIRST_FREE]] if self.state[FREE] > 0 else NOTHING

    @method
    def used(self):
        """Return how many slots hold blocks that nobody writes back yet."""
        return len(self.free) - self.state[FREE] - self.state[FLYING]

    @method
    def take(self, block, epoch):
        """Return a slot for a block that has none, or one that flies."""
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
        self.older[slot] = state[NEWEST]
        self.newer[slot] = NOTHING
        if state[NEWEST] == NOTHING:
            state[OLDEST] = slot
        else:
            self.newer[state[NEWEST]] = slot
        state[NEWEST] = slot
        return slot

    @method
    def unlink(self, slot):
        """Take a slot out of the order."""
        older, newer = self.older[slot], self.newer[slot]
        if older == NOTHING:
            self.state[OLDEST] = newer
        else:
            self.newer[older] = newer
        if newer == NOTHING:
            self.state[NEWEST] = older
        else:
            self.older[newer] = older

    @method
    def drop(self, slot):
        """Forget the block of a slot that holds it alone."""
        self.unlink(slot)
        self.table.remove(slot)
        self.give_back(slot)

    @method
    def give_back(self, slot):
        """Let a slot be the last of the free ones."""
        state = self.state
        self.what[slot] = IS_FREE
        self.free[(state[FIRST_FREE] + state[FREE]) % len(self.free)] = slot
        state[FREE] += 1

    @method
    def to_write_back(self):
        """Return the oldest slot of whose block no other one flies, or -1."""
        slot = self.state[OLDEST]
        while slot != NOTHING and self.twin[slot] != NOTHING:
            slot = np.int64(self.newer[slot])
        return slot

    @method
    def run_of(self, slot, epoch):
        """Return how many slots from this one on hold blocks in a row that can fly with it."""
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
    def fly(self, slot):
        """Let a slot be written back."""
        self.unlink(slot)
        self.what[slot] = FLIES
        self.state[FLYING] += 1

    @method
    def landed(self, slot):
        """Free a slot that is written back."""
        self.state[FLYING] -= 1
        if self.twin[slot] == NOTHING:
            self.table.remove(slot)
        else:
            self.twin[self.twin[slot]] = NOTHING
            self.twin[slot] = NOTHING
        self.give_back(slot)
