"""The parts of the origin that have been discarded: their content does not matter."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes
from hybridsim.jit import method, state_machine

DISCARD_BLOCKS_MAX = 16_384


@state_machine
class Discards(NamedTuple):
    """A bit for each discard block."""

    discard_bytes: int
    is_discarded: Bytes

    @classmethod
    def new(cls, block_bytes: int, origin_bytes: int) -> Discards:
        """Return no discards; the discard block is doubled until there are few enough blocks."""
        discard_bytes = block_bytes
        while origin_bytes // discard_bytes > DISCARD_BLOCKS_MAX:
            discard_bytes *= 2
        blocks = -(-origin_bytes // discard_bytes)
        return cls(discard_bytes, np.zeros(blocks, np.uint8))

    @method
    def has(self, offset):
        """Return whether the block of a byte is discarded."""
        return self.is_discarded[offset // self.discard_bytes] == 1

    @method
    def set(self, offset, length):
        """Mark the blocks that lie completely in a range."""
        first = -(-offset // self.discard_bytes)
        self.is_discarded[first : (offset + length) // self.discard_bytes] = 1

    @method
    def clear(self, offset):
        """Clear the mark of a block that is written."""
        self.is_discarded[offset // self.discard_bytes] = 0
