"""A page and its granules, and the slots for pages on the fast tier (2.3)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby

from hybridsim.foundation.codes import Reason

Granules = set[int]


class State(Enum):
    """The state of a page in the cache."""

    ABSENT = "absent"
    FILLING = "filling"  # has a slot without valid granules
    PRESENT = "present"


@dataclass(frozen=True)
class Sizes:
    """Sizes in bytes; the last granule of a page and the last page may be shorter."""

    page_bytes: int
    granule_bytes: int
    volume_bytes: int

    def page_end(self, number: int) -> int:
        """Return the end of a page, limited to the end of the slow tier."""
        return min((number + 1) * self.page_bytes, self.volume_bytes)

    def granule_start(self, granule: int) -> int:
        """Return the offset of a granule in its page; for the granule after the last, the end."""
        return min(granule * self.granule_bytes, self.page_bytes)


@dataclass(eq=False)
class Page:
    """A page of the slow tier."""

    number: int
    sizes: Sizes
    state: State = State.ABSENT
    reason: Reason = Reason.COLD  # why the page is not present
    slot: int = -1
    valid: Granules = field(default_factory=set)
    filling: Granules = field(default_factory=set)
    dirty: Granules = field(default_factory=set)
    flying: Granules = field(default_factory=set)
    is_being_filled: bool = False
    is_being_preloaded: bool = False  # the current fill is a preload
    is_fresh: bool = False  # kept or preloaded, not used since
    is_being_cleaned: bool = False

    @property
    def start(self) -> int:
        """The first byte of the page in the volume."""
        return self.number * self.sizes.page_bytes

    @property
    def granules(self) -> Granules:
        """All granules of the page that begin before the end of the slow tier."""
        length = self.sizes.page_end(self.number) - self.start
        return set(range(-(-length // self.sizes.granule_bytes)))

    @property
    def reason_missing(self) -> Reason:
        """The reason of a miss in the current state of the page."""
        if self.state == State.FILLING or self.is_being_filled:
            return Reason.FILLING
        return self.reason if self.state == State.ABSENT else Reason.COLD

    @property
    def is_movable(self) -> bool:
        """Whether the page can be evicted now."""
        return not (self.dirty or self.is_being_filled or self.is_being_cleaned)

    @property
    def at(self) -> int:
        """The byte offset of the page's slot on the fast tier."""
        return self.slot * self.sizes.page_bytes

    def range_of(self, first: int, last: int) -> tuple[int, int]:
        """Return the byte range of granules, limited to the end of the slow tier."""
        start = self.start + self.sizes.granule_start(first)
        end = self.start + self.sizes.granule_start(last + 1)
        return start, min(end, self.sizes.page_end(self.number))

    def forget(self, granules: Iterable[int]) -> None:
        """Clear all states of granules."""
        for each in (self.valid, self.filling, self.dirty, self.flying):
            each.difference_update(granules)


def runs(numbers: set[int]) -> Iterator[tuple[int, int]]:
    """Yield [first, end) of each run of consecutive numbers."""
    starts = sorted(each for each in numbers if each - 1 not in numbers)
    ends = sorted(each + 1 for each in numbers if each + 1 not in numbers)
    return zip(starts, ends, strict=True)


@dataclass
class Piece:
    """The part of a request that lies in one page."""

    page: Page
    start: int
    end: int

    @property
    def touched(self) -> Granules:
        """The granules of which the piece has at least one byte."""
        size = self.page.sizes.granule_bytes
        first = (self.start - self.page.start) // size
        last = (self.end - 1 - self.page.start) // size
        return set(range(first, last + 1))

    @property
    def covered(self) -> Granules:
        """The granules of which the piece has all bytes."""
        ranges = {granule: self.page.range_of(granule, granule) for granule in self.touched}
        return {
            granule
            for granule, (start, end) in ranges.items()
            if self.start <= start and end <= self.end
        }

    @property
    def is_here(self) -> bool:
        """Whether all touched granules are valid."""
        return self.page.state == State.PRESENT and self.touched <= self.page.valid

    def storable(self) -> "Piece":
        """Return the storable part: covered granules and valid ones; may be empty."""
        kept = (self.page.valid & self.touched) | self.covered
        if not kept:
            return Piece(self.page, self.start, self.start)
        start, end = self.page.range_of(min(kept), max(kept))
        return Piece(self.page, max(start, self.start), min(end, self.end))

    def parts(self) -> Iterator[tuple[bool, "Piece"]]:
        """Yield the parts in order of address, each with whether it is valid."""
        touched = sorted(self.touched)
        for is_valid, group in groupby(touched, lambda each: each in self.page.valid):
            run = list(group)
            start, end = self.page.range_of(run[0], run[-1])
            yield is_valid, Piece(self.page, max(start, self.start), min(end, self.end))


class Slots:
    """The places for pages on the fast tier."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.used = 0  # the lowest slot never used
        self.freed: list[int] = []

    @property
    def full(self) -> bool:
        """Whether every slot has been used at least once."""
        return self.used == self.count

    @property
    def have_one(self) -> bool:
        """Whether a slot is free."""
        return bool(self.freed) or not self.full

    def take(self) -> int:
        """Return the slot freed last, else the lowest never used."""
        if self.freed:
            return self.freed.pop()
        self.used += 1
        return self.used - 1

    def free(self, slot: int) -> None:
        """Free a slot."""
        self.freed.append(slot)
