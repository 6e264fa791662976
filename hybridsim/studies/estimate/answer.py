"""The questions that a thinned capture answers as a whole: replay, size, advise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from hybridsim.answers.forecast import NO, UNSURE, WORTH_IT, YES
from hybridsim.answers.requirements import Checked, Requirement
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import format_size
from hybridsim.scenario import Scenario
from hybridsim.studies.candidates import SIZE, is_specified
from hybridsim.studies.estimate.estimate import (
    FIGURES,
    Estimate,
    Figure,
    Hour,
    asked,
    estimate,
    reading,
)
from hybridsim.studies.estimate.minutes import capture_of
from hybridsim.studies.mrc import Curve, miss_ratio_curve
from hybridsim.studies.page_sampling import SMALL
from hybridsim.studies.runs import Report
from hybridsim.studies.week import clock
from hybridsim.traces.formats.thinned import Thinned
from hybridsim.traces.trace import Trace

SCHEMA = "hybridsim.estimate/1"
FALLS = (0.3, 0.6, 0.8, 0.9, 0.97)  # of what the miss-ratio curve falls by: sizes to try
SIZES_OF_ADVICE = 3  # of these, the largest falls
AS_GOOD = 0.98  # of the best gain: the smaller cache is taken


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
            "caches": [_cache(each, capture) for each in self.caches],
        }


def worth(gain: Figure) -> str:
    """Return whether a gain is worth a cache, by its interval."""
    return YES if gain.low >= WORTH_IT else NO if gain.high < WORTH_IT else UNSURE


def _cache(one: Estimate, capture: Thinned) -> dict[str, Any]:
    def hour(each: Hour) -> dict[str, Any]:
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
        "required": [each.to_dict() for each in one.required],
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
    top, bottom = float(curve.miss_ratio[0]), float(curve.miss_ratio[-1])
    least = int(np.ceil(SMALL / curve.rate))
    found = set()
    for share in FALLS:
        at = int((curve.miss_ratio <= top - share * (top - bottom)).argmax())
        found.add(max(int(curve.pages[at]), least))
    return [each * curve.page_bytes for each in sorted(found)]
