"""Parse lines of columns into requests, as compiled code: one pass, no object per line."""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.jit import loop, method, state_machine
from hybridsim.requests.rows import UNKNOWN, Requests
from hybridsim.traces.formats.columns import NUMBERS, Table, To
from hybridsim.traces.formats.line_fields import (
    BAD,
    HASH,
    NEWLINE,
    NO_OP,
    after_blanks,
    after_last,
    after_separator,
    after_unknown,
    end_of_line,
    is_cut_quote,
    low_bit,
    named,
    number,
    skipped,
    stretched,
    word,
)

NUMBER_MAX = 1 << 61
LENGTH_MAX = 1 << 40
RESPONSE_MAX_NS = 3_600_000_000_000  # a longer one is an error of the trace
DEVICES_MAX = 0xFFFF
SLOTS = 1 << 17  # of open addressing
HIGHEST = 64 - 17  # bits
SHOWN = 3

READ, WRITE, FLUSH = int(Op.READ), int(Op.WRITE), int(Op.FLUSH)
NOTHING, TIME, OFFSET, LENGTH, RESPONSE, PROCESS, OP, LOW_BIT, DEVICE = range(9)
LAST_NUMBER = max(NUMBERS)


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
    if other is None:
        return Seen(
            tally,
            bad,
            slots=np.zeros((SLOTS, 2), np.int64),
            known=np.zeros(1, np.int64),
            devices=np.zeros((DEVICES_MAX, len(Of)), np.int64),
        )
    if not again:
        return other._replace(tally=tally, bad=bad)
    return Seen(
        tally,
        bad,
        slots=other.slots.copy(),
        known=other.known.copy(),
        devices=np.zeros_like(other.devices),
    )


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
