"""Hot spots: how uneven accesses are, how many pages take most of them, and whether these change.

The accesses of each quarter of the trace are counted by page in two halves, which alternate every
64 requests.  The hottest pages are selected by one half.  Their share of the other half's accesses
shows how hot the hot spot is; their share in later quarters shows whether it stays.  Selecting and
measuring on different halves excludes pages that are the hottest by chance.
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
RUN = 64  # consecutive requests in one half
HOTTEST = (0.01, 0.1, 0.2)  # shares of the pages
MOST = (0.5, 0.8)  # shares of the accesses
PLAIN, SLIGHT = 2.0, 1.3  # minimum skew of a hot spot, and of a slight one
FEWEST = 50  # pages; with fewer the answer is "unsure"
MOVES = 0.75  # it moves if its share after three quarters is less than this part of its first


@dataclass(frozen=True)
class HotSpot:
    """The hot spot of a trace; shares are those of page accesses unless specified otherwise."""

    of: str  # "reads", or "requests" if there are no reads
    page_bytes: int
    accesses: int
    distinct: int  # pages
    touched_once: float  # share of the pages
    taken: dict[float, float]  # share that the hottest pages take, by share of the pages
    even: dict[float, float]  # the same under uniform access
    needed: dict[float, int]  # minimum number of pages that take this share
    kept: list[float]  # share of the hottest pages of a quarter 0, 1, 2 and 3 quarters later

    @property
    def skew(self) -> float:
        """Share that the hottest tenth of the pages takes, over its share under uniform access."""
        return self.taken[0.1] / self.even[0.1] if self.even[0.1] else 1.0

    @property
    def word(self) -> str:
        """Whether there is a hot spot: yes, slight, no, or unsure."""
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
    """A trace of one chunk."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests

    def chunks(self) -> Iterator[Requests]:
        """Yield the requests."""
        yield self._requests


def hot_spot(trace: Chunked, requests: int, reads: int, page_bytes: int) -> HotSpot:
    """Return the hot spot of a trace of `requests` requests, by its reads if it has any."""
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
                page_ids = ids.of(part.numbers)
                if counts.shape[1] < ids.capacity:
                    more = ids.capacity - counts.shape[1]
                    counts = np.pad(counts, ((0, 0), (0, more)))
                counts[each] += np.bincount(page_ids, minlength=ids.capacity).astype(np.int32)
    return judged(counts[:, : ids.count], page_bytes, "reads" if reads else "requests")


def judged(counts: NDArray[np.int32], page_bytes: int, of: str = "reads") -> HotSpot:
    """Return the hot spot of access counts (halves of quarters, pages)."""
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
    """Return the share of the accesses that the hottest pages take under uniform access.

    `number` accesses to `distinct` touched pages; `share` is that of the hottest pages.  Counts per
    page then follow a Poisson distribution, of which only counts above zero are observed.
    """
    if not distinct:
        return 0.0
    mean = _mean_of_all(number / distinct)
    left, taken = share * (1 - math.exp(-mean)), 0.0
    limit = int(mean + 12 * math.sqrt(mean) + 24)
    for count in range(limit, 0, -1):
        chance = math.exp(count * math.log(mean) - mean - math.lgamma(count + 1))
        part = min(chance, left)
        taken += part * count
        left -= part
    return min(taken / mean, 1.0)


def _mean_of_all(mean_of_touched: float) -> float:
    """Return the mean count of all pages from the mean count of those touched at least once."""
    low, high = 1e-9, max(mean_of_touched, 1e-9)
    for _ in range(80):
        middle = (low + high) / 2
        if middle / -math.expm1(-middle) < mean_of_touched:
            low = middle
        else:
            high = middle
    return high


def _kept(counts: NDArray[np.int32], lag: int) -> float:
    """Return the mean share that the hottest pages of a quarter take `lag` quarters later."""
    shares = []
    for quarter in range(QUARTERS - lag):
        first, later = counts[quarter * HALVES], counts[(quarter + lag) * HALVES + 1]
        if first.any() and later.any():
            hot = _hottest(first)
            shares.append(float(later[hot].sum() / later.sum()))
    return sum(shares) / len(shares) if shares else 0.0


def _hottest(counts: NDArray[np.int32]) -> Ints:
    """Return the ids of the hottest tenth of the touched pages."""
    pages = _first(int((counts > 0).sum()), 0.1)
    return np.argsort(-counts, kind="stable")[:pages].astype(np.int64)
