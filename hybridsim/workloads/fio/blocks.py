"""How blocks and files are chosen: random numbers, maps, registers, skewed distributions, turns.

Streams of random numbers are P. L'Ecuyer's taus88 (Mathematics of Computation 65, 1996) and taus258
(the same author's Tables of Maximally Equidistributed Combined LFSR Generators, Mathematics of
Computation 68, 1999).  A row of the states has five words; taus88 uses three of them, and the fifth
is then 0, which taus258 never has.

A skewed distribution draws a rank and scatters it over the file by a multiplication.  zipf follows
J. Gray et al., Quickly Generating Billion-Record Synthetic Databases, SIGMOD 1994; normal is the
mean of twelve uniform numbers plus a uniform one within the deviation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.foundation.errors import UsageError
from hybridsim.jit import kernel, loop, method, state_machine
from hybridsim.jit.instructions import octave
from hybridsim.workloads.fio.pattern import (
    Distribution,
    Generator,
    Pattern,
    Service,
    Stream,
)

WORDS = 5
MASK32, MASK64 = 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF
WHOLE, WHOLE64 = 4294967296.0, 18446744073709551616.0  # 2^32, 2^64
HALF = 9223372036854775807  # 2^63 - 1
WARM_UP = 6
FIRST, MULTIPLIER = 53, 69069  # of the generator that seeds the states
MULTIPLIER64 = 6906969069
MINIMA = (1, 7, 15)
MINIMA64 = (1, 7, 15, 33, 49)


def seeded(seed: int, is_wide: bool = False) -> Ints:
    """Return the states of a stream; `seed` has 32 bits, or 64 of a wide stream (taus258)."""
    states = np.zeros((1, WORDS), np.int64)
    mask = MASK64 if is_wide else MASK32
    last = FIRST
    for word, minimum in enumerate(MINIMA64 if is_wide else MINIMA):
        last = last * (MULTIPLIER64 if is_wide else MULTIPLIER) & mask ^ seed & mask
        if last < minimum:
            last += minimum
        states[0, word] = last - (last >> 63 << 64)
    for _ in range(WARM_UP):
        if is_wide:
            draw64(states, 0)
        else:
            draw(states, 0)
    return np.asarray(states[0], np.int64)


@kernel
def draw(states, row):
    """Return the next 32 bits of a stream."""
    a, b, c = states[row, 0], states[row, 1], states[row, 2]
    a = (((a & 0xFFFFFFFE) << 12) & MASK32) ^ ((((a << 13) & MASK32) ^ a) >> 19)
    b = (((b & 0xFFFFFFF8) << 4) & MASK32) ^ ((((b << 2) & MASK32) ^ b) >> 25)
    c = (((c & 0xFFFFFFF0) << 17) & MASK32) ^ ((((c << 3) & MASK32) ^ c) >> 11)
    states[row, 0], states[row, 1], states[row, 2] = a, b, c
    return a ^ b ^ c


@kernel
def draw64(states, row):
    """Return the next 64 bits of a wide stream, as a signed number."""
    a, b, c = states[row, 0], states[row, 1], states[row, 2]
    d, e = states[row, 3], states[row, 4]
    a = ((a & -2) << 10) ^ ((((a << 1) ^ a) >> 53) & 0x7FF)
    b = ((b & -512) << 5) ^ ((((b << 24) ^ b) >> 50) & 0x3FFF)
    c = ((c & -4096) << 29) ^ ((((c << 3) ^ c) >> 23) & 0x1FFFFFFFFFF)
    d = ((d & -131072) << 23) ^ ((((d << 5) ^ d) >> 24) & 0xFFFFFFFFFF)
    e = ((e & -8388608) << 8) ^ ((((e << 3) ^ e) >> 33) & 0x7FFFFFFF)
    states[row, 0], states[row, 1], states[row, 2] = a, b, c
    states[row, 3], states[row, 4] = d, e
    return a ^ b ^ c ^ d ^ e


@kernel
def restart(states, first):
    """Set all streams to their first states."""
    for row in range(len(states)):
        for word in range(WORDS):
            states[row, word] = first[row, word]


@kernel
def unsigned(bits):
    """Return 64 bits as a float from 0 to 2^64, rounded once."""
    if bits >= 0:
        return float(bits)
    return 2.0 * float(((bits >> 1) & HALF) | (bits & 1))


@kernel
def is_wide(states, row):
    """Return whether a stream has 64 bits."""
    return states[row, 4] != 0


@kernel
def draw_share(states, row):
    """Return a random number in [0, 1]; 64 bits can round to 1."""
    if is_wide(states, row):
        return unsigned(draw64(states, row)) / WHOLE64
    return draw(states, row) / WHOLE


@kernel
def draw_below(states, row, bound):
    """Return a random number from 0 to bound - 1."""
    return int(bound * draw_share(states, row))


@kernel
def draw_percent(states, row):
    """Return a random number from 1 to 100."""
    return 1 + draw_below(states, row, 100)


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
    return octave(bits & -bits)


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
    def of(cls, pattern: Pattern) -> Register:
        """Create the registers of a pattern's files; without blocks they are unused.

        Raises UsageError for a seed with which a register would stand still.
        """
        blocks = pattern.map_bytes // pattern.block_bytes if pattern.uses_register else 0
        seed = pattern.seeds()[Stream.BLOCK]
        ones = ones_of(blocks)
        first = ones ^ (seed & ones)
        if not first and blocks:
            raise UsageError(f"random_generator=lfsr does not start with seed {seed}, nor in fio")
        state = np.tile(np.array([first, 0, 1], np.int64), (pattern.files, 1))
        return cls(blocks, ones, TAPS[ones.bit_length()], first, state)

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


SCATTER = np.uint64(0x61C8864680B583EB)
TERMS_MAX = 10**7  # of the sum of zipf's weights
ZIPF, PARETO, NORMAL = map(int, (Distribution.ZIPF, Distribution.PARETO, Distribution.NORMAL))
UNIFORM_NUMBERS = 12


@state_machine
class Spread(NamedTuple):
    """One distribution, over each of several files."""

    kind: int
    blocks: int
    width: int  # normal: twice the deviation
    shape: float
    zeta: float  # zipf: the sum of all weights
    is_scattered: bool  # consecutive ranks are scattered over the file
    shift: Ints  # by file: block of rank 0
    states: Ints  # random states, by file

    @classmethod
    def new(
        cls,
        kind: int,
        blocks: int,
        shape: float,
        seeds: Sequence[int],
        center: float | None = None,
        is_scattered: bool = False,
    ) -> Spread:
        """Create a distribution over each of several files, as many as seeds."""
        shift = np.zeros(len(seeds), np.int64)
        states = np.stack([seeded(seed & MASK32) for seed in seeds])
        for file in range(len(seeds)):
            if kind in (ZIPF, PARETO):
                drawn = draw(states, file)
                shift[file] = drawn if center is None else int(blocks * center)
            elif kind == NORMAL and center is not None:
                shift[file] = int(blocks * (center - 0.5)) & MASK32
        width = min(math.ceil(blocks * shape / 100), blocks // 2) if kind == NORMAL else 0
        zeta = sum_of_weights(min(blocks, TERMS_MAX), shape) if kind == ZIPF else 0.0
        return cls(kind, blocks, width, float(shape), zeta, is_scattered, shift, states)

    @method
    def next(self, file):
        """Return the next block of a file."""
        if self.kind == ZIPF:
            rank = self.zipf(file)
        elif self.kind == PARETO:
            power = math.log(self.shape) / math.log(1 - self.shape)
            drawn = draw(self.states, file) / float(MASK32)
            rank = int((self.blocks - 1) * math.pow(drawn, power))
        else:
            rank = self.normal(file)
        place = np.uint64(rank)
        if self.is_scattered:
            place *= SCATTER
        return np.int64((place + np.uint64(self.shift[file])) % np.uint64(self.blocks))

    @method
    def zipf(self, file):
        """Return a zipf-distributed rank, from 0."""
        share = draw(self.states, file) / float(MASK32)
        second = 1.0 + math.pow(0.5, self.shape)
        if share * self.zeta < 1:
            return 0
        if share * self.zeta < second:
            return 1
        rest = 1 - self.shape
        eta = (1 - math.pow(2 / self.blocks, rest)) / (1 - second / self.zeta)
        return int(self.blocks * math.pow(eta * share - eta + 1, 1 / rest))

    @method
    def normal(self, file):
        """Return a normally distributed block around the middle of the file."""
        mean = 0
        for _ in range(UNIFORM_NUMBERS):
            mean += draw(self.states, file) % (self.blocks + 1)
        mean = (mean + UNIFORM_NUMBERS - 1) // UNIFORM_NUMBERS
        if self.width > 0:
            off = draw_below(self.states, file, self.width) - self.width // 2
            # As in fio, whose sum is unsigned; where fio itself would not end, off becomes 0.
            while (mean + off < 0 or mean + off >= self.blocks) and off != 0:
                off = (off + (off < 0)) // 2 if off < 0 else off // 2
            mean += off
        return mean


@loop
def sum_of_weights(terms, theta):
    """Return the sum of 1 / i^theta for i from 1 to `terms`, added in this order."""
    total = 0.0
    for i in range(1, terms + 1):
        total += math.pow(1.0 / i, theta)
    return total


IN_A_ROW, AT_RANDOM = int(Service.SEQUENTIAL), int(Service.RANDOM)
FINE_BITS = 10  # skewed orders draw with this many bits below the file's index
# Indices of the state.
FILE, REMAINING, IS_ON, NEXT, REMAINING_FILES, OPEN = range(6)
DONE = 1


@state_machine
class Turns(NamedTuple):
    """The order of a job's files."""

    kind: int
    files: int
    requests: int  # consecutive requests to a file
    open_files: int  # at most this number is open at a time
    repeats_files: int  # else what is done stays done in the next pass
    first: Ints  # random state at the start of a pass
    first_spread: Ints
    spread: Spread
    streams: Ints
    is_open: Bytes  # by file
    state: Ints

    @classmethod
    def new(cls, pattern: Pattern) -> Turns:
        """Create the order of a pattern's files."""
        seed = pattern.seeds()[Stream.FILE]
        is_skewed = pattern.service > Service.RANDOM
        kind = int(Distribution[pattern.service.name]) if is_skewed else 0
        fine = pattern.files << FINE_BITS
        spread = Spread.new(kind, fine, pattern.service_shape, [seed])
        first = seeded(seed, pattern.generator == Generator.TAUSWORTHE64).reshape(1, -1)
        turns = cls(
            int(pattern.service), pattern.files, pattern.service_requests,
            pattern.open_files or pattern.files, int(pattern.repeats_files),
            first, spread.states.copy(), spread, first.copy(),
            np.zeros(pattern.files, np.uint8), np.zeros(6, np.int64),
        )  # fmt: skip
        turns.state[REMAINING_FILES] = pattern.files
        return turns

    @method
    def is_by_share(self):
        """Return whether the order is skewed."""
        return self.kind > AT_RANDOM

    @method
    def next(self, is_done):
        """Return the next file; at least one file must not be done."""
        state = self.state
        if self.files == 1:
            return 0
        if state[IS_ON] == 1:
            if self.kind == IN_A_ROW:
                return state[FILE]
            if state[REMAINING] > 0:
                state[REMAINING] -= 1
                return state[FILE]
        file = self.chosen()
        while is_done[file] == DONE or (self.is_open[file] == 0 and state[OPEN] >= self.open_files):
            file = self.chosen()
        if self.is_open[file] == 0:
            self.is_open[file] = 1
            state[OPEN] += 1
        state[FILE], state[IS_ON], state[REMAINING] = file, 1, self.requests - 1
        return file

    @method
    def chosen(self):
        """Return the next file of the order, done or not."""
        if self.kind == AT_RANDOM:
            return draw_below(self.streams, 0, self.files)
        if self.is_by_share():
            return self.spread.next(0) >> FINE_BITS
        file = self.state[NEXT]
        self.state[NEXT] = (file + 1) % self.files
        return file

    @method
    def ended(self, file, is_done):
        """Close a file without a further request; in skewed orders it is opened again."""
        self.state[IS_ON] = 0
        if self.is_open[file] == 1:
            self.is_open[file] = 0
            self.state[OPEN] -= 1
        if not self.is_by_share():
            is_done[file] = DONE
            self.state[REMAINING_FILES] -= 1

    @method
    def has_any(self):
        """Return whether a file has requests left in this pass."""
        return self.state[REMAINING_FILES] > 0

    @method
    def begin_again(self, is_done, is_reseeded):
        """Start another pass."""
        is_done[:] = 0
        self.is_open[:] = 0
        self.state[OPEN] = 0
        if self.repeats_files == 1:
            self.state[REMAINING_FILES] = self.files
        self.state[IS_ON] = 0
        if is_reseeded:
            restart(self.streams, self.first)
            restart(self.spread.states, self.first_spread)
