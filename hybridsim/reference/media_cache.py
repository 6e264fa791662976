"""The media cache of a disk with shingled bands (2.6.2)."""

from collections import deque
from dataclasses import dataclass

from hybridsim.foundation.machine_parameters import HddParameters

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
    """A log on the platters: which bytes are in it, and where."""

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
        return p.media_first_byte + position % p.media_span_bytes

    def pieces(self, start: int, end: int) -> list[tuple[int, int]]:
        """Divide bytes by band."""
        extents = [self.extent(band) for band in range(self.band(start), self.band(end - 1) + 1)]
        return [(max(start, first), min(end, last)) for first, last in extents]

    def size(self, pieces: list[tuple[int, int]]) -> int:
        """Return the bytes that pieces take in the log."""
        padding = self.parameters.media_padding_bytes
        return sum(end - start + padding for start, end in pieces)

    def fits(self, start: int, end: int) -> bool:
        """Whether an empty log could take a write."""
        p = self.parameters
        pieces = self.pieces(start, end)
        return self.size(pieces) <= p.media_span_bytes and len(pieces) <= p.media_entries

    def has_room(self, start: int, end: int) -> bool:
        """Whether the log can take a write now."""
        p = self.parameters
        pieces = self.pieces(start, end)
        has_entries = self.entries + len(pieces) <= p.media_entries
        return has_entries and self.used + self.size(pieces) <= p.media_span_bytes

    def add(self, start: int, end: int) -> tuple[int, int]:
        """Log a write; return its position and the bytes that it takes."""
        pieces = self.pieces(start, end)
        length, span = self.size(pieces), self.parameters.media_span_bytes
        if self.head % span + length > span:
            self.head += span - self.head % span
        place = self.head
        self.drop(start, end)
        for first, last in pieces:
            self.append(first, last, self.size([(first, last)]))
        return place, length

    def add_along(self, start: int, end: int) -> bool:
        """Log bytes behind those just logged, without padding; return whether that is possible."""
        p = self.parameters
        size = end - start
        inside = self.head % p.media_span_bytes
        if len(self.pieces(start, end)) > 1 or inside == 0 or inside + size > p.media_span_bytes:
            return False
        if self.entries == p.media_entries or self.used + size > p.media_span_bytes:
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
