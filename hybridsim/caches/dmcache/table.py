"""A hash table from numbers to entries, with chains through the entries."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.jit import method, state_machine

NOTHING = -1
MULTIPLIER = 0x61C88647  # 2^32 / golden ratio, negated: Knuth's multiplicative hashing
LOW_BITS = 0x7FFFFFFF


@state_machine
class Table(NamedTuple):
    """Number -> entry; the caller allocates the entries."""

    first: Int32s  # by bucket, a power of two of them
    following: Int32s  # by entry: the next one of its bucket
    number: Ints  # by entry

    @classmethod
    def new(cls, entries: int) -> Table:
        """Return an empty table for entries 0..entries-1."""
        buckets = 1 << max(entries - 1, 15).bit_length()
        return cls(
            np.full(buckets, NOTHING, np.int32),
            np.full(entries, NOTHING, np.int32),
            np.zeros(entries, np.int64),
        )

    @method
    def find(self, number):
        """Return the entry of a number, or -1."""
        entry = self.first[self.bucket(number)]
        while entry != NOTHING and self.number[entry] != number:
            entry = self.following[entry]
        return entry

    @method
    def insert(self, entry, number):
        """Map a number without an entry to an entry."""
        bucket = self.bucket(number)
        self.number[entry] = number
        self.following[entry] = self.first[bucket]
        self.first[bucket] = entry

    @method
    def remove(self, entry):
        """Remove an entry and its number."""
        bucket = self.bucket(self.number[entry])
        at = self.first[bucket]
        if at == entry:
            self.first[bucket] = self.following[entry]
            return
        while self.following[at] != entry:
            at = self.following[at]
        self.following[at] = self.following[entry]

    @method
    def bucket(self, number):
        """Return the bucket of a number; products stay within 63 bits."""
        mixed = ((number ^ (number >> 31)) & LOW_BITS) * MULTIPLIER
        return (mixed >> 20) & (len(self.first) - 1)
