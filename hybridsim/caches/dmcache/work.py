"""Background work: promotions, demotions and write-backs, queued or running.

The item queued last is started first, and there are at most 4,096 (DESIGN.md 2.14.5).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, free_list
from hybridsim.jit import method, state_machine

NOTHING = -1
ITEMS_MAX = 4096
LANES = 8  # parts of a copy in progress at once
PROMOTE, DEMOTE, WRITE_BACK = range(3)
FREE, USED, QUEUED, DEMOTIONS = range(4)
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
    first_parked: Int32s  # bios that wait for the lock
    last_parked: Int32s
    copied_bytes: Ints  # of the block: assigned to lanes
    lanes: Int32s  # in progress
    lane_start: Ints  # by item and lane: start of its part within the block
    lane_step: Bytes  # COPY_READ or COPY_WRITE, whichever is next
    lane_next: Int32s  # the next part in its queue, or NOTHING
    following: Int32s  # next in the queue, in the free list, or in a list that waits for a commit
    state: Ints  # [FREE, USED, QUEUED, DEMOTIONS]

    @classmethod
    def new(cls) -> Work:
        """Return an empty queue."""
        kinds = (
            *(np.uint8, np.int64, np.int64, np.uint8, np.int64),
            *(np.int32, np.int32, np.int32, np.int64, np.int32),
        )
        columns = (np.zeros(ITEMS_MAX, kind) for kind in kinds)
        starts = np.zeros(ITEMS_MAX * LANES, np.int64)
        state = np.array([0, 0, NOTHING, 0])
        steps, links = np.zeros(len(starts), np.uint8), np.zeros(len(starts), np.int32)
        return cls._make([*columns, starts, steps, links, free_list(ITEMS_MAX), state])

    @method
    def has_room(self):
        """Return whether one more item can be allocated."""
        return self.state[USED] < ITEMS_MAX

    @method
    def take(self, kind, block, slot):
        """Allocate an item."""
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
            self.state[DEMOTIONS] -= 1
        self.following[item] = self.state[FREE]
        self.state[FREE] = item
        self.state[USED] -= 1
