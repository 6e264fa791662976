"""Ages on a logarithmic scale: two per octave."""

from __future__ import annotations

from hybridsim.jit import kernel
from hybridsim.jit.octaves import octave

AGES = 52
STARTS = [0, *((2 + (age & 1)) << (age >> 1) >> 1 for age in range(2, AGES + 2))]
"""The first time of each age, and at the end the end of the last age; times in accesses."""

EIGHTHS_MAX = 4 * (AGES + 1) - 1


@kernel
def eighths(time):
    """Return 8 log2 of a time of at least 1, interpolated linearly and rounded down."""
    whole = octave(time)
    return min(8 * whole + ((time << 3) >> whole) - 8, EIGHTHS_MAX)


@kernel
def age_of(time):
    """Return the age for a time."""
    return max(eighths(max(time, 1)) >> 2, 1) - 1
