"""Work in the background: promotions, demotions and write-backs, queued or running.

The most recently queued is begun first, and there are at most 4,096 (DESIGN.md 2.14.6).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, free_list
from hybridsim.jit import method, state_machine

NOTHING = -1
ITEMS_MAX = 4096
LANES = 8  # parts of a copy that are under way at once
PROMOTE, DEMOTE, WRITE_BACK = range(3)
FREE, USED, QUEUED, DEMOTIONS = range(4)
# What an item waits for.
ITS_TURN, HOLDERS, COPIES, HOLDERS_AGAIN, COMMIT = range(5)
# Whom the lock of its block keeps out, as `level`.
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
    first_parked: Int32s  # bios that the lock keeps out
    last_parked: Int32s
    copied_bytes: Ints  # of the block: handed out to lanes
    lanes: Int32s  # under way
    lane_start: Ints  # by item and lane: begin of its part within the block
    following: Int32s  # in the queue, in the list of the free, or of those that wait for a commit
    state: Ints  # [FREE, USED, QUEUED, DEMOTIONS]

    @classmethod
    def new(cls) -> Work:
        """Have nothing to do."""
        kinds = (
            *(np.uint8, np.int64, np.int64, np.uint8, np.int64),
            *(np.int32, np.int32, np.int32, np.int64, np.int32),
        )
        columns = (np.zeros(ITEMS_MAX, kind) for kind in kinds)
        starts = np.zeros(ITEMS_MAX * LANES, np.int64)
        state = np.array([0, 0, NOTHING, 0])
        return cls._make([*columns, starts, free_list(ITEMS_MAX), state])

    @method
    def has_room(self):
        """Tell whether one more item is taken."""
        return self.state[USED] < ITEMS_MAX

    @method
    def take(self, kind, block, slot):
        """Return a new item."""
        item = self.state[FREE]
        self.state[FREE] = self.following[item]
        self.state[USED] += 1
        if kind == DEMOTE:
            self.state[DEMOTIONS] += 1
        self.kind[item] = kind
        self.block[item] = block
        self.slot[item] = slot
        self.waits_for[item] = ITS_TURN
        self.lock[item] = NOBODY
        self.bio[item] = NOTHING
        self.first_parked[item] = NOTHING
        self.copied_bytes[item] = 0
        self.lanes[item] = 0
        return item

    @method
    def queue(self, item):
        """Let an item be the next to begin."""
        self.following[item] = self.state[QUEUED]
        self.state[QUEUED] = item

    @method
    def pop(self):
        """Return the item to begin, or -1."""
        item = self.state[QUEUED]
        if item != NOTHING:
            self.state[QUEUED] = self.following[item]
        return item

    @method
    def release(self, item):
        """Give an item back."""
        if self.kind[item] == DEMOTE:
            self.state[DEMOTIONS] -= 1
        self.following[item] = self.state[FREE]
        self.state[FREE] = item
        self.state[USED] -= 1
