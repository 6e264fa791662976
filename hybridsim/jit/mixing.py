"""Pseudo-random numbers from mixed counters: the same in each run, engine and reference."""

from hybridsim.jit import kernel

MASK = 0x7FFFFFFF


@kernel
def mixed(number):
    """Return 31 bits that each depend on all low 31 bits of `number`; products stay below 2^62.

    The steps are those of the integer hashes of C. Wellons' hash prospector (public domain).
    """
    number &= MASK
    number = ((number ^ (number >> 16)) * 0x21F0AAAD) & MASK
    number = ((number ^ (number >> 15)) * 0x735A2D97) & MASK
    return number ^ (number >> 15)
