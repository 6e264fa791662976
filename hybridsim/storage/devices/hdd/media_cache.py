"""The media cache of disks with shingled bands: a log on the platters that takes writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, filled
from hybridsim.foundation.machine_parameters import HddParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.instructions import along
from hybridsim.jit.lists import NOTHING, Chains

CLASSES = 17  # of entries, by sixteenths of a band


@state_machine
class MediaCache(NamedTuple):
    """What is in the log, and where (DESIGN.md 2.6.2).

    Each entry has bytes of one band; those of a band are linked, newest first.  Those of a class
    are in order of age as well: the bytes that a dead entry takes wait there for older ones, as
    part of the one before it.  Positions in the log only grow; their places on the platters repeat
    after `span_bytes`.
    """

    span_bytes: int  # 0: none, and the bands are not shingled
    first_byte: int  # whose place is that of position 0
    padding_bytes: int  # that each entry takes more, but those written along with others
    write_bytes: int  # written to it at once
    idle_ns: int  # without work, then it is cleaned
    run_bytes: int  # of writes in sequence that pass it by
    map: int  # with more entries, each write to it writes a part of its map as well, ...
    map_write_ns: int  # ... which takes so long
    piece_ns: int  # of cleaning, for each entry
    band_bytes: int
    capacity_bytes: int  # of the disk
    entries_max: int  # of a disk
    start: Ints  # by entry; the first ones are the first disk's
    end: Ints
    place: Ints  # position of its first byte
    size: Ints  # bytes that it takes, and the dead ones behind it
    older: Int32s  # entry of the same band, or NOTHING
    order: Chains  # by CLASSES * member + class; the unused ones are linked by `newer`
    newest: Int32s  # [member, band], or NOTHING
    unused: Int32s  # [member]: the first of the unused entries, or NOTHING
    entries: Ints  # in use
    used: Ints  # bytes that they take
    head: Ints  # position after the last write
    run: Ints  # bytes written in sequence since the last other write or flush
    last_event_ns: Ints

    @classmethod
    def new(cls, members: int, parameters: HddParameters) -> MediaCache:
        """Return empty media caches."""
        p, is_there = parameters, parameters.media_cache_span_bytes > 0
        entries = p.media_cache_entries if is_there else 1
        bands = -(-p.capacity_bytes // p.band_bytes) if is_there else 0
        order = Chains.new(members * entries, members * CLASSES)
        order.newer[:-1] = np.arange(1, members * entries)
        order.newer[entries - 1 :: entries] = NOTHING
        states = ("entries", "used", "head", "run", "last_event_ns")
        return filled(
            cls,
            members * entries,
            p,
            **{name: getattr(p, f"media_cache_{name}") for name in cls._fields[:9]},
            entries_max=entries,
            order=order,
            newest=np.full((members, bands), NOTHING, np.int32),
            unused=np.arange(0, members * entries, entries, dtype=np.int32),
            **{name: np.zeros(members, np.int64) for name in states},
        )

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
        if self.logged_bytes(offset, end) > self.span_bytes:
            return True
        return self.pieces(offset, end) > self.entries_max

    @method
    def pieces(self, offset, end):
        """Return the number of entries that a write takes: one for each band."""
        return (end - 1) // self.band_bytes - offset // self.band_bytes + 1

    @method
    def logged_bytes(self, offset, end):
        """Return the bytes that a write takes."""
        return end - offset + self.pieces(offset, end) * self.padding_bytes

    @method
    def has_room(self, member, offset, end):
        """Return whether the log can take a write now."""
        fits = self.used[member] + self.logged_bytes(offset, end) <= self.span_bytes
        return fits and self.entries[member] + self.pieces(offset, end) <= self.entries_max

    @method
    def add(self, member, offset, end):
        """Log a write; return its position."""
        length = self.logged_bytes(offset, end)
        inside = self.head[member] % self.span_bytes
        if inside + length > self.span_bytes:
            self.head[member] += self.span_bytes - inside
        place = self.head[member]
        self.drop(member, offset, end)
        first = offset
        while first < end:
            last = min(end, (first // self.band_bytes + 1) * self.band_bytes)
            self.append(member, first, last, last - first + self.padding_bytes)
            first = last
        return place

    @method
    def takes_along(self, member, offset, end):
        """Return whether bytes fit behind those just logged, without padding."""
        size = end - offset
        if self.pieces(offset, end) > 1 or self.head[member] % self.span_bytes == 0:
            return False
        if self.head[member] % self.span_bytes + size > self.span_bytes:
            return False
        has_entry = self.entries[member] < self.entries_max
        return has_entry and self.used[member] + size <= self.span_bytes

    @method
    def add_along(self, member, offset, end):
        """Log bytes of one band behind those just logged, without padding."""
        self.drop(member, offset, end)
        self.append(member, offset, end, end - offset)

    @method
    def append(self, member, first, last, size):
        """Log bytes of one band at the head, which take `size` bytes."""
        entry = self.unused[member]
        self.unused[member] = self.order.newer[entry]
        band = first // self.band_bytes
        self.start[entry] = first
        self.end[entry] = last
        self.place[entry] = self.head[member]
        self.size[entry] = size
        self.older[entry] = self.newest[member, band]
        self.newest[member, band] = entry
        self.order.add(CLASSES * member + 16 * (last - first) // self.band_bytes, entry)
        self.head[member] += size
        self.entries[member] += 1
        self.used[member] += size

    @method
    def drop(self, member, offset, end):
        """Let entries die that lie within bytes that are written anew."""
        for band in range(offset // self.band_bytes, (end - 1) // self.band_bytes + 1):
            newer = NOTHING
            entry = self.newest[member, band]
            while entry != NOTHING:
                older = self.older[entry]
                if offset <= self.start[entry] and self.end[entry] <= end:
                    self.release(member, entry)
                    if newer == NOTHING:
                        self.newest[member, band] = older
                    else:
                        self.older[newer] = older
                else:
                    newer = entry
                entry = older

    @method
    def release(self, member, entry):
        """Take an entry that died out of its class; what it takes is free if it is the oldest."""
        before = self.order.older[entry]
        if before == NOTHING:
            self.used[member] -= self.size[entry]
        else:
            self.size[before] += self.size[entry]
        kind = 16 * (self.end[entry] - self.start[entry]) // self.band_bytes
        self.order.remove(CLASSES * member + kind, entry)
        self.order.newer[entry] = self.unused[member]
        self.unused[member] = entry
        self.entries[member] -= 1

    @method
    def next_to_clean(self, member):
        """Return the band of the oldest entry of the longest class."""
        kind = CLASSES * member + CLASSES - 1
        while self.order.oldest[kind] == NOTHING:
            kind -= 1
        return self.start[self.order.oldest[kind]] // self.band_bytes

    @method
    def log(self, member, ready, arrived, position, length, pause_ns, arm):
        """Write to the log, in pieces with pauses between them; return when that is done."""
        while True:
            is_last = length <= self.write_bytes + self.padding_bytes
            piece = length if is_last else self.write_bytes
            byte = self.first_byte + position % self.span_bytes
            ready = arm.access_to(member, ready, arrived, byte, piece, True)
            if is_last:
                break
            ready += pause_ns
            position += piece
            length -= piece
        if self.entries[member] <= self.map:
            return ready
        return ready + self.map_write_ns

    @method
    def overlaps(self, member, offset, end):
        """Return whether one of these bytes is in the log."""
        if self.span_bytes == 0:
            return False
        for band in range(offset // self.band_bytes, (end - 1) // self.band_bytes + 1):
            for entry in along(self.newest[member, band], self.older):
                if self.start[entry] < end and offset < self.end[entry]:
                    return True
        return False

    @method
    def locate(self, member, offset, end):
        """Return where byte `offset` is, and up to which byte what follows it is there as well."""
        stop = end
        for band in range(offset // self.band_bytes, (end - 1) // self.band_bytes + 1):
            begin = max(offset, band * self.band_bytes)
            for entry in along(self.newest[member, band], self.older):
                first = self.start[entry]
                last = self.end[entry]
                if first <= begin and begin < last:
                    if begin > offset:
                        return offset, begin
                    byte = self.first_byte + self.place[entry] % self.span_bytes
                    return byte + offset - first, min(stop, last)
                if first > begin:
                    stop = min(stop, first)
            if stop < (band + 1) * self.band_bytes:
                break
        return offset, stop

    @method
    def clean(self, member, now, arm):
        """From `now` on, bring the data of the next band home; return the end."""
        band = self.next_to_clean(member)
        first = band * self.band_bytes
        last = min(first + self.band_bytes, self.capacity_bytes)
        newest = self.newest[member, band]
        is_whole = self.start[newest] == first and self.end[newest] == last
        if not is_whole:
            now = arm.access_to(member, now, now, first, last - first, False)
        for entry in along(self.turned(newest), self.older):
            byte = self.first_byte + self.place[entry] % self.span_bytes
            length = self.end[entry] - self.start[entry]
            now += self.piece_ns
            now = arm.access_to(member, now, now, byte, length, False)
            self.release(member, entry)
        self.newest[member, band] = NOTHING
        return arm.access_to(member, now, now, first, last - first, True)

    @method
    def turned(self, entry):
        """Turn the links of a band's entries around; return the oldest one."""
        newer = NOTHING
        while entry != NOTHING:
            older = self.older[entry]
            self.older[entry] = newer
            newer = entry
            entry = older
        return newer
