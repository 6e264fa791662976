"""The media cache of a disk with shingled bands (2.6.2)."""

from collections import deque
from dataclasses import dataclass

from hybridsim.reference.parameters import HddParameters


@dataclass
class Logged:
    """Bytes [start, end) of one band, in the log from position `place` on."""

    start: int
    end: int
    place: int
    is_live: bool = True


class MediaCache:
    """A log on the platters: which bytes are in it, and where."""

    def __init__(self, parameters: HddParameters) -> None:
        self.parameters = parameters
        self.ring: deque[Logged] = deque()  # oldest first; entries that died wait for older ones
        self.bands: dict[int, list[Logged]] = {}  # live entries, oldest first
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

    def fits(self, start: int, end: int) -> bool:
        """Whether an empty log could take a write."""
        p = self.parameters
        room = end - start + p.media_padding_bytes <= p.media_span_bytes
        return room and len(self.pieces(start, end)) <= p.media_entries

    def next_place(self, length: int) -> int:
        """Return the position of a write that must not cross the end of the span."""
        span = self.parameters.media_span_bytes
        if self.head % span + length > span:
            return self.head + span - self.head % span
        return self.head

    def has_room(self, start: int, end: int) -> bool:
        """Whether the log can take a write now."""
        p = self.parameters
        length = end - start + p.media_padding_bytes
        place = self.next_place(length)
        oldest = self.ring[0].place if self.ring else place
        entries = len(self.ring) + len(self.pieces(start, end))
        return place + length - oldest <= p.media_span_bytes and entries <= p.media_entries

    def add(self, start: int, end: int) -> int:
        """Log a write; return its position."""
        length = end - start + self.parameters.media_padding_bytes
        place = self.next_place(length)
        self.drop(start, end)
        for first, last in self.pieces(start, end):
            entry = Logged(first, last, place + first - start)
            self.ring.append(entry)
            self.bands.setdefault(self.band(first), []).append(entry)
        self.head = place + length
        self.trim()
        return place

    def drop(self, start: int, end: int) -> None:
        """Let entries die that lie within bytes that are written anew."""
        for band in range(self.band(start), self.band(end - 1) + 1):
            entries = self.bands.get(band, [])
            for entry in entries:
                entry.is_live = not (start <= entry.start and entry.end <= end)
            self.bands[band] = [entry for entry in entries if entry.is_live]
        self.trim()

    def trim(self) -> None:
        """Give up the oldest entries if they are dead."""
        while self.ring and not self.ring[0].is_live:
            self.ring.popleft()

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
