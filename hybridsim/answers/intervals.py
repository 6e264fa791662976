"""How sure the mean latencies and the duration of a capture are: all sources, combined in one way.

Sources of an interval of LEVEL:

    trace   the capture is a sample: its second half is cut into blocks of equal recorded time,
            which are drawn with replacement, one by one and in runs of neighbours (sampling.py);
            of two machines on the same requests, the slow waves in their difference (sampling.py)
    model   the errors of the simulation in real runs on file, by kind of cache (model_error.py);
            there are none for disks alone
    seeds   random numbers, where they are drawn and a run is repeated with several seeds

They are independent, so their squares add up, as factors of the figure.  Not covered: another
load, other drives than those of the scenario, a fault; nor a trend of the load, for which see
forecast.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.answers.model_error import FEW_WRITES, FINEST, half_of
from hybridsim.answers.sampling import (
    LEVEL,
    difference_interval,
    interval,
    ratio_interval,
    student_reach,
)
from hybridsim.foundation.arrays import Floats
from hybridsim.foundation.documents import Document
from hybridsim.foundation.histogram import VALUES

Ends = tuple[float, float]

TRACE, MODEL, SEEDS = "trace", "model", "seeds"
FEWEST = 5  # blocks with requests: fewer say nothing of the others
NO_CACHE = "none"  # kind of the disks alone, of which there are no real runs
RATE = "iops"  # figure of real runs: a duration has its error
NAMES = ("read", "write", "all", "took")
ARRAYS = ("counts", "totals_ns", "took_ns")
QUANTILE_DRAWS = 400  # of histograms, which are large
OF_DIRECTION = ("read_mean", "write_mean")  # figures of real runs, by direction


@dataclass(frozen=True)
class Interval(Document):
    """A figure with the ends of its interval, and the sources that these cover."""

    value: float
    low: float
    high: float
    sources: tuple[str, ...]


def combined(value: float, parts: Mapping[str, Ends | float | None]) -> Interval | None:
    """Return the interval of a positive figure from its sources; None without any.

    A source is either the ends of its own interval, or half of its width as a share of the figure;
    None: it is not known.
    """
    below = above = 0.0
    known = []
    for name, part in parts.items():
        if part is None or value <= 0:
            continue
        low, high = (value / (1 + part), value * (1 + part)) if isinstance(part, float) else part
        if low <= 0:
            continue
        known.append(name)
        below += math.log(value / min(low, value)) ** 2
        above += math.log(max(high, value) / value) ** 2
    if not known:
        return None
    finest = math.log1p(FINEST)
    reach = (max(math.sqrt(each), finest) for each in (below, above))
    low, high = (value * math.exp(sign * each) for sign, each in zip((-1, 1), reach))
    return Interval(value, low, high, tuple(known))


def of_trace(sums: Floats, counts: Floats) -> Ends | None:
    """Return the interval of sum(sums) / sum(counts) over blocks drawn with replacement."""
    held = int(np.count_nonzero(counts))
    if held < FEWEST or not sums.sum():
        return None
    return interval(len(sums), lambda often: (often @ sums) / (often @ counts), held=held)


def of_model(kind: str, writes: float, figure: str) -> float | None:
    """Return half the width of the model's error of a figure of real runs.

    It is a share of the figure; of figures that are shares themselves, a difference.  `kind` is the
    kind of cache, `writes` the share of the requests that are writes.
    """
    half = None if kind == NO_CACHE else half_of(kind, writes > FEW_WRITES, figure)
    return None if half is None else half.width


@dataclass(frozen=True)
class Blocks:
    """What one machine did with some requests, in blocks of equal recorded time.

    The same requests on two machines are in the same blocks, so that these pair them.
    """

    kind: str  # of cache; NO_CACHE: the disks alone
    first: int  # request, from 0
    end: int  # the request after the last
    counts: Floats  # reads and writes (blocks, 2)
    totals_ns: Floats  # their latencies (blocks, 2)
    # How long each block took (blocks), by the mean completions around its ends; zeros if arrivals
    # are kept.
    took_ns: Floats
    whole_ns: int = 0  # how long all took, to the last completion: a straggler's may be late

    @property
    def writes(self) -> float:
        """Share of the requests that are writes."""
        return float(self.counts[:, 1].sum() / max(self.counts.sum(), 1))

    def of(self, name: str) -> tuple[Floats, Floats]:
        """Return sums and counts by block of one of NAMES; its figure is their ratio."""
        if name == "took":
            return self.took_ns, np.full(len(self.took_ns), 1.0 / max(len(self.took_ns), 1))
        if name == "all":
            return self.totals_ns.sum(axis=1), self.counts.sum(axis=1)
        place = NAMES.index(name)
        return self.totals_ns[:, place], self.counts[:, place]

    def model(self, name: str) -> float | None:
        """Return half the width of the model's error of one of NAMES, as a share of it."""
        if name == "took":
            return of_model(self.kind, self.writes, RATE)
        halves = [of_model(self.kind, self.writes, each) for each in OF_DIRECTION]
        if name != "all":
            return halves[NAMES.index(name)]
        both = self.totals_ns.sum(axis=0)
        if None in (half for half, total in zip(halves, both) if total):
            return None
        # The errors of reads and writes are taken to be in the same direction.
        return float(sum((half or 0.0) * one for half, one in zip(halves, both)) / both.sum())

    def to_dict(self) -> dict[str, Any]:
        """Return it for JSON: integers, times in ns."""
        return {
            "kind": self.kind,
            "first": self.first,
            "end": self.end,
            "whole_ns": self.whole_ns,
            **{name: getattr(self, name).round().astype(np.int64).tolist() for name in ARRAYS},
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Blocks:
        """Return the blocks of such a document; raise KeyError, TypeError or ValueError."""
        counts, totals_ns, took_ns = (np.asarray(document[name], np.float64) for name in ARRAYS)
        place = document["first"], document["end"]
        return cls(document["kind"], *place, counts, totals_ns, took_ns, document["whole_ns"])

    def pairs_with(self, other: Blocks) -> bool:
        """Whether both machines served the same requests in the same blocks."""
        ends = (self.first, self.end) == (other.first, other.end)
        return ends and np.array_equal(self.counts, other.counts)


def means(blocks: Blocks, chance: Mapping[str, float] | None = None) -> dict[str, Interval]:
    """Return the intervals of the mean latencies and of the duration of blocks of requests.

    `chance` is half the width of the scatter over seeds, as a share, of those of NAMES that have
    one.  Keys: those of NAMES that there are.
    """
    result = {}
    for name in NAMES:
        sums, counts = blocks.of(name)
        if not sums.sum() > 0:
            continue
        value = blocks.whole_ns if name == "took" else float(sums.sum() / counts.sum())
        seeds = (chance or {}).get(name)
        result[name] = combined(
            value, {TRACE: of_trace(sums, counts), MODEL: blocks.model(name), SEEDS: seeds}
        )
    return {name: known for name, known in result.items() if known is not None}


def of_seeds(values: Sequence[float]) -> float | None:
    """Return half the width of the scatter of one of several runs with other random numbers.

    It is a share of their mean, by Student's t for one more run; None from one run, or if all are
    the same.
    """
    number = len(values)
    mean = sum(values) / max(number, 1)
    if number < 2 or min(values) == max(values) or not mean > 0:
        return None
    deviation = math.sqrt(sum((each - mean) ** 2 for each in values) / (number - 1))
    return student_reach(number - 1, LEVEL) * math.sqrt(1 + 1 / number) * deviation / mean


def gains(before: Blocks, after: Blocks) -> dict[str, Interval]:
    """Return how many times less the same requests cost on the machine `after`, with intervals.

    The blocks are paired: what both machines have in common does not widen the intervals.  The
    errors of the model on both machines are taken to be independent.  Keys: those of NAMES that
    both have; none if the machines did not serve the same requests.
    """
    result: dict[str, Interval] = {}
    if not before.pairs_with(after):
        return result
    for name in NAMES:
        (old, counts), (new, _) = before.of(name), after.of(name)
        if not old.sum() > 0 or not new.sum() > 0:
            continue
        ends = ratio_interval(old, new) if np.count_nonzero(counts) >= FEWEST else None
        halves = [half for half in (before.model(name), after.model(name)) if half is not None]
        model = math.expm1(math.hypot(*map(math.log1p, halves))) if halves else None
        took = name == "took"
        value = before.whole_ns / after.whole_ns if took else float(old.sum() / new.sum())
        known = combined(value, {TRACE: ends, MODEL: model})
        if known is not None:
            result[name] = known
    return result


def saved(before: Blocks, after: Blocks, name: str) -> Interval | None:
    """Return by how much the machine `after` lowers the mean latency of the same requests, in ns.

    `name` is "read", "write" or "all".  The blocks are paired; the error of the model is that of
    both means.  The lower end may be below 0.  None if there are no such requests, or too few.
    """
    (old, counts), (new, _) = before.of(name), after.of(name)
    if not before.pairs_with(after) or np.count_nonzero(counts) < FEWEST:
        return None
    value = float((old - new).sum() / counts.sum())
    below, above = difference_interval(old, new, counts)
    errors = [
        half * float(sums.sum() / counts.sum())
        for half, sums in ((before.model(name), old), (after.model(name), new)) if half is not None
    ]  # fmt: skip
    # As of a gain, the precision of what is printed is the least.
    least = FINEST * abs(value)
    low, high = (max(math.hypot(each, *errors), least) for each in (value - below, above - value))
    return Interval(value, value - low, value + high, (TRACE, MODEL) if errors else (TRACE,))


def of_percentile(histograms: Floats, percent: float) -> Ends | None:
    """Return the interval of a percentile of latencies, from their histograms by block."""
    held = int(np.count_nonzero(histograms.sum(axis=1)))
    if held < FEWEST:
        return None
    return interval(
        len(histograms),
        lambda often: percentiles(often @ histograms, percent),
        QUANTILE_DRAWS,
        held,
    )


def percentiles(histograms: Floats, percent: float) -> Floats:
    """Return a percentile of each histogram, one a row."""
    reached = np.cumsum(histograms, axis=1)
    place = (reached >= percent / 100 * reached[:, -1:]).argmax(axis=1)
    return np.asarray(VALUES[place], np.float64)


def scaled(value: float, ends: Ends | None, middle: float) -> Ends | None:
    """Return an interval around a value from that around a figure of nearly the same requests."""
    if ends is None or middle <= 0:
        return None
    return value * min(ends[0] / middle, 1.0), value * max(ends[1] / middle, 1.0)


def of_share(value: float, ends: Ends | None, half: float | None) -> Interval | None:
    """Return the interval of a share, such as a hit ratio; its sources add up as differences.

    `ends` are those from the trace, `half` is half the width of the model's error.
    """
    known = [name for name, part in ((TRACE, ends), (MODEL, half)) if part is not None]
    if not known:
        return None
    below, above = (max(value - ends[0], 0.0), max(ends[1] - value, 0.0)) if ends else (0.0, 0.0)
    low, high = (math.hypot(each, half or 0.0) for each in (below, above))
    return Interval(value, max(value - low, 0.0), min(value + high, 1.0), tuple(known))
