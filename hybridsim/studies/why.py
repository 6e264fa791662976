"""Show why the learned policy admitted a page or not, at each access to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim import jit
from hybridsim.caches.policies.learned.habits import CLASS_MAX, CLOCK_AT
from hybridsim.caches.policies.learned.policy import CLOCK, NONE, SIZE, VICTIM, Learned
from hybridsim.caches.policies.learned.reuse import (
    BORDER,
    DOUBT,
    HORIZON,
    MEAN_BITS,
    READING,
    RENT,
    WEIGHT,
    WRITING,
)
from hybridsim.engine.residency import ADMITTED, run
from hybridsim.foundation.arrays import Int32s
from hybridsim.foundation.cache_parameters import WRITE_PRICE
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.requests.pages import Accesses, Chunked, Ids, accesses
from hybridsim.studies.hits import Cache, cache_pages, size_bytes

MOMENTS = 12  # number of times at which the threshold is reported
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


def why(
    trace: Chunked,
    offsets: Sequence[str | int] = (),
    cache_size: str | int = "10%",
    page: str | int = "64KiB",
    sequential_cutoff: str | int = "1MiB",
    write_price: float = WRITE_PRICE,
) -> Why:
    """Return the decisions at each access to the pages at `offsets`, and the threshold over time.

    Without offsets, the page with the most accesses is used.  No devices are simulated: a page is
    cached as soon as it is admitted.  Raises UsageError if the trace does not touch a page.
    """
    page_bytes = size_bytes(page)
    if page_bytes < 1:
        raise UsageError("the size of a page must be at least one byte")
    total, busiest = _survey(trace, page_bytes)
    wanted = [size_bytes(each) // page_bytes for each in offsets] or [busiest]
    (pages,) = cache_pages(trace, [cache_size], page_bytes)
    cutoff = size_bytes(sequential_cutoff)
    witness = Witness(pages, page_bytes, cutoff, write_price, list(dict.fromkeys(wanted)))
    step = -(-total // MOMENTS)
    for part in accesses(trace, page_bytes):
        assert isinstance(part, Accesses)
        witness.take(part, step)
    witness.note()
    missing = [each for each in witness.wanted if not witness.decisions[each]]
    if missing:
        raise UsageError(
            f"no read or write touches the page of {page_bytes} bytes at {missing[0] * page_bytes}"
            "; `hybridsim trace head` shows addresses that are touched"
        )
    shown = [Page(each * page_bytes, tuple(witness.decisions[each])) for each in witness.wanted]
    return Why(pages, page_bytes, tuple(witness.moments), tuple(shown))


def _survey(trace: Chunked, page_bytes: int) -> tuple[int, int]:
    """Return the number of page accesses, and the number of the page with the most accesses."""
    ids, total, counts = Ids(), 0, np.zeros(0, np.int64)
    for part in accesses(trace, page_bytes):
        grown = np.bincount(ids.of(part.numbers), minlength=len(counts))
        grown[: len(counts)] += counts
        counts = grown
        total += len(part.numbers)
    if not total:
        raise TraceError("no reads or writes in the trace")
    return total, int(ids.numbers[np.argmax(counts)])


class Witness:
    """A cache with a learned policy that is observed at each access to chosen pages."""

    def __init__(
        self, pages: int, page_bytes: int, cutoff: int, price: float, wanted: list[int]
    ) -> None:
        """Create an empty cache; `wanted` are numbers of pages."""
        self.wanted = wanted
        self.decisions: dict[int, list[Decision]] = {each: [] for each in wanted}
        self.moments: list[Moment] = []
        self._ids = Ids()
        self._page_bytes = page_bytes
        parameters = {"write_price_per_thousand": round(price * 1000)}
        self._cache = Cache("learned", "learned", pages, page_bytes, cutoff, parameters)
        self._last = 0, 0, 0
        self._now = 0

    def take(self, part: Accesses, step: int) -> None:
        """Process requests; record the threshold every `step` accesses."""
        ids = self._ids.of(part.numbers)
        accessed = np.flatnonzero(np.isin(part.numbers, self.wanted))
        rows = set(np.searchsorted(part.ends, accessed, "right").tolist())
        start = 0
        for row in sorted(rows):
            self._pass(part, ids, start, row, step)
            self._observe(part, ids, row)
            start = row + 1
        self._pass(part, ids, start, len(part.ends), step)

    def _pass(self, part: Accesses, ids: Int32s, start: int, stop: int, step: int) -> None:
        """Process the requests from `start` to `stop`, which access none of the chosen pages."""
        while start < stop:
            done = self._clock
            base = int(part.ends[start - 1]) if start else 0
            row = int(np.searchsorted(part.ends, base + step - done % step, "left")) + 1
            piece, of_piece = _rows(part, ids, start, min(row, stop))
            self._cache.take(of_piece, piece, done, self._ids.capacity)
            self._now = int(piece.arrival_ns[-1])
            start = min(row, stop)
            if self._clock // step > done // step:
                self.note()

    @property
    def _clock(self) -> int:
        """Page accesses so far, as the policy counts them."""
        return int(self._cache.state.admission.state[CLOCK])

    def _observe(self, part: Accesses, ids: Int32s, row: int) -> None:
        """Process one request, and record the decisions on the chosen pages that it accesses."""
        piece, of_piece = _rows(part, ids, row, row + 1)
        self._now = int(piece.arrival_ns[0])
        watched = {
            int(each): int(number)
            for each, number in zip(of_piece, piece.numbers)
            if number in self.decisions
        }
        self._cache.grow(self._ids.capacity)
        cache = self._cache.state
        watched_policy: Any = _Watched(cache.admission, watched, self)
        jit.fitting(run, cache, interpreted=True)(
            cache._replace(admission=watched_policy), of_piece, piece, None
        )
        for number in watched_policy.watched.values():  # of which `consider` was not called
            self._record_scan(number, bool(piece.write[0]))

    def decided(self, number: int, page: int, write: int, rest: int | None, wanted: bool) -> None:
        """Record a decision just after it was made; `page` is an id, `number` the page's number."""
        cache, decisions = self._cache.state, self.decisions[number]
        policy, reuse = cache.admission, cache.admission.reuse
        worth, group = reuse.worth, int(policy.pages.stamp[page]) & CLASS_MAX
        border = int(reuse.state[BORDER])
        touched = int(reuse.touched[group, :border].sum())
        observed = touched + int(reuse.reached[group, border])
        victim = int(policy.state[VICTIM])
        rival = None if victim == NONE else int(self._ids.numbers[victim]) * self._page_bytes
        part = float(worth.part[policy.state[SIZE]])
        value, sure = part * float(worth.value[group]), part * float(worth.sure[group])
        price = float(worth.price())
        is_known = observed >= DOUBT and reuse.heard[group] > 0
        promise = None if victim == NONE else float(policy.promise(policy.pages.stamp[victim]))
        decisions.append(
            Decision(
                self._now,
                bool(write),
                len(decisions) + 1,
                rest,
                HIT if cache.present[page] else _reason(wanted, value, sure, price, is_known),
                touched / max(observed, 1),
                observed // WEIGHT,
                value,
                sure,
                price,
                part * float(worth.density[group, 0]),
                promise,
                rival,
            )
        )

    def _record_scan(self, number: int, is_write: bool) -> None:
        """Record an access that bypasses the policy because it continues a sequential run."""
        decisions = self.decisions[number]
        price = float(self._cache.state.admission.reuse.worth.price())
        decisions.append(
            Decision(
                self._now, is_write, len(decisions) + 1, None, SCAN, 0.0, 0, 0.0, 0.0, price, 0.0,
                None, None,
            )
        )  # fmt: skip

    def note(self) -> None:
        """Record the threshold and the hit ratio since the last record."""
        counts = *self._cache.served(), int(self._cache.state.counts[ADMITTED])
        accesses, hits, admitted = (a - b for a, b in zip(counts, self._last))
        if not accesses:
            return
        self._last = counts
        reuse = self._cache.state.admission.reuse
        state, worth = reuse.state, reuse.worth.state
        stays = int(state[HORIZON]) >> MEAN_BITS
        self.moments.append(
            Moment(
                self._now,
                counts[0],
                hits / accesses,
                admitted / max(accesses - hits, 1),
                stays,
                float(worth[RENT]) * stays,
                float(worth[READING] + worth[WRITING]),
            )
        )


class _Watched:
    """A learned policy whose decisions on chosen pages are recorded."""

    def __init__(self, policy: Learned, watched: dict[int, int], witness: Witness) -> None:
        self._policy, self.watched, self._witness = policy, dict(watched), witness

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def consider(self, now: int, page: int, write: int, full: int) -> bool:
        """Return the decision of the policy, and record it."""
        policy, page = self._policy, int(page)
        before, clock = int(policy.pages.stamp[page]), int(policy.state[CLOCK])
        wanted = bool(policy.consider(now, page, write, full))
        if page in self.watched:
            rest = None if before == NONE else clock - (before >> CLOCK_AT)
            self._witness.decided(self.watched.pop(page), page, write, rest, wanted)
        return wanted


def _reason(wanted: bool, value: float, sure: float, price: float, is_known: bool) -> str:
    """Return the reason for the decision on a missed page, as in Learned.consider()."""
    if wanted:
        return FILLED if sure >= price else EARLY
    if value < price:
        if not is_known:
            return UNKNOWN
        return TOO_LITTLE if value > 0 else WORTHLESS
    return UNKNOWN if sure < price else RIVAL


def _rows(part: Accesses, ids: Int32s, start: int, stop: int) -> tuple[Accesses, Int32s]:
    """Return the requests from `start` to `stop`, and the ids of their pages."""
    piece = part.between(start, stop)
    first = int(part.ends[start - 1]) if start else 0
    return piece, ids[first : first + len(piece.numbers)]
