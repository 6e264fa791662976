"""What is in a controller's DRAM: windows that are read ahead, and lines that are written back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.streams import Streams
from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled, free_list
from hybridsim.foundation.machine_parameters import ControllerParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.instructions import octave
from hybridsim.jit.lists import NOTHING, Chains, Fifos, Table, give_back, taken


@state_machine
class Slots(NamedTuple):
    """A fixed number of slots; each holds one number, and no number is in two."""

    capacity: int
    table: Table  # number -> slot
    following: Int32s  # the free list
    free: Ints  # [first free slot, number of free slots]

    @classmethod
    def new(cls, capacity: int) -> Slots:
        """Return empty slots; `capacity` may be 0."""
        length = max(capacity, 1)
        return cls(capacity, Table.new(length), free_list(length), np.array([0, capacity]))

    @method
    def used(self):
        """Return the number of used slots."""
        return self.capacity - self.free[1]

    @method
    def take(self, number):
        """Put a number that no slot holds into a free slot; there must be one."""
        slot = taken(self)
        self.table.insert(slot, number)
        return slot

    @method
    def release(self, slot):
        """Free a slot."""
        self.table.remove(slot)
        give_back(self, slot)


SHIFT = 5
BITS = 1 << SHIFT
LOW = BITS - 1
ONES = (1 << BITS) - 1


@state_machine
class OrderedSet(NamedTuple):
    """Numbers, one bit each; unused parts of the array take no physical memory."""

    words: Ints  # of all levels, the numbers themselves first
    level: Ints  # first word of each level; the last level has one word

    @classmethod
    def below(cls, limit: int) -> OrderedSet:
        """Return an empty set for numbers 0..limit-1."""
        sizes = [-(-max(limit, 1) // BITS)]
        while sizes[-1] > 1:
            sizes.append(-(-sizes[-1] // BITS))
        starts = np.cumsum([0, *sizes[:-1]], dtype=np.int64)
        return cls(np.zeros(sum(sizes), np.int64), starts)

    @method
    def add(self, number):
        """Add a number."""
        for start in self.level:
            word = start + (number >> SHIFT)
            before = self.words[word]
            self.words[word] = before | (1 << (number & LOW))
            if before != 0:
                return
            number >>= SHIFT

    @method
    def discard(self, number):
        """Remove a number, if it is in the set."""
        for start in self.level:
            word = start + (number >> SHIFT)
            self.words[word] &= ~(1 << (number & LOW))
            if self.words[word] != 0:
                return
            number >>= SHIFT

    @method
    def at_least(self, number):
        """Return the smallest number of the set that is not below `number`, or -1."""
        for height in range(len(self.level)):
            upto = len(self.words)
            if height + 1 < len(self.level):
                upto = self.level[height + 1]
            word = self.level[height] + (number >> SHIFT)
            if word >= upto:
                return NOTHING
            later = self.words[word] & (ONES << (number & LOW))
            if later != 0:
                number = (number & ~LOW) | octave(later & -later)
                return self.descend(height, number)
            number = (number >> SHIFT) + 1
        return NOTHING

    @method
    def descend(self, height, number):
        """Return the smallest number below the bit `number` of a level."""
        while height > 0:
            height -= 1
            word = self.words[self.level[height] + number]
            number = (number << SHIFT) | octave(word & -word)  # its lowest bit
        return number


READING, DOOMED, READY = 1, 2, 3  # DOOMED: being read, but stale on arrival


@state_machine
class Windows(NamedTuple):
    """The windows in DRAM or being read, and the streams that they are read for."""

    window_bytes: int
    read_ahead_bytes: int  # distance
    sequential_after: int  # number of requests that make a stream sequential
    capacity_bytes: int  # of the array
    slots: Slots
    state: Bytes
    start: Ints  # first byte that was read
    waiting: Fifos  # by window: transfers that wait for it
    ready: Chains  # in order of use
    streams: Streams

    @classmethod
    def new(cls, parameters: ControllerParameters, capacity_bytes: int) -> Windows:
        """Return empty DRAM."""
        p, length = parameters, max(parameters.windows, 1)
        return filled(
            cls,
            length,
            p,
            capacity_bytes=capacity_bytes,
            slots=Slots.new(p.windows),
            waiting=Fifos.new(length),
            ready=Chains.new(length),
            streams=Streams.new(p.streams),
        )

    @method
    def holding(self, byte):
        """Return the window that has a byte, or will have it after the read in progress; or -1."""
        slot = self.slots.table.find(byte // self.window_bytes)
        if slot == NOTHING or self.state[slot] == DOOMED or byte < self.start[slot]:
            return NOTHING
        return slot

    @method
    def border(self, byte):
        """Return the next byte after which the state of bytes may change."""
        number = byte // self.window_bytes
        slot = self.slots.table.find(number)
        if slot != NOTHING and byte < self.start[slot]:
            return self.start[slot]
        return (number + 1) * self.window_bytes

    @method
    def end(self, number):
        """Return the byte after the last of a window."""
        return min((number + 1) * self.window_bytes, self.capacity_bytes)

    @method
    def claim(self, number, start):
        """Allocate a slot for a new window, to be read from `start` on; -1 if there is none."""
        if self.slots.free[1] == 0:
            victim = self.ready.oldest[0]
            if victim == NOTHING:
                return NOTHING
            self.ready.remove(0, victim)
            self.slots.release(victim)
        slot = self.slots.take(number)
        self.state[slot] = READING
        self.start[slot] = start
        return slot

    @method
    def drop_window(self, slot):
        """Drop a window; one that is being read keeps its slot."""
        if self.state[slot] == READY:
            self.ready.remove(0, slot)
            self.slots.release(slot)
        else:
            self.state[slot] = DOOMED

    @method
    def drop_passed(self, start, end):
        """Drop the windows whose end a read from `start` to `end` has reached."""
        for number in range(start // self.window_bytes, (end - 1) // self.window_bytes + 1):
            if self.end(number) <= end:
                slot = self.slots.table.find(number)
                if slot != NOTHING:
                    self.drop_window(slot)

    @method
    def invalidate(self, start, end):
        """Drop all windows that overlap a range."""
        if self.slots.used() == 0:
            return
        first = start // self.window_bytes
        last = (end - 1) // self.window_bytes
        if last - first < self.slots.capacity:
            for number in range(first, last + 1):
                slot = self.slots.table.find(number)
                if slot != NOTHING:
                    self.drop_window(slot)
            return
        for slot in range(self.slots.capacity):  # a discard of half a disk
            number = self.slots.table.number[slot]
            if first <= number <= last and self.slots.table.find(number) == slot:
                self.drop_window(slot)


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
    waiting: Chains  # lines that wait
    rows: OrderedSet  # rows with waiting lines; also some that have none any more
    position: Ints  # [row of the last destage]

    @classmethod
    def new(cls, parameters: ControllerParameters, capacity_bytes: int) -> Lines:
        """Return empty DRAM."""
        p, length = parameters, max(parameters.lines, 1)
        return filled(
            cls,
            length,
            p,
            slots=Slots.new(p.lines),
            waiting=Chains.new(length),
            rows=OrderedSet.below(-(-capacity_bytes // p.stripe_bytes) if p.lines else 1),
            position=np.zeros(1, np.int64),
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
        slot = self.slots.table.find(byte // self.line_bytes)
        return 0 if slot == NOTHING else self.dirty[slot] | self.flying[slot]

    @method
    def has_place(self, byte):
        """Return whether a byte's line is in DRAM, or there is a free slot for it."""
        return self.slots.free[1] > 0 or self.slots.table.find(byte // self.line_bytes) != NOTHING

    @method
    def write(self, start, end):
        """Make sectors of one line dirty; return how many of them were dirty already."""
        number = start // self.line_bytes
        mask = self.mask(start, end)
        slot = self.slots.table.find(number)
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
        self.waiting.add(0, slot)
        self.rows.add(self.slots.table.number[slot] * self.line_bytes // self.stripe_bytes)

    @method
    def drop(self, start, end):
        """Drop the dirty sectors of a range; return their number."""
        first = start // self.line_bytes
        last = (end - 1) // self.line_bytes
        dropped = 0
        if last - first < self.slots.capacity:
            for number in range(first, last + 1):
                dropped += self.drop_in(self.slots.table.find(number), start, end)
            return dropped
        for slot in range(self.slots.capacity):  # a discard of half a disk
            if self.slots.table.find(self.slots.table.number[slot]) == slot:
                dropped += self.drop_in(slot, start, end)
        return dropped

    @method
    def drop_in(self, slot, start, end):
        """Drop the dirty sectors of a range in one line; return their number."""
        if slot == NOTHING:
            return 0
        begin = self.slots.table.number[slot] * self.line_bytes
        start = max(start, begin)
        end = min(end, begin + self.line_bytes)
        if start >= end:
            return 0
        gone = self.dirty[slot] & self.mask(start, end)
        self.dirty[slot] &= ~gone
        if gone != 0 and self.dirty[slot] == 0 and self.flying[slot] == 0:
            self.waiting.remove(0, slot)
            self.slots.release(slot)
        return self.bits(gone)

    @method
    def waits(self, number):
        """Return the slot of a line that waits, or -1."""
        slot = self.slots.table.find(number)
        return slot if slot != NOTHING and self.flying[slot] == 0 else NOTHING

    @method
    def next_start(self, oldest_first):
        """Return the first byte to destage next, or -1 if no line waits."""
        oldest = self.waiting.oldest[0]
        if oldest == NOTHING:
            return NOTHING
        row = self.slots.table.number[oldest] * self.line_bytes // self.stripe_bytes
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
                dirty = self.dirty[slot]
                return number * self.line_bytes + octave(dirty & -dirty) * SECTOR
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
            self.waiting.remove(0, slot)
            at = upto
            if upto < border:
                break
        return at

    @method
    def landed(self, start, end):
        """End a destage: free its lines, unless they are dirty again."""
        for number in range(start // self.line_bytes, (end - 1) // self.line_bytes + 1):
            slot = self.slots.table.find(number)
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
