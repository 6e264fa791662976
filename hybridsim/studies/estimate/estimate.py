"""Replay the minutes of a thinned capture that are kept in full; add them up to all of it.

Each of these minutes runs on the disks alone, and with each cache in the state that the sample
says (contents.py).  Weights (minutes.py) add them up to the means and percentiles of the whole
capture, from an empty cache at its start.  Errors are of 95 % and have two sources:

    minutes    the typical minutes are drawn again with replacement, and weighted anew
    contents   the sample's hits have an error: the minutes run once more with as many hits less

If the weighted minutes still miss a total that is known, such as the bytes, because a kind of load
is not among them, half of that share is added, as to the hits of a sample (page_sampling.py).

The questions that a capture answers as a whole so: replay, size, advise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from hybridsim.answers.forecast import NO, UNSURE, WORTH_IT, YES
from hybridsim.answers.intervals import Interval
from hybridsim.answers.requirements import Checked, Requirement, check_answerable
from hybridsim.caches.page.fills import COLD_START, WarmStart
from hybridsim.foundation.arrays import distinct
from hybridsim.foundation.documents import in_json
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import format_size
from hybridsim.requests.pages import Ids, accesses
from hybridsim.requests.rows import UNKNOWN, Requests, no_requests
from hybridsim.scenario import Cache as Table
from hybridsim.scenario import Scenario, building
from hybridsim.studies.batches import batches
from hybridsim.studies.candidates import SIZE, is_specified
from hybridsim.studies.estimate.contents import Contents, accesses_of
from hybridsim.studies.estimate.minutes import (
    FIGURES,
    Figure,
    Minute,
    Minutes,
    Of,
    Ran,
    Weighing,
    apart,
    busy,
    capture_of,
    hit_ratio,
    latest,
    mean,
    percentile,
)
from hybridsim.studies.hits import PARAMETERS, Cache
from hybridsim.studies.mrc import Curve, miss_ratio_curve
from hybridsim.studies.page_sampling import SMALL, Sampled, check_sampled, hits_of_sample
from hybridsim.studies.runs import Progress, Pump, Report, reading
from hybridsim.studies.week import clock
from hybridsim.traces.formats.thinned import Thinned
from hybridsim.traces.thinned.thinner import MINUTE_NS, Stretch
from hybridsim.traces.trace import Trace

SCHEMA = "hybridsim.estimate/1"
FALLS = (0.3, 0.6, 0.8, 0.9, 0.97)  # of what the miss-ratio curve falls by: sizes to try
SIZES_OF_ADVICE = 3  # of these, the largest falls
AS_GOOD = 0.98  # of the best gain: the smaller cache is taken
SAMPLES = 100  # of the counters of a minute
OVERLOADED = 0.5  # share of the minutes in which the disks alone do not keep up: then think times
# Unless specified; sequential runs cannot be seen in a sample, so the cache takes them in.
DEFAULTS = {"admission": "always", "replacement": "lru", "sequential_cutoff": "0B"}
PAGES_AT_ONCE = 1 << 24  # of caches that are replayed at the same time: they bound memory
DAY_NS = 86_400 * 10**9
OF_WEAR = ("dwpd", "years")
SOURCES = ("minutes", "contents")
UNKNOWN_OF_WEEKS = (
    "a thinned capture has means, percentiles, hit, busy, dwpd and years of all of it"
)


@dataclass(frozen=True)
class Hour:
    """One hour of the capture that has a minute in full: means of reads and writes."""

    begin_ns: int
    requests: int
    alone_ns: float
    cached_ns: float
    hit_ratio: float  # of page accesses, of the sample
    weekday: int | None  # 0: Monday; None: the capture has no clock
    hour: int  # of the day, or from the start of a capture without a clock


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
            value, interval, why = None, None, "the SSD's capacity or rating is unknown"
            if figure is not None:
                value, why = figure.value, ""
                interval = Interval(value, figure.low, figure.high, SOURCES)
            found.append(Checked(each, value, each.is_met_by(value), why, interval))
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        cache = self.scenario.cache
        return {
            "size_bytes": self.cache_bytes,
            "admission": getattr(cache, "admission", None),
            "replacement": getattr(cache, "replacement", None),
            "toml": self.scenario.to_toml(),
            "mode": self.mode,
            "typical_minutes": self.minutes[0],
            "worst_minutes": self.minutes[1],
            "alone": {name: self.alone[name] for name in FIGURES},
            "cached": {name: self.cached[name] for name in FIGURES},
            "gain": self.gain,
            "answer": worth(self.gain),
            "ssd_bytes_per_day": self.ssd_bytes_per_day,
            "late": self.late,
            "worst_hour_ns": self.worst.begin_ns,
            "hours": self.hours,
            "required": self.required,
        }

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
    """Return a scenario, with DEFAULTS, whose cache a sample can stand for.

    Raises UsageError if there is none.
    """
    capture, cache = capture_of(trace), scenario.cache
    if not isinstance(cache, Table) or cache.kind != "page":
        raise UsageError(
            f"what {cache.kind} holds after weeks is unknown from a sample: use --cache page, "
            f"or replay a minute: {capture.choices}"
        )
    chosen: dict[str, Any] = {
        name: value
        for name, value in DEFAULTS.items()
        if not is_specified(scenario, ("cache", name))
    }
    scenario = scenario.with_options(**chosen)
    cache = table_of(scenario)
    check_sampled(capture, cache.admission, cache.replacement)
    refused = {
        "cache.mode": cache.mode != "write-through",
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
    """Return the figures of caches that differ only in size, for the whole capture.

    They include those that requirements ask for.  Raises UsageError for caches that a sample cannot
    stand for, for a requirement that it does not answer, or a capture that is too short.
    """
    return Job(trace, scenarios, report, require).estimates()


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
        self.page_bytes = self.tables[0].page_bytes
        self.minutes = Minutes.of(trace)
        rate = capture_of(trace).rate
        ids = Ids()
        self.end_bytes = capture_of(trace).end_bytes  # the end of its volume
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
        self.mode: str = self.scenarios[0].replay.mode
        self._done = 0  # requests that were replayed, on all machines

    def _errors(self) -> list[float]:
        """Return the error (95 %) of the sample's hit ratio of each cache."""
        table = self.tables[0]
        known = table.policy_parameters
        counts = hits_of_sample(
            self.trace, [f"{size} pages" for size in self.pages], [table.replacement],
            [table.admission], self.page_bytes, {},
            {key: known[key] for key in PARAMETERS if key in known},
        )  # fmt: skip
        return [each.page_hit_error for each in counts]

    def estimates(self) -> list[Estimate]:
        """Replay the minutes in the scenario's mode, and weight them.

        "auto" is "think" if the disks alone do not keep up in most minutes and waits are known.
        """
        weighings = [
            Weighing.of(self.minutes, self.contents.hits(which, self.minutes.numbers))
            for which in range(len(self.scenarios))
        ]
        is_auto = self.mode == "auto"
        self.mode = "open" if is_auto else self.mode
        alone, has_waits = self._alone()
        if is_auto and has_waits:
            if min(each.share(alone.is_late) for each in weighings) > OVERLOADED:
                self.mode = "think"
                self._done = 0
                alone, _ = self._alone()
        cached, lower = self._cached()
        return [
            self._estimate(which, weighing, alone, cached[which], lower[which])
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

    def _alone(self) -> tuple[Ran, bool]:
        """Replay the minutes on the disks alone; return also whether completions are known."""
        alone, has_waits = Ran(len(self.minutes.stretches)), False
        for at, _, rows, before in self._replayed(1):
            has_waits |= bool((rows.complete_ns != UNKNOWN).any())
            minute = self._minute(rows, before)
            self._run(at, minute, alone, self.scenarios[0], 0, COLD_START)
        return alone, has_waits

    def _cached(self) -> tuple[list[Ran], list[Ran | None]]:
        """Replay the minutes with each cache, as the sample says and with fewer hits."""
        number = len(self.minutes.stretches)
        cached = [Ran(number) for _ in self.scenarios]
        lower = [Ran(number) if error > 0 else None for error in self.errors]
        with ThreadPoolExecutor(os.cpu_count() or 1) as threads:
            for at, stretch, rows, before in self._replayed(self._machines - 1):
                numbers = distinct(accesses_of(rows, self.page_bytes).numbers)
                minute = self._minute(rows, apart(before, numbers, self.page_bytes))
                runs: list[Future[None]] = []
                for which, cache in enumerate(self.tables):
                    # By how much the shares of cached pages may be too high: all errors are theirs.
                    off = min(self.errors[which] / max(self.contents.first_share, 1e-9), 1.0)
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
                                self._run, at, minute, ran, self.scenarios[which], *filled
                            )
                        )
                        if filled[0] > PAGES_AT_ONCE // 2:
                            runs[-1].result()
                for each in runs:
                    each.result()
        return cached, lower

    def _minute(self, rows: Requests, before: Requests) -> Minute:
        """Return the requests that are run; they come at times of their own in mode open only."""
        if self.mode != "open":
            before = no_requests()
        return Minute(rows, before, self.scenarios[0].replay.speed, self.trace.name)

    def _run(
        self, at: int, minute: Minute, ran: Ran, scenario: Scenario, pages: int,
        warm: WarmStart,
    ) -> None:  # fmt: skip
        """Replay a minute on a machine."""
        machine = building.machine(scenario, self.mode, self.end_bytes, pages, warm)
        speed = scenario.replay.speed
        pump = Pump(machine, max(int(MINUTE_NS / speed) // SAMPLES, 1))
        for batch in batches(minute, speed, self.mode == "think"):
            pump.take(batch)
        requests = int(self.minutes.requests[self.minutes.at[at]])
        ran.put(at, pump, self.mode == "open", minute.begin_ns, requests)

    def _estimate(
        self, which: int, weighing: Weighing, alone: Ran, cached: Ran,
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
            self.mode,
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
            begin_ns = hour * 60 * MINUTE_NS
            place = clock(capture_of(self.trace), begin_ns)
            found.append(Hour(begin_ns, whole, before, after, float(hits[at]), *place))
        return found


# Questions.


@dataclass(frozen=True)
class Answer:
    """The figures of some caches for a whole capture, and which one answers the question."""

    trace: Trace
    caches: list[Estimate]
    pick: int | None  # None: no cache meets the requirements

    @property
    def capture(self) -> Thinned:
        """The capture."""
        return capture_of(self.trace)

    @property
    def picked(self) -> Estimate:
        """The cache that answers the question; without one the largest."""
        return self.caches[-1 if self.pick is None else self.pick]

    @property
    def verdict(self) -> str:
        """Whether the cache is worth it: yes, no or unsure."""
        return worth(self.picked.gain)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        capture = self.capture
        return {
            "schema": SCHEMA,
            "trace": self.trace.name,
            "requests": capture.total.requests,
            "span_ns": capture.total.span_ns,
            "rate": capture.rate,
            "answer": self.verdict,
            "pick": self.pick,
            "caches": in_json(self.caches),
        }


def worth(gain: Figure) -> str:
    """Return whether a gain is worth a cache, by its interval."""
    return YES if gain.low >= WORTH_IT else NO if gain.high < WORTH_IT else UNSURE


def replay_sample(
    trace: Trace,
    scenario: Scenario,
    require: Sequence[Requirement] = (),
    report: Report | None = None,
) -> Answer:
    """Return the figures of the scenario's cache for a whole thinned capture."""
    return Answer(trace, estimate(trace, [scenario], report, require), 0)


def size_sample(
    trace: Trace,
    scenario: Scenario,
    require: Sequence[Requirement],
    report: Report | None = None,
) -> Answer:
    """Find the smallest cache that meets requirements on a whole capture, by minutes in full.

    It meets them at the worse ends of the intervals; if none does, by its figures.  A first pass
    tries sizes at which the miss-ratio curve falls, a second one sizes between the largest that
    fails and the smallest that meets all.
    """
    if is_specified(scenario, SIZE):
        raise UsageError("this command searches the size of the cache: remove cache.size")
    asked(trace, require)  # refuses what it does not answer

    def tried(sizes: Sequence[int]) -> list[Estimate]:
        return estimate(trace, _sized(scenario, sizes), report, require)

    found = tried(sizes_to_try(_curve(trace, scenario, report)))
    first = smallest([one.required for one in found])
    if first:
        low, high = found[first - 1].cache_bytes, found[first].cache_bytes
        page = scenario.cache.page_bytes
        between = np.geomspace(low, high, 5)[1:-1]
        sizes = sorted({int(each) // page * page for each in between} - {low, high})
        found = sorted([*found, *tried(sizes)], key=lambda one: one.cache_bytes)
        first = smallest([one.required for one in found])
    return Answer(trace, found, first)


def _sized(scenario: Scenario, sizes: Sequence[int]) -> list[Scenario]:
    return [scenario.with_options(cache_size=format_size(each)) for each in sizes]


def smallest(rows: Sequence[Sequence[Checked]]) -> int | None:
    """Return the first row that surely meets its requirements, or else one whose figures do."""
    for meets in (lambda each: each.is_sure, lambda each: each.met):
        for at, one in enumerate(rows):
            if all(map(meets, one)):
                return at
    return None


def advise_sample(trace: Trace, scenario: Scenario, report: Report | None = None) -> Answer:
    """Recommend a size: the smallest with nearly the best gain of those tried."""
    if is_specified(scenario, SIZE):
        return replay_sample(trace, scenario, (), report)
    sizes = sizes_to_try(_curve(trace, scenario, report))[-SIZES_OF_ADVICE:]
    found = estimate(trace, _sized(scenario, sizes), report)
    best = max(each.gain.value for each in found)
    pick = next(at for at, each in enumerate(found) if each.gain.value >= AS_GOOD * best)
    return Answer(trace, found, pick)


def _curve(trace: Trace, scenario: Scenario, report: Report | None) -> Curve:
    with reading(trace, report):
        return miss_ratio_curve(trace, "lru", None, scenario.cache.page_bytes)


def sizes_to_try(curve: Curve) -> list[int]:
    """Return sizes in bytes at which the curve has fallen by FALLS, that a sample can represent."""
    least = int(np.ceil(SMALL / curve.rate)) * curve.page_bytes
    return sorted({max(curve.fallen(share), least) for share in FALLS})
