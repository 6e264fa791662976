"""An ordered set of numbers below a limit: a tree of bits with 32 children per word."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine

NOTHING = -1
SHIFT = 5
BITS = 1 << SHIFT
LOW = BITS - 1
ONES = (1 << BITS) - 1


@state_machine
class OrderedSet(NamedTuple):
    """Numbers, one bit each; unused parts of the array take no physical memory."""

    words: Ints  # of all levels, the numbers themselves first
    level: Ints  # first word of each level; the last level has one word

    @classmethod
    def below(cls, limit: int) -> OrderedSet:
        """Return an empty set for numbers 0..limit-1."""
        sizes = [-(-max(limit, 1) // BITS)]
        while sizes[-1] > 1:
            sizes.append(-(-sizes[-1] // BITS))
        starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
        return cls(np.zeros(sum(sizes), np.int64), starts)

    @method
    def add(self, number):
        """Add a number."""
        for start in self.level:
            word = start + (number >> SHIFT)
            before = self.words[word]
            self.words[word] = before | (1 << (number & LOW))
            if before != 0:
                return
            number >>= SHIFT

    @method
    def discard(self, number):
        """Remove a number, if it is in the set."""
        for start in self.level:
            word = start + (number >> SHIFT)
            self.words[word] &= ~(1 << (number & LOW))
            if self.words[word] != 0:
                return
            number >>= SHIFT

    @method
    def at_least(self, number):
        """Return the smallest number of the set that is not below `number`, or -1."""
        for height in range(len(self.level)):
            upto = len(self.words)
            if height + 1 < len(self.level):
                upto = self.level[height + 1]
            word = self.level[height] + (number >> SHIFT)
            if word >= upto:
                return NOTHING
            later = self.words[word] & (ONES << (number & LOW))
            if later != 0:
                number = (number & ~LOW) | self.lowest(later)
                return self.descend(height, number)
            number = (number >> SHIFT) + 1
        return NOTHING

    @method
    def descend(self, height, number):
        """Return the smallest number below the bit `number` of a level."""
        while height > 0:
            height -= 1
            number = (number << SHIFT) | self.lowest(self.words[self.level[height] + number])
        return number

    @method
    def lowest(self, word):
        """Return the index of the lowest set bit of a word."""
        place = 0
        while word & 1 == 0:
            word >>= 1
            place += 1
        return place
