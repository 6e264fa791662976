"""Eight bytes of a text at once, as compiled code: 64 bits hold them, the first one lowest.

A mark is the top bit of a byte.  Marks are right up to the first one: what carries beyond it may
set others, and nobody looks at these.  A kernel takes every integer as signed: U() takes it back.
See H. Warren, "Hacker's Delight", 6-1, and D. Lemire, "Quickly parsing eight digits", 2018.
"""

from __future__ import annotations

import numpy as np

from hybridsim.jit import kernel

U = np.uint64
BEYOND = 7  # bytes that are read behind a byte
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
    """The eight bytes from place `i`: one load, the compiler finds."""
    low = U(block[U(i)]) | U(block[U(i) + ONE]) << EIGHT
    low |= U(block[U(i) + AT_2]) << BYTE_2 | U(block[U(i) + AT_3]) << BYTE_3
    high = U(block[U(i) + AT_4]) << BYTE_4 | U(block[U(i) + AT_5]) << BYTE_5
    return low | high | U(block[U(i) + AT_6]) << BYTE_6 | U(block[U(i) + AT_7]) << BYTE_7


@kernel
def marks_below(eight_bytes, least):
    """Marks of the bytes that are less than `least` times ONES."""
    return (U(eight_bytes) - U(least)) & ~U(eight_bytes) & TOPS


@kernel
def marks_of(eight_bytes, letter):
    """Marks of the bytes that are a letter, times ONES."""
    return marks_below(U(eight_bytes) ^ U(letter), ONES)


@kernel
def first(marks):
    """The first of some marks."""
    return U(marks) & (~U(marks) + ONE)


@kernel
def all_before(mark):
    """All bits of the bytes before one mark."""
    return (U(mark) >> AT_7) - ONE


@kernel
def before(mark):
    """How many bytes are before one mark."""
    return (((U(mark) - ONE) & ONES) * ONES >> BYTE_7) - ONE


@kernel
def digits(block, at):
    """The whole number that begins here, and the place after it; of 20 digits or more, any."""
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
    """What eight digits are worth, the first one most."""
    word = U(word) * TEN + (U(word) >> EIGHT)
    word = (word & PAIRS) * FIRST_AND_THIRD + (word >> BYTE_2 & PAIRS) * SECOND_AND_FOURTH
    return word >> BYTE_4
