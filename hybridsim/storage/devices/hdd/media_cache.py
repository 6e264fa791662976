"""The media cache of disks with shingled bands: a log on the platters that takes writes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.jit import method, state_machine

NOTHING = -1


@state_machine
class MediaCache(NamedTuple):
    """What is in the log, and where (DESIGN.md 2.6.2).

    Its entries are a ring, oldest first.  Each has bytes of one band; those of a band are linked,
    newest first.  An entry whose bytes were all written anew is dead, and waits for older ones.
    Positions in the log only grow; their places on the platters repeat after `span_bytes`.
    """

    span_bytes: int  # 0: none, and the bands are not shingled
    first_byte: int  # whose place is that of position 0
    padding_bytes: int  # that each write takes more
    band_bytes: int
    capacity_bytes: int  # of the disk
    idle_ns: int  # without work, then it is cleaned
    run_bytes: int  # of writes in sequence that pass it by
    start: Ints  # [member, entry]; NOTHING if it is dead
    end: Ints
    place: Ints  # position of its first byte
    older: Int32s  # entry of the same band, or NOTHING
    newest: Int32s  # [member, band], or NOTHING
    oldest: Ints  # [member]: where the ring begins
    entries: Ints  # in the ring
    head: Ints  # position after the last write
    run: Ints  # bytes written in sequence since the last other write or flush
    last_event_ns: Ints

    @classmethod
    def new(cls, members: int, parameters: dict[str, Any]) -> MediaCache:
        """Return empty media caches."""
        span_bytes = parameters.get("media_span_bytes", 0)
        band_bytes = parameters.get("band_bytes", 1)
        capacity_bytes = parameters["capacity_bytes"]
        entries = parameters.get("media_entries", 1) if span_bytes else 0
        bands = -(-capacity_bytes // band_bytes) if span_bytes else 0
        columns = (np.full((members, entries), NOTHING, np.int64) for _ in range(3))
        states = (np.zeros(members, np.int64) for _ in range(5))
        sizes = (
            span_bytes,
            parameters.get("media_first_byte", 0),
            parameters.get("media_padding_bytes", 0),
            band_bytes,
            capacity_bytes,
            parameters.get("media_idle_ns", 0),
            parameters.get("media_run_bytes", 0),
        )
        links = (np.full((members, each), NOTHING, np.int32) for each in (entries, bands))
        return cls._make([*sizes, *columns, *links, *states])

    @method
    def is_empty(self, member):
        """Return whether nothing is left to clean."""
        return self.entries[member] == 0

    @method
    def follow(self, member, offset, length, last_end):
        """Count a write in its run; `last_end` is the end of the write before."""
        if offset == last_end:
            self.run[member] += length
        else:
            self.run[member] = length

    @method
    def passes_by(self, member, offset, end, last_end):
        """Return whether a write goes home: in a long run of writes, or too large for the log."""
        run = self.run[member]
        if run >= self.run_bytes and last_end - run <= offset and end <= last_end:
            return True
        if end - offset + self.padding_bytes > self.span_bytes:
            return True
        return self.pieces(offset, end) > self.start.shape[1]

    @method
    def pieces(self, offset, end):
        """Return the number of entries that a write takes: one for each band."""
        return (end - 1) // self.band_bytes - offset // self.band_bytes + 1

    @method
    def next_place(self, member, length):
        """Return the position of a write, which must not cross the end of the span."""
        head = self.head[member]
        inside = head % self.span_bytes
        if inside + length > self.span_bytes:
            return head + self.span_bytes - inside
        return head

    @method
    def has_room(self, member, offset, end):
        """Return whether the log can take a write now."""
        length = end - offset + self.padding_bytes
        place = self.next_place(member, length)
        entries = self.entries[member]
        oldest = self.place[member, self.oldest[member]] if entries > 0 else place
        fits = place + length - oldest <= self.span_bytes
        return fits and entries + self.pieces(offset, end) <= self.start.shape[1]

    @method
    def add(self, member, offset, end):
        """Log a write; return the byte whose place on the platters it takes."""
        length = end - offset + self.padding_bytes
        place = self.next_place(member, length)
        self.drop(member, offset, end)
        first = offset
        while first < end:
            band = first // self.band_bytes
            last = min(end, (band + 1) * self.band_bytes)
            entry = (self.oldest[member] + self.entries[member]) % self.start.shape[1]
            self.entries[member] += 1
            self.start[member, entry] = first
            self.end[member, entry] = last
            self.place[member, entry] = place + first - offset
            self.older[member, entry] = self.newest[member, band]
            self.newest[member, band] = entry
            first = last
        self.head[member] = place + length
        return self.first_byte + place % self.span_bytes

    @method
    def drop(self, member, offset, end):
        """Let entries die that lie within bytes that are written anew."""
        for band in range(offset // self.band_bytes, (end - 1) // self.band_bytes + 1):
            newer = NOTHING
            entry = self.newest[member, band]
            while entry != NOTHING:
                older = self.older[member, entry]
                if offset <= self.start[member, entry] and self.end[member, entry] <= end:
                    self.start[member, entry] = NOTHING
                    if newer == NOTHING:
                        self.newest[member, band] = older
                    else:
                        self.older[member, newer] = older
                else:
                    newer = entry
                entry = older
        self.trim(member)

    @method
    def trim(self, member):
        """Give up the oldest entries if they are dead."""
        oldest = self.oldest[member]
        while self.entries[member] > 0 and self.start[member, oldest] == NOTHING:
            oldest = (oldest + 1) % self.start.shape[1]
            self.entries[member] -= 1
        self.oldest[member] = oldest

    @method
    def overlaps(self, member, offset, end):
        """Return whether one of these bytes is in the log."""
        if self.span_bytes == 0:
            return False
        for band in range(offset // self.band_bytes, (end - 1) // self.band_bytes + 1):
            entry = self.newest[member, band]
            while entry != NOTHING:
                if self.start[member, entry] < end and offset < self.end[member, entry]:
                    return True
                entry = self.older[member, entry]
        return False

    @method
    def locate(self, member, offset, end):
        """Return where byte `offset` is, and up to which byte what follows it is there as well."""
        stop = end
        for band in range(offset // self.band_bytes, (end - 1) // self.band_bytes + 1):
            begin = max(offset, band * self.band_bytes)
            entry = self.newest[member, band]
            while entry != NOTHING:
                first = self.start[member, entry]
                last = self.end[member, entry]
                if first <= begin and begin < last:
                    if begin > offset:
                        return offset, begin
                    byte = self.first_byte + self.place[member, entry] % self.span_bytes
                    return byte + offset - first, min(stop, last)
                if first > begin:
                    stop = min(stop, first)
                entry = self.older[member, entry]
            if stop < (band + 1) * self.band_bytes:
                break
        return offset, stop

    @method
    def clean(self, member, now, arm):
        """From `now` on, bring the data of the oldest entry's band home; return the end."""
        band = self.start[member, self.oldest[member]] // self.band_bytes
        first = band * self.band_bytes
        last = min(first + self.band_bytes, self.capacity_bytes)
        newest = self.newest[member, band]
        is_whole = self.start[member, newest] == first and self.end[member, newest] == last
        if not is_whole:
            now = arm.access(member, now, first, last - first, False)
        entry = self.turned(member, newest)
        while entry != NOTHING:
            byte = self.first_byte + self.place[member, entry] % self.span_bytes
            length = self.end[member, entry] - self.start[member, entry]
            now = arm.access(member, now, byte, length, False)
            self.start[member, entry] = NOTHING
            entry = self.older[member, entry]
        self.newest[member, band] = NOTHING
        self.trim(member)
        return arm.access(member, now, first, last - first, True)

    @method
    def turned(self, member, entry):
        """Turn the links of a band's entries around; return the oldest one."""
        newer = NOTHING
        while entry != NOTHING:
            older = self.older[member, entry]
            self.older[member, entry] = newer
            newer = entry
            entry = older
        return newer
