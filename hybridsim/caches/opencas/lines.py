"""The lines of Open CAS: their content, and which one is taken next (DESIGN.md 2.13, 2.13.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.dmcache.table import Table
from hybridsim.caches.opencas.bits import Marks, Sectors
from hybridsim.caches.opencas.dirt import Dirt
from hybridsim.caches.opencas.jobs import Jobs
from hybridsim.caches.opencas.lists import LISTS, TAIL, Lists
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.codes import Reason
from hybridsim.jit import method, state_machine

NOTHING = -1
SECTOR_SHIFT = 9
COLD, EVICTED, OVERWRITTEN = int(Reason.COLD), int(Reason.EVICTED), int(Reason.OVERWRITTEN)
NEXT_FREE, FREE, CURSOR, CLEANING_CURSOR, EVICTIONS = range(5)


@state_machine
class Lines(NamedTuple):
    """All lines; the core line of a line is its number in `table`."""

    capacity: int
    line_bytes: int
    table: Table
    lists: Lists
    valid: Sectors
    dirty: Sectors
    dirt: Dirt
    jobs: Jobs
    evicted: Marks  # core lines that were evicted
    overwritten: Marks
    free: Int32s  # a ring
    state: Ints  # [NEXT_FREE ... EVICTIONS]

    @classmethod
    def new(
        cls, capacity: int, line_bytes: int, origin_bytes: int, dirt: Dirt, jobs: Jobs
    ) -> Lines:
        """Return free lines."""
        core_lines = -(-origin_bytes // line_bytes)
        sectors = line_bytes >> SECTOR_SHIFT
        return cls(
            capacity,
            line_bytes,
            Table.new(capacity),
            Lists.new(capacity),
            Sectors.new(capacity, sectors),
            Sectors.new(capacity, sectors),
            dirt,
            jobs,
            Marks.new(core_lines),
            Marks.new(core_lines),
            np.arange(capacity, dtype=np.int32),
            np.array([0, capacity, 0, 0, 0]),
        )

    @method
    def look_up(self, core_line):
        """Return the line of a core line, and move it to the hot half; or -1."""
        line = self.table.find(core_line)
        if line != NOTHING:
            self.lists.touch(line)
        return line

    @method
    def holds(self, line, core_line):
        """Return whether a line holds a core line."""
        return self.lists.is_held(line) and self.table.number[line] == core_line

    @method
    def hold(self, line, core_line):
        """Assign an empty line to a core line."""
        self.table.insert(line, core_line)
        self.lists.add(line, line % LISTS)

    @method
    def start(self, core_line, offset):
        """Return the first sector of a core line that is at or after an offset."""
        return max(offset - core_line * self.line_bytes, 0) >> SECTOR_SHIFT

    @method
    def end(self, core_line, end):
        """Return the end of the sectors of a core line that are before an offset."""
        return min(end - core_line * self.line_bytes, self.line_bytes) >> SECTOR_SHIFT

    @method
    def why_missing(self, line, core_line):
        """Return why a core line is not completely valid."""
        if line != NOTHING and not self.valid.is_empty(line):
            return COLD
        if self.overwritten.has(core_line):
            return OVERWRITTEN
        if self.evicted.has(core_line):
            return EVICTED
        return COLD

    @method
    def make_dirty(self, now, line, start, end, events):
        """Mark sectors as dirty."""
        self.dirty.set(line, start, end)
        if not self.lists.is_dirty(line):
            self.lists.remove(line)
            self.lists.add(line, LISTS + line % LISTS)
            self.dirt.add(line, self.table.number[line])
        self.dirt.written(now, line, events)

    @method
    def make_clean(self, line):
        """Mark all sectors of a line as clean."""
        if self.lists.is_dirty(line):
            self.dirty.clear(line, 0, self.line_bytes >> SECTOR_SHIFT)
            self.move_to_clean(line)

    @method
    def move_to_clean(self, line):
        """Move a line without dirty sectors to a list of clean lines."""
        self.lists.remove(line)
        self.lists.add(line, line % LISTS)
        self.dirt.remove(line, self.table.number[line])

    @method
    def invalidate(self, line, start, end):
        """Invalidate sectors of a line; free the line if none is valid."""
        self.valid.clear(line, start, end)
        self.dirty.clear(line, start, end)
        if self.lists.is_dirty(line) and self.dirty.is_empty(line):
            self.move_to_clean(line)
        if self.valid.is_empty(line):
            core_line = self.table.number[line]
            self.overwritten.set(core_line)
            self.evicted.clear(core_line)
            self.empty(line)
            self.give_free(line)

    @method
    def empty(self, line):
        """Remove the content of a clean line."""
        self.lists.remove(line)
        self.table.remove(line)
        self.valid.clear(line, 0, self.line_bytes >> SECTOR_SHIFT)

    @method
    def give_free(self, line):
        """Append a line to the free lines."""
        self.free[(self.state[NEXT_FREE] + self.state[FREE]) % self.capacity] = line
        self.state[FREE] += 1

    # Taking lines.

    @method
    def take_free(self):
        """Remove and return the line that has been free longest, or -1."""
        if self.state[FREE] == 0:
            return NOTHING
        line = self.free[self.state[NEXT_FREE]]
        self.state[NEXT_FREE] = (self.state[NEXT_FREE] + 1) % self.capacity
        self.state[FREE] -= 1
        return line

    @method
    def take_held(self, last, first, end):
        """Evict and return a clean line that holds no core line of [first, end), or -1.

        `last` is the last victim for the same job, or -1.
        """
        line = self.victim(last, first, end)
        if line != NOTHING:
            self.state[EVICTIONS] += 1
            core_line = self.table.number[line]
            self.evicted.set(core_line)
            self.overwritten.clear(core_line)
            self.empty(line)
        return line

    @method
    def victim(self, last, first, end):
        """Return the line to evict, or -1."""
        lists, state = self.lists, self.state
        beside = last + 1
        if last != NOTHING and beside < self.capacity and lists.is_held(beside):
            is_cold = not lists.is_dirty(beside) and lists.is_hot[beside] == 0
            if is_cold and self.can_be_taken(beside, first, end):
                return beside
        for step in range(LISTS):
            number = (state[CURSOR] + step) % LISTS
            line = lists.ends[4 * number + TAIL]
            while line != NOTHING and not self.can_be_taken(line, first, end):
                line = lists.before[line]
            if line != NOTHING:
                state[CURSOR] = (number + 1) % LISTS
                return line
        return NOTHING

    @method
    def can_be_taken(self, line, first, end):
        """Return whether a line is not in use and holds no core line of [first, end)."""
        core_line = self.table.number[line]
        return not self.jobs.is_in_use(line) and not first <= core_line < end

    @method
    def next_to_clean(self):
        """Return a dirty line that is not in use, from the next list that has one, or -1."""
        lists, state = self.lists, self.state
        for step in range(LISTS):
            number = (state[CLEANING_CURSOR] + step) % LISTS
            line = lists.ends[4 * (LISTS + number) + TAIL]
            while line != NOTHING and self.jobs.is_in_use(line):
                line = lists.before[line]
            if line != NOTHING:
                state[CLEANING_CURSOR] = (number + 1) % LISTS
                return line
        return NOTHING
