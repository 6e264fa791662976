"""What a simulated cache shows, and what is required of its simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from hybridsim.requests.rows import Requests


@dataclass(frozen=True)
class Shadow:
    """One simulated cache, over the last interval and since the start.

    Accesses are those to pages of a page cache, and what the kernel counts of its own caches.
    """

    kind: str  # as in a scenario: page, bcache, dm-cache; none: the disks alone
    policy: str  # of replacement; "" for a cache of the kernel
    size_bytes: int
    page_bytes: int
    accesses: int  # since the start, of the sampled pages
    hits: int
    recent: float | None  # hit ratio of the last interval; None: it had no access
    # On simulated devices, else None:
    mean_ns: float | None = None  # latency of the requests of the last interval
    ssd_written_bytes: int | None = None  # since the start
    disk_busy_ns: int | None = None  # of all disks together, since the start

    @property
    def ratio(self) -> float | None:
        """Hit ratio since the start; None: no access yet."""
        return self.hits / self.accesses if self.accesses else None

    @property
    def name(self) -> str:
        """What distinguishes it from a cache of the same size."""
        return self.policy or self.kind


class Simulated(Protocol):
    """One or more caches that take the same requests."""

    @property
    def rate(self) -> float:
        """Share of the pages that is simulated."""

    def take(self, rows: Requests) -> None:
        """Process requests, in order of arrival."""

    def now(self) -> list[Shadow]:
        """Return the state of the caches; a new interval begins."""

    def setting(self) -> list[Any]:
        """Return what a saved state must agree with, as JSON."""

    def state(self) -> Any:
        """Return all that changes: tuples of arrays and numbers."""

    def go_on(self, state: list[Any]) -> None:
        """Continue from a saved state, given as the leaves of `state`."""


def share(hits: int, accesses: int) -> float | None:
    """Return a hit ratio; None without accesses."""
    return hits / accesses if accesses else None
