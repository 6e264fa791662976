"""A page and its granules, and the slots for pages on the fast tier (2.3)."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from itertools import groupby

from hybridsim.foundation.codes import Reason

Granules = set[int]


class State(Enum):
    """Where a page is in its life in the cache."""

    ABSENT = "absent"
    FILLING = "filling"  # it has a slot, and nothing in it
    PRESENT = "present"


@dataclass(frozen=True)
class Sizes:
    """How the volume is cut; the last granule of a page may be shorter, as may the last page."""

    page_bytes: int
    granule_bytes: int
    volume_bytes: int

    def page_end(self, number: int) -> int:
        """The first byte behind a page, of those that the slow tier has."""
        return min((number + 1) * self.page_bytes, self.volume_bytes)

    def granule_start(self, granule: int) -> int:
        """The first byte of a granule in its page; of the one behind the last its end."""
        return min(granule * self.granule_bytes, self.page_bytes)


@dataclass(eq=False)
class Page:
    """A page of the slow tier."""

    number: int
    sizes: Sizes
    state: State = State.ABSENT
    reason: Reason = Reason.COLD  # why it is not present
    slot: int = -1
    valid: Granules = field(default_factory=set)
    filling: Granules = field(default_factory=set)
    dirty: Granules = field(default_factory=set)
    flying: Granules = field(default_factory=set)
    is_being_filled: bool = False
    is_being_preloaded: bool = False  # so that is what fills it
    is_fresh: bool = False  # kept or preloaded, and not used since
    is_being_cleaned: bool = False

    @property
    def start(self) -> int:
        """Its first byte in the volume."""
        return self.number * self.sizes.page_bytes

    @property
    def granules(self) -> Granules:
        """All its granules that the slow tier has a byte of."""
        there = self.sizes.page_end(self.number) - self.start
        return set(range(-(-there // self.sizes.granule_bytes)))

    @property
    def reason_missing(self) -> Reason:
        """The reason of a miss that finds the page like this."""
        if self.state == State.FILLING or self.is_being_filled:
            return Reason.FILLING
        return self.reason if self.state == State.ABSENT else Reason.COLD

    @property
    def is_movable(self) -> bool:
        """Whether it can leave its slot at once."""
        return not (self.dirty or self.is_being_filled or self.is_being_cleaned)

    @property
    def at(self) -> int:
        """Where on the fast tier its first byte is."""
        return self.slot * self.sizes.page_bytes

    def range_of(self, first: int, last: int) -> tuple[int, int]:
        """The bytes of some granules, as far as the slow tier has them."""
        start = self.start + self.sizes.granule_start(first)
        end = self.start + self.sizes.granule_start(last + 1)
        return start, min(end, self.sizes.page_end(self.number))

    def forget(self, granules: Iterable[int]) -> None:
        """Give granules up."""
        for each in (self.valid, self.filling, self.dirty, self.flying):
            each.difference_update(granules)


def runs(granules: Granules) -> Iterator[tuple[int, int]]:
    """First and last of each run of granules."""
    for _, group in groupby(enumerate(sorted(granules)), lambda pair: pair[1] - pair[0]):
        run = [granule for _, granule in group]
        yield run[0], run[-1]


@dataclass
class Piece:
    """The part of a request that lies in one page."""

    page: Page
    start: int
    end: int

    @property
    def touched(self) -> Granules:
        """The granules that it has a byte of."""
        size = self.page.sizes.granule_bytes
        first = (self.start - self.page.start) // size
        last = (self.end - 1 - self.page.start) // size
        return set(range(first, last + 1))

    @property
    def covered(self) -> Granules:
        """The granules that it has all bytes of."""
        ranges = {granule: self.page.range_of(granule, granule) for granule in self.touched}
        return {
            granule
            for granule, (start, end) in ranges.items()
            if self.start <= start and end <= self.end
        }

    @property
    def is_here(self) -> bool:
        """Whether the fast tier has all of it."""
        return self.page.state == State.PRESENT and self.touched <= self.page.valid

    def storable(self) -> "Piece":
        """What of it can be stored: what is covered or joins what is valid; it may be empty."""
        kept = (self.page.valid & self.touched) | self.covered
        if not kept:
            return Piece(self.page, self.start, self.start)
        start, end = self.page.range_of(min(kept), max(kept))
        return Piece(self.page, max(start, self.start), min(end, self.end))

    def parts(self) -> Iterator[tuple[bool, "Piece"]]:
        """Its parts in order of address, and whether they are valid."""
        touched = sorted(self.touched)
        for is_valid, group in groupby(touched, lambda each: each in self.page.valid):
            run = list(group)
            start, end = self.page.range_of(run[0], run[-1])
            yield is_valid, Piece(self.page, max(start, self.start), min(end, self.end))


class Slots:
    """The places for pages on the fast tier."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.used = 0  # the lowest never used
        self.freed: list[int] = []

    @property
    def full(self) -> bool:
        """Whether every slot has been used: the first filling is over."""
        return self.used == self.count

    @property
    def have_one(self) -> bool:
        """Whether one can be taken."""
        return bool(self.freed) or not self.full

    def take(self) -> int:
        """Give the slot freed last, else the lowest never used."""
        if self.freed:
            return self.freed.pop()
        self.used += 1
        return self.used - 1

    def free(self, slot: int) -> None:
        """Take a slot back."""
        self.freed.append(slot)
