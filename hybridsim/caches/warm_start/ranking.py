"""Rank the pages of a trace by their value to a cache when the next trace starts.

Pages are ranked by their reads, with older reads weighted less: the weight halves with every
half-life, counted in page accesses.  The best half-life depends on how fast the hot spot moves, so
several half-lives rank the pages, and the one is used whose lists had the most hits in what
followed, in repeated trials on the trace itself.  (Measured in benchmarks/RESULTS.md: writes do not
count, as a page that is only written saves no read of the disks.)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hybridsim.caches.streams import Streams
from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.jit import loop
from hybridsim.requests.pages import Accesses, Chunked, Ids, accesses

HALF_LIVES = (1, 2, 4, 8, 16, 64, 256)  # page accesses per page of the cache
UNTRIED = 16  # the half-life that is best on average, used before the first trial
STEP_MIN = 8192  # page accesses between two trials of the lists
FORGETTING = 0.8  # factor on the hits of earlier trials, at each later one
Floats = NDArray[np.float64]


def ranked(trace: Chunked, page_bytes: int, pages: int, cutoff_bytes: int = 0) -> Ints:
    """Return the numbers of the `pages` pages that are worth most, or fewer, the best first.

    Accesses in sequential runs of `cutoff_bytes` and more (0: no cutoff) do not count: such a cache
    would not have admitted them.
    """
    return Ranking.of(trace, page_bytes, pages, cutoff_bytes).best()


class Ranking:
    """Scores of all pages seen so far, by half-life."""

    def __init__(self, pages: int) -> None:
        self.pages = pages
        self._ids = Ids()
        self._scores: Floats = np.zeros((len(HALF_LIVES), 0))
        self._hits = np.zeros(len(HALF_LIVES))
        self._hits[HALF_LIVES.index(UNTRIED)] = 0.5  # of a hit: decides until there are hits
        self._waiting: list[tuple[Ints, NDArray[np.bool_]]] = []

    @classmethod
    def of(cls, trace: Chunked, page_bytes: int, pages: int, cutoff_bytes: int = 0) -> Ranking:
        """Rank the pages of a trace; the parameters are those of `ranked`."""
        ranking = cls(pages)
        streams = Streams.new()
        for part in accesses(trace, page_bytes):
            assert isinstance(part, Accesses)
            counts = np.zeros(len(part.ends), np.uint8)
            mark(streams, part, cutoff_bytes, counts)
            ranking.add(part.numbers, np.repeat(counts, np.diff(part.ends, prepend=0)) == 1)
        return ranking

    def add(self, numbers: Ints, counts: NDArray[np.bool_]) -> None:
        """Add accesses to pages by number; `counts` marks those that count."""
        self._waiting.append((self._ids.of(numbers).astype(np.int64), counts))
        if sum(len(ids) for ids, _ in self._waiting) >= max(STEP_MIN, self._ids.count):
            self._take()

    @property
    def half_life(self) -> int:
        """The half-life whose lists had the most hits so far."""
        self._take()
        return HALF_LIVES[int(np.argmax(self._hits))]

    def best(self, half_life: int | None = None) -> Ints:
        """Return the numbers of the most valuable pages, best first; equal ones by number."""
        row = HALF_LIVES.index(half_life or self.half_life)
        self._take()
        scores = self._scores[row]
        numbers = self._ids.numbers
        chosen = np.flatnonzero(scores)
        order = np.lexsort((numbers[chosen], -scores[chosen]))
        best: Ints = numbers[chosen[order[: self.pages]]]
        return best

    def _take(self) -> None:
        """Try the lists on the waiting accesses, then add these to the scores."""
        if not self._waiting:
            return
        ids, counts = (np.concatenate(column) for column in zip(*self._waiting))
        self._waiting.clear()
        known = self._scores.shape[1]
        self._scores = np.pad(self._scores, ((0, 0), (0, self._ids.count - known)))
        counted, age = ids[counts], len(ids) - np.flatnonzero(counts)
        if known:
            self._hits *= FORGETTING
        for i, half_life in enumerate(HALF_LIVES):
            accesses_each = half_life * max(self.pages, 1)
            scores = self._scores[i]
            if known:
                self._hits[i] += np.count_nonzero(self._listed(scores)[counted])
            scores *= 0.5 ** (len(ids) / accesses_each)
            scores += np.bincount(counted, 0.5 ** (age / accesses_each), len(scores))

    def _listed(self, scores: Floats) -> NDArray[np.bool_]:
        """Return for each page whether it would be on the list of these scores."""
        listed = scores > 0
        if self.pages < len(scores):
            rest = np.argpartition(-scores, self.pages)[self.pages :]
            listed[rest] = False
        return listed


@loop
def mark(streams: Streams, requests: Accesses, cutoff_bytes: int, counts: Bytes) -> None:
    """Mark the reads that are not in a sequential run as long as the cutoff."""
    for i in range(len(requests.ends)):
        is_run = streams.is_long(requests.offset[i], requests.length[i], cutoff_bytes)
        counts[i] = requests.write[i] == 0 and not is_run
