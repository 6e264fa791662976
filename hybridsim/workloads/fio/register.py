"""Every block once, in pseudo-random order: a linear feedback shift register."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import UsageError
from hybridsim.jit import method, state_machine
from hybridsim.workloads.fio.pattern import Pattern, Stream

# Bits that are inverted when a one is shifted out, by number of bits.  Derived from the sequences
# of blocks of fio 3.33 for files of 2^bits - 1 blocks; fio exchanges ones and zeros.
TAPS = {
    3: 0x6, 4: 0xC, 5: 0x14, 6: 0x30, 7: 0x60, 8: 0xB8, 9: 0x110, 10: 0x240, 11: 0x500,
    12: 0x829, 13: 0x100D, 14: 0x2015, 15: 0x6000, 16: 0xD008, 17: 0x12000, 18: 0x20400,
    19: 0x40023, 20: 0x90000, 21: 0x140000, 22: 0x300000, 23: 0x420000, 24: 0xE10000,
    25: 0x1200000, 26: 0x2000023, 27: 0x4000013, 28: 0x9000000, 29: 0x14000000, 30: 0x20000029,
    31: 0x48000000, 32: 0xD0000001, 33: 0x100080000, 34: 0x204000003, 35: 0x500000000,
    36: 0x801000000, 37: 0x100000001F, 38: 0x2000000031, 39: 0x4400000000,
}  # fmt: skip
STATE, RETURNED, IS_FIRST = range(3)


def ones_of(blocks: int) -> int:
    """Return the largest number of a register for a number of blocks."""
    return (1 << max(3, blocks.bit_length())) - 1


@state_machine
class Register(NamedTuple):
    """One register per file, all with the same taps; numbers beyond the last block are skipped."""

    blocks: int
    ones: int
    taps: int
    first: int
    state: Ints  # [file, (STATE, RETURNED: blocks of this round, IS_FIRST: none drawn yet)]

    @classmethod
    def new(cls, blocks: int, seed: int, files: int = 1) -> Register:
        """Create registers for files; with 0 blocks they are unused.

        Raises UsageError for a seed with which a register would stand still.
        """
        ones = ones_of(blocks)
        first = ones ^ (seed & ones)
        if not first and blocks:
            raise UsageError(f"random_generator=lfsr does not start with seed {seed}, nor in fio")
        register = cls(blocks, ones, TAPS[ones.bit_length()], first, np.zeros((files, 3), np.int64))
        for file in range(files):
            register.restart(file)
        register.state[:, IS_FIRST] = 1
        return register

    @classmethod
    def of(cls, pattern: Pattern) -> Register:
        """Create the registers of a pattern's files."""
        blocks = pattern.map_bytes // pattern.block_bytes if pattern.uses_register else 0
        return cls.new(blocks, pattern.seeds()[Stream.BLOCK], pattern.files)

    @method
    def restart(self, file):
        """Start a new round."""
        self.state[file, STATE] = self.first
        self.state[file, RETURNED] = 0

    @method
    def step(self, file):
        """Shift by one bit."""
        state = self.state[file, STATE]
        self.state[file, STATE] = (state >> 1) ^ (self.taps if state & 1 else 0)

    @method
    def next(self, file):
        """Return the next block of a file, -1 after the last."""
        if self.state[file, RETURNED] >= self.blocks:
            return -1
        self.state[file, RETURNED] += 1
        if self.state[file, IS_FIRST] == 1:  # the first block of all takes an additional step
            self.state[file, IS_FIRST] = 0
            self.step(file)
        self.step(file)
        while self.ones ^ self.state[file, STATE] >= self.blocks:
            self.step(file)
        return self.ones ^ self.state[file, STATE]
