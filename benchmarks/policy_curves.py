"""How soon is a cache warm, and how soon does it follow a hot spot that moves?  Read off curves.

warm    The curve of a run is its hit ratio in 500 parts of the trace (under timing: in 100 of the
        time); its *last* hit ratio is the median of the last fifth.
follow  The curve is of what came after all moves of the hot spot together, in windows of a
        thousandth of the trace: of the page accesses to what had just grown hot, the share whose
        page the cache held when the window began.  (Of a hot spot that moves bit by bit the other
        accesses say nothing of it.)  Its *settled* level is the mean of the later half.

A curve is *at* a level from the first place on from which as much as lasts has it on average: a
twentieth of the trace, so that a moment in which everything hits is none; five windows after moves.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from hybridsim.answers.warmup import LAST_SHARE, centred_median
from hybridsim.foundation.arrays import Ints
from hybridsim.studies.hits import Cache

PIECES, WINDOWS = 100, 10  # of a trace, of a piece
MERGED = 2  # windows of a part
LASTS = 20  # a trace has so many times what lasts
STEADY = 5  # windows
WARM = 0.9  # of the level
DIGITS = 3
NEVER = -1


class Moves(NamedTuple):
    """Places that grow hot; none does so twice within `stretch`."""

    requests: Ints  # number of the first request after each move
    regions: Ints  # that grow hot then
    region_bytes: int
    stretch: int  # requests that are looked at after each

    def seen_in(self, requests: int) -> Moves:
        """Return those of a warm cache, of which the whole stretch is seen."""
        chosen = self.requests >= requests // 10
        chosen &= self.requests + self.stretch <= requests
        return self._replace(requests=self.requests[chosen], regions=self.regions[chosen])


class Followed:
    """Which accesses of each window are to a place that grew hot, and how many windows ago."""

    def __init__(self, moves: Moves, windows: Iterable[tuple[Any, Any]], page_bytes: int) -> None:
        """Go through windows of ids and Accesses."""
        self.window, self.length = 0, 0
        self._seen: list[tuple[Ints, Ints]] = []  # of each window: accesses, windows since the move
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
        """Return counts for `add`."""
        return np.zeros((2, self.length))

    def add(self, counts: np.ndarray, number: int, ids: Ints, cache: Cache) -> None:
        """Count the accesses of a window that is about to begin, and those whose page is there."""
        chosen, since = self._seen[number]
        counts[0] += np.bincount(since, minlength=self.length)
        counts[1] += np.bincount(since, cache.holds(ids[chosen]), self.length)

    def curve(self, counts: np.ndarray) -> list[float]:
        """Return the share of hits by windows since the move."""
        return short(counts[1] / np.maximum(counts[0], 1))


def short(curve: np.ndarray) -> list[float]:
    """Return a curve as it is kept in a row."""
    return [round(float(each), DIGITS) for each in curve]


def last(curve: list[float]) -> float:
    """Return the level in the last fifth."""
    return float(np.median(centred_median(np.array(curve))[-(len(curve) // LAST_SHARE) :]))


def settled(curve: list[float]) -> float:
    """Return the level in the later half."""
    return float(np.mean(curve[len(curve) // 2 :]))


def first_at(curve: list[float], level: float, parts: int) -> int | None:
    """Return from which part on so many have a level on average; None if none do."""
    means = np.convolve(curve, np.ones(parts) / parts, "valid")
    reached = np.flatnonzero(means >= level)
    return int(reached[0]) if len(reached) else None
