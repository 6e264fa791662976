"""bcache's index (2.12): keys in order of address, kept in a plain sorted list."""

from bisect import bisect_right, insort
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from hybridsim.foundation.codes import Reason

REGION = 64 * 1024
serials = count()


@dataclass(eq=False)
class Key:
    """A range of the slow tier: data in a bucket, or the placeholder of a fill."""

    begin: int
    end: int
    place: int = -1
    dirty: bool = False
    fill: Any = None  # the insert whose placeholder this is
    serial: int = field(default_factory=lambda: next(serials))  # order of entry into its bucket

    @property
    def size(self) -> int:
        """The length in bytes."""
        return self.end - self.begin

    def part(self, begin: int, end: int) -> "Key":
        """Return the key of a part of the range."""
        place = self.place if self.fill else self.place + begin - self.begin
        return Key(begin, end, place, self.dirty, self.fill)

    def __lt__(self, other: "Key") -> bool:
        return self.begin < other.begin


class Keys:
    """All keys of the index."""

    def __init__(self, bucket_bytes: int, buckets: int) -> None:
        self.bucket_bytes = bucket_bytes
        self.all: list[Key] = []
        regions = 1
        while regions < 2 * buckets * bucket_bytes // REGION:
            regions *= 2
        self.regions = regions
        self.lost: dict[int, tuple[int, Reason]] = {}

    def overlapping(self, begin: int, end: int) -> list[Key]:
        """Return the keys that overlap a range, in order."""
        at = bisect_right(self.all, begin, key=lambda key: key.begin)
        first = max(at - 1, 0)
        keys = []
        for key in self.all[first:]:
            if key.begin >= end:
                break
            if key.end > begin:
                keys.append(key)
        return keys

    def of_bucket(self, bucket: int) -> list[Key]:
        """Return the keys with data in a bucket."""
        return [
            key for key in self.all if not key.fill and key.place // self.bucket_bytes == bucket
        ]

    def erase(self, begin: int, end: int, overwritten: bool = False) -> None:
        """Cut a range out of all keys."""
        for key in self.overlapping(begin, end):
            start, stop = max(begin, key.begin), min(end, key.end)
            if overwritten and not key.fill:
                self.note_lost(start, stop, Reason.OVERWRITTEN)
            self.all.remove(key)
            rest = []
            if key.begin < start:
                rest.append(key.part(key.begin, start))
            if stop < key.end:
                rest.append(key.part(stop, key.end))
            if rest:
                rest[0].serial = key.serial  # a part that is split off behind another is new
            for part in rest:
                insort(self.all, part)

    def enter(self, new: Key) -> None:
        """Insert a key, replacing what it overlaps; merge it with the key before if possible."""
        self.erase(new.begin, new.end)
        at = bisect_right(self.all, new.begin, key=lambda key: key.begin)
        before = self.all[at - 1] if at else None
        if before and before.end == new.begin and self.continues(before, new):
            before.end = new.end
        else:
            insort(self.all, new)

    def continues(self, before: Key, new: Key) -> bool:
        """Whether a key continues the data of the key before it."""
        if before.fill or new.fill or before.dirty != new.dirty:
            return False
        same = before.place // self.bucket_bytes == new.place // self.bucket_bytes
        return same and before.place + before.size == new.place

    def invalidate(self, bucket: int) -> bool:
        """Drop the keys of a bucket; return whether there were any."""
        gone = sorted(self.of_bucket(bucket), key=lambda key: -key.serial)
        for key in gone:
            self.all.remove(key)
            self.note_lost(key.begin, key.end, Reason.EVICTED)
        return bool(gone)

    def note_lost(self, begin: int, end: int, how: Reason) -> None:
        """Record why data were lost."""
        for region in range(begin // REGION, (end - 1) // REGION + 1):
            self.lost[region % self.regions] = (region, how)

    def why_missing(self, byte: int) -> Reason:
        """Return the reason of a miss that begins at this byte."""
        if self.overlapping(byte, byte + 1):
            return Reason.FILLING
        region, how = self.lost.get(byte // REGION % self.regions, (-1, Reason.COLD))
        return how if region == byte // REGION else Reason.COLD

    def drop_placeholder(self, fill: object) -> None:
        """Remove the remaining keys of a placeholder."""
        self.all = [key for key in self.all if key.fill is not fill]

    def bytes_by_bucket(self) -> tuple[Counter[int], Counter[int]]:
        """Return the cached and the dirty bytes of each bucket."""
        live: Counter[int] = Counter()
        dirty: Counter[int] = Counter()
        for key in self.all:
            if not key.fill:
                live[key.place // self.bucket_bytes] += key.size
            if key.dirty:
                dirty[key.place // self.bucket_bytes] += key.size
        return live, dirty

    @property
    def dirty_bytes(self) -> int:
        """The dirty bytes in total."""
        return sum(key.size for key in self.all if key.dirty)
