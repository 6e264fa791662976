"""The buckets of lowest rank, in the kernel's heap, so that ties are decided as in the kernel."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine


@state_machine
class Victims(NamedTuple):
    """A heap in the kernel's tie order; the highest rank is on top, or after `turn` the lowest."""

    bucket: Ints
    rank: Ints  # negated by `turn`
    number: Ints  # [number of entries]

    @classmethod
    def new(cls, room: int) -> Victims:
        """Return an empty heap with room for `room` buckets."""
        return cls(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(1, np.int64))

    @method
    def offer(self, bucket, rank):
        """Add a bucket, if there is room or a bucket of higher rank."""
        i = self.number[0]
        if i == len(self.bucket):
            if rank < self.rank[0]:
                self.bucket[0] = bucket
                self.rank[0] = rank
                self.sift(0)
            return
        self.number[0] += 1
        self.bucket[i] = bucket
        self.rank[i] = rank
        while i > 0 and self.rank[i] >= self.rank[(i - 1) // 2]:
            self.swap(i, (i - 1) // 2)
            i = (i - 1) // 2
        self.sift(i)

    @method
    def turn(self):
        """Rebuild the heap with the lowest rank on top."""
        for i in range(self.number[0]):
            self.rank[i] = -self.rank[i]
        for i in range(self.number[0] // 2 - 1, -1, -1):
            self.sift(i)

    @method
    def pop(self):
        """Remove and return the bucket on top."""
        bucket = self.bucket[0]
        self.number[0] -= 1
        self.swap(0, self.number[0])
        self.sift(0)
        return bucket

    @method
    def sift(self, i):
        """Move an entry down to its place."""
        while 2 * i + 1 < self.number[0]:
            child = 2 * i + 1
            if child + 1 < self.number[0] and self.rank[child] < self.rank[child + 1]:
                child += 1
            if self.rank[child] < self.rank[i]:
                return
            self.swap(i, child)
            i = child

    @method
    def swap(self, i, j):
        """Swap two entries."""
        bucket, rank = self.bucket[i], self.rank[i]
        self.bucket[i] = self.bucket[j]
        self.rank[i] = self.rank[j]
        self.bucket[j] = bucket
        self.rank[j] = rank
