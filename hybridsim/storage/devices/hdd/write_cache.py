"""The write cache of disks: acknowledged writes that are not yet on the platters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine

NOTHING = -1


@state_machine
class WriteCache(NamedTuple):
    """Ranges to be written, oldest first; each disk may be writing one more.

    To a media cache, it may be writing others along with that one.
    """

    size_bytes: int  # 0: none
    window: int  # number of oldest ranges that the disk chooses from
    start: Ints  # [member, range]
    end: Ints
    ready_ns: Ints  # when all of its data has arrived from the host
    serial: Ints  # number of the write that created the range
    zone: Ints  # place of its first byte
    track: Ints
    cylinder: Ints
    angle_ns: Ints
    ranges: Ints  # [member]: number of ranges
    used_bytes: Ints
    admitted: Ints  # number of writes so far
    writing_start: Ints  # the range being written; NOTHING if there is none
    writing_end: Ints
    writing_serial: Ints  # the lowest of what is being written
    along: Ints  # [member]: number of ranges that are being written along with that one
    along_start: Ints  # [member, range]
    along_end: Ints

    @classmethod
    def new(cls, members: int, ranges: int, size_bytes: int, window: int) -> WriteCache:
        """Return empty caches."""
        shape = (members, ranges if size_bytes > 0 else 0)
        columns = (np.zeros(shape, np.int64) for _ in range(8))
        sums = (np.zeros(members, np.int64) for _ in range(3))
        writing = (np.full(members, NOTHING, np.int64) for _ in range(3))
        along = (np.zeros(members, np.int64), *(np.zeros(shape, np.int64) for _ in range(2)))
        return cls._make([size_bytes, window, *columns, *sums, *writing, *along])

    @method
    def has_room(self, member, length):
        """Return whether a write of that length fits."""
        fits = self.used_bytes[member] + length <= self.size_bytes
        return fits and self.ranges[member] < self.start.shape[1]

    @method
    def is_crowded(self, member):
        """Return whether more than three quarters are used."""
        return (
            4 * self.used_bytes[member] > 3 * self.size_bytes
            or 4 * self.ranges[member] > 3 * self.start.shape[1]
        )

    @method
    def holds(self, member, offset, end):
        """Return whether one range has all of these bytes."""
        if self.writing_start[member] <= offset and end <= self.writing_end[member]:
            return True
        for each in range(self.ranges[member]):
            if self.start[member, each] <= offset and end <= self.end[member, each]:
                return True
        return False

    @method
    def holds_along(self, member, offset, end):
        """Return whether one of the ranges that are written along has all of these bytes."""
        for each in range(self.along[member]):
            if self.along_start[member, each] <= offset and end <= self.along_end[member, each]:
                return True
        return False

    @method
    def add(self, member, offset, end, ready_ns, platters):
        """Cache a write: the oldest range that it touches grows, else it becomes a new range."""
        self.admitted[member] += 1
        for each in range(self.ranges[member]):
            if self.start[member, each] <= end and offset <= self.end[member, each]:
                break
        else:
            each = self.ranges[member]
            self.ranges[member] += 1
            self.start[member, each] = self.end[member, each] = offset
            self.serial[member, each] = self.admitted[member]
            self.put(member, each, offset, platters)
        if offset < self.start[member, each]:
            self.put(member, each, offset, platters)
        self.used_bytes[member] -= self.end[member, each] - self.start[member, each]
        self.start[member, each] = min(offset, self.start[member, each])
        self.end[member, each] = max(end, self.end[member, each])
        self.used_bytes[member] += self.end[member, each] - self.start[member, each]
        self.ready_ns[member, each] = ready_ns

    @method
    def put(self, member, each, offset, platters):
        """Set the place of a range on the platters."""
        zone, track, cylinder, angle_ns = platters.place(offset)
        self.zone[member, each] = zone
        self.track[member, each] = track
        self.cylinder[member, each] = cylinder
        self.angle_ns[member, each] = angle_ns

    @method
    def pick(self, now, member, latest, arm):
        """Return the range to write next: of the oldest ones, the one that is reached first.

        `latest` is the last write that a flush waits for; later writes are not considered.
        """
        best = 0
        lowest = self.reach_ns(now, member, 0, arm)
        for each in range(1, min(self.window, self.ranges[member])):
            if self.serial[member, each] > latest:
                break
            cost = self.reach_ns(now, member, each, arm)
            if cost < lowest:
                lowest = cost
                best = each
        return best

    @method
    def reach_ns(self, now, member, each, arm):
        """Return the time until a range can be written."""
        ready = max(now, self.ready_ns[member, each])
        track, cylinder = self.track[member, each], self.cylinder[member, each]
        angle_ns = self.angle_ns[member, each]
        return ready - now + arm.reach_ns(member, ready, ready, track, cylinder, angle_ns, True)

    @method
    def begin(self, member, each):
        """Remove a range, as the disk starts to write it."""
        self.writing_start[member] = self.start[member, each]
        self.writing_end[member] = self.end[member, each]
        self.writing_serial[member] = self.serial[member, each]
        self.ranges[member] -= 1
        for column in self.columns():
            for place in range(each, self.ranges[member]):
                column[member, place] = column[member, place + 1]

    @method
    def begin_along(self, member, each):
        """Note another range as part of the same write; `close` takes it out of the list."""
        number = self.along[member]
        self.along[member] += 1
        self.along_start[member, number] = self.start[member, each]
        self.along_end[member, number] = self.end[member, each]
        serial = self.serial[member, each]
        self.writing_serial[member] = min(self.writing_serial[member], serial)
        self.start[member, each] = NOTHING

    @method
    def close(self, member):
        """Take out of the list what is written along."""
        kept = 0
        for each in range(self.ranges[member]):
            if self.start[member, each] != NOTHING:
                for column in self.columns():
                    column[member, kept] = column[member, each]
                kept += 1
        self.ranges[member] = kept

    @method
    def columns(self):
        """Return what is known of each range."""
        return (
            self.start,
            self.end,
            self.ready_ns,
            self.serial,
            self.zone,
            self.track,
            self.cylinder,
            self.angle_ns,
        )

    @method
    def finish_along(self, member):
        """Drop what has been written along."""
        for each in range(self.along[member]):
            self.used_bytes[member] -= self.along_end[member, each] - self.along_start[member, each]
        self.along[member] = 0

    @method
    def finish(self, member):
        """Drop the range that has been written."""
        self.used_bytes[member] -= self.writing_end[member] - self.writing_start[member]
        self.writing_start[member] = NOTHING
        self.writing_end[member] = NOTHING
        self.writing_serial[member] = NOTHING

    @method
    def is_written(self, member, serial):
        """Return whether all writes up to this one are on the platters."""
        if self.writing_start[member] != NOTHING and self.writing_serial[member] <= serial:
            return False
        return self.ranges[member] == 0 or self.serial[member, 0] > serial

    @method
    def is_clean(self, member):
        """Return whether nothing is left to write."""
        return self.ranges[member] == 0 and self.writing_start[member] == NOTHING
