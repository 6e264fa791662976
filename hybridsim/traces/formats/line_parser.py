"""Parse lines of columns into requests, as compiled code: one pass, no object per line.

Mispredicted branches cost most, so eight bytes of a text are processed at once, whatever the length
of a word: in 64 bits, the first byte lowest.  A mark is the top bit of a byte.  Only the first mark
is valid: a carry beyond it may set further ones, which are ignored.  A kernel receives every
integer as signed: U() converts it back.  See H. Warren, "Hacker's Delight", 6-1, and D. Lemire,
"Quickly parsing eight digits", 2018.

Every line of a block ends with a newline, so no function needs to check for the block's end.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.jit import kernel, loop, method, state_machine
from hybridsim.requests.rows import UNKNOWN, Requests
from hybridsim.traces.formats.columns import NUMBERS, Table, To

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


NEWLINE, RETURN, BLANK, TAB, QUOTE, POINT, ZERO, HASH = b'\n\r \t".0#'
DIGITS_MAX = 19
PLACES = 9  # decimal places; further ones are ignored
BILLION = 10**PLACES
EXPONENT, PLUS, MINUS, LETTER_N = b"e+-n"
EXPONENT_MAX = 99
SMALL, QUOTES, NEWLINES = BLANK * ONES, QUOTE * ONES, NEWLINE * ONES
CONTROLS, WORD_ENDS = (RETURN + 1) * ONES, (QUOTE + 1) * ONES
HASH_FACTOR, HASH_SHIFT = np.uint64(0x9E3779B97F4A7C15), np.uint64(29)
NO_OP = -1
NO_WORD = -2
BAD = -1
READ, WRITE, FLUSH = int(Op.READ), int(Op.WRITE), int(Op.FLUSH)
NOTHING, TIME, OFFSET, LENGTH, RESPONSE, PROCESS, OP, LOW_BIT, DEVICE = range(9)
LAST_NUMBER = max(NUMBERS)


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


NUMBER_MAX = 1 << 61
LENGTH_MAX = 1 << 40
RESPONSE_MAX_NS = 3_600_000_000_000  # a longer one is an error of the trace
DEVICES_MAX = 0xFFFF
SLOTS = 1 << 17  # of open addressing
HIGHEST = 64 - 17  # bits
SHOWN = 3


class Tally(IntEnum):
    """Indices into `Seen.tally`."""

    LINES = 0
    MALFORMED = 1
    EMPTY = 2  # no length
    NO_DIRECTION = 3
    OVER = 4  # lines of devices beyond DEVICES_MAX
    BLANK_LINES = 5


LINES, MALFORMED, EMPTY, NO_DIRECTION, OVER, BLANK_LINES = range(6)


class Of(IntEnum):
    """Columns of `Seen.devices`."""

    REQUESTS = 0
    BYTES = 1
    END = 2
    FIRST_AT = 3  # start of its name in the block with its first line
    FIRST_END = 4  # end of its name
    ABSURD = 5  # response times


REQUESTS, BYTES, END, FIRST_AT, FIRST_END, ABSURD = range(6)


class Plan(NamedTuple):
    """A Table as arrays of numbers."""

    to: Any  # int64 [field]
    scale: Any  # int64 [field]
    zero: Any  # int64 [field]
    limit: Any  # int64 [field]: of (number - zero)
    words: Any  # int64: up to seven lower-case letters, the first one lowest
    codes: Any  # int64, of the words
    separator: int
    elastic: int
    exact: int


@state_machine
class Seen(NamedTuple):
    """Counts of one pass over a file; the devices are shared by all files of the trace."""

    tally: Any  # int64, see Tally
    bad: Any  # int64 [SHOWN, 3]: line (of this block), begin, end
    slots: Any  # int64 [SLOTS, 2]: hash of a device name; its index + 1, 0: free
    known: Any  # int64 [1]: number of devices
    devices: Any  # int64 [device, Of]

    @method
    def device(self, key, begin, end):
        """Return the index of a device, adding a new one; DEVICES_MAX if there are too many."""
        slot = key >> HIGHEST & SLOTS - 1
        while self.slots[slot, 1] != 0:
            if self.slots[slot, 0] == key:
                return self.slots[slot, 1] - 1
            slot = (slot + 1) & (SLOTS - 1)
        known = self.known[0]
        if known < DEVICES_MAX:
            self.slots[slot, 0] = key
            self.slots[slot, 1] = known + 1
            self.devices[known, FIRST_AT] = begin
            self.devices[known, FIRST_END] = end
            self.known[0] = known + 1
        return known

    @method
    def malformed(self, line, begin, end):
        """Count a malformed line, and keep the positions of the first ones."""
        known = self.tally[MALFORMED]
        if known < SHOWN:
            self.bad[known, 0] = line
            self.bad[known, 1] = begin
            self.bad[known, 2] = end
        self.tally[MALFORMED] = known + 1


def plan_of(table: Table) -> Plan:
    """Return a table as arrays of numbers."""
    fields = table.fields
    known = list(table.ops.items())
    small = [bytes(letter | 32 for letter in word.encode()) for word, _ in known]
    return Plan(
        to=np.array([each.to for each in fields], np.int64),
        scale=np.array([each.scale for each in fields], np.int64),
        zero=np.array([each.zero for each in fields], np.int64),
        limit=np.array([limit_of(each.to) // each.scale for each in fields], np.int64),
        words=np.array([int.from_bytes(word, "little") for word in small], np.int64),
        codes=np.array([NO_OP if op is None else int(op) for _, op in known], np.int64),
        separator=ord(table.separator),
        elastic=table.elastic,
        exact=int(table.exact),
    )


def limit_of(to: To) -> int:
    """Return the largest valid number of a field."""
    return {To.LENGTH: LENGTH_MAX, To.PROCESS: (1 << 31) - 1}.get(to, NUMBER_MAX)


def nothing_seen(other: Seen | None = None, again: bool = False) -> Seen:
    """Return the empty state of a pass: the first, of a further file, or a repeated one.

    With `other`, the devices are shared with it; with `again`, their names and order are copied
    and their counts start at 0.
    """
    tally, bad = np.zeros(len(Tally), np.int64), np.zeros((SHOWN, 3), np.int64)
    if other is not None and not again:
        return other._replace(tally=tally, bad=bad)
    slots, known = np.zeros((SLOTS, 2), np.int64), np.zeros(1, np.int64)
    if other is not None:
        slots, known = other.slots.copy(), other.known.copy()
    return Seen(tally, bad, slots, known, np.zeros((DEVICES_MAX, len(Of)), np.int64))


@loop
def parse(block: Any, at: int, stop: int, plan: Plan, seen: Seen, wanted: int, out: Requests):
    """Parse the lines of block[at:stop], whose last byte ends a line.

    Requests of the wanted device (an index; -1: all) go to `out`, with unchanged times.  Returns
    (index where it stopped: `stop`, or earlier if `out` is full; the number of rows in `out`).
    """
    tally, devices = seen.tally, seen.devices
    separator, fields, exact = plan.separator, len(plan.to), plan.exact
    arrivals, offsets, lengths, ops = out.arrival_ns, out.offset_bytes, out.length_bytes, out.op
    rows = 0
    last_key, device = np.int64(0), np.int64(-1)  # of the line before
    time = offset = length = np.int64(0)
    op = np.int64(READ)
    response = process = np.int64(UNKNOWN)
    while at < stop and rows < len(arrivals):
        line = at
        tally[LINES] += 1
        key, name_at, name_end = np.int64(0), at, at
        for field in range(fields):
            at = after_blanks(block, at, separator)
            to = plan.to[field]
            begin = at
            if to <= LAST_NUMBER and to != NOTHING:
                value, at = number(
                    block, at, plan.scale[field], plan.zero[field], plan.limit[field]
                )
                if to == TIME:
                    time = value
                elif to == OFFSET:
                    offset = value
                elif to == LENGTH:
                    length = value
                elif to == RESPONSE:
                    response = value if at != BAD else np.int64(UNKNOWN)
                    at = at if at != BAD else after_unknown(block, begin, separator)
                else:
                    process = value
            elif to == OP:
                op, at = word(block, at, separator, plan.words, plan.codes)
            elif to == DEVICE:
                name_at = at if name_at == name_end else name_at
                key, at = named(block, at, separator, key)
                name_end = at
            elif to == LOW_BIT:
                op, at = low_bit(block, at, separator)
            elif field == plan.elastic:
                at = stretched(block, at, fields - field - 1)
            else:
                at = skipped(block, at, separator)
            if at != BAD and is_cut_quote(block, line, begin, at, separator, to):
                at = BAD
            if at != BAD and field + 1 < fields:
                at = after_separator(block, at, separator)
            if at == BAD:
                break
        if at != BAD:
            at = after_last(block, at, separator, exact)
        if at == BAD:
            at = end_of_line(block, line)
            first = block[after_blanks(block, line, separator)]
            if first == NEWLINE or first == HASH:
                tally[BLANK_LINES] += 1
            else:
                seen.malformed(tally[LINES], line, at)
            at += 1
            continue
        at += 1
        if op == NO_OP or (length == 0 and op != FLUSH):
            tally[NO_DIRECTION if op == NO_OP else EMPTY] += 1
            continue
        if key != last_key or device < 0:
            last_key = key
            device = seen.device(key, name_at, name_end)
        if device == DEVICES_MAX:
            tally[OVER] += 1
            continue
        devices[device, REQUESTS] += 1
        devices[device, BYTES] += length
        devices[device, END] = max(devices[device, END], offset + length)
        if response > RESPONSE_MAX_NS:
            devices[device, ABSURD] += 1
            response = np.int64(UNKNOWN)
        if wanted >= 0 and device != wanted:
            continue
        arrivals[rows] = time
        offsets[rows] = offset
        lengths[rows] = length
        ops[rows] = op
        out.device[rows] = device
        out.stream[rows] = process
        out.complete_ns[rows] = time + response if response >= 0 else UNKNOWN
        rows += 1
    return at, rows
