"""Parse the fields of a line, as compiled code: each function parses one field of a byte block.

Every line of the block ends with a newline, so no function needs to check for the block's end.
Mispredicted branches cost most, so words are read eight bytes at once, whatever their length, and
compared without branches.
"""

from __future__ import annotations

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.jit import kernel
from hybridsim.traces.formats.columns import To
from hybridsim.traces.formats.eight_bytes import (
    EIGHT,
    NONE,
    ONES,
    POWERS,
    ZEROS,
    all_before,
    before,
    digits,
    eight,
    first,
    marks_below,
    marks_of,
    worth,
)

NEWLINE, RETURN, BLANK, TAB, QUOTE, POINT, ZERO, HASH = b'\n\r \t".0#'
DIGITS_MAX = 19
PLACES = 9  # decimal places; further ones are ignored
BILLION = 10**PLACES
ONE = np.uint64(1)
EXPONENT, PLUS, MINUS, LETTER_N = b"e+-n"
EXPONENT_MAX = 99
SMALL, QUOTES, NEWLINES = BLANK * ONES, QUOTE * ONES, NEWLINE * ONES
CONTROLS, WORD_ENDS = (RETURN + 1) * ONES, (QUOTE + 1) * ONES
HASH_FACTOR, HASH_SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
NO_OP = -1
NO_WORD = -2
BAD = -1
READ, WRITE = int(Op.READ), int(Op.WRITE)
NOTHING = int(To.NOTHING)


@kernel
def after_blanks(block, at, separator):
    """Return the index of the next byte that is no blank and no quote; a tab separator counts."""
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
def billionths(block, at):
    """Return the decimals at this index in billionths, and the index after them."""
    value, end = digits(block, at)
    places = end - at
    if places <= PLACES:
        return value * np.int64(POWERS[PLACES - places]), end
    value = np.int64(worth(eight(block, np.uint64(at)) ^ ZEROS))
    return value * 10 + (np.int64(block[at + PLACES - 1]) ^ ZERO), end


@kernel
def number(block, at, scale, zero, limit):
    """Return a decimal number, scaled, and the index after it, or BAD."""
    value, end = digits(block, at)
    long = end - at
    if long == 0 or long > DIGITS_MAX:
        return value, BAD
    value -= zero
    if value < 0 or value > limit:  # an exponent may bring it into range
        if block[np.uint64(end)] == POINT:
            end = digits(block, end + 1)[1]
        if block[np.uint64(end)] | 32 == EXPONENT:
            return scientific(block, at, scale, zero, limit)
        return value, BAD
    value *= scale
    if block[np.uint64(end)] == POINT:
        part, end = billionths(block, end + 1)
        value += scale // BILLION * part + scale % BILLION * part // BILLION
    if block[np.uint64(end)] | 32 == EXPONENT:
        return scientific(block, at, scale, zero, limit)
    return value, end


@kernel
def scientific(block, at, scale, zero, limit):
    """Return a number with an exponent (1.5e-05), scaled, and the index after it, or BAD.

    Programs write times below 0.1 ms so.  Exact to 1 part in 2^53.
    """
    value = 0.0
    places = 0
    is_decimal = False
    while block[at] | 32 != EXPONENT:
        if block[at] == POINT:
            is_decimal = True
        else:
            value = value * 10.0 + (np.int64(block[at]) - ZERO)
            places += is_decimal
        at += 1
    at += 1
    is_negative = block[at] == MINUS
    if is_negative or block[at] == PLUS:
        at += 1
    exponent, end = digits(block, at)
    if end == at or end - at > 3 or exponent > EXPONENT_MAX:
        return np.int64(0), BAD
    power = (-exponent if is_negative else exponent) - places
    value = value * 10.0**power if power >= 0 else value / 10.0**-power
    value -= zero
    if value < 0 or value > limit:
        return np.int64(0), BAD
    return np.int64(np.rint(value * scale)), end


@kernel
def word(block, at, separator, words, codes):
    """Return the code of a word, and the index after it, or BAD."""
    letters = eight(block, np.uint64(at))
    ends = marks_below(letters, WORD_ENDS) | marks_of(letters, np.uint64(separator) * ONES)
    mark = first(ends)
    packed = np.int64((letters | SMALL) & all_before(mark))
    code = NO_WORD
    for each in range(len(words)):
        code = codes[each] if words[each] == packed else code
    if ends == NONE or code == NO_WORD:
        return NO_OP, BAD
    return code, at + np.int64(before(mark))


@kernel
def low_bit(block, at, separator):
    """Return READ if the hexadecimal number is odd, else WRITE; and the index after it, or BAD."""
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
def ends_of(letters, separator):
    """Return marks of the bytes that end a field: separators and control characters."""
    return marks_below(letters, CONTROLS) | marks_of(letters, np.uint64(separator) * ONES)


@kernel
def skipped(block, at, separator):
    """Return the index after a field; a quoted one may contain separators."""
    if at > 0 and block[at - 1] == QUOTE and separator != BLANK and block[at] != separator:
        while block[at] != QUOTE and block[at] != NEWLINE:
            at += 1
    i = np.uint64(at)
    ends = ends_of(eight(block, i), separator)
    while ends == NONE:
        i += EIGHT
        ends = ends_of(eight(block, i), separator)
    return np.int64(i + before(first(ends)))


@kernel
def after_unknown(block, at, separator):
    """Return the index after a field without a number if it says so: empty, -..., nan; or BAD."""
    end = skipped(block, at, separator)
    if end == at:
        return end if separator != BLANK else BAD
    letter = block[at] | 32
    is_none = letter == MINUS or letter == LETTER_N
    return end if is_none else BAD


@kernel
def is_cut_quote(block, line, begin, end, separator, to):
    """Return whether a field that is used ended at a separator within quotes, as in "1,024"."""
    if begin == line or block[begin - 1] != QUOTE or separator == BLANK or to == NOTHING:
        return False
    return end > begin and block[end] == separator


@kernel
def is_between(letter):
    """Return whether a byte is between fields that are separated by blanks: blank or quote."""
    return letter <= BLANK or letter == QUOTE


@kernel
def stretched(block, at, after):
    """Return the index after a field that is followed by `after` fields, from the right, or BAD."""
    end = end_of_line(block, at)
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
    """Return the index of the next field, or BAD."""
    if block[np.uint64(at)] == separator:
        return at + 1
    after = after_blanks(block, at, separator)
    if separator == BLANK:
        return BAD if block[after] == NEWLINE or after == at else after
    return after + 1 if block[after] == separator else BAD


@kernel
def after_last(block, at, separator, exact):
    """Return the index of the line's end after the last field; BAD if `exact` and more follow."""
    after = after_blanks(block, at, separator)
    if block[after] == NEWLINE:
        return after
    is_apart = after > at if separator == BLANK else block[after] == separator
    return BAD if exact or not is_apart else end_of_line(block, after)


@kernel
def named(block, at, separator, key):
    """Return the hash of a name, unique below eight bytes, and the index after the name."""
    i = np.uint64(at)
    letters = eight(block, i)
    ends = ends_of(letters, separator) | marks_of(letters, QUOTES)
    while ends == NONE:
        key = mixed(np.uint64(key) ^ letters)
        i += EIGHT
        letters = eight(block, i)
        ends = ends_of(letters, separator) | marks_of(letters, QUOTES)
    mark = first(ends)
    return mixed(np.uint64(key) ^ (letters & all_before(mark) | mark)), np.int64(i + before(mark))


@kernel
def mixed(key):
    """Return a hash in which every bit of the key affects the highest bits."""
    product = np.uint64(key) * HASH_FACTOR
    return np.int64(product ^ product >> HASH_SHIFT)


@kernel
def end_of_line(block, at):
    """Return the index of the newline that ends this line."""
    i = np.uint64(at)
    ends = marks_of(eight(block, i), NEWLINES)
    while ends == NONE:
        i += EIGHT
        ends = marks_of(eight(block, i), NEWLINES)
    return np.int64(i + before(first(ends)))
