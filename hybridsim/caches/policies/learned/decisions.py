"""What a learned policy decided on pages and what it weighed, as it is told."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

# What was decided, and why; `show/why.py` has the words.
HIT, FILLED, EARLY = "hit", "worth-it", "first-fill"
SCAN, WORTHLESS, TOO_LITTLE, UNKNOWN, RIVAL = (
    "sequential", "no-room-for-it", "less-than-a-fill", "little-known", "rival-worth-more",
)  # fmt: skip


@dataclass(frozen=True)
class Decision:
    """One access to a page, and what was weighed."""

    time_ns: int
    is_write: bool
    number: int  # of the page's accesses, from 1
    rest: int | None  # accesses to any page since its last one
    because: str
    chance: float  # that such a page is touched again before it would be evicted
    seen: int  # how many such accesses that is known from
    worth_reads: float  # of the disks, that the page would save, net of its room
    sure_reads: float  # the same, less where little is known
    price_reads: float  # of a fill, then
    density: float  # reads saved for an access of room
    rival_density: float | None  # of the page that would have had to leave
    rival: int | None  # its offset in bytes

    @property
    def is_in(self) -> bool:
        """Whether the page is in the cache afterwards."""
        return self.because in (HIT, FILLED, EARLY)


@dataclass(frozen=True)
class Moment:
    """How high the threshold stood."""

    time_ns: int
    accesses: int  # until then
    hit_ratio: float  # since the moment before, of page accesses
    let_in: float  # of the misses since then
    pages_stay: int  # accesses after a page's last, when it is evicted
    rent_reads: float  # of a place meanwhile
    price_reads: float  # of a fill


@dataclass(frozen=True)
class Page:
    """A page, and all decisions on it."""

    offset: int  # bytes
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class Why:
    """What a learned policy decided."""

    pages: int  # of the cache
    page_bytes: int
    moments: tuple[Moment, ...]
    asked: tuple[Page, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return asdict(self)
