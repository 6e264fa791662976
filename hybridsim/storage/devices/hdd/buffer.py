"""The disk's buffer: data read beyond the requests, and acknowledged writes not on the platters."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.machine_parameters import HddParameters
from hybridsim.jit import method, state_machine

NOTHING = -1


@state_machine
class ReadAhead(NamedTuple):
    """Segments of the buffer with LRU replacement; each disk reads ahead in one of them.

    How far a disk came with a segment before its head moved away is computed only when it is
    needed: it is costly, and mostly not needed.
    """

    size_bytes: int  # 0: none
    behind_bytes: int  # bytes kept after they were transferred
    tracks: int  # 1: a read leaves its whole track, from the first byte on
    stop_tracks: int  # stops at the end of the track: 0 no, 1 yes, 2 in a stream of the next one
    segment_bytes: int  # what is read further replaces the oldest bytes
    start: Ints  # [member, segment]: NOTHING if it is empty
    end: Ints  # next byte expected in a stream
    end_ns: Ints  # when the byte before `end` had passed the head
    stop: Ints  # where the read-ahead stops
    paused_ns: Ints  # when it was interrupted, if the effect is not yet computed, or NOTHING
    used: Ints  # last use, counted in uses
    uses: Ints  # [member]
    reading: Int32s  # segment of the read-ahead in progress, or NOTHING

    @classmethod
    def new(cls, members: int, parameters: HddParameters) -> ReadAhead:
        """Return empty buffers."""
        p, tracks = parameters, int(parameters.read_tracks)
        stop_tracks = max(tracks, p.read_stop_tracks)
        numbers = (p.read_ahead_bytes, p.read_behind_bytes, tracks, stop_tracks, p.segment_bytes)
        shape = (members, p.segments if p.read_ahead_bytes > 0 else 0)
        columns = (np.full(shape, NOTHING, np.int64) for _ in range(5))
        uses = (np.zeros(shape, np.int64), np.zeros(members, np.int64))
        return cls._make([*numbers, *columns, *uses, np.full(members, NOTHING, np.int32)])

    @method
    def touch(self, member, segment):
        """Make a segment the most recently used."""
        self.uses[member] += 1
        self.used[member, segment] = self.uses[member]

    @method
    def holds(self, now, member, offset, end, platters):
        """Return whether a segment has a whole range; mark that segment as used."""
        newest = NOTHING
        starts, stops = self.start[member], self.stop[member]
        for segment in range(len(starts)):
            if starts[segment] <= offset and end <= stops[segment]:
                self.find_end(member, segment, platters)
                if (
                    self.first_byte(now, member, segment, platters) <= offset
                    and end <= self.end[member, segment]
                    and self.end_ns[member, segment] <= now
                    and (newest == NOTHING or self.is_newer(member, segment, newest))
                ):
                    newest = segment
        if newest == NOTHING:
            return False
        self.touch(member, newest)
        return True

    @method
    def is_newer(self, member, segment, other):
        """Return whether a segment was used after another."""
        return self.used[member, segment] > self.used[member, other]

    @method
    def covers(self, now, member, offset, platters):
        """Return whether the read-ahead has or will soon have the byte at `offset`."""
        segment = self.reading[member]
        if segment == NOTHING:
            return False
        if offset < self.start[member, segment] or offset > self.stop[member, segment]:
            return False
        return self.first_byte(now, member, segment, platters) <= offset

    @method
    def first_byte(self, now, member, segment, platters):
        """Return the first byte of a segment that what was read since has not replaced."""
        start = self.start[member, segment]
        stop = self.stop[member, segment]
        if stop - start <= self.segment_bytes:
            return start
        end = self.end[member, segment]
        if now < self.stop_ns(member, segment, platters):
            passed_ns = max(0, now - self.end_ns[member, segment])
            stop = min(stop, end + platters.passed_bytes(end, passed_ns))
        return max(start, stop - self.segment_bytes)

    @method
    def stop_ns(self, member, segment, platters):
        """Return when the read-ahead in progress will be complete."""
        end = self.end[member, segment]
        left = self.stop[member, segment] - end
        return self.end_ns[member, segment] + platters.stream_ns(end, left)

    @method
    def clear(self, member, segment):
        """Empty a segment."""
        self.start[member, segment] = NOTHING
        self.end[member, segment] = NOTHING
        self.stop[member, segment] = NOTHING
        self.paused_ns[member, segment] = NOTHING
        self.used[member, segment] = 0
        if segment == self.reading[member]:
            self.reading[member] = NOTHING

    @method
    def pause(self, now, member):
        """Interrupt the read-ahead, as the head must move."""
        segment = self.reading[member]
        if segment != NOTHING:
            self.paused_ns[member, segment] = now
            self.reading[member] = NOTHING

    @method
    def find_end(self, member, segment, platters):
        """Compute what an interrupted segment had read by then."""
        now = self.paused_ns[member, segment]
        if now == NOTHING:
            return
        end = self.end[member, segment]
        left = self.stop[member, segment] - end
        if now < self.stop_ns(member, segment, platters):
            passed_ns = max(0, now - self.end_ns[member, segment])
            left = min(left, platters.passed_bytes(end, passed_ns))
        replaced = end + left - self.segment_bytes
        self.start[member, segment] = max(self.start[member, segment], replaced)
        self.end[member, segment] = end + left
        self.stop[member, segment] = end + left
        self.end_ns[member, segment] = now
        self.paused_ns[member, segment] = NOTHING

    @method
    def begin(self, member, offset, end, end_ns, platters):
        """Put a read from `offset` to `end` into the buffer."""
        if self.size_bytes > 0:
            segment = self.choose(member, offset, platters)
            self.read_on(member, segment, offset, end, end_ns, platters)

    @method
    def choose(self, member, offset, platters):
        """Return the segment that a read continues, or the least recently used one."""
        newest = NOTHING
        starts, stops = self.start[member], self.stop[member]
        for segment in range(len(starts)):
            if starts[segment] <= offset and offset <= stops[segment]:
                self.find_end(member, segment, platters)
                begins = self.start[member, segment] <= offset
                if begins and offset <= self.end[member, segment]:
                    if newest == NOTHING or self.is_newer(member, segment, newest):
                        newest = segment
        if newest != NOTHING:
            return newest
        used = self.used[member]
        oldest = 0
        for segment in range(1, len(used)):
            if used[segment] < used[oldest]:
                oldest = segment
        self.clear(member, oldest)
        return oldest

    @method
    def trim(self, now, member, segment, platters):
        """Drop the bytes of a segment that what was read since has replaced."""
        self.start[member, segment] = self.first_byte(now, member, segment, platters)

    @method
    def end_of_reading(self, start, end, platters):
        """Return where the read-ahead from `end` stops, of a segment that begins at `start`."""
        stop = min(end + self.size_bytes, platters.capacity_bytes)
        if self.stop_tracks:
            limit = platters.track_end(end - 1)
            if self.stop_tracks == 2 and start < platters.track_start(end - 1) and limit < stop:
                limit = platters.track_end(limit)
            stop = min(stop, limit)
        return stop

    @method
    def read_on(self, member, segment, start, end, end_ns, platters):
        """Put the bytes from `start` to `end` into a segment, and read ahead from `end`."""
        if self.tracks:
            start = platters.track_start(start)
        if self.start[member, segment] != NOTHING:
            start = min(start, self.start[member, segment])
        stop = self.end_of_reading(start, end, platters)
        self.start[member, segment] = max(start, end - self.behind_bytes)
        self.end[member, segment] = end
        self.end_ns[member, segment] = end_ns
        self.stop[member, segment] = stop
        self.reading[member] = segment
        self.touch(member, segment)


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
        """Return whether one range, of those being written too, has all of these bytes."""
        if self.writing_start[member] <= offset and end <= self.writing_end[member]:
            return True
        for each in range(self.ranges[member]):
            if self.start[member, each] <= offset and end <= self.end[member, each]:
                return True
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
    def place(self, member, each):
        """Return the place of a range on the platters."""
        zone, track = self.zone[member, each], self.track[member, each]
        return zone, track, self.cylinder[member, each], self.angle_ns[member, each]

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
        return ready - now + arm.reach_ns(member, ready, ready, self.place(member, each), True)

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
    def finish(self, member):
        """Drop the range that has been written, and those along with it."""
        self.used_bytes[member] -= self.writing_end[member] - self.writing_start[member]
        for each in range(self.along[member]):
            self.used_bytes[member] -= self.along_end[member, each] - self.along_start[member, each]
        self.along[member] = 0
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
