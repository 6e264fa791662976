"""The fields of a line, as compiled code: each takes one from a block of bytes.

Every line of the block ends with a newline, so that no field needs to look at the block's end.
"""

from __future__ import annotations

import numpy as np

from hybridsim.codes import Op
from hybridsim.jit import kernel

NEWLINE, RETURN, BLANK, TAB, QUOTE, POINT, ZERO, HASH = b'\n\r \t".0#'
DIGITS_MAX = 19
DECIMALS = 10**9  # more places are left out
WORD_BYTES_MAX = 7
HASH_START, HASH_FACTOR = 0x4BF29CE484222325, 0x100000001B3  # as of FNV-1a
ONE = np.uint64(1)
NO_OP = -1
BAD = -1
READ, WRITE = int(Op.READ), int(Op.WRITE)


@kernel
def ends(letter, separator):
    """Whether a field ends at this letter: at its separator, a control, of blanks any."""
    return letter == separator or letter <= RETURN


@kernel
def after_blanks(block, at, separator):
    """Place of the next letter that is no blank, no quote, and no separator but a blank."""
    i = np.uint64(at)
    letter = block[i]
    while letter <= QUOTE and (
        letter == BLANK
        or letter == QUOTE
        or letter == RETURN
        or (letter == TAB and separator != TAB)
    ):
        i += ONE
        letter = block[i]
    return np.int64(i)


@kernel
def digits(block, at):
    """The whole number that begins here, and the place after it."""
    i = np.uint64(at)
    value = np.int64(0)
    digit = np.int64(block[i]) ^ ZERO
    while digit <= 9:
        value = value * 10 + digit
        i += ONE
        digit = np.int64(block[i]) ^ ZERO
    return value, np.int64(i)


@kernel
def decimals(block, at, scale):
    """What the decimals that begin here are worth, and the place after them."""
    i = np.uint64(at)
    part, worth = np.int64(0), np.int64(1)
    digit = np.int64(block[i]) ^ ZERO
    while digit <= 9:
        if worth < DECIMALS:
            part = part * 10 + digit
            worth *= 10
        i += ONE
        digit = np.int64(block[i]) ^ ZERO
    return part * scale // worth, np.int64(i)


@kernel
def number(block, at, scale, zero, limit):
    """A decimal number, scaled, and the place after it, or BAD."""
    value, end = digits(block, at)
    long = end - at
    value -= zero
    if long == 0 or long > DIGITS_MAX or value < 0 or value > limit:
        return value, BAD
    value *= scale
    if block[np.uint64(end)] == POINT:
        part, end = decimals(block, end + 1, scale)
        value += part
    return value, end


@kernel
def word(block, at, separator, words, codes):
    """What a word says of a request, and the place after it, or BAD."""
    end = at
    packed = np.int64(0)
    letter = block[np.uint64(end)]
    while letter > BLANK and letter != separator and letter != QUOTE:
        packed = packed << 8 | np.int64(letter | 32)
        end += 1
        letter = block[np.uint64(end)]
        if end - at > WORD_BYTES_MAX:
            return NO_OP, BAD
    for each in range(len(words)):
        if words[each] == packed:
            return codes[each], end
    return NO_OP, BAD


@kernel
def low_bit(block, at, separator):
    """Read if the hexadecimal number is odd, else write; and the place after it, or BAD."""
    end = at
    last = np.int64(0)
    while block[end] > BLANK and block[end] != separator and block[end] != QUOTE:
        last = np.int64(block[end])
        if last ^ ZERO > 9:
            last = (last | 32) - 87
            if last < 10 or last > 15:
                return NO_OP, BAD
        end += 1
    return READ if last & 1 else WRITE, end if end > at else BAD


@kernel
def skipped(block, at, separator):
    """Place after a field; one in quotes may hold separators."""
    if at > 0 and block[at - 1] == QUOTE and separator != BLANK and block[at] != separator:
        while block[at] != QUOTE and block[at] != NEWLINE:
            at += 1
    while not ends(block[at], separator):
        at += 1
    return at


@kernel
def is_between(letter):
    """Whether a letter stands between fields that blanks separate; quotes do as well."""
    return letter <= BLANK or letter == QUOTE


@kernel
def stretched(block, at, after):
    """Place after a field that has `after` fields behind it, found from the right, or BAD."""
    end = at
    while block[end] != NEWLINE:
        end += 1
    for _ in range(after):
        while end > at and is_between(block[end - 1]):
            end -= 1
        while end > at and not is_between(block[end - 1]):
            end -= 1
    while end > at and is_between(block[end - 1]):
        end -= 1
    return end if end > at else BAD


@kernel
def after_separator(block, at, separator):
    """Place of the next field, or BAD."""
    if block[np.uint64(at)] == separator:
        return at + 1
    after = after_blanks(block, at, separator)
    if separator == BLANK:
        return BAD if block[after] == NEWLINE or after == at else after
    return after + 1 if block[after] == separator else BAD


@kernel
def after_last(block, at, separator, exact):
    """Place of the line's end after the last field; BAD if there are more and must not be."""
    after = after_blanks(block, at, separator)
    if block[after] == NEWLINE:
        return after
    is_apart = after > at if separator == BLANK else block[after] == separator
    return BAD if exact or not is_apart else end_of_line(block, after)


@kernel
def named(block, at, separator, key):
    """Hash of a name, and the place after it."""
    i = np.uint64(at)
    while not ends(block[i], separator) and block[i] != QUOTE:
        key = (key ^ np.int64(block[i])) * HASH_FACTOR
        i += ONE
    return (key ^ NEWLINE) * HASH_FACTOR, np.int64(i)


@kernel
def end_of_line(block, at):
    """Place of the newline that ends this line."""
    i = np.uint64(at)
    while block[i] != NEWLINE:
        i += ONE
    return np.int64(i)
