"""What a simulation promised for a cache: its figures after any number of reads.

Read of the JSON of `hybridsim replay`, or of `hybridsim setup`, which has a copy of the same
figures.  The simulated cache starts empty.  A real one is compared with the simulated one from the
moment at which that was as full, over as many reads (requests, if there are no reads): a cache
changes with the requests that it gets, not with time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.foundation.documents import Document

SECOND = 10**9
FULL = 0.9  # share of its size that a cache holds, from which on it evicts about what it takes in
BATCHES = 20  # of the steady part, for the scatter of its hit ratio
BATCH_READS = 30  # at least
QUANTILE = 1.645  # of the normal distribution: 90 % within, in both directions


@dataclass(frozen=True)
class Part:
    """One phase of the simulated run."""

    span_ns: int
    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    hit: float | None
    read_mean_ns: float | None
    write_mean_ns: float | None
    counters: dict[str, int]

    @property
    def requests(self) -> int:
        """Number of requests."""
        return self.reads + self.writes


@dataclass(frozen=True)
class Course:
    """Sums since the start, at the end of each bin of the simulated run."""

    requests: list[float]  # reads and writes
    reads: list[float]
    hits: list[float]
    waited_ns: list[float]  # of reads
    ssd_bytes: list[float] | None  # written to the SSDs
    held_bytes: list[float] | None  # level: bytes in the cache


@dataclass(frozen=True)
class Promise(Document):
    """The figures of a simulated cache."""

    trace: str
    mode: str  # open, closed or think
    toml: str
    cache_pages: int
    page_bytes: int
    footprint_bytes: int
    whole: Part
    cold: Part
    warm: Part | None  # None: the cache did not get steady
    course: Course
    dirty: dict[str, Any] | None

    @classmethod
    def of_result(cls, document: Mapping[str, Any], page_bytes: int) -> Promise:
        """Return the promise in the JSON of a replay."""
        scenario, trace = document["inputs"]["scenario"], document["inputs"]["trace"]
        phases = document["phases"]
        is_steady = document["warm_up"]["state"] == "steady"
        series, whole = document["series"], phases["whole"]
        return cls(
            str(trace["name"]), str(scenario["mode"]), str(scenario["toml"]),
            int(scenario["cache_pages"]), page_bytes, int(trace["footprint_bytes"]),
            _part(whole), _part(phases["cold"]), _part(phases["warm"]) if is_steady else None,
            _course(series, int(whole["end_ns"]), page_bytes), document["dirty"],
        )  # fmt: skip

    @property
    def held_bytes(self) -> float | None:
        """Bytes in the cache at the end of the simulated run; None if not counted."""
        return self.course.held_bytes[-1] if self.course.held_bytes else None

    @property
    def still_filled(self) -> bool:
        """Whether the simulated cache had room at its end, so that it went on to take data in."""
        size = self.cache_pages * self.page_bytes
        return self.held_bytes is not None and self.held_bytes < FULL * size

    def start_of(self, held_bytes: float | None) -> int | None:
        """Return the first bin that begins with as much in the cache.

        None: none does, or it is one of the steady part.
        """
        levels = self.course.held_bytes
        if not held_bytes or not levels:
            return 0
        at = int(np.searchsorted(np.maximum.accumulate(levels), 0.99 * held_bytes))
        if at + 1 >= len(levels):
            return None
        is_steady = self.warm is not None and self.course.requests[at] >= self.cold.requests
        return None if is_steady else at + 1

    def over(self, start: int | None, number: int, basis: str = "reads") -> Window:
        """Return the figures over so many reads, or requests, from a bin on.

        A start of None is the steady part.  Beyond the end of the run the figures go on as in its
        steady part; without one, the window ends.
        """
        course, warm = self.course, self.warm
        counted: list[float] = getattr(course, basis)
        per_warm = getattr(warm, basis) if warm is not None else 0
        total = counted[-1]
        first = total if start is None else 0.0 if start == 0 else counted[start - 1]
        last = min(first + number, total)
        more = first + number - last
        within = last - first
        ends_ns = np.linspace(0, self.whole.span_ns, len(counted) + 1)[1:].tolist()
        columns = (
            course.reads, course.hits, course.waited_ns, course.ssd_bytes, course.requests, ends_ns
        )  # fmt: skip
        sums = [_between(counted, column, first, last) if within else 0.0 for column in columns]
        if warm is not None and per_warm and more:
            share = more / per_warm
            steady = (
                warm.reads, (warm.hit or 0.0) * warm.reads,
                (warm.read_mean_ns or 0.0) * warm.reads, warm.counters.get("fast_bytes_written"),
                warm.requests, warm.span_ns,
            )  # fmt: skip
            sums = [
                None if one is None or each is None else one + each * share
                for one, each in zip(sums, steady)
            ]
            within, more = within + more, 0.0
        reads, hits, waited, ssd, requests, span_ns = sums
        return Window(
            within, more, hits / reads if reads and hits is not None else None,
            waited / reads if reads and waited is not None else None, ssd if within else None,
            requests * SECOND / span_ns if requests and span_ns else None,
            self._counted(start, within, basis), start is None,
            max(first + number - total, 0.0) if start is not None else 0.0,
        )  # fmt: skip

    def _counted(self, start: int | None, number: float, basis: str) -> dict[str, float]:
        """Return counts over a window; only from an empty cache, or in the steady part."""
        whole, cold, warm = (
            0 if each is None else getattr(each, basis)
            for each in (self.whole, self.cold, self.warm)
        )
        if self.warm is None or not warm:
            is_whole = start == 0 and abs(number - whole) <= 0.01 * whole
            return {name: float(each) for name, each in self.whole.counters.items() if is_whole}
        if start is None:
            return {name: each * number / warm for name, each in self.warm.counters.items()}
        if start == 0 and number >= cold:
            share = (number - cold) / warm
            return {
                name: each + self.warm.counters.get(name, 0) * share
                for name, each in self.cold.counters.items()
            }
        return {}

    def scatter(self, reads: float) -> float:
        """Return by how much the hit ratio over so many reads differs by chance in the load.

        Half the width of an interval of 90 %, from the scatter of the hit ratio between batches of
        the steady part; 0 where it has too few reads.
        """
        hits, seen = np.array(self.course.hits), np.array(self.course.reads)
        part = self.warm or self.whole
        begin = max(seen[-1] - part.reads, 0.0)
        number = min(BATCHES, int((seen[-1] - begin) // BATCH_READS))
        if number < 4 or not reads:
            return 0.0
        edges = np.linspace(begin, seen[-1], number + 1)
        ratios = np.diff(np.interp(edges, seen, hits)) / np.diff(edges)
        each = float(ratios.std(ddof=1))
        return QUANTILE * each * math.sqrt(float(edges[1] - edges[0]) / reads)

    def rate_scatter(self, span_ns: float) -> float:
        """Return by what share the rate of requests over a time differs by chance in the load.

        As `scatter`, from the rates in batches of equal time of the steady part.
        """
        requests = np.array(self.course.requests)
        part = self.warm or self.whole
        bins = round(part.span_ns / self.whole.span_ns * len(requests)) if self.whole.span_ns else 0
        number = min(BATCHES, bins)
        if number < 4 or span_ns <= 0:
            return 0.0
        edges = np.linspace(len(requests) - bins, len(requests), number + 1)
        counts = np.diff(np.interp(edges, np.arange(len(requests) + 1), [0.0, *requests]))
        if counts.mean() <= 0:
            return 0.0
        each = float(counts.std(ddof=1) / counts.mean())
        return QUANTILE * each * math.sqrt(part.span_ns / number / span_ns)


@dataclass(frozen=True)
class Window:
    """What was promised over a number of requests."""

    number: float  # of reads, or of requests
    beyond: float  # those that the simulated run does not cover
    hit: float | None
    read_mean_ns: float | None
    ssd_bytes: float | None
    iops: float | None
    counters: dict[str, float]
    is_steady: bool
    later: float  # those after the end of the simulated run, taken to go on as its steady part


def _part(phase: Mapping[str, Any]) -> Part:
    read, write = phase["read"], phase["write"]
    return Part(
        int(phase["end_ns"]) - int(phase["start_ns"]), int(read["n"]), int(write["n"]),
        int(read["bytes"]), int(write["bytes"]), read["hit"], read["mean_ns"], write["mean_ns"],
        {name: int(each) for name, each in phase["counters"].items()},
    )  # fmt: skip


def _course(series: Mapping[str, Any], end_ns: int, page_bytes: int) -> Course:
    start, reads, writes, hit, mean = (
        np.array([each or 0.0 for each in series[name]], np.float64)
        for name in ("start_ns", "reads", "writes", "hit", "mean_ns")
    )
    width_s = np.diff(np.append(start, max(end_ns, start[-1] + 1))) / SECOND
    rates, held = series["ssd_write_bytes_per_s"], series["occupancy_pages"]
    return Course(
        np.cumsum(reads + writes).tolist(),
        np.cumsum(reads).tolist(),
        np.cumsum(reads * hit).tolist(),
        np.cumsum(reads * mean).tolist(),
        None if None in rates else np.cumsum(np.array(rates) * width_s).tolist(),
        None if None in held else (np.array(held, np.float64) * page_bytes).tolist(),
    )


def _between(
    reads: list[float], column: list[float] | None, first: float, last: float
) -> float | None:
    if column is None:
        return None
    low, high = np.interp([first, last], [0.0, *reads], [0.0, *column])
    return float(high - low)
