"""The lines of Open CAS: their content, and which one is taken next (DESIGN.md 2.13, 2.13.3)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.dmcache.table import Table
from hybridsim.caches.opencas.bits import Marks, Sectors
from hybridsim.caches.opencas.dirt import Dirt
from hybridsim.caches.opencas.jobs import Jobs
from hybridsim.caches.opencas.lists import LISTS, TAIL, Lists, list_of_lines
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.codes import Reason
from hybridsim.jit import method, state_machine

NOTHING = -1
SECTOR_SHIFT = 9
COLD, EVICTED, OVERWRITTEN = int(Reason.COLD), int(Reason.EVICTED), int(Reason.OVERWRITTEN)
FREE, CURSOR, CLEANING_LIST, EVICTIONS = range(4)


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
    next_free: Int32s  # by free line: the next of its list, or NOTHING
    first_free: Int32s  # by list: the line that has been free for longest, or NOTHING
    last_free: Int32s
    state: Ints  # [FREE ... EVICTIONS]

    @classmethod
    def new(
        cls, capacity: int, line_bytes: int, origin_bytes: int, dirt: Dirt, jobs: Jobs
    ) -> Lines:
        """Return free lines."""
        core_lines = -(-origin_bytes // line_bytes)
        sectors = line_bytes >> SECTOR_SHIFT
        lines = cls(
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
            np.full(capacity, NOTHING, np.int32),
            np.full(LISTS, NOTHING, np.int32),
            np.full(LISTS, NOTHING, np.int32),
            np.zeros(4, np.int64),
        )
        lines.link_free(np.arange(capacity))
        return lines

    def restarted(self, dirt: Dirt, jobs: Jobs) -> Lines:
        """Return the lines after an orderly shutdown: as they were."""
        state = np.array([self.state[FREE], 0, 0, self.state[EVICTIONS]])
        return self._replace(dirt=dirt, jobs=jobs, state=state)

    def recovered(self, now_ns: int, dirt: Dirt, jobs: Jobs) -> Lines:
        """Return the lines after a crash: what is not dirty is invalid (DESIGN.md 2.17)."""
        core_lines = 8 * len(self.evicted.eights)
        lines = Lines.new(self.capacity, self.line_bytes, core_lines * self.line_bytes, dirt, jobs)
        kept = np.flatnonzero(self.lists.list_of > LISTS)
        each = self.dirty.words_per_line
        words = (kept[:, None] * each + np.arange(each)).ravel()
        lines.valid.words[words] = lines.dirty.words[words] = self.dirty.words[words]
        for line in kept.tolist():
            core_line = int(self.table.number[line])
            lines.table.insert(line, core_line)
            lines.lists.add(line, LISTS + list_of_lines(line))
            dirt.recover(now_ns, line, core_line)
        lines.link_free(np.flatnonzero(lines.lists.list_of == 0))
        lines.state[EVICTIONS] = self.state[EVICTIONS]
        return lines._replace(evicted=self.evicted, overwritten=self.overwritten)

    def link_free(self, free: Ints) -> None:
        """Set the free lines, each list in ascending order."""
        self.first_free[:] = self.last_free[:] = NOTHING
        for number in range(LISTS):
            mine = free[list_of_lines(free) == number]
            if len(mine):
                self.next_free[mine[:-1]], self.next_free[mine[-1]] = mine[1:], NOTHING
                self.first_free[number], self.last_free[number] = mine[0], mine[-1]
        self.state[FREE] = len(free)

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
        self.lists.add(line, list_of_lines(line))

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
            self.lists.add(line, LISTS + list_of_lines(line))
            self.dirt.add(line, self.table.number[line])
        self.dirt.written(now, line, self.table.number[line], events)

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
        self.lists.add(line, list_of_lines(line))
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
        """Append a line to the free lines of its list."""
        number = list_of_lines(line)
        self.next_free[line] = NOTHING
        if self.first_free[number] == NOTHING:
            self.first_free[number] = line
        else:
            self.next_free[self.last_free[number]] = line
        self.last_free[number] = line
        self.state[FREE] += 1

    # Taking lines.

    @method
    def list_for(self, last):
        """Return the list to begin at: of the last line taken for the same job, or the next one."""
        if last != NOTHING:
            return list_of_lines(last)
        number = self.state[CURSOR]
        self.state[CURSOR] = (number + 1) % LISTS
        return number

    @method
    def take_free(self, last):
        """Remove and return the line that has been free longest in its list, or -1.

        `last` is the last free line taken for the same job, or -1.
        """
        if self.state[FREE] == 0:
            return NOTHING
        number = self.list_for(last)
        while self.first_free[number] == NOTHING:
            number = (number + 1) % LISTS
        line = self.first_free[number]
        self.first_free[number] = self.next_free[line]
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
        lists = self.lists
        beside = last + 1
        if last != NOTHING and beside < self.capacity and lists.is_held(beside):
            is_cold = not lists.is_dirty(beside) and lists.is_hot[beside] == 0
            if is_cold and self.can_be_taken(beside, first, end):
                return beside
        start = self.list_for(last)
        for step in range(LISTS):
            number = (start + step) % LISTS
            line = lists.ends[4 * number + TAIL]
            while line != NOTHING and not self.can_be_taken(line, first, end):
                line = lists.before[line]
            if line != NOTHING:
                return line
        return NOTHING

    @method
    def can_be_taken(self, line, first, end):
        """Return whether a line is not in use and holds no core line of [first, end)."""
        core_line = self.table.number[line]
        return not self.jobs.is_in_use(line) and not first <= core_line < end

    @method
    def next_to_clean(self, is_first):
        """Return a dirty line that is not in use, of the same list while it has one, or -1."""
        lists, state = self.lists, self.state
        if is_first:
            state[CLEANING_LIST] = self.list_for(NOTHING)
        for step in range(LISTS):
            number = (state[CLEANING_LIST] + step) % LISTS
            line = lists.ends[4 * (LISTS + number) + TAIL]
            while line != NOTHING and self.jobs.is_in_use(line):
                line = lists.before[line]
            if line != NOTHING:
                state[CLEANING_LIST] = number
                return line
        return NOTHING
