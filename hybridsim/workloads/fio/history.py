"""The written requests that verify has not yet read back."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import kernel, method, state_machine
from hybridsim.workloads.fio.pattern import WRITE, Pattern

# Indices of the state: the next request to read, the end of the list, and whether it was too small.
HEAD, TAIL, IS_FULL = range(3)
ENDLESS_ROWS = 1 << 20  # of a time-based job, whose passes have any number of writes
ROWS_MAX = 1 << 27  # 1 GiB per column, committed as it is used: 512 GiB in writes of 4 KiB


@state_machine
class History(NamedTuple):
    """A list in the order of the writes or, where blocks may be written twice, by offset.

    Sorted, a write removes the earlier ones that it overlaps.
    """

    is_sorted: int
    is_online: int  # overlaps are removed at each write, as their number matters (verify_backlog)
    offset: Ints  # with the file's index in its upper bits
    length: Ints
    scratch: Ints  # four rows to sort the list
    state: Ints

    @classmethod
    def of(cls, pattern: Pattern) -> History:
        """Create the history of a pattern; empty and unused unless the pattern reads back."""
        rows = rows_of(pattern)
        return cls(
            int(not pattern.uses_map),
            int(pattern.backlog > 0),
            np.zeros(rows, np.int64),  # pages are committed when they are used
            np.zeros(rows, np.int64),
            np.zeros((4, rows if not pattern.uses_map and not pattern.backlog else 0), np.int64),
            np.zeros(3, np.int64),
        )

    @method
    def is_empty(self):
        """Return whether nothing is left to read."""
        return self.state[HEAD] == self.state[TAIL]

    @method
    def take(self):
        """Remove the next request; return its offset and length."""
        row = self.state[HEAD]
        self.state[HEAD] += 1
        at, size = self.offset[row], self.length[row]
        if self.is_empty():
            self.state[HEAD] = self.state[TAIL] = 0
        return at, size

    @method
    def is_full(self):
        """Return whether writes are missing, as the list was too small."""
        return self.state[IS_FULL] == 1

    @method
    def add(self, at, size):
        """Add a write."""
        state = self.state
        if state[TAIL] == len(self.offset):
            self.compact()
        if state[TAIL] == len(self.offset):
            state[IS_FULL] = 1
            return
        if self.is_sorted == 1 and self.is_online == 1:
            self.insert(at, size)
            return
        self.offset[state[TAIL]], self.length[state[TAIL]] = at, size
        state[TAIL] += 1

    @method
    def compact(self):
        """Move the list to the begin of its arrays."""
        state = self.state
        for row in range(state[HEAD], state[TAIL]):
            self.offset[row - state[HEAD]] = self.offset[row]
            self.length[row - state[HEAD]] = self.length[row]
        state[TAIL] -= state[HEAD]
        state[HEAD] = 0

    @method
    def insert(self, at, size):
        """Insert a write in the order of the offsets, in place of those that it overlaps."""
        state = self.state
        low, high = state[HEAD], state[TAIL]
        while low < high:  # the first that ends behind the begin of the new one
            middle = (low + high) // 2
            if self.offset[middle] + self.length[middle] > at:
                high = middle
            else:
                low = middle + 1
        first = high = low
        while high < state[TAIL] and self.offset[high] < at + size:
            high += 1
        shift = 1 - (high - first)
        if shift > 0:
            for row in range(state[TAIL] - 1, high - 1, -1):
                self.offset[row + shift] = self.offset[row]
                self.length[row + shift] = self.length[row]
        elif shift < 0:
            for row in range(high, state[TAIL]):
                self.offset[row + shift] = self.offset[row]
                self.length[row + shift] = self.length[row]
        state[TAIL] += shift
        self.offset[first], self.length[first] = at, size

    @method
    def sort(self):
        """Sort the list without the writes that later ones overlap."""
        state = self.state
        rows = state[TAIL] - state[HEAD]
        if self.is_sorted == 0 or self.is_online == 1 or rows == 0:
            return
        at, size = self.scratch[0], self.scratch[1]
        widest = 0
        for row in range(rows):
            at[row] = self.offset[state[HEAD] + row]
            size[row] = self.length[state[HEAD] + row]
            widest = max(widest, size[row])
        order = self.scratch[2]
        rank(at, rows, order, self.scratch[3])
        # A write stays if no later one overlaps it; any that does begins within `widest` bytes.
        state[TAIL] = state[HEAD]
        for place in range(rows):
            row = order[place]
            is_last = True
            near = place + 1  # these first: of equal offsets the next one is the later one
            while is_last and near < rows and at[order[near]] < at[row] + size[row]:
                if order[near] > row:
                    is_last = False
                near += 1
            near = place - 1
            while is_last and near >= 0 and at[order[near]] + widest > at[row]:
                other = order[near]
                if other > row and at[other] + size[other] > at[row]:
                    is_last = False
                near -= 1
            if is_last:
                self.offset[state[TAIL]], self.length[state[TAIL]] = at[row], size[row]
                state[TAIL] += 1


@kernel
def rank(values, rows, order, other):
    """Store the indices that sort `rows` values; equal ones keep their order (a merge sort)."""
    for row in range(rows):
        order[row] = row
    width = 1
    while width < rows:
        for begin in range(0, rows, 2 * width):
            left, middle = begin, min(begin + width, rows)
            right, end = middle, min(begin + 2 * width, rows)
            for place in range(begin, end):
                takes_left = left < middle
                if takes_left and right < end:
                    takes_left = values[order[left]] <= values[order[right]]
                if takes_left:
                    other[place] = order[left]
                    left += 1
                else:
                    other[place] = order[right]
                    right += 1
        for row in range(rows):
            order[row] = other[row]
        width *= 2


def rows_of(pattern: Pattern) -> int:
    """Return the maximum number of writes that are not yet read back."""
    if not pattern.reads_back or WRITE not in pattern.directions:
        return 0
    minimum = pattern.sizes[WRITE].minimum
    moved = max(pattern.region_bytes, pattern.pass_bytes * pattern.passes)
    rows = moved // minimum + 2
    rows = max(ENDLESS_ROWS, 4 * pattern.backlog, rows) if pattern.is_endless else rows
    return min(rows, ROWS_MAX)
