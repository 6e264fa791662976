"""The slots of a dm-writecache: the block in each, in the order in which they were taken."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.caches.dmcache.table import Table
from hybridsim.foundation.arrays import Bytes, Int32s, Ints
from hybridsim.jit import method, state_machine

NOTHING = -1
RUN_BLOCKS = 256  # maximum length of one write-back
IS_FREE, HOLDS, FLIES = range(3)
OLDEST, NEWEST, FIRST_FREE, FREE, FLYING = range(5)


@state_machine
class Slots(NamedTuple):
    """Slots by number; a block that is written during its write-back gets a second slot."""

    table: Table  # block -> its newest slot
    what: Bytes  # IS_FREE, HOLDS, FLIES: is being written back
    epoch: Ints  # number of completed commits when the slot was taken
    older: Int32s  # list of slots that hold a block, in the order in which they were taken
    newer: Int32s
    twin: Int32s  # the other slot of the same block, one of them being written back; or NOTHING
    free: Int32s  # ring of free slots, the one free for longest first
    state: Ints  # [OLDEST ... FLYING]

    @classmethod
    def new(cls, blocks: int) -> Slots:
        """Return free slots."""
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

    def restarted(self, uncommitted: int, epoch: int) -> Slots:
        """Return the slots as they are loaded: in order, without those of the epoch `uncommitted`.

        Of two slots of a block the newer one counts.  All get the epoch `epoch`.
        """
        used = np.flatnonzero((self.what != IS_FREE) & (self.epoch != uncommitted))
        # A slot that flies is the older one if it has a twin that is loaded too.
        is_loaded = np.zeros(len(self.what), np.bool_)
        is_loaded[used] = True
        kept = [
            slot
            for slot in used.tolist()
            if self.what[slot] != FLIES or not self._has_newer(slot, is_loaded)
        ]
        slots = Slots.new(len(self.what))
        unused = np.setdiff1d(np.arange(len(self.what)), kept)
        order = np.concatenate([np.array(kept, np.int64), unused])
        slots.free[:] = order
        for slot in kept:
            slots.take(int(self.table.number[slot]), epoch)
        return slots

    def _has_newer(self, slot: int, is_loaded: npt.NDArray[np.bool_]) -> bool:
        twin = int(self.twin[slot])
        return twin != NOTHING and bool(is_loaded[twin])

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
        """Remove a slot from the list."""
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
        """Drop the block of a slot that has no twin."""
        self.unlink(slot)
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
        slot = self.state[OLDEST]
        while slot != NOTHING and self.twin[slot] != NOTHING:
            slot = np.int64(self.newer[slot])
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
    def fly(self, slot):
        """Start the write-back of a slot."""
        self.unlink(slot)
        self.what[slot] = FLIES
        self.state[FLYING] += 1

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
