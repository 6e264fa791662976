"""The place of new data: open buckets, where data of one task or stream is kept together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache.allocator import Allocator
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.jit import method, state_machine

NOTHING = -1

OLDEST, NEWEST, PLACE, LENGTH = range(4)


@state_machine
class Space(NamedTuple):
    """Open buckets, from the least to the most recently used."""

    block_bytes: int
    allocator: Allocator
    bucket: Ints  # by open bucket
    left: Ints  # bytes
    end: Ints  # of the last range written to it
    task: Ints  # the last task that used it
    newer: Int32s
    older: Int32s
    state: Ints  # [OLDEST, NEWEST, PLACE, LENGTH]: the last two are results of `find`

    @classmethod
    def new(cls, block_bytes: int, allocator: Allocator, count: int) -> Space:
        """Return `count` places for open buckets, none open yet."""
        places = np.arange(count, dtype=np.int32)
        newer, older = places + 1, places - 1
        newer[-1] = NOTHING
        return cls(
            block_bytes,
            allocator,
            np.full(count, NOTHING, np.int64),
            np.zeros(count, np.int64),
            np.full(count, NOTHING, np.int64),
            np.full(count, -(1 << 40), np.int64),  # of no task
            newer,
            older,
            np.array([0, count - 1, 0, 0]),
        )

    @method
    def find(self, now, begin, length, task, below):
        """Set PLACE and LENGTH for the start of a range; return whether there is any space."""
        open_bucket = self.choose(begin, task)
        if self.left[open_bucket] == 0:
            bucket = self.allocator.take_for_data(now, below)
            if bucket == NOTHING:
                return False
            self.bucket[open_bucket] = bucket
            self.left[open_bucket] = self.allocator.buckets.bucket_bytes
        bucket, left = self.bucket[open_bucket], self.left[open_bucket]
        length = min(length, left)
        self.state[PLACE] = (bucket + 1) * self.allocator.buckets.bucket_bytes - left
        self.state[LENGTH] = length
        self.end[open_bucket] = begin + length
        self.task[open_bucket] = task
        self.renew(open_bucket)
        left -= length
        if left < self.block_bytes:
            left = 0
        else:
            self.allocator.buckets.pins[bucket] += 1
        self.left[open_bucket] = left
        return True

    @method
    def choose(self, begin, task):
        """Return the open bucket for a range."""
        of_task = NOTHING
        candidate = self.state[NEWEST]
        while candidate != NOTHING:
            if self.end[candidate] == begin:
                return candidate
            if self.task[candidate] == task:
                of_task = candidate
            candidate = self.older[candidate]
        return self.state[OLDEST] if of_task == NOTHING else of_task

    @method
    def renew(self, open_bucket):
        """Make an open bucket the most recently used one."""
        state, newer, older = self.state, self.newer, self.older
        if state[NEWEST] == open_bucket:
            return
        if state[OLDEST] == open_bucket:
            state[OLDEST] = newer[open_bucket]
        else:
            newer[older[open_bucket]] = newer[open_bucket]
        older[newer[open_bucket]] = older[open_bucket]
        older[open_bucket] = state[NEWEST]
        newer[state[NEWEST]] = open_bucket
        newer[open_bucket] = NOTHING
        state[NEWEST] = open_bucket
