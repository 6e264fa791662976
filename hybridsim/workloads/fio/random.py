"""Streams of random numbers: P. L'Ecuyer's taus88 (Mathematics of Computation 65, 1996), taus258.

taus258 is from the same author's Tables of Maximally Equidistributed Combined LFSR Generators
(Mathematics of Computation 68, 1999).  A row of the states has five words; taus88 uses three of
them, and the fifth is then 0, which taus258 never has.
"""

from __future__ import annotations

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import kernel

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
