"""Why was a page let into the cache, or not?  What the learned policy weighed each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hybridsim import jit
from hybridsim.arrays import Int32s
from hybridsim.errors import TraceError, UsageError
from hybridsim.pages import Accesses, Chunked, Ids, accesses
from hybridsim.policies import pair
from hybridsim.policies.habits import CLASS_MAX, CLOCK_AT
from hybridsim.policies.learned import CLOCK, EMPTY_SHARE, NONE, VICTIM, Learned
from hybridsim.policies.reuse import BORDER, HORIZON, MEAN_BITS, WEIGHT
from hybridsim.policies.worth import PRICE, RENT
from hybridsim.residency import ADMITTED, PAGE_HITS, PAGES, Residency, run
from hybridsim.verbs.hits import cache_pages, size_bytes

MOMENTS = 12  # at which the threshold is told

# What was decided, and why; `report/why.py` has the words.
HIT, FILLED, ROOM = "hit", "worth-it", "room-idle"
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
        return self.because in (HIT, FILLED, ROOM)


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


def why(
    trace: Chunked,
    offsets: Sequence[str | int] = (),
    cache_size: str | int = "10%",
    page: str | int = "64KiB",
    sequential_cutoff: str | int = "1MiB",
    write_price: float = 0.5,
) -> Why:
    """Return what was weighed at each access to the pages at `offsets`, and the threshold.

    Without offsets it is the page that is accessed most.  There are no devices and no time: a page
    is there as soon as it is let in.  UsageError if no access touches a page asked for.
    """
    page_bytes = size_bytes(page)
    if page_bytes < 1:
        raise UsageError("a page has at least one byte")
    total, busiest = _survey(trace, page_bytes)
    wanted = [size_bytes(each) // page_bytes for each in offsets] or [busiest]
    (pages,) = cache_pages(trace, [cache_size], page_bytes)
    cutoff = size_bytes(sequential_cutoff)
    witness = _Witness(pages, page_bytes, cutoff, write_price, list(dict.fromkeys(wanted)))
    step = -(-total // MOMENTS)
    for part in accesses(trace, page_bytes):
        assert isinstance(part, Accesses)
        witness.take(part, step)
    witness.note()
    missing = [each for each in witness.wanted if not witness.decisions[each]]
    if missing:
        raise UsageError(
            f"no read or write touches the page of {page_bytes} bytes at {missing[0] * page_bytes}"
            "; `trace head` shows some that are"
        )
    asked = [Page(each * page_bytes, tuple(witness.decisions[each])) for each in witness.wanted]
    return Why(pages, page_bytes, tuple(witness.moments), tuple(asked))


def _survey(trace: Chunked, page_bytes: int) -> tuple[int, int]:
    """Return how many page accesses there are, and the page of most of them."""
    ids, total, counts = Ids(), 0, np.zeros(0, np.int64)
    for part in accesses(trace, page_bytes):
        found = np.bincount(ids.of(part.numbers), minlength=len(counts))
        found[: len(counts)] += counts
        counts = found
        total += len(part.numbers)
    if not total:
        raise TraceError("no reads or writes in the trace")
    return total, int(ids.numbers[np.argmax(counts)])


class _Witness:
    """A cache under a learned policy, stopped at each access to some pages."""

    def __init__(
        self, pages: int, page_bytes: int, cutoff: int, price: float, wanted: list[int]
    ) -> None:
        self.wanted = wanted
        self.decisions: dict[int, list[Decision]] = {each: [] for each in wanted}
        self.moments: list[Moment] = []
        self._ids = Ids()
        self._page_bytes = page_bytes
        said = {"write_price_per_thousand": round(price * 1000)}
        policies = pair(Learned, Learned, self._ids.capacity, pages, said)
        self._cache = Residency.new(pages, cutoff, *policies, self._ids.capacity)
        self._last = self._counts()
        self._now = 0

    def take(self, part: Accesses, step: int) -> None:
        """Go through requests, with a moment every `step` accesses."""
        ids = self._ids.of(part.numbers)
        if len(self._cache.present) < self._ids.capacity:
            self._cache = self._cache.grown(self._ids.capacity)
        asked = np.flatnonzero(np.isin(part.numbers, self.wanted))
        rows = set(np.searchsorted(part.ends, asked, "right").tolist())
        start = 0
        for row in sorted(rows):
            self._pass(part, ids, start, row, step)
            self._ask(part, ids, row)
            start = row + 1
        self._pass(part, ids, start, len(part.ends), step)

    def _pass(self, part: Accesses, ids: Int32s, start: int, stop: int, step: int) -> None:
        """Go through the requests from `start` to `stop`, in which nothing is asked."""
        while start < stop:
            done = int(self._cache.admission.state[CLOCK])
            base = int(part.ends[start - 1]) if start else 0
            row = int(np.searchsorted(part.ends, base + step - done % step, "left")) + 1
            piece, of_piece = _rows(part, ids, start, min(row, stop))
            jit.fitting(run, self._cache)(self._cache, of_piece, piece)
            self._now = int(piece.arrival_ns[-1])
            start = min(row, stop)
            if int(self._cache.admission.state[CLOCK]) // step > done // step:
                self.note()

    def _ask(self, part: Accesses, ids: Int32s, row: int) -> None:
        """Go through one request, and note what was weighed for the pages that were asked for."""
        piece, of_piece = _rows(part, ids, row, row + 1)
        self._now = int(piece.arrival_ns[0])
        watched = {
            int(each): int(number)
            for each, number in zip(of_piece, piece.numbers)
            if number in self.decisions
        }
        cache = self._cache
        watched_policy: Any = _Watched(cache.admission, watched, self)
        jit.fitting(run, cache, interpreted=True)(
            cache._replace(admission=watched_policy), of_piece, piece
        )
        for number in watched_policy.unasked():
            self._passed_by(number, bool(piece.write[0]))

    def decided(
        self, number: int, page: int, write: int, full: int, rest: int | None, wanted: bool
    ) -> None:
        """Note a decision, just after it was taken; `page` is an id."""
        cache, found = self._cache, self.decisions[number]
        policy, reuse = cache.admission, cache.admission.reuse
        worth, group = reuse.worth, int(policy.stamp[page]) & CLASS_MAX
        border = int(reuse.state[BORDER])
        touched = int(reuse.touched[group, :border].sum())
        known = touched + int(reuse.reached[group, border])
        victim = int(policy.state[VICTIM])
        rival = None if victim == NONE else int(self._ids.numbers[victim]) * self._page_bytes
        value, sure = float(worth.value[group]), float(worth.sure[group])
        price = float(worth.state[PRICE])
        promise = None if victim == NONE else float(policy.promise(policy.stamp[victim]))
        found.append(
            Decision(
                self._now,
                bool(write),
                len(found) + 1,
                rest,
                _reason(bool(cache.present[page]), bool(full), wanted, value, sure, price),
                touched / max(known, 1),
                known // WEIGHT,
                value,
                sure,
                price,
                float(worth.density[group, 0]),
                promise,
                rival,
            )
        )

    def _passed_by(self, number: int, is_write: bool) -> None:
        """Note that the policy was not asked: the access continues a long run."""
        found = self.decisions[number]
        price = float(self._cache.admission.reuse.worth.state[PRICE])
        found.append(
            Decision(
                self._now, is_write, len(found) + 1, None, SCAN, 0.0, 0, 0.0, 0.0, price, 0.0,
                None, None,
            )
        )  # fmt: skip

    def note(self) -> None:
        """Note how high the threshold is."""
        counts = self._counts()
        accesses, hits, admitted = (a - b for a, b in zip(counts, self._last))
        if not accesses:
            return
        self._last = counts
        state, worth = self._cache.admission.reuse.state, self._cache.admission.reuse.worth.state
        stays = int(state[HORIZON]) >> MEAN_BITS
        self.moments.append(
            Moment(
                self._now,
                counts[0],
                hits / accesses,
                admitted / max(accesses - hits, 1),
                stays,
                float(worth[RENT]) * stays,
                float(worth[PRICE]),
            )
        )

    def _counts(self) -> tuple[int, int, int]:
        counts = self._cache.counts
        return (
            int(counts[PAGES] + counts[PAGES + 1]),
            int(counts[PAGE_HITS] + counts[PAGE_HITS + 1]),
            int(counts[ADMITTED]),
        )


class _Watched:
    """A learned policy whose decisions on some pages are noted."""

    def __init__(self, policy: Learned, watched: dict[int, int], witness: _Witness) -> None:
        self._policy, self._watched, self._witness = policy, dict(watched), witness

    def __getattr__(self, name: str) -> Any:
        return getattr(self._policy, name)

    def unasked(self) -> list[int]:
        """Return the numbers of pages that it did not hear of."""
        return list(self._watched.values())

    def consider(self, now: int, page: int, write: int, full: int) -> bool:
        """Let the policy decide, and have that noted."""
        policy, page = self._policy, int(page)
        before, clock = int(policy.stamp[page]), int(policy.state[CLOCK])
        wanted = bool(policy.consider(now, page, write, full))
        if page in self._watched:
            rest = None if before == NONE else clock - (before >> CLOCK_AT)
            self._witness.decided(self._watched.pop(page), page, write, full, rest, wanted)
        return wanted


def _reason(held: bool, full: bool, wanted: bool, value: float, sure: float, price: float) -> str:
    """Say what decided, as Learned.consider() weighs it."""
    if held:
        return HIT
    if wanted:
        return FILLED if full else ROOM
    if value == 0.0:
        return WORTHLESS
    if value * (1 if full else EMPTY_SHARE) < price:
        return TOO_LITTLE
    return UNKNOWN if sure < price else RIVAL


def _rows(part: Accesses, ids: Int32s, start: int, stop: int) -> tuple[Accesses, Int32s]:
    """Return the requests from `start` to `stop`, and the ids of their pages."""
    first = int(part.ends[start - 1]) if start else 0
    last = int(part.ends[stop - 1])
    rows = slice(start, stop)
    ends = part.ends[rows] - first
    piece = Accesses(part.numbers[first:last], ends, *(column[rows] for column in part[2:]))
    return piece, ids[first:last]
