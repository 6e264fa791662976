"""The miss-ratio curve: the share of page accesses that miss, by cache size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridsim.engine.stack import Stack, count_depths, in_order_of_use, weigh_depths
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.foundation.in_notebooks import DataFrame, frame_of, table_html
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import percent
from hybridsim.jit import fitting
from hybridsim.requests.pages import PAGES_AT_ONCE, Chunked, Ids, Part, accesses
from hybridsim.studies.hits import Policy, check, readable_twice, size_bytes
from hybridsim.studies.page_sampling import (
    SMALL,
    Floats,
    Sample,
    Sampled,
    SampleOfRegions,
    check_sampled,
    miniatures,
    refuse_unsampled,
)

if TYPE_CHECKING:
    from hybridsim.answers.result import Result
    from hybridsim.traces.trace import Trace

PER_OCTAVE = 256  # bins of sampled depths: 0.3 % wide
OCTAVES = 48
POINTS = 64  # default number of sizes of a curve
NOTHING = "no reads or writes in the trace, or none of them sampled"
POINTS_OF_REPLAY = 200  # of the curve in the result of a replay


@dataclass(frozen=True)
class Curve:
    """Miss ratios of page accesses at sizes in pages, with their errors (95%) if sampled."""

    policy: str
    admission: str
    page_bytes: int
    pages: Ints
    miss_ratio: Floats
    error: Floats
    accesses: int  # of pages, in the trace
    sampled: int  # page accesses simulated
    distinct: int  # pages touched; estimated if sampled
    rate: float  # share of the pages sampled at the end; 1: all

    def __repr__(self) -> str:
        return f"<Curve of {self.policy}: {len(self.pages)} sizes, {self._knee_words}>"

    @property
    def _knee_words(self) -> str:
        misses = percent(float(self.miss_ratio[self.knee]))
        return f"knee at {human_size(self.knee_bytes)} with {misses} misses"

    def _repr_html_(self) -> str:
        rows = [("policy", self.policy), ("sizes", str(len(self.pages)))]
        return table_html("Miss-ratio curve", [*rows, ("knee", self._knee_words)])

    def frame(self) -> DataFrame:
        """Return the curve as a pandas frame: `pages`, `size_bytes`, `miss_ratio`, `error`.

        Needs pandas (`hybridsim[notebooks]`).
        """
        return frame_of({
            "pages": self.pages, "size_bytes": self.pages * self.page_bytes,
            "miss_ratio": self.miss_ratio, "error": self.error,
        })  # fmt: skip

    @property
    def first_uses(self) -> float:
        """Return the share of accesses that no cache can serve: the first to each page."""
        return min(self.distinct / self.accesses, 1.0)

    @property
    def knee(self) -> int:
        """Return the index of the size at which the curve is furthest below its chord."""
        if len(self.pages) < 3:
            return 0
        across = self.pages / self.pages[-1]
        fall = self.miss_ratio[0] - self.miss_ratio[-1]
        if fall <= 0:
            return 0
        down = (self.miss_ratio[0] - self.miss_ratio) / fall
        return int(np.argmax(down - across))

    @property
    def knee_bytes(self) -> int:
        """Return the bytes of pages at the knee."""
        return int(self.pages[self.knee]) * self.page_bytes

    def fallen(self, share: float) -> int:
        """Return the bytes of pages at which the curve has fallen by a share of its whole fall."""
        top, bottom = self.miss_ratio[0], self.miss_ratio[-1]
        index = int((self.miss_ratio <= top - share * (top - bottom)).argmax())
        return int(self.pages[index]) * self.page_bytes

    def at(self, pages: int) -> float:
        """Return the miss ratio at the largest size of the curve that is at most `pages`."""
        index = int(np.searchsorted(self.pages, pages, "right")) - 1
        return float(self.miss_ratio[index]) if index >= 0 else 1.0

    def thinned(self, points: int) -> Curve:
        """Return the curve at at most `points` sizes, evenly spaced on a logarithmic scale.

        The knee is one of them.
        """
        if len(self.pages) <= points:
            return self
        wanted = spread_sizes(int(self.pages[-1]), points - 1)
        at = np.searchsorted(self.pages, wanted).clip(0, len(self.pages) - 1)
        at = np.unique(np.append(at, self.knee))
        return replace(
            self, pages=self.pages[at], miss_ratio=self.miss_ratio[at], error=self.error[at]
        )

    def points(self) -> list[tuple[int, float, float]]:
        """Return each size in pages with its miss ratio and the error of that."""
        return list(zip(self.pages.tolist(), self.miss_ratio.tolist(), self.error.tolist()))

    def to_dict(self, points: int | None = None) -> dict[str, Any]:
        """Return the curve for JSON, optionally at fewer sizes; the knee is that of all."""
        names = ("policy", "admission", "page_bytes", "accesses", "sampled", "distinct", "rate")
        thin = self if points is None else self.thinned(points)
        return {
            **{name: getattr(self, name) for name in names},
            "first_uses": self.first_uses,
            "knee_pages": int(self.pages[self.knee]),
            "curve": [dict(zip(("pages", "miss_ratio", "error"), each)) for each in thin.points()],
        }


def miss_ratio_curve(
    trace: Chunked | Iterable[Any],
    policy: Policy = "lru",
    sizes: Iterable[int] | None = None,
    page: str | int = "4KiB",
    sample: str | int | float | None = None,
    admission: Policy = "always",
    **parameters: Any,
) -> Curve:
    """Return the miss ratios of a policy, in one pass over the trace.

    LRU that takes in every page is exact for all sizes at once; any other policy is simulated at
    each of `sizes` (pages; by default some dozens up to the distinct pages, which takes a pass to
    count).  `sample` takes a part of the pages, chosen by a hash of their numbers, and scales: a
    share ("1%" or 0.01), or a number of pages to keep in memory (only of LRU).  That is SHARDS:
    C. A. Waldspurger et al., FAST 2015, and for other policies "Cache modeling and optimization
    using miniature simulations", USENIX ATC 2017.  The error is that of eight independent samples,
    an eighth of the size each, that together are the sample (95 %).

    A thinned capture is a sample already, of whole regions; its curve is estimated in the same way,
    and scaled to the exact number of page accesses, which the capture has for powers of two.

    Raises UsageError for invalid options, for a sample of a policy whose small caches are not like
    large ones (NOT_SAMPLED), and for a size that the sample shrinks to fewer than eight pages.

    >>> from hybridsim import Trace
    >>> miss_ratio_curve(Trace.read("gen:zipf,requests=300,span=16MiB"), sizes=[16, 256])
    <Curve of lru: 2 sizes, knee at ...>
    """
    page_bytes = size_bytes(page)
    check(parameters, admission, policy)
    chosen = Sample(sample)
    if capture := getattr(trace, "sample", None):
        if sample is not None:
            raise UsageError("this capture is a sample already: leave out the sample")
        check_sampled(capture, policy, admission)
        chosen, trace = SampleOfRegions(capture, page_bytes), Sampled(trace)
    wanted = None if sizes is None else np.unique(np.array(list(sizes), np.int64))
    if wanted is not None and (len(wanted) == 0 or wanted[0] < 1):
        raise UsageError("sizes must be numbers of pages, at least 1")
    if not chosen.keeps_all:
        refuse_unsampled((policy, admission), ": leave out the sample")
    if policy == "lru" and admission == "always":
        exact_or_sampled = _exact_lru if chosen.keeps_all else _sampled_lru
        return exact_or_sampled(accesses(trace, page_bytes), wanted, page_bytes, chosen)
    if chosen.pages:
        raise UsageError('only LRU supports a number of sampled pages; specify a share: "1%"')
    if wanted is None:
        trace = readable_twice(trace)
        distinct = chosen.distinct(accesses(trace, page_bytes))
        _check_sizes(None, distinct, chosen.rate)
        wanted = spread_sizes(distinct, smallest=chosen.smallest)
    else:
        _check_sizes(wanted, 0, chosen.rate)
    each_size = [(admission, policy, size) for size in wanted.tolist()]
    parts = accesses(trace, page_bytes)
    found = miniatures(parts, chosen, page_bytes, each_size, parameters, NOTHING)
    first = found.caches[0]
    return Curve(
        first.replacement, first.admission, page_bytes, wanted, found.ratio.clip(0, 1), found.error,
        found.accesses, found.sampled, found.distinct, chosen.rate,
    )  # fmt: skip


def with_curve(result: Result, trace: Trace, page_bytes: int) -> Result:
    """Return a result with the miss-ratio curve of LRU; the trace is read once more."""
    curve = miss_ratio_curve(trace, "lru", None, page_bytes)
    return replace(result, curve=curve.to_dict(POINTS_OF_REPLAY))


def spread_sizes(distinct: int, points: int = POINTS, smallest: float = 1) -> Ints:
    """Return sizes up to all distinct pages, evenly spaced on a logarithmic scale."""
    largest = max(distinct, 1)
    sizes = np.geomspace(min(smallest, largest), largest, points)
    return np.unique(np.maximum(sizes.round(), 1).astype(np.int64))


def _check_sizes(sizes: Ints | None, distinct: int, rate: float) -> None:
    """Raise UsageError for sizes, by default of all pages, that a sample cannot represent."""
    least = math.ceil(SMALL / rate)
    smallest = distinct if sizes is None else int(sizes[0])
    if rate == 1 or smallest >= least:
        return
    what = f"the {distinct} pages of the trace" if sizes is None else f"a cache of {smallest} pages"
    mend = "take a larger sample" + ("" if sizes is None else f", or sizes from {least} pages on")
    raise UsageError(f"a sample of {rate:.3%} shrinks {what} to fewer than {SMALL}: {mend}")


def _exact_lru(parts: Iterator[Part], sizes: Ints | None, page_bytes: int, sample: Sample) -> Curve:
    ids = Ids()
    stack, hits = Stack.new(ids.capacity), np.zeros(ids.capacity + 1, np.int64)
    count = fitting(count_depths, stack)
    seen = 0
    for part in parts:
        page_ids = ids.of(part.numbers)
        if len(hits) <= ids.capacity:
            stack = stack.grown(ids.capacity)
            hits = np.concatenate([hits, np.zeros(ids.capacity + 1 - len(hits), np.int64)])
        count(stack, page_ids, hits)
        seen += len(page_ids)
    if not seen:
        raise TraceError(NOTHING)
    if sizes is None:
        sizes = np.arange(1, ids.count + 1)
    hits[0] = 0  # first uses
    within = np.cumsum(hits)[np.minimum(sizes, len(hits) - 1)]
    ratio = 1 - within / seen
    error = np.zeros(len(sizes))
    return Curve("lru", "always", page_bytes, sizes, ratio, error, seen, seen, ids.count, 1.0)


class Thinned:
    """A stack of sampled pages, of about as many pages as the sample specifies."""

    def __init__(self, sample: Sample) -> None:
        self.sample = sample
        self.hits = np.zeros(OCTAVES * PER_OCTAVE + 1)  # weighted; entry 0: first uses
        self.seen = self.sampled = 0
        self._begin()

    def _begin(self) -> None:
        self.ids = Ids()
        self._stack = Stack.new(self.ids.capacity)
        self._hash = self._numbers = np.zeros(0, np.int64)  # by page id

    def take(self, numbers: Ints) -> None:
        """Process accesses to the sampled ones of these pages."""
        self.seen += len(numbers)
        chosen, hashes = self.sample.of(numbers)
        step = max(self.sample.pages // 8, 64) if self.sample.pages else PAGES_AT_ONCE
        for start in range(0, len(chosen), step):
            part = slice(start, start + step)
            below = hashes[part] < self.sample.threshold  # it may have been lowered since
            page_ids = self._enter(chosen[part][below], hashes[part][below])
            weigh = fitting(weigh_depths, self._stack)
            weigh(self._stack, page_ids, 1 / self.sample.rate, PER_OCTAVE, self.hits)
            self.sampled += len(page_ids)
            if self.sample.pages and self.ids.count > self.sample.pages:
                self._thin()

    def _enter(self, numbers: Ints, hashes: Ints) -> Int32s:
        page_ids = self.ids.of(numbers)
        if len(self._stack.last) < self.ids.capacity:
            self._stack = self._stack.grown(self.ids.capacity)
        if len(self._hash) < self.ids.capacity:
            more = np.zeros(self.ids.capacity - len(self._hash), np.int64)
            self._hash, self._numbers = (
                np.concatenate([each, more]) for each in (self._hash, self._numbers)
            )
        self._hash[page_ids] = hashes
        self._numbers[page_ids] = numbers
        return page_ids

    def _thin(self) -> None:
        """Lower the threshold so that 7/8 of the maximum number of pages remain."""
        used = self.ids.count
        keep = self.sample.pages * 7 // 8
        self.sample.threshold = int(np.partition(self._hash[:used], keep)[keep])
        order = np.empty(used, np.int32)
        is_kept = self._hash[:used] < self.sample.threshold
        kept = fitting(in_order_of_use, self._stack)(self._stack, is_kept, order)
        numbers, hashes = self._numbers[order[:kept]], self._hash[order[:kept]]
        self._begin()
        page_ids = self._enter(numbers, hashes)
        fitting(count_depths, self._stack)(self._stack, page_ids, np.zeros(1, np.int64))

    def miss_ratio(self, sizes: Ints) -> Floats:
        """Return the miss ratios of sizes in pages.

        As in SHARDS' adjustment, accesses that the sample has too many or too few of are taken to
        be hits of the hottest pages.
        """
        bins = (np.log2(np.maximum(sizes, 1)) * PER_OCTAVE).astype(np.int64) + 1
        depths = self.hits.copy()
        depths[0] = 0  # first uses
        missed = self.hits.sum() - np.cumsum(depths)[bins]
        return np.asarray(missed / max(self.seen, 1))


def _sampled_lru(
    parts: Iterator[Part], sizes: Ints | None, page_bytes: int, sample: Sample
) -> Curve:
    whole = Thinned(sample)
    groups = [Thinned(each) for each in sample.groups()]
    for part in parts:
        for each in (whole, *groups):
            each.take(part.numbers)
    if not whole.sampled:
        raise TraceError(NOTHING)
    sample.check(whole.ids.numbers)
    for each in (whole, *groups):
        each.seen = each.sample.expected(each.seen, each.sampled)
    distinct = round(whole.ids.count / sample.rate)
    _check_sizes(sizes, distinct, sample.rate)
    if sizes is None:
        sizes = spread_sizes(distinct, smallest=sample.smallest)
    ratio = whole.miss_ratio(sizes)
    error = sample.error(ratio, [each.miss_ratio(sizes) for each in groups], whole.sampled)
    return Curve(
        "lru", "always", page_bytes, sizes, ratio.clip(0, 1), error, whole.seen, whole.sampled,
        distinct, sample.rate,
    )  # fmt: skip
