"""Hits of a thinned capture: caches scaled down to its sample, with the error of the sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.foundation.units import human_size
from hybridsim.requests.pages import Ids, PageReads, accesses
from hybridsim.studies.hits import Cache, Feed, Hits, HitsList, Policy, check, pages_of
from hybridsim.studies.page_sampling import (
    Sampled,
    SampleOfRegions,
    check_regions,
    check_sampled,
    error_of,
    error_of_regions,
    expected,
    smallest_pages,
)
from hybridsim.traces.formats.thinned import Thinned
from hybridsim.traces.thinned.layout import PAGES, PAGES_FIRST


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
    distinct = 0
    if any("%" in str(size) for size in sizes):
        ids = Ids()
        for part in accesses(sampled, page_bytes):
            ids.of(sample.of(part.numbers)[0])
        distinct = round(ids.count / sample.rate)
    pages = [pages_of(size, distinct, page_bytes) for size in sizes]
    if min(pages) < smallest_pages(sample):
        smallest = human_size(int(np.ceil(smallest_pages(sample))) * page_bytes)
        raise UsageError(
            f"a sample of {sample.rate:.3%} shrinks a cache of "
            f"{human_size(min(pages) * page_bytes)} to fewer than 8 pages: "
            f"take a larger sample, or sizes from {smallest} on"
        )
    samples = [sample, *sample.groups()] if not sample.keeps_all else [sample]
    wanted = list(product(admission, replacement, pages))
    caches = [
        [Cache(a, r, max(round(size * each.rate), 1), page_bytes, 0, parameters)
         for a, r, size in wanted]
        for each in samples
    ]  # fmt: skip
    feeds = [Feed(each) for each in caches]
    taken = [0] * len(samples)
    for part in accesses(sampled, page_bytes):
        feeds[0].take(part)
        taken[0] += len(part.numbers)
        for which, each in enumerate(samples[1:], 1):
            numbers = each.of(part.numbers)[0]
            taken[which] += len(numbers)
            feeds[which].take(PageReads(numbers, page_bytes))
    for feed in feeds:
        feed.finish()
    if not taken[0]:
        raise TraceError(f"{trace.name}: no reads or writes in the sample")
    check_regions(sample, feeds[0].numbers)
    ratios = []
    for one, count, of_sample in zip(samples, taken, caches):
        misses = [served - hit for served, hit in (each.served() for each in of_sample)]
        ratios.append(np.array(misses) / (expected(one, 0, count) * one.rate))
    errors = error_of(ratios[0], ratios[1:], sample.rate) if ratios[1:] else np.zeros(len(wanted))
    errors = error_of_regions(sample, ratios[0], errors, taken[0])
    return HitsList(
        _scaled(each.result(page_bytes), size, float(miss), float(error), sample, capture)
        for each, (_, _, size), miss, error in zip(caches[0], wanted, ratios[0], errors)
    )


def _scaled(
    of_sample: Hits, pages: int, misses: float, error: float, sample: SampleOfRegions, of: Thinned
) -> Hits:
    """Return the counts of a sample scaled to those of all requests."""
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
