"""The lists of lines in Open CAS: a plain one, and lists with a hot half."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s
from hybridsim.jit import kernel, method, state_machine

NOTHING = -1
LISTS = 32  # of clean lines, then as many of dirty lines
FIRST, LAST = range(2)
HEAD, TAIL, LAST_HOT, COUNT = range(4)
CHUNK_SHIFT = 8  # 256 lines in a row stand in the same list


@kernel
def list_of_lines(line):
    """Return the list of clean (and of free) lines that a line stands in."""
    return (line >> CHUNK_SHIFT) % LISTS


@state_machine
class Chain(NamedTuple):
    """A list of entries from the newest to the oldest."""

    before: Int32s  # by entry: the next newer
    after: Int32s  # by entry: the next older
    ends: Int32s  # [FIRST, LAST]: newest and oldest

    @classmethod
    def new(cls, entries: int) -> Chain:
        """Return an empty list for up to `entries` entries."""
        return cls(*(np.full(size, NOTHING, np.int32) for size in (entries, entries, 2)))

    @method
    def add(self, entry):
        """Add an entry as the newest."""
        newest = self.ends[FIRST]
        self.before[entry] = NOTHING
        self.after[entry] = newest
        if newest == NOTHING:
            self.ends[LAST] = entry
        else:
            self.before[newest] = entry
        self.ends[FIRST] = entry

    @method
    def add_oldest(self, entry):
        """Add an entry as the oldest."""
        oldest = self.ends[LAST]
        self.after[entry] = NOTHING
        self.before[entry] = oldest
        if oldest == NOTHING:
            self.ends[FIRST] = entry
        else:
            self.after[oldest] = entry
        self.ends[LAST] = entry

    @method
    def remove(self, entry):
        """Remove an entry."""
        newer = self.before[entry]
        older = self.after[entry]
        if newer == NOTHING:
            self.ends[FIRST] = older
        else:
            self.after[newer] = older
        if older == NOTHING:
            self.ends[LAST] = newer
        else:
            self.before[older] = newer


@state_machine
class Lists(NamedTuple):
    """Lists of lines from head to tail; the first half of each is hot, rounded down."""

    before: Int32s  # by line
    after: Int32s
    list_of: Bytes  # by line: its list + 1, or 0
    is_hot: Bytes
    ends: Int32s  # by list: [HEAD, TAIL, LAST_HOT, COUNT]

    @classmethod
    def new(cls, lines: int) -> Lists:
        """Return empty lists."""
        ends = np.full((2 * LISTS, 4), NOTHING, np.int32)
        ends[:, COUNT] = 0
        before, after = np.full(lines, NOTHING, np.int32), np.full(lines, NOTHING, np.int32)
        list_of, is_hot = np.zeros(lines, np.uint8), np.zeros(lines, np.uint8)
        return cls(before, after, list_of, is_hot, ends.ravel())

    @method
    def is_held(self, line):
        """Return whether a line is in a list."""
        return self.list_of[line] > 0

    @method
    def is_dirty(self, line):
        """Return whether a line is in a list of dirty lines."""
        return self.list_of[line] > LISTS

    @method
    def touch(self, line):
        """Move a cold line to the head of its list."""
        if self.is_hot[line] == 0:
            number = self.list_of[line] - 1
            self.remove(line)
            self.add(line, number)

    @method
    def add(self, line, number):
        """Add a line at the head of a list."""
        end = 4 * number
        head = self.ends[end + HEAD]
        self.list_of[line] = number + 1
        self.before[line] = NOTHING
        self.after[line] = head
        if head == NOTHING:
            self.ends[end + TAIL] = line
        else:
            self.before[head] = line
        self.ends[end + HEAD] = line
        self.ends[end + COUNT] += 1
        if self.ends[end + LAST_HOT] == NOTHING:
            self.ends[end + LAST_HOT] = line
        self.is_hot[line] = 1
        if self.ends[end + COUNT] & 1 == 1:  # the number of hot lines stays
            self.cool(end)

    @method
    def remove(self, line):
        """Remove a line from its list."""
        end = 4 * (self.list_of[line] - 1)
        self.list_of[line] = 0
        was_hot = self.is_hot[line] == 1
        if was_hot:
            self.is_hot[line] = 0
            if self.ends[end + LAST_HOT] == line:
                self.ends[end + LAST_HOT] = self.before[line]
        self.unlink(line, end)
        self.ends[end + COUNT] -= 1
        fewer_hot = self.ends[end + COUNT] & 1 == 1
        if fewer_hot and not was_hot:
            self.cool(end)
        elif was_hot and not fewer_hot:
            self.warm(end)

    @method
    def unlink(self, line, end):
        """Link the neighbours of a line to each other."""
        before = self.before[line]
        after = self.after[line]
        if before == NOTHING:
            self.ends[end + HEAD] = after
        else:
            self.after[before] = after
        if after == NOTHING:
            self.ends[end + TAIL] = before
        else:
            self.before[after] = before

    @method
    def cool(self, end):
        """Make the last hot line cold."""
        line = self.ends[end + LAST_HOT]
        self.is_hot[line] = 0
        self.ends[end + LAST_HOT] = self.before[line]

    @method
    def warm(self, end):
        """Make the first cold line hot."""
        last = self.ends[end + LAST_HOT]
        line = self.ends[end + HEAD] if last == NOTHING else self.after[last]
        self.is_hot[line] = 1
        self.ends[end + LAST_HOT] = line
