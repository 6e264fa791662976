"""Bits in arrays: for the sectors of each line, and for the core lines of an array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.jit import method, state_machine

NOTHING = -1
WORD_BITS, WORD_SHIFT = 32, 5
BYTE = 255


@state_machine
class Sectors(NamedTuple):
    """A bit for each sector of each line; a range is [start, end)."""

    words_per_line: int
    words: Ints  # 32 bits of each word are used

    @classmethod
    def new(cls, lines: int, sectors: int) -> Sectors:
        """Return cleared bits for `lines` lines of `sectors` sectors."""
        words_per_line = -(-sectors // WORD_BITS)
        return cls(words_per_line, np.zeros(lines * words_per_line, np.int64))

    @method
    def mask(self, word, start, end):
        """Return the bits of a range in one word of a line."""
        low = max(start - word * WORD_BITS, 0)
        high = min(end - word * WORD_BITS, WORD_BITS)
        return (1 << high) - (1 << low)

    @method
    def has_all(self, line, start, end):
        """Return whether every sector of a range is set."""
        for word in range(start >> WORD_SHIFT, ((end - 1) >> WORD_SHIFT) + 1):
            mask = self.mask(word, start, end)
            if self.words[line * self.words_per_line + word] & mask != mask:
                return False
        return True

    @method
    def has_any(self, line, start, end):
        """Return whether any sector of a range is set."""
        for word in range(start >> WORD_SHIFT, ((end - 1) >> WORD_SHIFT) + 1):
            if self.words[line * self.words_per_line + word] & self.mask(word, start, end) != 0:
                return True
        return False

    @method
    def is_empty(self, line):
        """Return whether no sector of a line is set."""
        for word in range(self.words_per_line):
            if self.words[line * self.words_per_line + word] != 0:
                return False
        return True

    @method
    def set(self, line, start, end):
        """Set a range."""
        for word in range(start >> WORD_SHIFT, ((end - 1) >> WORD_SHIFT) + 1):
            self.words[line * self.words_per_line + word] |= self.mask(word, start, end)

    @method
    def clear(self, line, start, end):
        """Clear a range."""
        for word in range(start >> WORD_SHIFT, ((end - 1) >> WORD_SHIFT) + 1):
            self.words[line * self.words_per_line + word] &= ~self.mask(word, start, end)

    @method
    def first(self, line, is_set, start, end):
        """Return the first sector of a range whose bit is `is_set`; `end` if there is none."""
        at = start
        base = line * self.words_per_line
        while at < end:
            bit = self.words[base + (at >> WORD_SHIFT)] >> (at & (WORD_BITS - 1)) & 1
            if bit == is_set:
                return at
            at += 1
        return end


@state_machine
class Marks(NamedTuple):
    """A bit for each core line."""

    eights: Bytes

    @classmethod
    def new(cls, count: int) -> Marks:
        """Return `count` cleared bits."""
        return cls(np.zeros((count + 7) // 8, np.uint8))

    @method
    def has(self, number):
        """Return whether a bit is set."""
        return self.eights[number >> 3] >> (number & 7) & 1 == 1

    @method
    def set(self, number):
        """Set a bit."""
        self.eights[number >> 3] |= 1 << (number & 7)

    @method
    def clear(self, number):
        """Clear a bit."""
        self.eights[number >> 3] &= BYTE - (1 << (number & 7))

    @method
    def next(self, start, end):
        """Return the first set bit in [start, end), or -1."""
        at = start
        while at < end:
            if at & 7 == 0 and self.eights[at >> 3] == 0:
                at += 8
            elif self.has(at):
                return at
            else:
                at += 1
        return NOTHING
