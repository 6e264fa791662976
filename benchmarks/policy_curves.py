"""Curves that show how soon a cache is warm, and how soon it follows a hot spot that moves.

warm    The hit ratio of a run in 500 parts of the trace (with timing: in 100 parts of the time).
        Its *last* hit ratio is the median of the last fifth.
follow  The time after all moves of the hot spot together, in windows of a thousandth of the trace:
        of the page accesses to regions that have just become hot, the share whose page was cached
        at the start of the window.  (If a hot spot moves in small steps, other accesses do not
        depend on the move.)  Its *settled* level is the mean of the second half.

A curve reaches a level at the first part from which its mean over the following parts is at least
the level: over a twentieth of the trace, so that a short period of hits does not count; over five
windows after moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from hybridsim.answers.warmup import LAST_SHARE, centred_median
from hybridsim.foundation.arrays import Ints
from hybridsim.studies.hits import Cache

PIECES, WINDOWS = 100, 10  # pieces of a trace, windows of a piece
MERGED = 2  # windows per part
LASTS = 20  # the mean is over 1/20 of the trace
STEADY = 5  # windows over which the mean is taken after moves
WARM = 0.9  # share of the level
DIGITS = 3
NEVER = -1


class Moves(NamedTuple):
    """Regions that become hot; none does so twice within `stretch`."""

    requests: Ints  # number of the first request after each move
    regions: Ints  # the region that becomes hot at each move
    region_bytes: int
    stretch: int  # requests after each move that are examined

    def seen_in(self, requests: int) -> Moves:
        """Return the moves after a tenth of the requests, with a complete stretch."""
        chosen = self.requests >= requests // 10
        chosen &= self.requests + self.stretch <= requests
        return self._replace(requests=self.requests[chosen], regions=self.regions[chosen])


class Followed:
    """The accesses of each window to regions that became hot, and how many windows ago."""

    def __init__(self, moves: Moves, windows: Iterable[tuple[Any, Any]], page_bytes: int) -> None:
        """Process windows of (ids, Accesses)."""
        self.window, self.length = 0, 0
        self._seen: list[tuple[Ints, Ints]] = []  # by window: accesses, windows since the move
        began: dict[int, int] = {}
        at, request = 0, 0
        for number, (_, part) in enumerate(windows):
            self.window = self.window or len(part.ends)
            while at < len(moves.requests) and moves.requests[at] <= request:
                began[int(moves.regions[at])] = number
                at += 1
            places = part.numbers * page_bytes // moves.region_bytes
            hot, place = np.unique(places, return_inverse=True)
            since = np.array([number - began.get(int(each), 10**9) for each in hot])[place]
            self.length = moves.stretch // self.window
            chosen = np.flatnonzero((since >= 0) & (since < self.length))
            self._seen.append((chosen, since[chosen]))
            request += len(part.ends)

    def empty(self) -> np.ndarray:
        """Return empty counts for `add`."""
        return np.zeros((2, self.length))

    def add(self, counts: np.ndarray, number: int, ids: Ints, cache: Cache) -> None:
        """Count the accesses of the next window, and those whose page is cached before it."""
        chosen, since = self._seen[number]
        counts[0] += np.bincount(since, minlength=self.length)
        counts[1] += np.bincount(since, cache.holds(ids[chosen]), self.length)

    def curve(self, counts: np.ndarray) -> list[float]:
        """Return the share of hits by windows since the move."""
        return short(counts[1] / np.maximum(counts[0], 1))


def short(curve: np.ndarray) -> list[float]:
    """Return a curve rounded for storage in a row."""
    return [round(float(each), DIGITS) for each in curve]


def last(curve: list[float]) -> float:
    """Return the level in the last fifth."""
    return float(np.median(centred_median(np.array(curve))[-(len(curve) // LAST_SHARE) :]))


def settled(curve: list[float]) -> float:
    """Return the level in the second half."""
    return float(np.mean(curve[len(curve) // 2 :]))


def first_at(curve: list[float], level: float, parts: int) -> int | None:
    """Return the first part from which the mean of `parts` parts reaches a level, or None."""
    means = np.convolve(curve, np.ones(parts) / parts, "valid")
    reached = np.flatnonzero(means >= level)
    return int(reached[0]) if len(reached) else None
