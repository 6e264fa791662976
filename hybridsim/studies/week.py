"""A thinned capture by hour and by weekday: load, latency and hit ratio, and its worst hour."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.requests.pages import PageReads, accesses, distinct_pages
from hybridsim.studies.hits import Cache, Feed
from hybridsim.studies.page_sampling import SMALL, Sampled, SampleOfRegions
from hybridsim.traces.formats.thinned import Thinned
from hybridsim.traces.thinned.layout import Counts
from hybridsim.traces.thinned.thinner import HOUR_NS
from hybridsim.traces.trace import Trace

SHARE = 0.1  # of the pages touched: the cache whose hits are shown
PAGE_BYTES = 1 << 16
DAY_S = 86_400
PASSES = 3  # over the capture: its counts, its distinct pages, the hits
DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Hour:
    """The requests of one hour."""

    begin_ns: int  # from the origin of the capture
    weekday: int | None  # 0: Monday; None: the capture has no clock
    hour: int  # of the day, or from the start of a capture without a clock
    requests: int
    seconds: float  # recorded in this hour
    mean_ns: float | None  # latency of reads and writes
    p99_ns: float | None
    depth: float  # mean of requests in flight at arrivals
    hit_ratio: float | None  # of a cache of SHARE of the pages, estimated; None: no sample

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds if self.seconds else 0.0


@dataclass(frozen=True)
class Week:
    """All hours of a capture with requests."""

    hours: list[Hour]
    worst: Hour  # in which requests waited most
    cache_bytes: int


def week(trace: Trace) -> Week | None:
    """Return the hours of a thinned capture; None for another trace, or a stretch of one."""
    capture = trace.sample
    if capture is None:
        return None
    by_hour: dict[int, tuple[Counts, set[int]]] = {}
    for minute in trace.counts():
        hour = minute.begin_ns // HOUR_NS
        counts, minutes = by_hour.setdefault(hour, (Counts.none(hour * HOUR_NS, HOUR_NS), set()))
        counts.add(minute)
        minutes.add(minute.begin_ns)
    hits, cache_bytes = hits_by_hour(trace, capture)
    hours = [
        _hour(counts, 60.0 * len(minutes), hits.get(hour), capture)
        for hour, (counts, minutes) in sorted(by_hour.items())
        if counts.requests
    ]
    worst = max(hours, key=lambda each: (each.mean_ns or 0) * each.requests or each.requests)
    return Week(hours, worst, cache_bytes)


def hits_by_hour(trace: Trace, capture: Thinned) -> tuple[dict[int, float], int]:
    """Return the hit ratio of each hour in an LRU cache of SHARE of the pages, and its size.

    The cache is scaled down to the sample; empty if it would have too few pages.
    """
    page_bytes = min(PAGE_BYTES, capture.settings.region_bytes)
    sample = SampleOfRegions(capture, page_bytes)
    pages = round(distinct_pages(accesses(Sampled(trace), page_bytes)) * SHARE)
    if pages < SMALL:
        return {}, 0
    cache = Cache("always", "lru", pages, page_bytes)
    feed = Feed([cache])
    found: dict[int, list[int]] = {}
    served = hits = 0
    for part in accesses(Sampled(trace), page_bytes):
        assert not isinstance(part, PageReads)
        hour_of: Ints = part.arrival_ns // HOUR_NS
        for hour in np.unique(hour_of).tolist():
            first, stop = np.searchsorted(hour_of, [hour, hour + 1])
            feed.take(PageReads(part.between(first, stop).numbers, page_bytes))
            now_served, now_hits = cache.served()
            both = found.setdefault(hour, [0, 0])
            both[0] += now_served - served
            both[1] += now_hits - hits
            served, hits = now_served, now_hits
    feed.finish()
    ratios = {hour: hit / count for hour, (count, hit) in found.items() if count}
    return ratios, round(pages / sample.rate) * page_bytes


def _hour(counts: Counts, seconds: float, hit_ratio: float | None, capture: Thinned) -> Hour:
    weekday, hour = clock(capture, counts.begin_ns)
    return Hour(
        counts.begin_ns, weekday, hour, counts.requests, seconds, counts.mean_latency_ns,
        counts.percentile(99), float(counts.of("depth_sum")[0]) / counts.requests, hit_ratio,
    )  # fmt: skip


def clock(capture: Thinned, at_ns: int) -> tuple[int | None, int]:
    """Return the weekday and the hour at the device; None and the hour of one without a clock."""
    if capture.origin_unix_ns is None:
        return None, at_ns // HOUR_NS
    at_s = (capture.origin_unix_ns + at_ns) // 10**9 + capture.settings.utc_offset_s
    return (at_s // DAY_S + 3) % 7, at_s % DAY_S // 3600


def local_time(capture: Thinned, at_ns: int) -> str:
    """Return a time of a capture at its device: 'Sun 2026-11-22 02:00', or 'hour 7'."""
    if capture.origin_unix_ns is None:
        return f"hour {at_ns // HOUR_NS}"
    at_s = (capture.origin_unix_ns + at_ns) // 10**9 + capture.settings.utc_offset_s
    return f"{datetime.fromtimestamp(at_s, UTC):%a %Y-%m-%d %H:%M}"


def document(trace: Trace) -> dict[str, Any] | None:
    """Return a thinned capture for JSON; None for other traces."""
    capture, found = trace.sample, week(trace)
    if capture is None or found is None:
        return None
    total = capture.total
    return {
        "rate": capture.rate,
        "region_bytes": capture.settings.region_bytes,
        "requests": total.requests,
        "reads": int(total.of("requests")[0]),
        "bytes": int(total.of("bytes").sum()),
        "mean_ns": total.mean_latency_ns,
        "p99_ns": total.percentile(99),
        "lost_events": int(total.of("lost")[0]),
        "interruptions_ns": list(capture.interruptions),
        "stretches": list(capture.stretches),
        "worst_stretch": capture.worst or None,
        "typical_stretch": capture.typical or None,
        "cache_bytes": found.cache_bytes,
        "worst_hour_ns": found.worst.begin_ns,
        "hours": [vars(each) for each in found.hours],
    }
