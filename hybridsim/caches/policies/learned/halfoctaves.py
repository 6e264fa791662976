"""Ages on a logarithmic scale: two per octave."""

from __future__ import annotations

from hybridsim.jit import kernel

AGES = 52
STARTS = [0, *((2 + (age & 1)) << (age >> 1) >> 1 for age in range(2, AGES + 2))]
"""The first time of each age, and at the end the end of the last age; times in accesses."""

EIGHTHS_MAX = 4 * (AGES + 1) - 1


@kernel
def eighths(time):
    """Return 8 log2 of a time of at least 1, interpolated linearly and rounded down."""
    rest, octave = time, 0
    if rest >> 16 > 0:
        rest >>= 16
        octave += 16
    if rest >> 8 > 0:
        rest >>= 8
        octave += 8
    if rest >> 4 > 0:
        rest >>= 4
        octave += 4
    if rest >> 2 > 0:
        rest >>= 2
        octave += 2
    octave += rest >> 1
    return min(8 * octave + ((time << 3) >> octave) - 8, EIGHTHS_MAX)


@kernel
def age_of(time):
    """Return the age for a time."""
    return max(eighths(max(time, 1)) >> 2, 1) - 1
