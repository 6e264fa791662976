"""Samples of the pages of a trace, drawn here or by a thinned capture; their hits and errors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.arrays import Ints, distinct
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.foundation.units import human_size, parse_percent
from hybridsim.foundation.wording import percent
from hybridsim.requests.pages import (
    GROUPS,
    SPAN,
    Ids,
    PageReads,
    Part,
    accesses,
    hashed,
    hashed_regions,
)
from hybridsim.requests.rows import Requests
from hybridsim.studies.hits import Cache, Feed, Hits, HitsList, Policy, cache_pages, check

if TYPE_CHECKING:
    from hybridsim.traces.formats.thinned import Thinned
    from hybridsim.traces.trace import Trace

Floats = NDArray[np.float64]

SMALL = 8  # pages: the smallest miniature
FEWEST_PAGES = GROUPS * SMALL  # of a sample of fixed size
CONFIDENCE = 2.365  # Student's t of GROUPS - 1 degrees of freedom, 95 %
# A scaled cache differs in the mean, which is taken to fall as this power of its pages.  By
# regression over 12 traces with 3 samples each, samples of 1 to 25 % differ from the whole by 0 to
# 0.3 times what their groups differ from them (policies that depend on the scale); this power
# allows for 0.8 to 0.4 of it, 1/2 for 0.5 to 0.3.  It was chosen, as the most careful of 1/3, 0.4,
# 1/2 and 1, by the coverage on these.
SCALE = 1 / 3
NEIGHBOURS = (
    "looks at whole requests and at neighbouring pages, which a sample of the pages does not have, "
    "and the errors of samples of whole regions cannot be stated"
)
NOT_SAMPLED = {  # policies whose sampled caches are not small copies of the whole one
    "learned": NEIGHBOURS,
    "request-size": NEIGHBOURS,
    "lfu": (
        "has one page at a time on probation, the newest of one use, and of a cache scaled down "
        "that is a larger share, so the errors of a sample cannot be stated"
    ),
    "lhd": "has sampled curves whose stated errors hold for 85% of the sizes, not 95%",
}


class Sample:
    """The sampled pages: those whose hash lies below a threshold."""

    def __init__(self, specified: str | int | float | None) -> None:
        """Create a sample of a share, a number of pages, or None for all; raise UsageError."""
        self.pages = 0  # maximum number of pages; 0: no limit
        self.threshold = SPAN
        self.group: int | None = None  # only pages of this one
        try:
            share = self._share(specified)
        except ValueError as error:
            raise UsageError(f"sample: {error}") from None
        if not 0 < share <= 1:
            raise UsageError(f"a sample must be above 0% and at most 100%, not {specified}")
        self.threshold = max(round(share * SPAN), 1)

    def _share(self, specified: str | int | float | None) -> float:
        if specified is None:
            return 1.0
        if isinstance(specified, str) and "%" in specified:
            return float(parse_percent(specified))
        number = float(specified)
        if number <= 1 and not isinstance(specified, int):
            return number
        if number != int(number) or number < FEWEST_PAGES:
            raise ValueError(f"{specified} is neither a share nor {FEWEST_PAGES} or more pages")
        self.pages = int(number)
        return 1.0

    @property
    def keeps_all(self) -> bool:
        """Whether all pages are sampled."""
        return self.threshold == SPAN and not self.pages

    @property
    def rate(self) -> float:
        """The share of pages that are looked at."""
        share = self.threshold / SPAN
        return share if self.group is None else share / GROUPS

    @property
    def smallest(self) -> float:
        """The smallest cache that it can represent, in pages."""
        return 1 if self.rate == 1 else SMALL / self.rate

    def groups(self) -> list[Sample]:
        """Return the sample's parts, which have no page in common."""
        parts = [copy(self) for _ in range(GROUPS)]
        for number, part in enumerate(parts):
            part.group, part.pages = number, -(-self.pages // GROUPS)
        return parts

    def hashes(self, numbers: Ints) -> Ints:
        """Return what decides whether pages are sampled."""
        return hashed(numbers)

    def of(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return the page numbers that are sampled, and their hashes."""
        hashes = self.hashes(numbers)
        chosen = hashes < self.threshold
        if self.group is not None:
            chosen &= hashes % GROUPS == self.group
        return numbers[chosen], hashes[chosen]

    def distinct(self, parts: Iterator[Part]) -> int:
        """Return the number of distinct pages of a trace, estimated from those sampled."""
        ids = Ids()
        for part in parts:
            ids.of(self.of(part.numbers)[0])
        return round(ids.count / self.rate)

    def expected(self, seen: int, sampled: int) -> int:
        """Return the page accesses that it stands for: all that were seen."""
        return seen

    def check(self, numbers: Ints) -> None:
        """Raise UsageError if no error can be stated from these sampled pages."""

    def error(self, ratio: Floats, of_groups: list[Floats], sampled: int) -> Floats:
        """Return the error (95 %) of its miss ratios, from those of its groups.

        All ratios are estimates that may lie outside 0 to 1: limited to it, groups would seem to
        agree where nearly all accesses miss.

        Each group has caches, stack and first uses of its own, so that what varies between samples
        varies between groups: which pages they have, and how many others lie between two uses of a
        page.  A sample that is a large share of all pages varies less (drawn without replacement).
        To this the difference in the mean of a cache that is scaled down is added, where a policy
        depends on the scale: as that between the groups and the sample, but from the sample to all
        pages.
        """
        if self.rate == 1:
            return np.zeros(len(ratio))
        spread = np.std(of_groups, axis=0, ddof=1) / math.sqrt(len(of_groups))
        scale = np.abs(np.mean(of_groups, axis=0) - ratio)
        scale *= (1 - self.rate**SCALE) / (len(of_groups) ** SCALE - 1)
        return np.asarray(CONFIDENCE * math.sqrt(1 - self.rate) * spread + scale)


# Of the difference between two estimates, in the error.  The sample's accesses are known to be too
# few or too many.  One estimate takes the difference to be hits of the hottest pages, the other
# takes it to be like the sample; the truth lies between them, nearer to the first one (coverage:
# benchmarks/RESULTS.md).
IMBALANCE = 1 / 2
REGIONS_MIN = GROUPS * SMALL  # of a sample: fewer do not show how much regions differ


class SampleOfRegions(Sample):
    """The pages of a thinned capture: those in its sampled regions."""

    def __init__(self, capture: Thinned, page_bytes: int) -> None:
        """Use the sample of a capture; raise UsageError if pages do not divide its regions."""
        super().__init__(None)
        self._region_bytes = capture.settings.region_bytes
        self._seed = capture.settings.seed
        self._page_bytes = page_bytes
        if self._region_bytes % page_bytes:
            raise UsageError(
                f"the capture is a sample of regions of {human_size(self._region_bytes)}: the size "
                f"of a page must divide that, not {human_size(page_bytes)}"
            )
        self.threshold = capture.threshold
        self._accesses = capture.total.page_accesses(page_bytes)

    def _regions(self, numbers: Ints) -> Ints:
        return numbers * self._page_bytes // self._region_bytes

    def hashes(self, numbers: Ints) -> Ints:
        """Return what decides whether the regions of pages are sampled."""
        return hashed_regions(self._regions(numbers), self._seed)

    def check(self, numbers: Ints) -> None:
        """Raise UsageError if the sampled pages are of too few regions to state an error."""
        regions = len(distinct(self._regions(numbers)))
        if regions < REGIONS_MIN and not self.keeps_all:
            raise UsageError(
                f"the sample has {regions} regions with requests; an error needs {REGIONS_MIN}: "
                "thin with a higher --rate or --max, or a smaller --region"
            )

    def expected(self, seen: int, sampled: int) -> int:
        """Return the page accesses that it stands for.

        The capture has their exact number for pages of a power of two; for others it is estimated.
        """
        return round(sampled / self.rate) if self._accesses is None else self._accesses

    def error(self, ratio: Floats, of_groups: list[Floats], sampled: int) -> Floats:
        """Return the error with that of an imbalance of its regions.

        Where single regions have a large share of the accesses, groups of the sample do not show
        how much it is off: a region is in it or not.  The exact number of accesses does.
        """
        error = super().error(ratio, of_groups, sampled)
        if self._accesses is None or not sampled:
            return error
        alike = ratio * (self._accesses * self.rate / sampled)
        return np.hypot(error, IMBALANCE * np.abs(alike - ratio))


class Sampled:
    """The sampled requests of a thinned capture, for those who ask for them."""

    def __init__(self, trace: Any) -> None:
        """Open the sample of a trace."""
        self.name: str = trace.name
        self._trace: Trace = trace

    def chunks(self) -> Iterator[Requests]:
        """Yield the requests."""
        return self._trace.sampled()


def check_sampled(capture: Thinned, *policies: Any) -> None:
    """Raise UsageError for policies whose errors cannot be stated from this sample."""
    refuse_unsampled(
        policies,
        f", and this capture is a sample of {percent(capture.rate)}: choose another policy, or all "
        f"requests of a minute: {capture.choices}",
    )


def refuse_unsampled(policies: Iterable[Any], remedy: str) -> None:
    """Raise UsageError, with a remedy, for policies whose errors no sample states."""
    for each in policies:
        if why_not := NOT_SAMPLED.get(each if isinstance(each, str) else ""):
            raise UsageError(f"policy {each} {why_not}{remedy}")


class Miniatures(NamedTuple):
    """Caches that were scaled down to a sample, and what they say of the whole ones."""

    caches: list[Cache]
    ratio: Floats  # misses / page accesses of the whole, not limited to 0 to 1
    error: Floats
    accesses: int  # of pages, in the trace
    sampled: int  # of these, simulated
    distinct: int  # pages, estimated


def miniatures(
    parts: Iterator[Part],
    sample: Sample,
    page_bytes: int,
    wanted: Sequence[tuple[Policy, Policy, int]],
    parameters: dict[str, Any],
    if_none: str,
    with_requests: bool = False,
) -> Miniatures:
    """Simulate caches (admission, replacement, pages), scaled down by the rate of a sample.

    The error is estimated from the sample's groups, each simulated by itself.  All of the parts
    are sampled `with_requests`, which caches then see as a whole.  Raises TraceError with the text
    `if_none` if nothing was sampled.
    """
    samples = [sample] if sample.keeps_all else [sample, *sample.groups()]
    caches = [
        [Cache(admission, policy, max(round(size * each.rate), 1), page_bytes, 0, parameters)
         for admission, policy, size in wanted]
        for each in samples
    ]  # fmt: skip
    feeds = [Feed(each) for each in caches]
    seen, taken = 0, [0] * len(samples)
    for part in parts:
        seen += len(part.numbers)
        for which, (each, feed) in enumerate(zip(samples, feeds)):
            if not which and (with_requests or sample.keeps_all):
                taken[0] += len(part.numbers)
                feed.take(part)
                continue
            numbers, _ = each.of(part.numbers)
            taken[which] += len(numbers)
            feed.take(PageReads(numbers, page_bytes))
    distinct, *_ = [feed.finish() for feed in feeds]
    if not taken[0]:
        raise TraceError(if_none)
    sample.check(feeds[0].ids.numbers)
    ratios = []
    for one, count, of_sample in zip(samples, taken, caches):
        misses = [served - hits for served, hits in (each.served() for each in of_sample)]
        ratios.append(np.array(misses) / (one.expected(seen, count) * one.rate))
    return Miniatures(
        caches[0], ratios[0], sample.error(ratios[0], ratios[1:], taken[0]),
        sample.expected(seen, taken[0]), taken[0], round(distinct / sample.rate),
    )  # fmt: skip


def hits_of_sample(
    trace: Any,
    sizes: Sequence[str | int],
    replacement: Sequence[Policy],
    admission: Sequence[Policy],
    page_bytes: int,
    refused: Mapping[str, str | int | None],
    parameters: dict[str, Any],
) -> HitsList:
    """Return the hits of all requests, estimated from the sample of a thinned capture.

    Counts are scaled to the exact totals of the capture; request hits have the ratio of the
    sample.  Raises UsageError for options that a sample cannot answer, and for caches too small
    for it.
    """
    capture: Thinned = trace.sample
    for name, specified in refused.items():
        if specified not in (None, 0, "0"):
            raise UsageError(
                f"--{name.replace('_', '-')} cannot be answered from a sample of the regions: "
                f"leave it out, or take all requests of a minute: {capture.choices}"
            )
    check_sampled(capture, *replacement, *admission)
    check(parameters, list(admission), list(replacement))
    sample = SampleOfRegions(capture, page_bytes)
    sampled = Sampled(trace)
    pages = cache_pages(sampled, sizes, page_bytes, sample.distinct)
    if min(pages) < sample.smallest:
        smallest = human_size(math.ceil(sample.smallest) * page_bytes)
        raise UsageError(
            f"a sample of {sample.rate:.3%} shrinks a cache of "
            f"{human_size(min(pages) * page_bytes)} to fewer than 8 pages: "
            f"take a larger sample, or sizes from {smallest} on"
        )
    wanted = list(product(admission, replacement, pages))
    nothing = f"{trace.name}: no reads or writes in the sample"
    parts = accesses(sampled, page_bytes)
    found = miniatures(parts, sample, page_bytes, wanted, parameters, nothing, with_requests=True)
    return HitsList(
        _scaled(each.result(page_bytes), size, float(miss), float(error), sample, capture)
        for each, (_, _, size), miss, error in zip(found.caches, wanted, found.ratio, found.error)
    )


def _scaled(
    of_sample: Hits, pages: int, misses: float, error: float, sample: SampleOfRegions, of: Thinned
) -> Hits:
    """Return the counts of a sample scaled to those of all requests."""
    from hybridsim.traces.thinned.layout import PAGES, PAGES_FIRST

    page_bytes, rate = of_sample.page_bytes, sample.rate
    total = of.total.page_accesses(page_bytes)
    reads = round(of_sample.read_page_accesses / rate)
    if total is None:
        total = round(of_sample.page_accesses / rate)
    else:
        power = page_bytes.bit_length() - 1 - PAGES_FIRST
        reads = int(of.total.of("pages")[:PAGES][power])
    by_op = of.total.of("requests")
    requests, read_requests = int(by_op[0] + by_op[1] + by_op[4]), int(by_op[0])

    def share(hits: int, whole: int, of_all: int) -> int:
        return round(hits / whole * of_all) if whole else 0

    return replace(
        of_sample,
        pages=pages,
        page_accesses=total,
        page_hits=round(min(max(1 - misses, 0.0), 1.0) * total),
        read_page_accesses=reads,
        read_page_hits=share(of_sample.read_page_hits, of_sample.read_page_accesses, reads),
        requests=requests,
        request_hits=share(of_sample.request_hits, of_sample.requests, requests),
        read_requests=read_requests,
        read_request_hits=share(
            of_sample.read_request_hits, of_sample.read_requests, read_requests
        ),
        admitted=round(of_sample.admitted / rate),
        evicted=round(of_sample.evicted / rate),
        re_read=round(of_sample.re_read / rate),
        rate=rate,
        page_hit_error=error,
    )
