"""Count the hits of a trace in caches of several sizes and policies, without devices and time."""

from __future__ import annotations

import inspect
import os
import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from hybridsim import jit
from hybridsim.caches.policies import (
    ADMISSION,
    ADMISSION_METHODS,
    OFFLINE,
    REPLACEMENT,
    REPLACEMENT_METHODS,
    pair,
    reject_victim,
)
from hybridsim.caches.policies.belady import NEVER
from hybridsim.caches.policies.budget import Budgeted
from hybridsim.caches.policies.learned import Learned
from hybridsim.caches.policies.learned.lessons import Learning, learning
from hybridsim.caches.policies.write_budget import parse_write_budget
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
    WRONG_AT,
    WRONG_FOR,
    WRONG_VICTIM,
    Residency,
    run,
    run_pages,
)
from hybridsim.foundation.arrays import Bytes, Int32s, Ints
from hybridsim.foundation.documents import Document
from hybridsim.foundation.errors import PolicyError, TraceError, UsageError
from hybridsim.foundation.in_notebooks import DataFrame, frame_of, table_html
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import format_size, human_size, parse_percent, parse_size
from hybridsim.foundation.wording import counted, percent
from hybridsim.requests.pages import (
    Accesses,
    Chunked,
    Ids,
    PageReads,
    Part,
    accesses,
    distinct_pages,
    next_uses,
    requests_in,
    split,
)

NO_TIMES = (
    "the trace has no times: specify the write budget as a share of the page accesses, such as '5%'"
)
PAGE_COUNT = re.compile(r"([0-9][0-9_]*) *pages?")
SIZE_HINT = "a size may also be '10%' of the pages that are touched, or '1000 pages'"
REPLACEMENTS: Mapping[str, Any] = ChainMap(REPLACEMENT, OFFLINE)  # type: ignore[arg-type]
PARAMETERS = (  # of all policies in the registry
    "touches", "probability_per_million", "seed", "request_max_bytes", "write_price_per_thousand",
)  # fmt: skip
Policy = str | Any  # a name in the registry, or a class with the interface of those there


@dataclass(frozen=True)
class Hits(Document):
    """The counts of one cache.  A request is a hit if all its pages are."""

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
    admitted: int  # pages filled
    evicted: int
    re_read: int  # pages filled that the request covered only in part
    learning: Learning | None = None  # with admission "learned"
    write_budget: str | None = None
    skipped_requests: int = 0  # first requests, which are not counted
    rate: float = 1.0  # share of the pages simulated; below 1 all counts are estimates
    page_hit_error: float = 0.0  # of the page hit ratio (95 %)

    _more = ("page_misses", "page_hit_ratio", "request_misses", "request_hit_ratio")

    @property
    def words(self) -> str:
        """Its policies and its size."""
        return f"{self.admission}, {self.replacement}, {human_size(self.pages * self.page_bytes)}"

    @property
    def page_misses(self) -> int:
        """Page accesses that were not hits."""
        return self.page_accesses - self.page_hits

    @property
    def page_hit_ratio(self) -> float:
        """Page hits / page accesses."""
        return self.page_hits / self.page_accesses

    @property
    def request_misses(self) -> int:
        """Requests that were not hits."""
        return self.requests - self.request_hits

    @property
    def request_hit_ratio(self) -> float:
        """Request hits / requests (reads and writes)."""
        return self.request_hits / self.requests


class HitsList(list[Hits]):
    """The counts of several caches: a list that is also a frame, and shows itself as one."""

    def frame(self) -> DataFrame:
        """Return a pandas frame: a row per cache.

        Columns: `admission`, `replacement`, `size_bytes`, `page_hit_ratio`, `request_hit_ratio`,
        `fill_ratio` (pages filled per page access) and the other fields of Hits.  Needs pandas
        (`hybridsim[notebooks]`).
        """
        first = ("admission", "replacement")
        return frame_of(
            {name: getattr(each, name) for name in first}
            | {
                "size_bytes": each.pages * each.page_bytes,
                "page_hit_ratio": each.page_hit_ratio,
                "request_hit_ratio": each.request_hit_ratio,
                "fill_ratio": each.admitted / each.page_accesses,
            }
            | {name: value for name, value in vars(each).items()
               if name not in (*first, "learning")}
            for each in self
        )  # fmt: skip

    def __repr__(self) -> str:
        if len(self) != 1:
            return f"<HitsList of {len(self)} caches>"
        [one] = self
        return f"<HitsList of 1 cache: {one.words}, {percent(one.page_hit_ratio)} of accesses hit>"

    def _repr_html_(self) -> str:
        return table_html(
            "Hits",
            [(one.words, f"{percent(one.page_hit_ratio)} of page accesses hit") for one in self],
        )


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
) -> HitsList:
    """Return the hits of caches of each size, admission and replacement policy on a trace.

    `trace` may also be an array of page numbers, or several arrays.  `cache_size` is in bytes, a
    share of the distinct pages that are touched ("10%"), or "1000 pages".  A policy is a name or a
    class; `parameters` are passed to the policies whose `new` accepts them; those of the registry
    accept touches, probability_per_million, seed, request_max_bytes, write_price_per_thousand.
    `write_budget` limits each cache to "500GB/day", "1 DWPD" (of its own size) or "5%" of the page
    accesses, after a first fill of it.  The first requests, a number or a share `skip` ("20%"),
    fill the caches and train the policies, and are not counted.

    Raises UsageError for invalid arguments, TraceError for a trace without reads and writes.

    >>> hits(np.array([1, 2, 1, 2, 3]), cache_size="2 pages")[0].page_hits
    2
    >>> hits(np.array([1, 2, 1]), ["1 page", "2 pages"]).frame()["page_hits"].tolist()
    [0, 1]
    """
    page_bytes = size_bytes(page)
    if page_bytes < 1:
        raise UsageError("the size of a page must be at least one byte")
    specified, admissions, replacements = map(several, (cache_size, admission, replacement))
    if getattr(trace, "sample", None) is not None:
        from hybridsim.studies.page_sampling import hits_of_sample

        refused = {"sequential_cutoff": sequential_cutoff, "write_budget": write_budget,
                   "skip": skip}  # fmt: skip
        return hits_of_sample(
            trace, specified, replacements, admissions, page_bytes, refused, parameters
        )
    try:
        budget = parse_write_budget(write_budget, page_bytes) if write_budget is not None else None
    except ValueError as error:
        raise UsageError(str(error)) from None
    if any("%" in str(size) for size in (skip, *specified)):
        trace = readable_twice(trace)
    check(parameters, admissions, replacements)
    sizes = cache_pages(trace, specified, page_bytes)
    cutoff = size_bytes(sequential_cutoff)
    if budget and (offline := OFFLINE.keys() & set(replacements)):
        raise UsageError(
            f"{', '.join(offline)} is an upper bound for all policies and supports no write budget"
        )
    parameters["write_budget"] = budget
    caches = [
        Cache(*each, page_bytes, cutoff, parameters)
        for each in product(admissions, replacements, sizes)
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
    return HitsList(
        replace(cache.result(page_bytes), write_budget=write_budget, skipped_requests=skipped)
        for cache in caches
    )


def more_ram(trace: Chunked | Iterable[Any], sizes: Sequence[str | int]) -> list[Hits]:
    """Return what page caches that are larger by these sizes would have served at least.

    A trace of a disk has what a page cache of R bytes did not hold.  Between two uses of a page, at
    most the pages of the trace and those R bytes are used: if the trace touches less than X bytes
    in between, a page cache of R + X bytes in LRU order still holds the page.  So the read hits of
    an LRU cache of X bytes on the trace are a lower bound.
    """
    return hits(trace, list(sizes), "lru", "always", "4KiB")


def _skipped(trace: Any, specified: str | int, page_bytes: int) -> int:
    """Return the number of first requests that are not counted; a share needs a pass to count."""
    try:
        if "%" not in str(specified):
            number = int(specified)
        else:
            share = parse_percent(str(specified))
            number = int(share * sum(map(requests_in, accesses(trace, page_bytes))))
    except ValueError as error:
        raise UsageError(f"skip: {error}; specify a number of requests, or '20%'") from None
    if number < 0:
        raise UsageError(f"skip: {specified} is negative; specify a number of requests, or '20%'")
    return number


def readable_twice(trace: Chunked | Iterable[Any]) -> Chunked | Iterable[Any]:
    """Return a trace that can be read more than once; an iterator becomes a list."""
    return trace if isinstance(trace, Chunked | np.ndarray) else list(trace)


def cache_pages(
    trace: Chunked | Iterable[Any],
    sizes: Sequence[str | int],
    page_bytes: int,
    counted: Callable[[Iterator[Part]], int] = distinct_pages,
) -> list[int]:
    """Return sizes in pages; shares need a pass over the trace to count its distinct pages."""
    has_share = any("%" in str(size) for size in sizes)
    distinct = counted(accesses(trace, page_bytes)) if has_share else 0
    return [pages_of(size, distinct, page_bytes) for size in sizes]


def pages_of(size: str | int, distinct: int, page_bytes: int) -> int:
    """Return a size in pages; a share is one of `distinct` pages."""
    page_count = PAGE_COUNT.fullmatch(str(size).strip())
    try:
        if page_count:
            pages = int(page_count[1])
        elif "%" in str(size):
            pages = int(parse_percent(str(size)) * distinct)
        else:
            pages = parse_size(size) // page_bytes
    except ValueError as error:
        raise UsageError(f"{error}; {SIZE_HINT}") from None
    if pages < 1 and (distinct or "%" not in str(size)):
        minimum = f"at least {format_size(page_bytes)}"
        if "%" in str(size):
            minimum = f"one of {counted(distinct, 'page')} is {-(-10_000 // distinct) / 100:g}%"
        remedy = f"; a number without a unit is bytes; {SIZE_HINT}" if str(size).isdigit() else ""
        raise UsageError(
            f"a cache of {size} holds no page of {page_bytes} bytes: {minimum}{remedy}"
        )
    return pages


def size_bytes(specified: str | int) -> int:
    """Return a size in bytes; raise UsageError for an invalid one."""
    try:
        return parse_size(specified)
    except ValueError as error:
        raise UsageError(str(error)) from None


# Policies specified by a caller: names in the registry, or classes, with parameters.


def several(one_or_more: Any) -> list[Any]:
    """Return a list or tuple as a list, and any other object as a list of it."""
    if type(one_or_more) in (list, tuple):  # not isinstance: a policy may be a named tuple
        return list(one_or_more)
    return [one_or_more]


def check(parameters: Mapping[str, Any], admission: Any, replacement: Any) -> None:
    """Raise UsageError for an unknown policy; there may be several of each role.

    Also for a parameter that neither these policies nor any policy in the registry accept.
    """
    classes = [policy_of("admission", each)[1] for each in several(admission)]
    classes += [policy_of("replacement", each)[1] for each in several(replacement)]
    known = list(PARAMETERS)
    for cls in classes:
        known += [each for each in inspect.signature(cls.new).parameters if each not in known]
    for name in parameters.keys() - set(known):
        raise UsageError(f"no policy has a parameter {name!r}: {hint(name, known)}")


def policy_of(role: str, policy: Policy) -> tuple[str, Any]:
    """Return the name and the class of a policy of this role.

    Raises UsageError for an unknown name, PolicyError for a class that cannot be made, or grow.
    """
    known = ADMISSION if role == "admission" else REPLACEMENTS
    if isinstance(policy, type):
        for name in ("new", "grown"):
            if not callable(getattr(policy, name, None)):
                raise PolicyError(f"{policy.__name__} is not a policy: it lacks {name}()")
        return policy.__name__, policy
    if not isinstance(policy, str):
        kind = type(policy).__name__
        raise UsageError(
            f"a policy is a name or a class; this is an object of {kind}: specify {kind}"
        )
    if policy not in known:
        raise UsageError(f"no {role} policy {policy!r}: {hint(policy, known)}")
    return policy, known[policy]


class Cache:
    """The simulation of one cache, with the names of its policies."""

    def __init__(
        self,
        admission: Policy,
        replacement: Policy,
        pages: int,
        page_bytes: int,
        cutoff_bytes: int = 0,
        parameters: dict[str, Any] | None = None,
    ) -> None:
        """Create an empty cache of `pages` pages."""
        self.admission, admits = policy_of("admission", admission)
        self.replacement, replaces = policy_of("replacement", replacement)
        self.is_offline = self.replacement in OFFLINE
        ids = Ids().capacity
        specified = (parameters or {}) | {"page_bytes": page_bytes}
        policies = pair(admits, replaces, ids, pages, specified)
        # All that changes; may be set to an earlier state of the same cache.
        self.state = Residency.new(pages, page_bytes, cutoff_bytes, *policies, ids)
        jit.check_part(policies[0], "an admission policy", ADMISSION_METHODS, ["grown"])
        jit.check_part(policies[1], "a replacement policy", REPLACEMENT_METHODS, ["grown"])

    def take(
        self, ids: Int32s, part: Part, first: int, capacity: int, next_use: Ints | None = None
    ) -> None:
        """Process requests; `first` is the number of the first access.

        An offline policy needs the next use of each page.
        """
        self.grow(capacity)
        try:
            if isinstance(part, PageReads) and next_use is None:
                jit.fitting(run_pages, self.state)(self.state, ids, part, first)
            else:
                requests = part.as_requests() if isinstance(part, PageReads) else part
                jit.fitting(run, self.state)(self.state, ids, requests, next_use)
        finally:  # a policy in Python that chose a wrong victim may have failed since
            self._check(part, first)

    def grow(self, capacity: int) -> None:
        """Make room for so many page ids."""
        if len(self.state.present) < capacity:
            self.state = self.state.grown(capacity)

    def _check(self, part: Part, first: int) -> None:
        counts = self.state.counts
        if counts[IS_WRONG]:
            victim, page, at = counts[[WRONG_VICTIM, WRONG_FOR, WRONG_AT]].tolist()
            access, number = f"page access {first + at}, counted from 0", int(part.numbers[at])
            cached = int(counts[ADMITTED])
            reject_victim(self.state.replacement, victim, page, number, access, cached)

    def holds(self, ids: Int32s) -> Bytes:
        """Return for each page whether it is cached: 1 or 0."""
        present = self.state.present
        in_range = ids < len(present)
        result = np.zeros(len(ids), np.uint8)
        result[in_range] = present[ids[in_range]]
        return result

    def served(self) -> tuple[int, int]:
        """Return the number of page accesses, and the number of page hits."""
        counts = self.state.counts
        return int(counts[PAGES : PAGES + 2].sum()), int(counts[PAGE_HITS : PAGE_HITS + 2].sum())

    @property
    def held(self) -> int:
        """Number of pages that are cached."""
        return int(self.state.counts[HELD])

    def forget(self) -> None:
        """Reset the counts; the contents of the cache stay."""
        self.state.counts[:HELD] = 0

    def result(self, page_bytes: int) -> Hits:
        """Return the counts of the cache; raise TraceError if there were no accesses."""
        counts, policy = [int(each) for each in self.state.counts], self.state.admission
        if isinstance(policy, Budgeted):
            policy = policy.admission
        if not counts[PAGES] + counts[PAGES + 1]:
            raise TraceError("no reads or writes in the trace")
        return Hits(
            self.admission,
            self.replacement,
            self.state.pages,
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
    """Feeds the same accesses to all caches; offline policies run at the end."""

    def __init__(self, caches: list[Cache], skip: int = 0) -> None:
        """Start with empty caches; counting starts after `skip` requests."""
        self._skip, self._is_counting = skip, not skip
        self._counted_from = 0  # index of the first counted part in _kept
        self._at_once = [cache for cache in caches if not cache.is_offline]
        self._later = [cache for cache in caches if cache.is_offline]
        self._kept: list[tuple[Int32s, Part]] = []
        self.ids = Ids()  # of all pages, in the order in which they were first seen
        self._threads = ThreadPoolExecutor(os.cpu_count())
        self._first = 0
        self._began_ns = NEVER
        self.has_times = False

    def take(self, part: Part) -> None:
        """Process a part of the requests."""
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
        page_ids = self.ids.of(part.numbers)
        capacity, first = self.ids.capacity, self._first
        self._each(self._at_once, lambda cache: cache.take(page_ids, part, first, capacity))
        self._first += len(page_ids)
        if isinstance(part, Accesses) and len(page_ids):
            self._began_ns = min(self._began_ns, int(part.arrival_ns[0]))
            self.has_times |= int(part.arrival_ns[-1]) > self._began_ns
        if self._later:
            self._kept.append((page_ids, part))

    def finish(self) -> int:
        """Run the policies that need the future accesses; return the number of distinct pages."""
        if not self._is_counting:
            raise UsageError("skip: the trace has no more requests; specify fewer, or '20%'")
        if self._kept:
            whole = np.concatenate([page_ids for page_ids, _ in self._kept])
            future = next_uses(whole, self.ids.count, NEVER)
            self._each(self._later, lambda cache: self._foresee(cache, future))
        self._threads.shutdown()
        return self.ids.count

    def _foresee(self, cache: Cache, future: Ints) -> None:
        first = 0
        for number, (page_ids, part) in enumerate(self._kept):
            if number == self._counted_from:
                cache.forget()
            next_use = future[first : first + len(page_ids)]
            cache.take(page_ids, part, first, self.ids.capacity, next_use)
            first += len(page_ids)

    def _each(self, caches: list[Cache], step: Callable[[Cache], None]) -> None:
        if len(caches) == 1:
            step(caches[0])
        else:
            list(self._threads.map(step, caches))
