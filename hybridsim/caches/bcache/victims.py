"""The buckets of least rank, in the kernel's heap: which of equals are taken follows from it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine


@state_machine
class Victims(NamedTuple):
    """A heap in which equals change places; first the greatest rank is on top, then the least."""

    bucket: Ints
    rank: Ints  # times -1 once it is turned
    number: Ints  # [entries]

    @classmethod
    def new(cls, room: int) -> Victims:
        """Make room for so many."""
        return cls(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(1, np.int64))

    @method
    def offer(self, bucket, rank):
        """Take a bucket in, if there is room or one of greater rank."""
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
        """Have the least rank on top."""
        for i in range(self.number[0]):
            self.rank[i] = -self.rank[i]
        for i in range(self.number[0] // 2 - 1, -1, -1):
            self.sift(i)

    @method
    def pop(self):
        """Return the bucket on top."""
        bucket = self.bucket[0]
        self.number[0] -= 1
        self.swap(0, self.number[0])
        self.sift(0)
        return bucket

    @method
    def sift(self, i):
        """Let an entry sink."""
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
        """Let two entries change places."""
        bucket, rank = self.bucket[i], self.rank[i]
        self.bucket[i] = self.bucket[j]
        self.rank[i] = self.rank[j]
        self.bucket[j] = bucket
        self.rank[j] = rank
