"""Is there a hot spot: how uneven are accesses, how large is what takes most of them, does it move.

Pages are counted in each quarter of the trace, and in each quarter twice: every other 64 requests
apart.  The hottest pages of one half of a quarter, and what share of the other half's accesses they
take, is how hot a hot spot is; of a later quarter's, whether it stays.  So chance, which makes some
page the hottest in any count, does not look like a hot spot.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.requests.pages import Chunked, Ids, accesses
from hybridsim.requests.rows import Requests

QUARTERS, HALVES = 4, 2
RUN = 64  # requests of one half after another
HOTTEST = (0.01, 0.1, 0.2)  # of the pages
MOST = (0.5, 0.8)  # of the accesses
PLAIN, SLIGHT = 2.0, 1.3  # times what even accesses would give: a hot spot, or something like it
FEWEST = 50  # pages: fewer are not judged
MOVES = 0.75  # of what the hot spot takes in its own quarter, left three quarters later


@dataclass(frozen=True)
class HotSpot:
    """What was found; shares are of the page accesses."""

    of: str  # "reads", or "requests" where there are no reads
    page_bytes: int
    accesses: int
    distinct: int  # pages
    touched_once: float  # share of the pages
    taken: dict[float, float]  # by share of the pages, the hottest
    even: dict[float, float]  # the same if no page were hotter than another
    needed: dict[float, int]  # by share of the accesses: the fewest pages that take it
    kept: list[float]  # that the hottest pages of a quarter take 0, 1, 2, 3 quarters later

    @property
    def skew(self) -> float:
        """How many times more the hottest tenth takes than if accesses were even."""
        return self.taken[0.1] / self.even[0.1] if self.even[0.1] else 1.0

    @property
    def word(self) -> str:
        """Whether there is one: yes, slight, no, or unsure."""
        if self.distinct < FEWEST:
            return "unsure"
        return "yes" if self.skew >= PLAIN else "slight" if self.skew >= SLIGHT else "no"

    @property
    def moves(self) -> bool | None:
        """Whether it moves; None if unknown."""
        if not self.kept[0]:
            return None
        return self.kept[-1] < MOVES * self.kept[0]

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {**vars(self), "skew": self.skew, "answer": self.word, "moves": self.moves}


class OneChunk:
    """Some requests, as a trace."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def chunks(self) -> Iterator[Requests]:
        """Yield the requests."""
        yield self._requests


def hot_spot(trace: Chunked, requests: int, reads: int, page_bytes: int) -> HotSpot:
    """Find the hot spot of a trace of `requests` requests, by its reads if it has any."""
    ids = Ids()
    counts = np.zeros((QUARTERS * HALVES, ids.capacity), np.int32)
    first = 0
    for chunk in trace.chunks():
        row = first + np.arange(chunk.rows)
        first += chunk.rows
        column = row * QUARTERS // max(requests, 1) * HALVES + row // RUN % HALVES
        wanted = chunk.op == Op.READ if reads else np.ones(chunk.rows, np.bool_)
        for each in np.unique(column[wanted]).tolist():
            mine = OneChunk(Requests._make(part[wanted & (column == each)] for part in chunk))
            for part in accesses(mine, page_bytes):
                result = ids.of(part.numbers)
                if counts.shape[1] < ids.capacity:
                    more = ids.capacity - counts.shape[1]
                    counts = np.pad(counts, ((0, 0), (0, more)))
                counts[each] += np.bincount(result, minlength=ids.capacity).astype(np.int32)
    return judged(counts[:, : ids.count], page_bytes, "reads" if reads else "requests")


def judged(counts: NDArray[np.int32], page_bytes: int, of: str = "reads") -> HotSpot:
    """Judge counts by half of a quarter (rows) and page (columns)."""
    total = counts.sum(axis=0, dtype=np.int64)
    total = total[total > 0]
    distinct, number = len(total), int(total.sum())
    hottest = np.cumsum(np.sort(total)[::-1])
    shares = {share: _first(distinct, share) for share in HOTTEST}
    return HotSpot(
        of,
        page_bytes,
        number,
        distinct,
        float((total == 1).mean()) if distinct else 0.0,
        {share: float(hottest[pages - 1] / number) if distinct else 0.0
         for share, pages in shares.items()},
        {share: even_share(number, distinct, share) for share in HOTTEST},
        {share: int(np.searchsorted(hottest, share * number) + 1) if distinct else 0
         for share in MOST},
        [_kept(counts, lag) for lag in range(QUARTERS)],
    )  # fmt: skip


def _first(distinct: int, share: float) -> int:
    return max(1, round(share * distinct))


def even_share(number: int, distinct: int, share: float) -> float:
    """Return what the hottest share of pages takes of accesses that favour none.

    Counts of pages are then of Poisson's distribution, of which only what was touched is seen.
    """
    if not distinct:
        return 0.0
    mean = _mean_of_all(number / distinct)
    left, taken = share * (1 - math.exp(-mean)), 0.0
    most = int(mean + 12 * math.sqrt(mean) + 24)
    for count in range(most, 0, -1):
        chance = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))
        part = min(chance, left)
        taken += part * count
        left -= part
    return min(taken / mean, 1.0)


def _mean_of_all(mean_of_touched: float) -> float:
    """Return the mean count of all pages, from that of those touched at least once."""
    low, high = 1e-9, max(mean_of_touched, 1e-9)
    for _ in range(80):
        middle = (low + high) / 2
        if middle / -math.expm1(-middle) < mean_of_touched:
            low = middle
        else:
            high = middle
    return high


def _kept(counts: NDArray[np.int32], lag: int) -> float:
    """Return the share that the hottest pages of a quarter take `lag` quarters later."""
    result = []
    for quarter in range(QUARTERS - lag):
        known, later = counts[quarter * HALVES], counts[(quarter + lag) * HALVES + 1]
        if known.any() and later.any():
            hot = _hottest(known)
            result.append(float(later[hot].sum() / later.sum()))
    return sum(result) / len(result) if result else 0.0


def _hottest(counts: NDArray[np.int32]) -> Ints:
    """Return the hottest tenth of the pages touched."""
    pages = _first(int((counts > 0).sum()), 0.1)
    return np.argsort(-counts, kind="stable")[:pages].astype(np.int64)
