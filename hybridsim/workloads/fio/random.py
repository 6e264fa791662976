"""Streams of random numbers: P. L'Ecuyer's taus88, Mathematics of Computation 65 (1996)."""

from __future__ import annotations

from hybridsim.jit import kernel

MASK32 = 0xFFFFFFFF
WHOLE = 4294967296.0  # 2^32
WARM_UP = 6
FIRST, MULTIPLIER = 53, 69069  # of the generator that seeds the states


@kernel
def seed_stream(states, row, seed):
    """Seed a stream; `seed` has 32 bits."""
    last = FIRST
    for column in range(3):
        minimum = 1 if column == 0 else (7 if column == 1 else 15)
        last = ((last * MULTIPLIER) & MASK32) ^ seed
        if last < minimum:
            last += minimum
        states[row, column] = last
    for _ in range(WARM_UP):
        draw(states, row)


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
def draw_below(states, row, bound):
    """Return a random number from 0 to bound - 1."""
    return int(bound * (draw(states, row) / WHOLE))


@kernel
def draw_percent(states, row):
    """Return a random number from 1 to 100."""
    return 1 + draw_below(states, row, 100)
