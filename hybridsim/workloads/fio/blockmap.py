"""A map of the blocks of a file that were accessed, with a fast search for the next free one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine

BITS = 32
FULL = (1 << BITS) - 1


@state_machine
class BlockMap(NamedTuple):
    """A bitmap in words; each higher level has a bit for each full word of the level below."""

    words: npt.NDArray[np.uint32]  # of all levels
    begin: Ints  # first word of each level, and the end of the last level
    blocks: int
    used: Ints  # [number of accessed blocks]

    @classmethod
    def new(cls, blocks: int) -> BlockMap:
        """Create a map of `blocks` free blocks."""
        sizes = [max(1, -(-blocks // BITS))]
        while sizes[-1] > 1:
            sizes.append(-(-sizes[-1] // BITS))
        begin = np.cumsum([0, *sizes])
        return cls(np.zeros(begin[-1], np.uint32), begin, blocks, np.zeros(1, np.int64))

    @method
    def clear(self):
        """Mark all blocks free."""
        self.words[:] = 0
        self.used[0] = 0

    @method
    def clear_between(self, begin, end):
        """Mark the blocks from `begin` to `end` free."""
        for block in range(begin, end):
            if self.has(block):
                self.used[0] -= 1
                place = block
                for level in range(len(self.begin) - 1):
                    word = self.begin[level] + place // BITS
                    self.words[word] = np.int64(self.words[word]) & ~(1 << (place % BITS))
                    place //= BITS

    @method
    def has(self, block):
        """Return whether a block was accessed."""
        return (np.int64(self.words[block // BITS]) >> (block % BITS)) & 1 == 1

    @method
    def touch(self, block):
        """Mark a free block accessed."""
        self.used[0] += 1
        place = block
        for level in range(len(self.begin) - 1):
            word = self.begin[level] + place // BITS
            bits = np.int64(self.words[word]) | (1 << (place % BITS))
            self.words[word] = bits
            place //= BITS
            if bits != FULL:
                return

    @method
    def next_free(self, block, begin, end):
        """Return the first free block in [block, end), or else in [begin, end); -1: none."""
        if self.used[0] == self.blocks:
            return -1
        free = self.free_from(block)
        if free < 0 or free >= end:
            free = self.free_from(begin)
        return free if free < end else -1

    @method
    def free_from(self, block):
        """Return the first free block from `block` on, which may lie beyond the end; -1: none."""
        place = block
        level = 0
        while level < len(self.begin) - 1:
            word = self.begin[level] + place // BITS
            if word < self.begin[level + 1]:
                free = (~np.int64(self.words[word]) & FULL) >> (place % BITS)
                if free != 0:
                    return self.lowest(level, place + zeros_below(free))
            place = place // BITS + 1
            level += 1
        return -1

    @method
    def lowest(self, level, place):
        """Return the first free block below bit `place` of `level`, which is not full."""
        while level > 0:
            level -= 1
            word = self.begin[level] + place
            if word >= self.begin[level + 1]:
                return -1
            place = place * BITS + zeros_below(~np.int64(self.words[word]) & FULL)
        return place


@method
def zeros_below(bits):
    """Return the number of trailing zero bits."""
    count = 0
    while bits & 1 == 0:
        bits >>= 1
        count += 1
    return count
