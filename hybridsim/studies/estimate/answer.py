"""The questions that a thinned capture answers as a whole: replay, size, advise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hybridsim.answers.forecast import NO, UNSURE, WORTH_IT, YES
from hybridsim.answers.intervals import Interval
from hybridsim.answers.requirements import COMPARED, Checked, Requirement, check_answerable
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import format_size
from hybridsim.scenario import Scenario
from hybridsim.studies.candidates import SIZE, is_specified
from hybridsim.studies.estimate.estimate import (
    FIGURES,
    Estimate,
    Figure,
    Of,
    busy,
    estimate,
    hit_ratio,
    mean,
    percentile,
    reading,
)
from hybridsim.studies.mrc import Curve, miss_ratio_curve
from hybridsim.studies.page_sampling import SMALL
from hybridsim.studies.runs import Report
from hybridsim.studies.week import clock
from hybridsim.traces.trace import Trace

SCHEMA = "hybridsim.estimate/1"
FALLS = (0.3, 0.6, 0.8, 0.9, 0.97)  # of what the miss-ratio curve falls by: sizes to try
SIZES_OF_ADVICE = 3  # of these, the largest falls
AS_GOOD = 0.98  # of the best gain: the smaller cache is taken
SOURCES = ("minutes", "contents")
UNKNOWN_OF_WEEKS = (
    "a thinned capture has means, percentiles, hit, busy, dwpd and years of all of it"
)


@dataclass(frozen=True)
class Answer:
    """The figures of some caches for a whole capture, and which one answers the question."""

    trace: Trace
    caches: list[Estimate]
    require: list[list[Checked]]  # by cache
    pick: int | None  # None: no cache meets the requirements

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
        capture = self.trace.sample
        assert capture is not None
        return {
            "schema": SCHEMA,
            "trace": self.trace.name,
            "requests": capture.total.requests,
            "span_ns": capture.total.span_ns,
            "rate": capture.rate,
            "answer": self.verdict,
            "pick": self.pick,
            "caches": [
                _cache(each, checked, capture)
                for each, checked in zip(self.caches, self.require)
            ],
        }  # fmt: skip


def worth(gain: Figure) -> str:
    """Return whether a gain is worth a cache, by its interval."""
    return YES if gain.low >= WORTH_IT else NO if gain.high < WORTH_IT else UNSURE


def _cache(one: Estimate, checked: Sequence[Checked], capture: Any) -> dict[str, Any]:
    def hour(each: Any) -> dict[str, Any]:
        weekday, at = clock(capture, each.begin_ns)
        return {**asdict(each), "weekday": weekday, "hour": at}

    cache = one.scenario.cache
    return {
        "size_bytes": one.cache_bytes,
        "admission": getattr(cache, "admission", None),
        "replacement": getattr(cache, "replacement", None),
        "toml": one.scenario.to_toml(),
        "mode": one.mode,
        "typical_minutes": one.minutes[0],
        "worst_minutes": one.minutes[1],
        "alone": {name: _figure(one.alone[name]) for name in FIGURES},
        "cached": {name: _figure(one.cached[name]) for name in FIGURES},
        "gain": _figure(one.gain),
        "answer": worth(one.gain),
        "ssd_bytes_per_day": _figure(one.ssd_bytes_per_day),
        "late": list(one.late),
        "worst_hour_ns": one.worst.begin_ns,
        "hours": [hour(each) for each in one.hours],
        "required": [each.to_dict() for each in checked],
    }


def _figure(one: Figure) -> dict[str, float]:
    return {"value": one.value, "low": one.low, "high": one.high}


def replay_sample(
    trace: Trace,
    scenario: Scenario,
    require: Sequence[Requirement] = (),
    report: Report | None = None,
) -> Answer:
    """Return the figures of the scenario's cache for a whole thinned capture."""
    found = estimate(trace, [scenario], report, asked(trace, require))
    return Answer(trace, found, [checked(each, require) for each in found], 0)


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
    more = asked(trace, require)

    def tried(sizes: Sequence[int]) -> list[tuple[Estimate, list[Checked]]]:
        sites = [scenario.with_options(cache_size=format_size(each)) for each in sizes]
        return [(one, checked(one, require)) for one in estimate(trace, sites, report, more)]

    rows = tried(sizes_to_try(_curve(trace, scenario, report)))
    first = smallest([one for _, one in rows])
    if first:
        low, high = rows[first - 1][0].cache_bytes, rows[first][0].cache_bytes
        page = scenario.cache.page_bytes
        between = np.geomspace(low, high, 5)[1:-1]
        sizes = sorted({int(each) // page * page for each in between} - {low, high})
        rows = sorted([*rows, *tried(sizes)], key=lambda row: row[0].cache_bytes)
        first = smallest([one for _, one in rows])
    return Answer(trace, [one for one, _ in rows], [one for _, one in rows], first)


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
    sites = [scenario.with_options(cache_size=format_size(each)) for each in sizes]
    found = estimate(trace, sites, report)
    best = max(each.gain.value for each in found)
    pick = next(at for at, each in enumerate(found) if each.gain.value >= AS_GOOD * best)
    return Answer(trace, found, [[] for _ in found], pick)


def _curve(trace: Trace, scenario: Scenario, report: Report | None) -> Curve:
    with reading(trace, report):
        return miss_ratio_curve(trace, "lru", None, scenario.cache.page_bytes)


def sizes_to_try(curve: Curve) -> list[int]:
    """Return sizes in bytes at which the curve has fallen by FALLS, that a sample can represent."""
    top, bottom = float(curve.miss_ratio[0]), float(curve.miss_ratio[-1])
    least = int(np.ceil(SMALL / curve.rate))
    found = set()
    for share in FALLS:
        at = int((curve.miss_ratio <= top - share * (top - bottom)).argmax())
        found.add(max(int(curve.pages[at]), least))
    return [each * curve.page_bytes for each in sorted(found)]


def asked(trace: Trace, require: Sequence[Requirement]) -> dict[str, Of]:
    """Return the figures that requirements ask for; raise UsageError for one that is unknown."""
    capture = trace.sample
    assert capture is not None
    requests = capture.total.of("requests")
    check_answerable(require, int(requests[0]), int(requests[1] + requests[4]))
    found: dict[str, Of] = {}
    for each in require:
        write = int(each.direction == "writes")
        if each.measure in ("dwpd", "years"):
            continue
        if each.phase == "cold" or each.measure in ("warmup", "max", "iops"):
            raise UsageError(f"{each.text!r}: {UNKNOWN_OF_WEEKS}")
        if each.measure in ("hit", "busy"):
            found[each.text] = {"hit": hit_ratio, "busy": busy}[each.measure]
        else:
            found[each.text] = (
                mean(write)
                if each.measure == "mean"
                else percentile(float(each.measure[1:]), write)
            )
    return found


def checked(one: Estimate, require: Sequence[Requirement]) -> list[Checked]:
    """Return the requirements, each with the value that a cache reaches."""
    found = []
    for each in require:
        if each.measure in ("dwpd", "years"):
            figure = _worn(one, each.measure)
        else:
            figure = one.cached[each.text]
        if figure is None:
            found.append(Checked(each, None, False, "the SSD's capacity or rating is unknown"))
            continue
        met = COMPARED[each.compared](figure.value, each.bound)
        interval = Interval(figure.value, figure.low, figure.high, SOURCES)
        found.append(Checked(each, figure.value, met, "", interval))
    return found


def _worn(one: Estimate, measure: str) -> Figure | None:
    """Return the drive writes a day, or the years of rated life; None if they are unknown."""
    cache, day = one.scenario.cache, one.ssd_bytes_per_day
    if measure == "dwpd":
        whole = cache.members * cache.drive.capacity_bytes
        return Figure(day.value / whole, day.error / whole) if whole else None
    if not cache.endurance_bytes or not day.value:
        return None
    years = cache.endurance_bytes / day.value / 365.25
    return Figure(years, years * day.error / day.value)
