"""The minutes of a thinned capture: which are kept in full, and what each of these stands for.

Two kinds are kept.  The worst minutes of their hours stand for themselves.  A typical minute is
drawn at random from each hour; together they stand for all minutes that are not among the worst
ones.  Their weights are calibrated, so that the weighted minutes have the totals that the capture
counted of all its minutes: minutes, requests, writes, bytes, load squared, and what the sample hit
(generalized regression: J.-C. Deville and C.-E. Särndal, "Calibration estimators in survey
sampling", Journal of the American Statistical Association 87 (1992)).

A disk's own buffers are not empty when a minute begins.  What passed before it is not in the
capture; instead, the last requests of the minutes in full before it run first and are not counted.
They are of the same load, at most GAP_NS apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.answers.metrics import BASE_NS, Kind
from hybridsim.answers.outcome import Outcome
from hybridsim.answers.sampling import student_reach
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import TraceError
from hybridsim.foundation.histogram import BINS, VALUES
from hybridsim.foundation.wording import counted
from hybridsim.requests.rows import UNKNOWN, Requests, joined
from hybridsim.studies.batches import Sent
from hybridsim.studies.page_sampling import IMBALANCE
from hybridsim.studies.runs import Pump
from hybridsim.traces.formats.ordering import from_origin
from hybridsim.traces.formats.thinned import Thinned
from hybridsim.traces.thinned.layout import ROWS_MAX, Role
from hybridsim.traces.thinned.thinner import MINUTE_NS, Stretch
from hybridsim.traces.trace import Trace

Floats = NDArray[np.float64]

TYPICAL_MIN = 18  # drawn minutes: fewer do not show how much minutes differ
TYPICAL_MAX, WORST_MAX = 168, 84  # minutes that are replayed
TYPICAL_REQUESTS, WORST_REQUESTS = 2_000_000, 1_000_000  # of all these minutes, on one machine
PER_TOTAL = 6  # drawn minutes for each total that they are calibrated to
WEIGHT_LEAST, WEIGHT_MOST = 0.1, 10.0  # of the uncalibrated weight
MINUTES_AN_HOUR = 60
RESAMPLES = 400
LED_BY = 256  # requests before a minute: more than an array's disks have segments
GAP_NS = 10**9 // 4


def capture_of(trace: Trace) -> Thinned:
    """Return the capture whose sample a trace is."""
    assert trace.sample is not None
    return trace.sample


@dataclass(frozen=True)
class Minutes:
    """All minutes of a capture that have requests, in order, and those that are replayed."""

    numbers: Ints  # from the origin of the capture
    requests: Ints  # of all kinds
    writes: Ints
    bytes: Ints
    waited_ns: Ints  # sum of the recorded latencies; 0: unknown
    stretches: list[Stretch]  # in order: those that are replayed
    at: Ints  # their places in the columns
    is_worst: NDArray[np.bool_]  # of the stretches: it stands for itself

    @classmethod
    def of(cls, trace: Trace) -> Minutes:
        """Read the counters of a capture, and choose the minutes to be replayed.

        Raises TraceError for a capture with too few typical minutes for a stated error.
        """
        rows = []
        for each in trace.counts():
            if each.requests:
                by_op = each.of("requests")
                rows.append(
                    (
                        each.begin_ns // MINUTE_NS,
                        each.requests,
                        by_op[Op.WRITE] + by_op[Op.WRITE_ZEROES],
                        each.of("bytes").sum(),
                        each.of("latency_sum_ns").sum(),
                    )
                )
        numbers, requests, writes, moved, waited = np.array(rows, np.int64).T
        capture = capture_of(trace)
        known = {number: at for at, number in enumerate(numbers.tolist())}
        kept = [one for one in capture.stretches.values() if one.begin_ns // MINUTE_NS in known]

        def first(ranked: list[Stretch], most: int, least: int, within: int) -> list[Stretch]:
            """Return the first minutes of a ranking that can be replayed within limits."""
            places = [known[one.begin_ns // MINUTE_NS] for one in ranked]
            until = np.cumsum(np.minimum(requests[places], ROWS_MAX))
            number = int(np.searchsorted(until, within, "right"))
            return ranked[: min(max(number, least), most)]

        worst = sorted((one for one in kept if one.roles & Role.WORST), key=lambda one: -one.score)
        worst = first(worst, WORST_MAX, 1, WORST_REQUESTS)
        certain = {one.begin_ns for one in worst}
        others = [one for one in kept if one.roles & Role.TYPICAL and one.begin_ns not in certain]
        others.sort(key=lambda one: one.rank)
        drawn = first(others, TYPICAL_MAX, TYPICAL_MIN, TYPICAL_REQUESTS)
        if len(drawn) < TYPICAL_MIN:
            raise TraceError(
                f"{trace.name} has {counted(len(drawn), 'typical minute')} in full, one an hour; "
                f"an error of latencies needs {TYPICAL_MIN}: record for longer, or with a larger "
                f"--max, or replay single minutes: {capture.choices}"
            )
        stretches = sorted([*worst, *drawn], key=lambda one: one.begin_ns)
        return cls(
            numbers, requests, writes, moved, waited, stretches,
            np.array([known[one.begin_ns // MINUTE_NS] for one in stretches]),
            np.array([one.begin_ns in certain for one in stretches]),
        )  # fmt: skip

    @property
    def replayed(self) -> int:
        """Return the requests of these minutes that are kept."""
        return int(np.minimum(self.requests[self.at], ROWS_MAX).sum())

    def totals(self, hits: Floats) -> Floats:
        """Return the columns whose sums are known of all minutes, the most important first.

        `hits` is the share of page accesses that hit, as the sample says, of each minute.
        """
        load = self.requests / max(float(self.requests.mean()), 1.0)
        writes = self.writes / max(float(self.requests.mean()), 1.0)
        size = self.bytes / max(float(self.bytes.mean()), 1.0)
        columns = [np.ones(len(load)), load, size, load * hits, load**2, writes]
        if self.waited_ns.any():
            columns.insert(2, self.waited_ns / float(self.waited_ns.mean()))
        return np.array(columns).T

    def used(self, totals: Floats) -> int:
        """Return how many of these totals the weights are calibrated to."""
        drawn = int((~self.is_worst).sum())
        return int(min(max(drawn // PER_TOTAL, 2), totals.shape[1]))

    def imbalance(self, totals: Floats, weights: Floats) -> float:
        """Return by which share the weighted minutes miss one of the totals, at most."""
        wanted = totals.sum(axis=0)
        known = wanted > 0
        return float(np.max(np.abs(weights @ totals[self.at][:, known] / wanted[known] - 1)))

    def weights(self, totals: Floats, times: Ints | None = None) -> Floats:
        """Return what each stretch stands for, in minutes.

        `times`: how often each stretch was drawn; by default once, and another number in a
        resample.
        """
        totals = totals[:, : self.used(totals)]
        drawn = ~self.is_worst
        number = drawn.astype(np.int64) if times is None else np.where(drawn, times, 0)
        rest = np.ones(len(self.numbers), bool)
        rest[self.at[self.is_worst]] = False
        wanted = totals[rest].sum(axis=0)
        # The minutes of the hour of each stretch that are not among the worst ones.
        hours = self.numbers[rest] // MINUTES_AN_HOUR
        mine = self.numbers[self.at] // MINUTES_AN_HOUR
        of_hour = np.searchsorted(hours, mine, "right") - np.searchsorted(hours, mine)
        begin = number * of_hour * 1.0
        if begin.sum():
            begin *= rest.sum() / begin.sum()
        weight = calibrated(begin, totals[self.at], wanted)
        return np.where(self.is_worst, 1.0, weight)


def calibrated(begin: Floats, columns: Floats, wanted: Floats) -> Floats:
    """Return weights near `begin` with which the rows of `columns` sum to `wanted`.

    Those that would be beyond WEIGHT_LEAST and WEIGHT_MOST of `begin` stay there.
    """
    weight = begin.copy()
    free = begin > 0
    for _ in range(4):
        missing = wanted - weight @ columns
        scaled = columns[free] * begin[free, None]
        step, *_rest = np.linalg.lstsq(columns[free].T @ scaled, missing, rcond=1e-9)
        weight[free] += scaled @ step
        limited = np.clip(weight, WEIGHT_LEAST * begin, WEIGHT_MOST * begin)
        stuck = limited != weight
        weight = limited
        free &= ~stuck
        if not stuck.any() or free.sum() <= columns.shape[1]:
            break
    return weight


@dataclass(frozen=True)
class Figure:
    """A figure of the whole capture, and its error (95 %)."""

    value: float
    error: float

    @property
    def low(self) -> float:
        """The lower end of the interval, at least 0."""
        return max(self.value - self.error, 0.0)

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self.value + self.error

    def to_dict(self) -> dict[str, float]:
        """Return the fields of the JSON."""
        return {"value": self.value, "low": self.low, "high": self.high}


class Ran:
    """What a machine did in each minute, scaled to all requests of the minute."""

    def __init__(self, minutes: int) -> None:
        """Create a table of zeros."""
        self.count = np.zeros((minutes, 2))  # reads, writes
        self.total_ns = np.zeros((minutes, 2))
        self.bins = np.zeros((minutes, 2, BINS), np.float32)
        self.hits = np.zeros(minutes)  # reads
        self.ssd_bytes = np.zeros(minutes)  # written
        self.busy = np.zeros(minutes)  # share of the time, of the disks
        self.is_late = np.zeros(minutes, bool)  # it did not keep up

    def put(self, at: int, pump: Pump, is_open: bool, begin_ns: int, requests: int) -> None:
        """Add the run of a minute, from `begin_ns` on; it has so many requests in all."""
        outcome = Outcome(pump.collector, pump.counters, is_open)
        end_ns = outcome.end_ns
        phase = outcome.phase(begin_ns, end_ns)
        last_fifth = outcome.phase(end_ns - (end_ns - begin_ns) // 5, end_ns)
        figures = phase.figures
        times = requests / max(figures.requests, 1)
        for write, each in enumerate((figures.reads, figures.writes)):
            self.count[at, write] = each.count * times
            self.total_ns[at, write] = each.total_ns * times
            self.bins[at, write] = each.bins * times
        self.hits[at] = figures.latency[Kind.HIT].count * times
        self.ssd_bytes[at] = phase.counters.get("fast_bytes_written", 0) * times
        self.busy[at] = phase.utilisation or 0.0
        self.is_late[at] = phase.saturated or last_fifth.saturated

    def mean_ns(self, at: NDArray[Any] | int) -> Any:
        """Return the mean of all reads and writes of minutes."""
        return self.total_ns[at].sum(axis=-1) / np.maximum(self.count[at].sum(axis=-1), 1)


Of = Callable[[Ran, Floats], Floats]  # a figure, of each row of weights


def mean(*directions: int) -> Of:
    """Return the mean latency of reads (0), writes (1) or both."""

    def of(ran: Ran, weights: Floats) -> Floats:
        columns = list(directions)
        count = weights @ ran.count[:, columns].sum(axis=1)
        return np.asarray(weights @ ran.total_ns[:, columns].sum(axis=1) / np.maximum(count, 1e-9))

    return of


def percentile(percent: float, direction: int) -> Of:
    """Return a percentile of the latencies of reads (0) or writes (1)."""

    def of(ran: Ran, weights: Floats) -> Floats:
        until = np.cumsum(weights @ ran.bins[:, direction], axis=1)
        wanted = percent / 100 * until[:, -1:]
        place = np.minimum((until < wanted).sum(axis=1), BINS - 1)
        return np.asarray(VALUES[place], np.float64)

    return of


def hit_ratio(ran: Ran, weights: Floats) -> Floats:
    """Return the share of reads that are hits."""
    return np.asarray(weights @ ran.hits / np.maximum(weights @ ran.count[:, 0], 1e-9))


def busy(ran: Ran, weights: Floats) -> Floats:
    """Return the share of the time that the disks are busy, in minutes with requests."""
    return np.asarray(weights @ ran.busy / weights.sum(axis=1))


FIGURES: dict[str, Of] = {
    "read_mean_ns": mean(0), "read_p50_ns": percentile(50, 0), "read_p99_ns": percentile(99, 0),
    "write_mean_ns": mean(1), "write_p99_ns": percentile(99, 1),
    "mean_ns": mean(0, 1), "hit_ratio": hit_ratio, "disk_busy": busy,
}  # fmt: skip


@dataclass(frozen=True)
class Weighing:
    """The weights of the minutes, and those of resamples of them."""

    weights: Floats  # one row
    resamples: Floats
    widening: float  # of the scatter of resamples, to an error of 95 %
    missed: float  # share of a figure that is added to its error

    @classmethod
    def of(cls, minutes: Minutes, hits: Floats) -> Weighing:
        """Calibrate the weights, and those of RESAMPLES."""
        totals = minutes.totals(hits)
        weights = minutes.weights(totals)
        drawn = np.flatnonzero(~minutes.is_worst)
        random = np.random.default_rng(len(drawn))
        rows = []
        for _ in range(RESAMPLES):
            times = np.bincount(random.choice(drawn, len(drawn)), minlength=len(weights))
            rows.append(minutes.weights(totals, times))
        free = len(drawn) - minutes.used(totals)
        return cls(
            weights[None], np.array(rows), student_reach(free, 0.95) * math.sqrt(len(drawn) / free),
            IMBALANCE * minutes.imbalance(totals, weights),
        )  # fmt: skip

    def share(self, which: NDArray[np.bool_]) -> float:
        """Return the share of the time for which some of the minutes stand."""
        return float(self.weights[0] @ which / self.weights.sum())

    def figure(
        self, of: Of, ran: Ran, other: Ran | None = None, lower: Ran | None = None
    ) -> Figure:
        """Return a figure of a machine, or its ratio to that of another one, with its error.

        `lower` is the same machine with fewer hits.
        """

        def values(machine: Ran, weights: Floats) -> Floats:
            result = of(machine, weights)
            return result if other is None else of(other, weights) / np.maximum(result, 1e-9)

        value = float(values(ran, self.weights)[0])
        scatter = float(np.std(values(ran, self.resamples), ddof=1)) * self.widening
        state = abs(float(values(lower, self.weights)[0]) - value) if lower else 0.0
        return Figure(value, math.hypot(scatter, state, self.missed * value))


class Minute(Sent):
    """Requests that are run, as a trace; the minute itself begins at `begin_ns` of the machine."""

    def __init__(self, rows: Requests, before: Requests, speed: float, name: str) -> None:
        """Put `before` in front of a minute; it may be empty."""
        self.begin_ns, self.led_by = 0, before.rows
        first_ns = int(rows.arrival_ns[0])
        if before.rows:
            passed = np.cumsum(np.clip(np.diff(before.arrival_ns, prepend=0), 0, GAP_NS))
            passed -= passed[0]
            led_ns = int(passed[-1]) + GAP_NS
            # Figures start at a multiple of a bin, whose width is doubled as often as needed.
            self.begin_ns = BASE_NS
            while self.begin_ns * speed < led_ns:
                self.begin_ns *= 2
            lead_ns = round(self.begin_ns * speed)
            passed[1:] += lead_ns - led_ns
            before, rows = before._replace(arrival_ns=passed), from_origin(rows, first_ns - lead_ns)
            super().__init__(name, joined([before, rows]))
        else:
            super().__init__(name, from_origin(rows, first_ns))


def latest(before: Requests, rows: Requests) -> Requests:
    """Return the last LED_BY reads and writes of both, without their latencies."""
    both = joined([before, rows.between(max(rows.rows - LED_BY, 0), rows.rows)])
    moves = ((both.op == Op.READ) | (both.op == Op.WRITE)) & (both.length_bytes > 0)
    kept = Requests._make(column[moves][-LED_BY:] for column in both)
    unknown = np.full(kept.rows, UNKNOWN)
    return kept._replace(dispatch_ns=unknown, complete_ns=unknown)


def apart(before: Requests, numbers: Ints, page_bytes: int) -> Requests:
    """Return the requests that access none of these pages, which are in order.

    Before a minute with a cache: they would change what it holds of the minute's pages.
    """
    first = before.offset_bytes // page_bytes
    last = (before.offset_bytes + before.length_bytes - 1) // page_bytes
    is_apart = np.searchsorted(numbers, first) == np.searchsorted(numbers, last, "right")
    return Requests._make(column[is_apart] for column in before)
