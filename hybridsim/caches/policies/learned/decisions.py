"""The decisions of a learned policy about pages, and the values compared, as they are reported."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

# The decisions with their reasons; `show/why.py` has the texts.
HIT, FILLED, EARLY = "hit", "worth-it", "first-fill"
SCAN, WORTHLESS, TOO_LITTLE, UNKNOWN, RIVAL = (
    "sequential", "no-room-for-it", "less-than-a-fill", "little-known", "rival-worth-more",
)  # fmt: skip


@dataclass(frozen=True)
class Decision:
    """One access to a page, and the values that decided about it."""

    time_ns: int
    is_write: bool
    number: int  # of the page's accesses, from 1
    rest: int | None  # accesses to any page since its last one
    because: str
    chance: float  # that such a page is touched again before it would be evicted
    seen: int  # number of such accesses that the chance was learned from
    worth_reads: float  # disk reads that the page is expected to save, less the rent of its space
    sure_reads: float  # the same, discounted if the class has few samples
    price_reads: float  # of a fill at that time
    density: float  # reads saved per access of time in the cache
    rival_density: float | None  # the same of the page that would be evicted
    rival: int | None  # offset of that page in bytes

    @property
    def is_in(self) -> bool:
        """Whether the page is in the cache afterwards."""
        return self.because in (HIT, FILLED, EARLY)


@dataclass(frozen=True)
class Moment:
    """The state of the threshold at a moment of the trace."""

    time_ns: int
    accesses: int  # so far
    hit_ratio: float  # of page accesses since the previous moment
    let_in: float  # share of the misses since then that were admitted
    pages_stay: int  # accesses from a page's last use to its eviction
    rent_reads: float  # rent of a page's space during that time
    price_reads: float  # of a fill


@dataclass(frozen=True)
class Page:
    """A page, and all decisions about it."""

    offset: int  # bytes
    decisions: tuple[Decision, ...]


@dataclass(frozen=True)
class Why:
    """The decisions of a learned policy over a trace."""

    pages: int  # of the cache
    page_bytes: int
    moments: tuple[Moment, ...]
    asked: tuple[Page, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        return asdict(self)
