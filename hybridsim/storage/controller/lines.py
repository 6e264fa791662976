"""Written data in a controller's DRAM: lines of sectors, dirty or being destaged.

This file also chooses the line to destage next (DESIGN.md 2.11).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.lru import LRU
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine
from hybridsim.storage.controller.ordered import OrderedSet
from hybridsim.storage.controller.slots import Slots

NOTHING = -1
SECTOR = 512


@state_machine
class Lines(NamedTuple):
    """Lines by number in the array, with one bit per sector.

    A line *waits* if it is dirty and no part of it is being destaged: only then can it be destaged.
    """

    line_bytes: int
    stripe_bytes: int  # data of a row of the array; a multiple of the line size
    slots: Slots
    dirty: Ints  # newer than on the array and not being destaged
    flying: Ints  # being destaged
    waiting: LRU  # lines that wait, longest first
    rows: OrderedSet  # rows with waiting lines; also some that have none any more
    position: Ints  # [row of the last destage]

    @classmethod
    def new(cls, line_bytes: int, lines: int, stripe_bytes: int, capacity_bytes: int) -> Lines:
        """Return empty DRAM."""
        length = max(lines, 1)
        return cls(
            line_bytes,
            stripe_bytes,
            Slots.new(lines),
            np.zeros(length, np.int64),
            np.zeros(length, np.int64),
            LRU.new(length),
            OrderedSet.below(-(-capacity_bytes // stripe_bytes) if lines else 1),
            np.zeros(1, np.int64),
        )

    @method
    def border(self, byte):
        """Return the byte after the last of a byte's line."""
        return (byte // self.line_bytes + 1) * self.line_bytes

    @method
    def mask(self, start, end):
        """Return the bits of the sectors from `start` to `end`, within one line."""
        first = start % self.line_bytes // SECTOR
        return ((1 << (end - start) // SECTOR) - 1) << first

    @method
    def held(self, byte):
        """Return the bits of the sectors in DRAM of a byte's line."""
        slot = self.slots.find(byte // self.line_bytes)
        return 0 if slot == NOTHING else self.dirty[slot] | self.flying[slot]

    @method
    def has_place(self, byte):
        """Return whether a byte's line is in DRAM, or there is a free slot for it."""
        return self.slots.free[1] > 0 or self.slots.find(byte // self.line_bytes) != NOTHING

    @method
    def write(self, start, end):
        """Make sectors of one line dirty; return how many of them were dirty already."""
        number = start // self.line_bytes
        mask = self.mask(start, end)
        slot = self.slots.find(number)
        if slot == NOTHING:
            slot = self.slots.take(number)
            self.dirty[slot] = 0
            self.flying[slot] = 0
        again = self.dirty[slot] & mask
        if self.dirty[slot] == 0 and self.flying[slot] == 0:
            self.wait(slot)
        self.dirty[slot] |= mask
        return self.bits(again)

    @method
    def wait(self, slot):
        """Add a line to those that wait."""
        self.waiting.admit(slot)
        self.rows.add(self.slots.number[slot] * self.line_bytes // self.stripe_bytes)

    @method
    def drop(self, start, end):
        """Drop the dirty sectors of a range; return their number."""
        first = start // self.line_bytes
        last = (end - 1) // self.line_bytes
        dropped = 0
        if last - first < self.slots.capacity:
            for number in range(first, last + 1):
                dropped += self.drop_in(self.slots.find(number), start, end)
            return dropped
        for slot in range(self.slots.capacity):  # a discard of half a disk
            if self.slots.find(self.slots.number[slot]) == slot:
                dropped += self.drop_in(slot, start, end)
        return dropped

    @method
    def drop_in(self, slot, start, end):
        """Drop the dirty sectors of a range in one line; return their number."""
        if slot == NOTHING:
            return 0
        begin = self.slots.number[slot] * self.line_bytes
        start = max(start, begin)
        end = min(end, begin + self.line_bytes)
        if start >= end:
            return 0
        gone = self.dirty[slot] & self.mask(start, end)
        self.dirty[slot] &= ~gone
        if gone != 0 and self.dirty[slot] == 0 and self.flying[slot] == 0:
            self.waiting.remove(slot)
            self.slots.release(slot)
        return self.bits(gone)

    @method
    def waits(self, number):
        """Return the slot of a line that waits, or -1."""
        slot = self.slots.find(number)
        return slot if slot != NOTHING and self.flying[slot] == 0 else NOTHING

    @method
    def next_start(self, oldest_first):
        """Return the first byte to destage next, or -1 if no line waits."""
        oldest = self.waiting.oldest()
        if oldest == NOTHING:
            return NOTHING
        row = self.slots.number[oldest] * self.line_bytes // self.stripe_bytes
        if not oldest_first:
            row = self.next_row(self.position[0])
        start = self.first_waiting(row)
        while start == NOTHING:  # no line of the row waits any more
            self.rows.discard(row)
            row = self.next_row(row)
            start = self.first_waiting(row)
        self.position[0] = row
        return start

    @method
    def next_row(self, row):
        """Return the first row with waiting lines from `row` on, wrapping round if needed."""
        after = self.rows.at_least(row)
        return after if after != NOTHING else self.rows.at_least(0)

    @method
    def first_waiting(self, row):
        """Return the first dirty byte of a waiting line of this row, or -1."""
        per_row = self.stripe_bytes // self.line_bytes
        for number in range(row * per_row, (row + 1) * per_row):
            slot = self.waits(number)
            if slot != NOTHING:
                return number * self.line_bytes + self.lowest(self.dirty[slot]) * SECTOR
        return NOTHING

    @method
    def start(self, begin):
        """Start the destage of dirty sectors from `begin` on, within the row; return their end."""
        row_end = (begin // self.stripe_bytes + 1) * self.stripe_bytes
        at = begin
        while at < row_end:
            slot = self.waits(at // self.line_bytes)
            if slot == NOTHING:
                break
            upto = at
            border = self.border(at)
            while upto < border and self.dirty[slot] & self.mask(upto, upto + SECTOR) != 0:
                upto += SECTOR
            if upto == at:
                break
            mask = self.mask(at, upto)
            self.dirty[slot] &= ~mask
            self.flying[slot] = mask
            self.waiting.remove(slot)
            at = upto
            if upto < border:
                break
        return at

    @method
    def landed(self, start, end):
        """End a destage: free its lines, unless they are dirty again."""
        for number in range(start // self.line_bytes, (end - 1) // self.line_bytes + 1):
            slot = self.slots.find(number)
            self.flying[slot] = 0
            if self.dirty[slot] != 0:
                self.wait(slot)
            else:
                self.slots.release(slot)

    @method
    def bits(self, word):
        """Return how many bits of a word are set."""
        count = 0
        while word != 0:
            word &= word - 1
            count += 1
        return count

    @method
    def lowest(self, word):
        """Return the index of the lowest set bit of a word."""
        place = 0
        while word & 1 == 0:
            word >>= 1
            place += 1
        return place
