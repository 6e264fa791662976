"""How many accesses of a trace do caches of some sizes and policies serve?  No devices, no time."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from hybridsim import jit
from hybridsim.caches.policies import (
    ADMISSION_METHODS,
    OFFLINE,
    REPLACEMENT_METHODS,
    pair,
    reject_victim,
)
from hybridsim.caches.policies.belady import NEVER
from hybridsim.caches.policies.budget import Budgeted
from hybridsim.caches.policies.learned import Learned
from hybridsim.caches.policies.learned.lessons import Learning, learning
from hybridsim.caches.policies.write_budget import WriteBudget, parse_write_budget
from hybridsim.engine.residency import (
    ADMITTED,
    EVICTED,
    HELD,
    IS_WRONG,
    PAGE_HITS,
    PAGES,
    RE_READ,
    REQUEST_HITS,
    REQUESTS,
    WRONG_FOR,
    WRONG_VICTIM,
    Residency,
    run,
    run_foreseen,
    run_pages,
)
from hybridsim.foundation.arrays import Bytes, Int32s, Ints
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.foundation.units import format_size, parse_percent, parse_size
from hybridsim.foundation.wording import counted
from hybridsim.requests.pages import (
    Accesses,
    Chunked,
    Ids,
    PageReads,
    Part,
    accesses,
    next_uses,
    requests_in,
    split,
)
from hybridsim.studies.policy_choice import (
    Policy,
    admission_policy,
    check,
    replacement_policy,
    several,
)

NO_TIMES = "the trace has no times: a write budget for it is a share of the page accesses, as '5%'"
PAGES_SAID = re.compile(r"([0-9][0-9_]*) *pages?")
SIZES_SAID = "a cache may also be '10%' of the pages that are touched, or '1000 pages'"


@dataclass(frozen=True)
class Hits:
    """What one cache did: every request and every page of it was a hit or a miss.

    A request is a hit if all its pages are.
    """

    admission: str
    replacement: str
    pages: int
    page_bytes: int
    page_accesses: int
    page_hits: int
    read_page_accesses: int
    read_page_hits: int
    requests: int
    request_hits: int
    read_requests: int
    read_request_hits: int
    admitted: int  # pages written to the cache to fill it
    evicted: int
    re_read: int  # of the admitted, pages of which the request had not all
    learning: Learning | None = None  # with admission "learned"
    write_budget: str | None = None  # that it was held to
    skipped_requests: int = 0  # came first, and are in no count

    @property
    def page_misses(self) -> int:
        """Page accesses that were no hits."""
        return self.page_accesses - self.page_hits

    @property
    def page_hit_ratio(self) -> float:
        """Page hits of page accesses."""
        return self.page_hits / self.page_accesses

    @property
    def request_hit_ratio(self) -> float:
        """Requests served wholly by the cache, of all reads and writes."""
        return self.request_hits / self.requests

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            **asdict(self),
            "page_misses": self.page_misses,
            "page_hit_ratio": self.page_hit_ratio,
            "request_misses": self.requests - self.request_hits,
            "request_hit_ratio": self.request_hit_ratio,
        }


def hits(
    trace: Chunked | Iterable[Any],
    cache_size: str | int | Sequence[str | int] = "10%",
    replacement: Policy | Sequence[Policy] = "lru",
    admission: Policy | Sequence[Policy] = "always",
    page: str | int = "4KiB",
    sequential_cutoff: str | int = 0,
    write_budget: str | None = None,
    skip: str | int = 0,
    **parameters: Any,
) -> list[Hits]:
    """Return what caches of each size, admission and replacement do for a trace.

    `trace` may also be an array of page numbers, or several.  `cache_size` is bytes, a share of the
    distinct pages that are touched ("10%"), or "1000 pages".  A policy is a name or a class;
    `parameters` go to the policies whose `new` has them; those of the registry have touches,
    probability_per_million, seed, request_max_bytes, write_price_per_thousand.  `write_budget`
    holds each cache to "500GB/day", "1 DWPD" (of its own size) or "5%" of the page accesses, beside
    a first fill of it.  The first requests, `skip` of them or a share ("20%"), fill the caches and
    teach the policies, and are not counted.

    Raises UsageError for what makes no sense, TraceError for a trace without reads and writes.
    """
    page_bytes = size_bytes(page)
    if page_bytes < 1:
        raise UsageError("a page has at least one byte")
    budget = _budget(write_budget, page_bytes)
    if any("%" in str(size) for size in (skip, *several(cache_size))):
        trace = readable_twice(trace)
    check(parameters, admission, replacement)
    sizes = cache_pages(trace, several(cache_size), page_bytes)
    wanted = list(product(several(admission), several(replacement), sizes))
    cutoff = size_bytes(sequential_cutoff)
    if budget and (known := OFFLINE.keys() & set(several(replacement))):
        raise UsageError(f"{', '.join(known)} is a bound of all policies, and held to no budget")
    caches = [
        Cache(*each, page_bytes, cutoff, parameters | {"write_budget": budget}) for each in wanted
    ]
    skipped = _skipped(trace, skip, page_bytes)
    feed = Feed(caches, skipped)
    for part in accesses(trace, page_bytes):
        if budget and not budget.by_access and isinstance(part, PageReads):
            raise UsageError(NO_TIMES)
        feed.take(part)
    feed.finish()
    if budget and not budget.by_access and not feed.has_times:
        raise UsageError(NO_TIMES)
    return [
        replace(cache.result(page_bytes), write_budget=write_budget, skipped_requests=skipped)
        for cache in caches
    ]


def _skipped(trace: Any, specified: str | int, page_bytes: int) -> int:
    """Return how many requests come first and are not counted; a share takes a pass to count."""
    try:
        if "%" not in str(specified):
            number = int(specified)
        else:
            share = parse_percent(str(specified))
            number = int(share * sum(map(requests_in, accesses(trace, page_bytes))))
    except ValueError as error:
        raise UsageError(f"skip: {error}; say a number of requests, or '20%'") from None
    if number < 0:
        raise UsageError(f"skip: {specified} requests cannot be left out")
    return number


def _budget(specified: str | None, page_bytes: int) -> WriteBudget | None:
    try:
        return None if specified is None else parse_write_budget(specified, page_bytes)
    except ValueError as error:
        raise UsageError(str(error)) from None


def readable_twice(trace: Chunked | Iterable[Any]) -> Chunked | Iterable[Any]:
    """Return a trace of which a first pass leaves something for a second."""
    return trace if isinstance(trace, Chunked | np.ndarray) else list(trace)


def cache_pages(
    trace: Chunked | Iterable[Any], sizes: Sequence[str | int], page_bytes: int
) -> list[int]:
    """Return sizes in pages; shares take a pass over the trace to count its distinct pages."""
    distinct = 0
    if any("%" in str(size) for size in sizes):
        ids = Ids()
        for part in accesses(trace, page_bytes):
            ids.of(part.numbers)
        distinct = ids.count
    return [_pages(size, distinct, page_bytes) for size in sizes]


def _pages(size: str | int, distinct: int, page_bytes: int) -> int:
    pages_said = PAGES_SAID.fullmatch(str(size).strip())
    try:
        if pages_said:
            pages = int(pages_said[1])
        elif "%" in str(size):
            pages = int(parse_percent(str(size)) * distinct)
        else:
            pages = parse_size(size) // page_bytes
    except ValueError as error:
        raise UsageError(f"{error}; {SIZES_SAID}") from None
    if pages < 1 and (distinct or "%" not in str(size)):
        least = f"at least {format_size(page_bytes)}"
        if "%" in str(size):
            least = f"one of {counted(distinct, 'page')} is {-(-10_000 // distinct) / 100:g}%"
        mend = f"; a number alone is bytes; {SIZES_SAID}" if str(size).isdigit() else ""
        raise UsageError(f"a cache of {size} holds no page of {page_bytes} bytes: {least}{mend}")
    return pages


def size_bytes(specified: str | int) -> int:
    """Return a size in bytes; raise UsageError for what is none."""
    try:
        return parse_size(specified)
    except ValueError as error:
        raise UsageError(str(error)) from None


class Cache:
    """A cache under way, with its name."""

    def __init__(
        self,
        admission: Policy,
        replacement: Policy,
        pages: int,
        page_bytes: int,
        cutoff_bytes: int = 0,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        """Make an empty cache of `pages`."""
        self.admission, admits = admission_policy(admission)
        self.replacement, replaces = replacement_policy(replacement)
        self.is_offline = self.replacement in OFFLINE
        ids = Ids().capacity
        given = (parameters or {}) | {"page_bytes": page_bytes}
        policies = pair(admits, replaces, ids, pages, given)
        self._state = Residency.new(pages, page_bytes, cutoff_bytes, *policies, ids)
        jit.check_part(self._state.admission, "an admission policy", ADMISSION_METHODS, ["grown"])
        jit.check_part(
            self._state.replacement, "a replacement policy", REPLACEMENT_METHODS, ["grown"]
        )

    def take(self, ids: Int32s, part: Part, first: int, capacity: int) -> None:
        """Go through requests; `first` is the number of the first access."""
        if len(self._state.present) < capacity:
            self._state = self._state.grown(capacity)
        if isinstance(part, PageReads):
            jit.fitting(run_pages, self._state)(self._state, ids, part, first)
        else:
            jit.fitting(run, self._state)(self._state, ids, part)
        self._check()

    def take_foreseen(self, ids: Int32s, part: Part, next_use: Ints, capacity: int) -> None:
        """Go through requests with the next use of each page known."""
        if len(self._state.present) < capacity:
            self._state = self._state.grown(capacity)
        requests = part.as_requests() if isinstance(part, PageReads) else part
        jit.fitting(run_foreseen, self._state)(self._state, ids, requests, next_use)
        self._check()

    def _check(self) -> None:
        counts = self._state.counts
        if counts[IS_WRONG]:
            victim, page = int(counts[WRONG_VICTIM]), int(counts[WRONG_FOR])
            reject_victim(self._state.replacement, victim, page, int(counts[ADMITTED]))

    def holds(self, ids: Int32s) -> Bytes:
        """Return for each page whether it is cached: 1 or 0."""
        present = self._state.present
        known = ids < len(present)
        result = np.zeros(len(ids), np.uint8)
        result[known] = present[ids[known]]
        return result

    def served(self) -> tuple[int, int]:
        """Return how many page accesses there were, and how many of them were hits."""
        counts = self._state.counts
        return int(counts[PAGES : PAGES + 2].sum()), int(counts[PAGE_HITS : PAGE_HITS + 2].sum())

    def forget(self) -> None:
        """Count from here on."""
        self._state.counts[:HELD] = 0

    def result(self, page_bytes: int) -> Hits:
        """Return what the cache has done."""
        counts, policy = [int(each) for each in self._state.counts], self._state.admission
        if isinstance(policy, Budgeted):
            policy = policy.admission
        if not counts[PAGES] + counts[PAGES + 1]:
            raise TraceError("no reads or writes in the trace")
        return Hits(
            self.admission,
            self.replacement,
            self._state.pages,
            page_bytes,
            counts[PAGES] + counts[PAGES + 1],
            counts[PAGE_HITS] + counts[PAGE_HITS + 1],
            counts[PAGES],
            counts[PAGE_HITS],
            counts[REQUESTS] + counts[REQUESTS + 1],
            counts[REQUEST_HITS] + counts[REQUEST_HITS + 1],
            counts[REQUESTS],
            counts[REQUEST_HITS],
            counts[ADMITTED],
            counts[EVICTED],
            counts[RE_READ],
            learning(policy) if isinstance(policy, Learned) else None,
        )


class Feed:
    """Lets caches see the same accesses, a part after the other; the future after the past."""

    def __init__(self, caches: list[Cache], skip: int = 0) -> None:
        """Start with empty caches; counting starts after the skipped requests."""
        self._skip, self._is_counting = skip, not skip
        self._counted_from = 0  # of the parts kept
        self._at_once = [cache for cache in caches if not cache.is_offline]
        self._later = [cache for cache in caches if cache.is_offline]
        self._kept: list[tuple[Int32s, Part]] = []
        self._ids = Ids()
        self._threads = ThreadPoolExecutor(os.cpu_count())
        self._first = 0
        self._began_ns = NEVER
        self.has_times = False

    def take(self, part: Part) -> None:
        """Go through some requests."""
        if not self._is_counting:
            before, part = split(part, self._skip)
            self._take(before)
            self._skip -= requests_in(before)
            if not requests_in(part):
                return
            self._each(self._at_once, Cache.forget)
            self._is_counting, self._counted_from = True, len(self._kept)
        self._take(part)

    def _take(self, part: Part) -> None:
        if not requests_in(part):
            return
        result = self._ids.of(part.numbers)
        capacity, first = self._ids.capacity, self._first
        self._each(self._at_once, lambda cache: cache.take(result, part, first, capacity))
        self._first += len(result)
        if isinstance(part, Accesses) and len(result):
            self._began_ns = min(self._began_ns, int(part.arrival_ns[0]))
            self.has_times |= int(part.arrival_ns[-1]) > self._began_ns
        if self._later:
            self._kept.append((result, part))

    def finish(self) -> int:
        """Run the policies that need the future accesses; return the number of distinct pages."""
        if not self._is_counting:
            raise UsageError("skip: the trace has no more requests; leave out fewer, or '20%'")
        if self._kept:
            whole = np.concatenate([result for result, _ in self._kept])
            future = next_uses(whole, self._ids.count, NEVER)
            self._each(self._later, lambda cache: self._foresee(cache, future))
        self._threads.shutdown()
        return self._ids.count

    def _foresee(self, cache: Cache, future: Ints) -> None:
        first = 0
        for number, (result, part) in enumerate(self._kept):
            if number == self._counted_from:
                cache.forget()
            cache.take_foreseen(
                result, part, future[first : first + len(result)], self._ids.capacity
            )
            first += len(result)

    def _each(self, caches: list[Cache], step: Callable[[Cache], None]) -> None:
        if len(caches) == 1:
            step(caches[0])
        else:
            list(self._threads.map(step, caches))
