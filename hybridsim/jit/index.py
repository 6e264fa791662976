"""Dense ids for sparse numbers: an open-addressing hash table that only grows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, longer
from hybridsim.jit import loop, method, state_machine

NOTHING = -1
MULTIPLIER = 0x61C88647  # 2^32 / golden ratio, negated: Knuth's multiplicative hashing
LOW_BITS = 0x7FFFFFFF


@state_machine
class Index(NamedTuple):
    """Page number -> id; ids are assigned in order of first use."""

    ids: Int32s  # hash table, a power of two long, at most half full; NOTHING = free
    number: Ints  # by id
    used: Ints  # [number of ids assigned]

    @classmethod
    def new(cls, capacity: int) -> Index:
        """Return an empty index with room for `capacity` ids (a power of two)."""
        table = np.full(2 * capacity, NOTHING, np.int32)
        return cls(table, np.zeros(capacity, np.int64), np.zeros(1, np.int64))

    def grown(self, capacity: int) -> Index:
        """Return the same index with room for `capacity` ids (a power of two)."""
        table = np.full(2 * capacity, NOTHING, np.int32)
        index = Index(table, longer(self.number, capacity), self.used)
        _refill(index)
        return index

    @method
    def room(self):
        """Return how many more ids can be assigned."""
        return len(self.number) - self.used[0]

    @method
    def find(self, number):
        """Return the id of a number, or -1."""
        mask = len(self.ids) - 1
        at = self.home(number) & mask
        while self.ids[at] != NOTHING:
            if self.number[self.ids[at]] == number:
                return self.ids[at]
            at = (at + 1) & mask
        return NOTHING

    @method
    def add(self, number):
        """Assign an id to a number that has none; return it."""
        entry = self.used[0]
        self.used[0] += 1
        self.number[entry] = number
        self.put(entry)
        return entry

    @method
    def put(self, entry):
        """Insert an id into the table."""
        mask = len(self.ids) - 1
        at = self.home(self.number[entry]) & mask
        while self.ids[at] != NOTHING:
            at = (at + 1) & mask
        self.ids[at] = entry

    @method
    def home(self, number):
        """Return where the probing for a number starts; products stay within 63 bits."""
        return ((number ^ (number >> 31)) & LOW_BITS) * MULTIPLIER >> 20


@loop
def _refill(index):
    for entry in range(index.used[0]):
        index.put(entry)
