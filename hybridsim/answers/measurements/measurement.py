"""The results of a run in any file format: figures, curves, distributions, counters.

The name of a figure has three parts: the job, the kind of requests (read, write, trim, sync, or
cache), and the measure.  Times are in ns from the start of the run, rates in bytes or requests per
second, latencies in ns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.answers.intervals import Blocks
from hybridsim.foundation.arrays import Floats, Ints
from hybridsim.foundation.errors import MeasurementError
from hybridsim.foundation.histogram import Distribution, bin_of

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
        for kind in ("figures", "curves", "latencies"):
            setattr(self, kind, {
                name._replace(job=title) if name.job == job and name.what != CACHE else name: each
                for name, each in getattr(self, kind).items()
            })  # fmt: skip
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
        for name in ("figures", "curves", "latencies", "counters", "groups"):
            setattr(self, name, getattr(self, name) | getattr(other, name))
        for name in ("sources", "jobs", "notes"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("version", "is_instant", "kind", "blocks", "requests_of"):
            setattr(self, name, getattr(self, name) or getattr(other, name))


def distribution(
    numbers: Mapping[str, int], mean_ns: float, max_ns: int, unit_ns: int = 1
) -> Distribution:
    """Return a distribution from the numbers of requests by latency, in units."""
    values = np.array([int(value) for value in numbers], np.int64) * unit_ns
    counts = np.array(list(numbers.values()), np.int64)
    bins = np.zeros_like(Distribution().bins)
    np.add.at(bins, bin_of(values), counts)
    number = int(counts.sum())
    return Distribution(number, round(mean_ns * number), max_ns, bins)


def sampled(name: str, rows: npt.ArrayLike, counters: Iterable[str]) -> Measurement:
    """Return the counters of a file's rows: uptime in ns, then the value of each counter."""
    time_ns, *columns = np.array(rows, np.int64).T
    samples = {counter: Samples(time_ns, each) for counter, each in zip(counters, columns)}
    return Measurement([name], counters=samples)
