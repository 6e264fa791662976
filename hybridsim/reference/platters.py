"""The platters of a hard disk (2.6): places of bytes, seek and transfer times; its media cache."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from dataclasses import dataclass

from hybridsim.foundation.machine_parameters import HddParameters


class Platters:
    """The geometry of one disk."""

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters

    def zone(self, byte: int) -> int:
        """Return the zone of a byte; the end of the disk is in the last one."""
        p = self.parameters
        return min(bisect_right(p.zone_byte, byte), len(p.zone_track_bytes)) - 1

    def track(self, byte: int) -> int:
        """Return the track of a byte."""
        p = self.parameters
        z = self.zone(byte)
        return p.zone_track[z] + (byte - p.zone_byte[z]) // p.zone_track_bytes[z]

    def within(self, byte: int) -> int:
        """Return the offset of a byte in its track."""
        p = self.parameters
        z = self.zone(byte)
        return (byte - p.zone_byte[z]) % p.zone_track_bytes[z]

    def angle(self, byte: int) -> int:
        """Return the time within a revolution at which a byte passes under the head."""
        p = self.parameters
        z = self.zone(byte)
        track = self.track(byte)
        skews = track * p.zone_skew_ns[z]
        skews += track // p.surfaces * p.zone_cylinder_skew_ns[z]
        turn = self.within(byte) * p.rev_ns // p.zone_track_bytes[z]
        return (turn + p.zone_angle_ns[z] + skews) % p.rev_ns

    def move(self, here: int, there: int, write: bool) -> int:
        """Return the time of the arm from track to track."""
        p = self.parameters
        if here == there:
            return p.reacquire_ns
        distance = abs(here // p.surfaces - there // p.surfaces)
        table = p.write_move_ns if write else p.move_ns
        return table[(distance + (1 << p.seek_shift) - 1) >> p.seek_shift]

    def transfer(self, byte: int, length: int) -> int:
        """Return the time of bytes under the head, with the skew of each track border."""
        p = self.parameters
        if length == 0:
            return 0
        z = self.zone(byte)
        borders = (self.within(byte) + length - 1) // p.zone_track_bytes[z]
        first = self.track(byte)
        time = length * p.rev_ns // p.zone_track_bytes[z]
        return time + sum(self.border(z, first + i) for i in range(1, borders + 1))

    def border(self, zone: int, track: int) -> int:
        """Return the skew between the end of the track before and the start of this one."""
        p = self.parameters
        new_cylinder = track % p.surfaces == 0
        return p.zone_skew_ns[zone] + (p.zone_cylinder_skew_ns[zone] if new_cylinder else 0)

    def stream(self, byte: int, length: int) -> int:
        """Return the time of bytes that follow the bytes just read."""
        if length == 0:
            return 0
        time = self.transfer(byte, length)
        if self.within(byte) == 0:
            time += self.border(self.zone(byte), self.track(byte))
        return time

    def passed(self, byte: int, time: int) -> int:
        """Return approximately how many bytes pass in a time, from `byte` on."""
        p = self.parameters
        z = self.zone(byte)
        track_bytes = p.zone_track_bytes[z]
        left = track_bytes - self.within(byte)
        until_border = left * p.rev_ns // track_bytes
        if time <= until_border:
            return time * track_bytes // p.rev_ns
        beyond = (time - until_border) * track_bytes // (p.rev_ns + p.zone_skew_ns[z])
        return left + beyond

    def track_start(self, byte: int) -> int:
        """Return the first byte of a byte's track."""
        return byte - self.within(byte)

    def track_end(self, byte: int) -> int:
        """Return the byte after the end of a byte's track."""
        return self.track_start(byte) + self.parameters.zone_track_bytes[self.zone(byte)]


CLASSES = 17  # of entries, by sixteenths of a band


@dataclass(eq=False)
class Logged:
    """Bytes [start, end) of one band, in the log from position `place` on."""

    start: int
    end: int
    place: int
    size: int  # bytes that it takes
    is_live: bool = True


class MediaCache:
    """A log on the platters (2.6.2): which bytes are in it, and where."""

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters
        # by class, oldest first; entries that died wait for older ones
        self.queues: list[deque[Logged]] = [deque() for _ in range(CLASSES)]
        self.bands: dict[int, list[Logged]] = {}  # live entries, oldest first
        self.entries = 0  # live ones
        self.used = 0  # bytes that all take
        self.head = 0  # position after the last write

    def band(self, byte: int) -> int:
        """Return the band of a byte."""
        return byte // self.parameters.band_bytes

    def extent(self, band: int) -> tuple[int, int]:
        """Return the first byte of a band, and the one after its last."""
        p = self.parameters
        return band * p.band_bytes, min((band + 1) * p.band_bytes, p.capacity_bytes)

    def byte(self, position: int) -> int:
        """Return the byte whose place on the platters a position of the log has."""
        p = self.parameters
        return p.media_cache_first_byte + position % p.media_cache_span_bytes

    def pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """Divide bytes by band."""
        extents = [self.extent(band) for band in range(self.band(start), self.band(end - 1) + 1)]
        return [(max(start, first), min(end, last)) for first, last in extents]

    def size(self, pieces: list[tuple[int, int]]) -> int:
        """Return the bytes that pieces take in the log."""
        padding = self.parameters.media_cache_padding_bytes
        return sum(end - start + padding for start, end in pieces)

    def fits(self, start: int, end: int) -> bool:
        """Whether an empty log could take a write."""
        p, pieces = self.parameters, self.pieces(start, end)
        has_entries = len(pieces) <= p.media_cache_entries
        return has_entries and self.size(pieces) <= p.media_cache_span_bytes

    def has_room(self, start: int, end: int) -> bool:
        """Whether the log can take a write now."""
        p = self.parameters
        pieces = self.pieces(start, end)
        has_entries = self.entries + len(pieces) <= p.media_cache_entries
        return has_entries and self.used + self.size(pieces) <= p.media_cache_span_bytes

    def add(self, start: int, end: int) -> tuple[int, int]:
        """Log a write; return its position and the bytes that it takes."""
        pieces = self.pieces(start, end)
        length, span = self.size(pieces), self.parameters.media_cache_span_bytes
        if self.head % span + length > span:
            self.head += span - self.head % span
        place = self.head
        self.drop(start, end)
        for first, last in pieces:
            self.append(first, last, self.size([(first, last)]))
        return place, length

    def add_along(self, start: int, end: int) -> bool:
        """Log bytes behind those just logged, without padding; return whether that is possible."""
        size, span = end - start, self.parameters.media_cache_span_bytes
        inside = self.head % span
        if len(self.pieces(start, end)) > 1 or inside == 0 or inside + size > span:
            return False
        if self.entries == self.parameters.media_cache_entries or self.used + size > span:
            return False
        self.drop(start, end)
        self.append(start, end, size)
        return True

    def append(self, start: int, end: int, size: int) -> None:
        """Log bytes of one band at the head, which take `size` bytes."""
        entry = Logged(start, end, self.head, size)
        self.queues[16 * (end - start) // self.parameters.band_bytes].append(entry)
        self.bands.setdefault(self.band(start), []).append(entry)
        self.head += size
        self.entries += 1
        self.used += size

    def drop(self, start: int, end: int) -> None:
        """Let entries die that lie within bytes that are written anew."""
        for band in range(self.band(start), self.band(end - 1) + 1):
            entries = self.bands.get(band, [])
            for entry in entries:
                entry.is_live = not (start <= entry.start and entry.end <= end)
                self.entries -= not entry.is_live
            self.bands[band] = [entry for entry in entries if entry.is_live]
        self.trim()

    def trim(self) -> None:
        """Free what dead entries take that are the oldest of their class."""
        for queue in self.queues:
            while queue and not queue[0].is_live:
                self.used -= queue.popleft().size

    def next_to_clean(self) -> int:
        """Return the band of the oldest entry of the longest class."""
        longest = [queue for queue in self.queues if queue][-1]
        return self.band(longest[0].start)

    def overlaps(self, start: int, end: int) -> bool:
        """Whether one of these bytes is in the log."""
        return any(
            entry.start < end and start < entry.end
            for band in range(self.band(start), self.band(end - 1) + 1)
            for entry in self.bands.get(band, [])
        )

    def locate(self, start: int, end: int) -> tuple[int, int]:
        """Return where byte `start` is, and up to which byte what follows it is there as well."""
        entry, stop = self.newest_at(start, end)
        if entry is not None:
            return self.byte(entry.place) + start - entry.start, stop
        while stop < end and stop == self.extent(self.band(stop - 1))[1]:
            entry, beyond = self.newest_at(stop, end)
            if entry is not None:
                break
            stop = beyond
        return start, stop

    def newest_at(self, start: int, end: int) -> tuple[Logged | None, int]:
        """Return the entry that has a byte, if one has, and up to where that is so in the band."""
        stop = min(end, self.extent(self.band(start))[1])
        for entry in reversed(self.bands.get(self.band(start), [])):
            if entry.start <= start < entry.end:
                return entry, min(stop, entry.end)
            if entry.start > start:
                stop = min(stop, entry.start)
        return None, stop
