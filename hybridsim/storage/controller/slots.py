"""Slots that are located by the number in them: a hash table of fixed size."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, free_list
from hybridsim.jit import method, state_machine

NOTHING = -1
MULTIPLIER = 0x61C88647  # 2^32 / golden ratio, negated: Knuth's multiplicative hashing
LOW_BITS = 0x7FFFFFFF


@state_machine
class Slots(NamedTuple):
    """A fixed number of slots; each holds one number, and no number is in two."""

    capacity: int
    number: Ints
    next: Int32s  # next slot of the same bucket, or next free slot
    bucket: Int32s  # first slot, or NOTHING; a power of two of buckets
    free: Ints  # [first free slot, number of free slots]

    @classmethod
    def new(cls, capacity: int) -> Slots:
        """Return empty slots; `capacity` may be 0."""
        length = max(capacity, 1)
        buckets = 1 << (2 * length - 1).bit_length()
        return cls(
            capacity,
            np.zeros(length, np.int64),
            free_list(length),
            np.full(buckets, NOTHING, np.int32),
            np.array([0, capacity]),
        )

    @method
    def used(self):
        """Return the number of used slots."""
        return self.capacity - self.free[1]

    @method
    def find(self, number):
        """Return the slot that holds a number, or -1."""
        slot = self.bucket[self.home(number)]
        while slot != NOTHING and self.number[slot] != number:
            slot = self.next[slot]
        return slot

    @method
    def take(self, number):
        """Put a number that no slot holds into a free slot; there must be one."""
        slot = self.free[0]
        self.free[0] = self.next[slot]
        self.free[1] -= 1
        home = self.home(number)
        self.number[slot] = number
        self.next[slot] = self.bucket[home]
        self.bucket[home] = slot
        return slot

    @method
    def release(self, slot):
        """Free a slot."""
        home = self.home(self.number[slot])
        if self.bucket[home] == slot:
            self.bucket[home] = self.next[slot]
        else:
            before = self.bucket[home]
            while self.next[before] != slot:
                before = self.next[before]
            self.next[before] = self.next[slot]
        self.next[slot] = self.free[0]
        self.free[0] = slot
        self.free[1] += 1

    @method
    def home(self, number):
        """Return the bucket of a number; products stay within 63 bits."""
        scattered = ((number ^ (number >> 31)) & LOW_BITS) * MULTIPLIER >> 20
        return scattered & (len(self.bucket) - 1)
