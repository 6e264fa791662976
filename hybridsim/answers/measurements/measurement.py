"""The results of a run in any file format: figures, curves, distributions, counters.

The name of a figure has three parts: the job, the kind of requests (read, write, trim, sync, or
cache), and the measure.  Times are in ns from the start of the run, rates in bytes or requests per
second, latencies in ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.answers.intervals import Blocks
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.histogram import Distribution
from hybridsim.foundation.levels import LEVELS

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SECOND, MILLISECOND, MICROSECOND = 10**9, 10**6, 10**3
IOPS, BANDWIDTH, REQUESTS, BYTES, RUNTIME = "IOPS", "bandwidth", "requests", "bytes", "runtime"
LATENCY, COMPLETION, SUBMISSION = "lat", "clat", "slat"
HIT_RATIO = "hit ratio"
CACHE = "cache"
DIRECTIONS = ("read", "write", "trim")
GAP = 1.5  # widths of a window: more time between two ends is a gap


class Name(NamedTuple):
    """The name of a figure, curve or distribution."""

    job: str
    what: str
    measure: str

    def __str__(self) -> str:
        return " ".join(part for part in self if part)


@dataclass(frozen=True)
class Curve:
    """Means over windows of time, in order; there may be gaps between them."""

    start_ns: Ints
    end_ns: Ints
    value: Floats

    @classmethod
    def of_windows(cls, end_ns: Ints, value: Floats) -> Curve:
        """Return a curve of windows that end at these times, as in logs.

        A window begins at the end of the previous one; after a gap it has the usual width.
        """
        step = np.diff(end_ns)
        width = int(end_ns[0]) if len(end_ns) else 0
        if len(step):  # most steps are one window; idle periods are longer
            width = int(np.quantile(step, 0.25, method="lower"))
        before = np.append(max(int(end_ns[0]) - width, 0) if len(end_ns) else [], end_ns[:-1])
        start = np.where(end_ns - before < GAP * width, before, end_ns - width)
        return cls(start.astype(np.int64), end_ns.astype(np.int64), value.astype(np.float64))

    @property
    def width_ns(self) -> int:
        """The median width of the windows."""
        return int(np.median(self.end_ns - self.start_ns)) if len(self.end_ns) else 0

    @property
    def until_ns(self) -> int:
        """The end of the last window."""
        return int(self.end_ns[-1]) if len(self.end_ns) else 0

    def binned(self, edges_ns: Ints, is_rate: bool) -> Floats:
        """Return means between edges; where there are no windows a rate is 0, all else is NaN."""
        span = self.end_ns - self.start_ns
        times = np.stack([self.start_ns, self.end_ns], axis=1).ravel()
        ends = [np.repeat(np.cumsum(each), 2) for each in (self.value * span, span)]
        for each, last in zip(ends, (self.value * span, span)):
            each[::2] -= last
        amount, covered_ns = (np.diff(np.interp(edges_ns, times, each)) for each in ends)
        if is_rate:
            return np.asarray(amount / np.diff(edges_ns))
        return np.asarray(np.where(covered_ns > 0, amount / np.maximum(covered_ns, 1), np.nan))


@dataclass(frozen=True)
class Samples:
    """A cumulative count, or a level, at some times."""

    time_ns: Ints
    value: Ints

    def at(self, times_ns: Ints) -> Floats:
        """Return the values at these times, interpolated linearly between samples."""
        return np.asarray(np.interp(times_ns, self.time_ns, self.value))


@dataclass
class Measurement:
    """The results of one run."""

    sources: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)  # in the order of the file
    groups: set[int] = field(default_factory=set)  # jobs of one group ran together
    version: str = ""  # of fio, if reported
    figures: dict[Name, float] = field(default_factory=dict)
    curves: dict[Name, Curve] = field(default_factory=dict)
    latencies: dict[Name, Distribution] = field(default_factory=dict)
    counters: dict[str, Samples] = field(default_factory=dict)  # of the cache
    levels: set[str] = field(default_factory=set)  # counters that are levels, not counts
    notes: list[str] = field(default_factory=list)
    is_instant: bool = False  # submission takes no time: lat is clat
    begin_s: float | None = None  # start of the load on the clock of the samples
    kind: str = ""  # of cache, of a simulated run; empty: unknown, or a real run
    blocks: Blocks | None = None  # the second half of the requests of a replay, to be paired
    requests_of: str = ""  # digest of these requests

    def put(self, job: str, what: str, measure: str, value: float) -> None:
        """Add a figure."""
        self.figures[Name(job, what, measure)] = float(value)

    def rename(self, job: str, title: str) -> None:
        """Change the name of a job to `title`."""
        self.figures = {_renamed(name, job, title): each for name, each in self.figures.items()}
        self.curves = {_renamed(name, job, title): each for name, each in self.curves.items()}
        self.latencies = {_renamed(name, job, title): each for name, each in self.latencies.items()}
        self.jobs = [title if each == job else each for each in self.jobs]

    def add(self, other: Measurement) -> None:
        """Add the figures of another file of the run; raise MeasurementError for duplicates."""
        both = [str(name) for name in self.figures if name in other.figures]
        both += [f"{name} over time" for name in self.curves if name in other.curves]
        both += [name for name in self.counters if name in other.counters]
        if both:
            raise MeasurementError(
                f"{', '.join(other.sources)}: {both[0]} is also reported by "
                f"{', '.join(self.sources)}: specify the files of one run"
            )
        self.figures |= other.figures
        self.curves |= other.curves
        self.counters |= other.counters
        self.sources += other.sources
        self.jobs += other.jobs
        self.groups |= other.groups
        self.version = self.version or other.version
        self.latencies |= other.latencies
        self.is_instant |= other.is_instant
        self.levels |= other.levels
        self.notes += other.notes
        self.kind = self.kind or other.kind
        self.blocks = self.blocks or other.blocks
        self.requests_of = self.requests_of or other.requests_of


def _renamed(name: Name, job: str, title: str) -> Name:
    return name._replace(job=title) if name.job == job and name.what != CACHE else name


def sampled(name: str, rows: Sequence[Sequence[int]], counters: Iterable[str]) -> Measurement:
    """Return the counters of a file's rows: uptime in ns, then the value of each counter."""
    time_ns, *columns = np.array(rows, np.int64).T
    result = Measurement([name])
    for counter, values in zip(counters, columns):
        result.counters[counter] = Samples(time_ns, values)
    result.levels = set(LEVELS & result.counters.keys())
    return result
