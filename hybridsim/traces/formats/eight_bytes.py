"""Process eight bytes of a text at once, as compiled code: in 64 bits, the first byte lowest.

A mark is the top bit of a byte.  Only the first mark is valid: a carry beyond it may set further
ones, which are ignored.  A kernel receives every integer as signed: U() converts it back.
See H. Warren, "Hacker's Delight", 6-1, and D. Lemire, "Quickly parsing eight digits", 2018.
"""

from __future__ import annotations

import numpy as np

from hybridsim.jit import kernel

U = np.uint64
BEYOND = 7  # bytes that are read beyond a byte
ONES, TOPS = U(0x0101010101010101), U(0x8080808080808080)
NONE, ONE, EIGHT, TEN = U(0), U(1), U(8), U(10)
BYTE_2, BYTE_3, BYTE_4, BYTE_5, BYTE_6, BYTE_7 = U(16), U(24), U(32), U(40), U(48), U(56)
AT_2, AT_3, AT_4, AT_5, AT_6, AT_7 = U(2), U(3), U(4), U(5), U(6), U(7)
ZEROS, ABOVE_NINE = U(0x3030303030303030), U(0x7676767676767676)
PAIRS = U(0x000000FF000000FF)
FIRST_AND_THIRD, SECOND_AND_FOURTH = U(10**6 << 32 | 100), U(10**4 << 32 | 1)
POWERS = np.array([10**i for i in range(10)], np.uint64)
EIGHT_DIGITS = U(10**8)


@kernel
def eight(block, i):
    """Return the eight bytes from index `i`; compiles to one load."""
    low = U(block[U(i)]) | U(block[U(i) + ONE]) << EIGHT
    low |= U(block[U(i) + AT_2]) << BYTE_2 | U(block[U(i) + AT_3]) << BYTE_3
    high = U(block[U(i) + AT_4]) << BYTE_4 | U(block[U(i) + AT_5]) << BYTE_5
    return low | high | U(block[U(i) + AT_6]) << BYTE_6 | U(block[U(i) + AT_7]) << BYTE_7


@kernel
def marks_below(eight_bytes, limits):
    """Return marks of the bytes below a limit; `limits` is the limit times ONES."""
    return (U(eight_bytes) - U(limits)) & ~U(eight_bytes) & TOPS


@kernel
def marks_of(eight_bytes, letter):
    """Return marks of the bytes that equal a letter; `letter` is the letter times ONES."""
    return marks_below(U(eight_bytes) ^ U(letter), ONES)


@kernel
def first(marks):
    """Return the first mark alone."""
    return U(marks) & (~U(marks) + ONE)


@kernel
def all_before(mark):
    """Return all bits of the bytes before a mark."""
    return (U(mark) >> AT_7) - ONE


@kernel
def before(mark):
    """Return the number of bytes before a mark."""
    return (((U(mark) - ONE) & ONES) * ONES >> BYTE_7) - ONE


@kernel
def digits(block, at):
    """Return the integer at this index, and the index after it; from 20 digits on, any value."""
    i = U(at)
    value = NONE
    word = eight(block, i) ^ ZEROS
    others = (word + ABOVE_NINE | word) & TOPS
    while others == NONE:
        value = value * EIGHT_DIGITS + worth(word)
        i += EIGHT
        word = eight(block, i) ^ ZEROS
        others = (word + ABOVE_NINE | word) & TOPS
    count = before(first(others))
    word = word << (BYTE_7 - count * EIGHT) << EIGHT
    return np.int64(value * POWERS[count] + worth(word)), np.int64(i + count)


@kernel
def worth(word):
    """Return the value of eight decimal digits, the first one most significant."""
    word = U(word) * TEN + (U(word) >> EIGHT)
    word = (word & PAIRS) * FIRST_AND_THIRD + (word >> BYTE_2 & PAIRS) * SECOND_AND_FOURTH
    return word >> BYTE_4
