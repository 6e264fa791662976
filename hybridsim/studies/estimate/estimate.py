"""Replay the minutes of a thinned capture that are kept in full; add them up to all of it.

Each of these minutes runs on the disks alone, and with each cache in the state that the sample
says (contents.py).  Weights (minutes.py) add them up to the means and percentiles of the whole
capture, from an empty cache at its start.  Errors are of 95 % and have two sources:

    minutes    the typical minutes are drawn again with replacement, and weighted anew
    contents   the sample's hits have an error: the minutes run once more with as many hits less

If the weighted minutes still miss a total that is known, such as the bytes, because a kind of load
is not among them, half of that share is added, as to the hits of a sample (page_sampling.py).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.answers.intervals import Interval
from hybridsim.answers.metrics import Counters, Kind
from hybridsim.answers.outcome import Outcome
from hybridsim.answers.requirements import COMPARED, Checked, Requirement, check_answerable
from hybridsim.answers.sampling import student_reach
from hybridsim.caches.page.preload import COLD_START, WarmStart
from hybridsim.foundation.arrays import distinct
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.histogram import BINS, VALUES
from hybridsim.requests.pages import Ids, accesses
from hybridsim.requests.rows import UNKNOWN, Requests, no_requests
from hybridsim.scenario import Cache as Table
from hybridsim.scenario import Scenario, building
from hybridsim.studies.batches import batches
from hybridsim.studies.candidates import is_specified
from hybridsim.studies.estimate.contents import Contents, accesses_of
from hybridsim.studies.estimate.minutes import (
    Floats,
    Minute,
    Minutes,
    apart,
    capture_of,
    latest,
)
from hybridsim.studies.hits import PARAMETERS, Cache
from hybridsim.studies.machine_run import Pump
from hybridsim.studies.page_sampling import IMBALANCE, Sampled, check_sampled, hits_of_sample
from hybridsim.studies.runs import Progress, Report
from hybridsim.traces.thinned.thinner import MINUTE_NS, Stretch
from hybridsim.traces.trace import Trace

RESAMPLES = 400
SAMPLES = 100  # of the counters of a minute
OVERLOADED = 0.5  # share of the minutes in which the disks alone do not keep up: then think times
POLICIES = {"admission": "always", "replacement": "lru"}  # unless specified
MODES = ("write-through",)
PAGES_AT_ONCE = 1 << 24  # of caches that are replayed at the same time: they bound memory
DAY_NS = 86_400 * 10**9
OF_WEAR = ("dwpd", "years")
SOURCES = ("minutes", "contents")
UNKNOWN_OF_WEEKS = (
    "a thinned capture has means, percentiles, hit, busy, dwpd and years of all of it"
)


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
        outcome = Outcome(pump.collector, Counters(pump.counters()), is_open)
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


@dataclass(frozen=True)
class Hour:
    """One hour of the capture that has a minute in full: means of reads and writes."""

    begin_ns: int
    requests: int
    alone_ns: float
    cached_ns: float
    hit_ratio: float  # of page accesses, of the sample


@dataclass(frozen=True)
class Estimate:
    """The figures of one cache for the whole capture."""

    scenario: Scenario
    pages: int
    alone: dict[str, Figure]
    cached: dict[str, Figure]
    gain: Figure  # mean latency without the cache / with it
    ssd_bytes_per_day: Figure
    hours: list[Hour]
    late: tuple[float, float]  # share of the minutes in which the disks alone, or those with the
    # cache, do not keep up
    mode: str
    minutes: tuple[int, int]  # replayed: typical ones, worst ones
    require: Sequence[Requirement]

    @property
    def cache_bytes(self) -> int:
        """Size of the cache."""
        return self.pages * self.scenario.cache.page_bytes

    @property
    def worst(self) -> Hour:
        """The hour in which requests wait most with the cache."""
        return max(self.hours, key=lambda each: each.cached_ns * each.requests)

    @cached_property
    def required(self) -> list[Checked]:
        """The requirements, each with the value that the cache reaches."""
        found = []
        for each in self.require:
            figure = self._worn(each.measure) if each.measure in OF_WEAR else self.cached[each.text]
            if figure is None:
                found.append(Checked(each, None, False, "the SSD's capacity or rating is unknown"))
                continue
            met = COMPARED[each.compared](figure.value, each.bound)
            interval = Interval(figure.value, figure.low, figure.high, SOURCES)
            found.append(Checked(each, figure.value, met, "", interval))
        return found

    def _worn(self, measure: str) -> Figure | None:
        """Return the drive writes a day, or the years of rated life; None if they are unknown."""
        cache, day = self.scenario.cache, self.ssd_bytes_per_day
        if measure == "dwpd":
            whole = cache.members * cache.drive.capacity_bytes
            return Figure(day.value / whole, day.error / whole) if whole else None
        if not cache.endurance_bytes or not day.value:
            return None
        years = cache.endurance_bytes / day.value / 365.25
        return Figure(years, years * day.error / day.value)


def asked(trace: Trace, require: Sequence[Requirement]) -> dict[str, Of]:
    """Return the figures that requirements ask for; raise UsageError for one that is unknown."""
    requests = capture_of(trace).total.of("requests")
    check_answerable(require, int(requests[0]), int(requests[1] + requests[4]))
    found: dict[str, Of] = {}
    for each in require:
        write = int(each.direction == "writes")
        if each.measure in OF_WEAR:
            continue
        if each.phase == "cold" or each.measure in ("warmup", "max", "iops"):
            raise UsageError(f"{each.text!r}: {UNKNOWN_OF_WEEKS}")
        if each.measure in ("hit", "busy"):
            found[each.text] = {"hit": hit_ratio, "busy": busy}[each.measure]
        elif each.measure == "mean":
            found[each.text] = mean(write)
        else:
            found[each.text] = percentile(float(each.measure[1:]), write)
    return found


def suited(scenario: Scenario, trace: Trace) -> Scenario:
    """Return a scenario whose cache a sample can stand for; raise UsageError if there is none.

    Unless specified the policies are POLICIES.  Sequential runs cannot be seen in a sample, so the
    cache takes them in.
    """
    capture, cache = capture_of(trace), scenario.cache
    if not isinstance(cache, Table) or cache.kind != "page":
        raise UsageError(
            f"what {cache.kind} holds after weeks is unknown from a sample: use --cache page, "
            f"or replay a minute: {capture.choices}"
        )
    chosen: dict[str, Any] = {
        name: value for name, value in POLICIES.items()
        if not is_specified(scenario, ("cache", name))
    }  # fmt: skip
    if not is_specified(scenario, ("cache", "sequential_cutoff")):
        chosen["sequential_cutoff"] = "0B"
    scenario = scenario.with_options(**chosen)
    cache = table_of(scenario)
    check_sampled(capture, cache.admission, cache.replacement)
    refused = {
        "cache.mode": cache.mode not in MODES,
        "cache.sequential_cutoff": cache.sequential_cutoff_bytes > 0,
        "cache.write_budget": cache.write_budget is not None,
    }
    for key, is_refused in refused.items():
        if is_refused:
            raise UsageError(
                f"{key}: a sample of the regions does not say what such a cache holds; only "
                "write-through caches without a sequential cutoff and a write budget can be "
                f"answered for the whole capture.  For a minute of it: {capture.choices}"
            )
    return scenario


def estimate(
    trace: Trace,
    scenarios: Sequence[Scenario],
    report: Report | None = None,
    require: Sequence[Requirement] = (),
) -> list[Estimate]:
    """Return the figures of caches that differ only in size and policies, for the whole capture.

    They include those that requirements ask for.  Raises UsageError for caches that a sample cannot
    stand for, for a requirement that it does not answer, or a capture that is too short.
    """
    return Job(trace, scenarios, report, require).estimates()


@contextmanager
def reading(trace: Trace, report: Report | None) -> Iterator[None]:
    """Report the progress of a pass over the files of a capture."""

    def on_read(read_bytes: int, of_bytes: int) -> None:
        if report:
            report(Progress(0, 0, 0, read_bytes, of_bytes))

    with trace.reading(on_read):
        yield


def table_of(scenario: Scenario) -> Table:
    """Return the page cache of a suited scenario."""
    assert isinstance(scenario.cache, Table)
    return scenario.cache


class Job:
    """The replays of the minutes on all machines."""

    def __init__(
        self,
        trace: Trace,
        scenarios: Sequence[Scenario],
        report: Report | None,
        require: Sequence[Requirement],
    ) -> None:
        """Choose the minutes, and run the sample through the caches."""
        self.trace, self.report, self.require = trace, report, require
        self.figures = FIGURES | asked(trace, require)
        self.scenarios = [suited(each, trace) for each in scenarios]
        self.tables = list(map(table_of, self.scenarios))
        (self.page_bytes,) = {each.page_bytes for each in self.tables}
        self.minutes = Minutes.of(trace)
        rate = capture_of(trace).rate
        ids, self.end_bytes = Ids(), capture_of(trace).end_bytes  # the end of its volume
        with reading(trace, report):
            for part in accesses(Sampled(trace), self.page_bytes):
                ids.of(part.numbers)
                last = int(part.numbers.max())
                self.end_bytes = max(self.end_bytes, (last + 1) * self.page_bytes)
        touched_bytes = round(ids.count / rate) * self.page_bytes  # estimated
        self.pages = [each.pages(touched_bytes) for each in self.tables]
        self.errors = self._errors()
        caches = [
            Cache(each.admission, each.replacement, max(round(size * rate), 1), self.page_bytes, 0,
                  each.policy_parameters)
            for each, size in zip(self.tables, self.pages)
        ]  # fmt: skip
        wanted = {one.begin_ns // MINUTE_NS for one in self.minutes.stretches}
        self.contents = Contents(trace, self.page_bytes, wanted, caches)
        self._done = 0  # requests that were replayed, on all machines

    def _errors(self) -> list[float]:
        """Return the error (95 %) of the sample's hit ratio of each cache."""
        found: dict[tuple[str, str, int], float] = {}
        policies = [(each.admission, each.replacement) for each in self.tables]
        for one in dict.fromkeys(policies):
            sizes = [size for size, other in zip(self.pages, policies) if other == one]
            known = self.tables[policies.index(one)].policy_parameters
            counts = hits_of_sample(
                self.trace, [f"{size} pages" for size in sizes], [one[1]], [one[0]],
                self.page_bytes, {}, {key: known[key] for key in PARAMETERS if key in known},
            )  # fmt: skip
            found |= {(*one, size): each.page_hit_error for size, each in zip(sizes, counts)}
        return [found[(*one, size)] for one, size in zip(policies, self.pages)]

    def estimates(self) -> list[Estimate]:
        """Replay the minutes in the scenario's mode, and weight them.

        "auto" is "think" if the disks alone do not keep up in most minutes and waits are known.
        """
        mode: str = self.scenarios[0].replay.mode
        weighings = [
            Weighing.of(self.minutes, self.contents.hits(which, self.minutes.numbers))
            for which in range(len(self.scenarios))
        ]
        alone, has_waits = self._alone("open" if mode == "auto" else mode)
        if mode == "auto":
            late = min(each.share(alone.is_late) for each in weighings)
            mode = "think" if has_waits and late > OVERLOADED else "open"
            if mode == "think":
                self._done = 0
                alone, _ = self._alone(mode)
        cached, lower = self._cached(mode)
        return [
            self._estimate(which, mode, weighing, alone, cached[which], lower[which])
            for which, weighing in enumerate(weighings)
        ]

    def _replayed(self, runs: int) -> Iterator[tuple[int, Stretch, Requests, Requests]]:
        """Yield the place of each minute, its stretch, and its requests; report after each.

        The last ones are of the minutes before it.
        """
        before = no_requests()
        at_of = {one.begin_ns: at for at, one in enumerate(self.minutes.stretches)}
        for stretch, rows in self.trace.in_full(at_of):
            yield at_of[stretch.begin_ns], stretch, rows, before
            before = latest(before, rows)
            self._done += runs * rows.rows
            if self.report:
                of = self._machines * self.minutes.replayed
                self.report(Progress(self._done, max(of, self._done), stretch.begin_ns))

    @property
    def _machines(self) -> int:
        """Return how many replays of a minute there are."""
        return 1 + len(self.errors) + sum(error > 0 for error in self.errors)

    def _alone(self, mode: str) -> tuple[Ran, bool]:
        """Replay the minutes on the disks alone; return also whether completions are known."""
        alone, has_waits = Ran(len(self.minutes.stretches)), False
        for at, _, rows, before in self._replayed(1):
            has_waits |= bool((rows.complete_ns != UNKNOWN).any())
            minute = self._minute(rows, before, mode)
            self._run(at, minute, mode, alone, self.scenarios[0], 0, COLD_START)
        return alone, has_waits

    def _cached(self, mode: str) -> tuple[list[Ran], list[Ran | None]]:
        """Replay the minutes with each cache, as the sample says and with fewer hits."""
        number = len(self.minutes.stretches)
        cached = [Ran(number) for _ in self.scenarios]
        lower = [Ran(number) if error > 0 else None for error in self.errors]
        with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
            for at, stretch, rows, before in self._replayed(self._machines - 1):
                numbers = distinct(accesses_of(rows, self.page_bytes).numbers)
                minute = self._minute(rows, apart(before, numbers, self.page_bytes), mode)
                runs: list[Future[None]] = []
                for which, cache in enumerate(self.tables):
                    # By how much the shares of cached pages may be too high: all errors are theirs.
                    off = min(self.errors[which] / max(self.contents.first_share(), 1e-9), 1.0)
                    for ran, fewer in ((cached[which], 0.0), (lower[which], off)):
                        if ran is None:
                            continue
                        filled = self.contents.filled(
                            which, self.pages[which], minute.rows, stretch.begin_ns // MINUTE_NS,
                            self.end_bytes, cache.page_bytes // cache.granule_bytes, fewer,
                            minute.led_by,
                        )  # fmt: skip
                        runs.append(
                            threads.submit(
                                self._run, at, minute, mode, ran, self.scenarios[which], *filled
                            )
                        )
                        if filled.pages > PAGES_AT_ONCE // 2:
                            runs[-1].result()
                for each in runs:
                    each.result()
        return cached, lower

    def _minute(self, rows: Requests, before: Requests, mode: str) -> Minute:
        """Return the requests that are run; they come at times of their own in mode open only."""
        if mode != "open":
            before = no_requests()
        return Minute(rows, before, self.scenarios[0].replay.speed, self.trace.name)

    def _run(
        self, at: int, minute: Minute, mode: str, ran: Ran, scenario: Scenario, pages: int,
        warm: WarmStart,
    ) -> None:  # fmt: skip
        """Replay a minute on a machine."""
        machine = building.machine(scenario, mode, self.end_bytes, pages, warm)
        speed = scenario.replay.speed
        pump = Pump(machine, max(int(MINUTE_NS / speed) // SAMPLES, 1))
        for batch in batches(minute, speed, mode == "think"):
            pump.take(batch)
        requests = int(self.minutes.requests[self.minutes.at[at]])
        ran.put(at, pump, mode == "open", minute.begin_ns, requests)

    def _estimate(
        self, which: int, mode: str, weighing: Weighing, alone: Ran, cached: Ran,
        lower: Ran | None,
    ) -> Estimate:  # fmt: skip
        written = weighing.figure(
            lambda ran, rows: np.asarray(rows @ ran.ssd_bytes), cached, None, lower
        )
        first, last = int(self.minutes.numbers[0]), int(self.minutes.numbers[-1])
        span_ns = (last - first + 1) * MINUTE_NS
        return Estimate(
            self.scenarios[which],
            self.pages[which],
            {name: weighing.figure(of, alone) for name, of in self.figures.items()},
            {name: weighing.figure(of, cached, None, lower) for name, of in self.figures.items()},
            weighing.figure(FIGURES["mean_ns"], cached, alone, lower),
            Figure(written.value * DAY_NS / span_ns, written.error * DAY_NS / span_ns),
            self._hours(which, alone, cached),
            (weighing.share(alone.is_late), weighing.share(cached.is_late)),
            mode,
            (int((~self.minutes.is_worst).sum()), int(self.minutes.is_worst.sum())),
            self.require,
        )

    def _hours(self, which: int, alone: Ran, cached: Ran) -> list[Hour]:
        """Return the means of each hour: its worst minute, and a typical one for all others."""
        minutes, found = self.minutes, []
        hits = self.contents.hits(which, minutes.numbers)
        hour_of = minutes.numbers // 60
        of_stretch = hour_of[minutes.at]
        for hour in np.unique(of_stretch).tolist():
            mine = np.flatnonzero(of_stretch == hour)
            requests = minutes.requests[minutes.at[mine]].astype(np.float64)
            whole = int(minutes.requests[hour_of == hour].sum())
            typical = ~minutes.is_worst[mine]
            stands_for = requests.copy()
            rest = whole - requests.sum()
            if typical.any():
                stands_for[typical] += rest / typical.sum()
            else:
                stands_for *= whole / max(requests.sum(), 1)
            before, after = (float(stands_for @ ran.mean_ns(mine) / max(stands_for.sum(), 1))
                             for ran in (alone, cached))  # fmt: skip
            at = int(minutes.at[mine[0]])
            found.append(Hour(hour * 60 * MINUTE_NS, whole, before, after, float(hits[at])))
        return found
