"""The figures of a result that a sweep stores: all measures, by name; objectives among them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from hybridsim.answers.advice.alternatives import cache_cost, drives_cost, pricing
from hybridsim.answers.requirements import (
    DIRECTIONS,
    OF_REQUESTS,
    OF_RUNS,
    PHASES,
    Measure,
    Requirement,
    Seen,
    has_direction,
    parse_measure,
)
from hybridsim.answers.result import PERCENTILES, Result, plain
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import NONE, times
from hybridsim.scenario import Scenario

GAIN, WHOLE_GAIN, FORECAST = "gain", "gain.whole", "forecast"
WORK, WORK_NS = "work.requests", "work.ns"  # of the second half: number, sum of the latencies
INTERVALS, BLOCKS = "intervals", "blocks"  # nested figures, in no table
ALONE = "alone."  # prefix of figures of the disks without the cache
OF_PHASES = ("hit", "busy", "iops")
MORE = ("hit", "iops", "years")  # larger is better
COST, SSD = "cost", "ssd"
GAINS = (GAIN, WHOLE_GAIN, FORECAST)
OWN = {
    GAIN: "the judge's gain: what the second half of the requests costs without and with the cache",
    WHOLE_GAIN: "the same for all requests",
    FORECAST: "the gain that is forecast for the time after the trace",
    COST: "price of disks and SSDs as bought: whole drives, mirrored if they alone hold writes",
    SSD: "size of the cache on the SSD",
}


def figures(result: Result, has_intervals: bool = True) -> dict[str, Any]:
    """Return numbers (ns, bytes, shares; None: unknown) and words of a result by name.

    Its intervals take up to a fifth of the time of a replay: not all need them.
    """
    cached, alone = Seen.cached(result), Seen.alone(result)
    row: dict[str, Any] = {
        "answer": result.verdict.answer,
        "headline": result.verdict.headline,
        "mode": result.scenario["mode"],
        "ssd_bytes": result.scenario["cache_bytes"],
        "requests": result.trace["requests"],
        "span_ns": result.trace["span_ns"],
        "footprint_bytes": result.trace["footprint_bytes"],
        "ran_ns": result.cached.last_done_ns,
        "alone.ran_ns": result.plain.last_done_ns,
        "reads.warm": result.phases["warm"].figures.reads.count,
        "alone.reads.warm": result.phases["none"].figures.reads.count,
        **judged(result),
    }
    for measure in measures():
        row[name_of(measure)] = measure.value(cached)[0]
        if measure.measure not in OF_RUNS:
            row[ALONE + name_of(measure)] = measure.value(alone)[0]
    if has_intervals:
        row[INTERVALS] = intervals(result)
    blocks = result.judgement.blocks.get("cached")
    row[BLOCKS] = None if blocks is None else blocks.to_dict()
    kept: dict[str, Any] = plain(row)
    return kept


def intervals(result: Result) -> dict[str, list[float]]:
    """Return the ends of the intervals of the measures that have one and of the gain, by name."""
    wanted = [
        Requirement(each.text, each.measure, each.direction, each.phase, "<", 0.0)
        for each in measures()
        if each.measure in ("mean", "hit", "iops")
        or (each.measure == "p99" and each.phase in ("warm", "whole"))
    ]
    seen = Seen.cached(result)
    found = result.sure_of([each.check(seen) for each in wanted])
    ends = {
        name_of(each): [one.interval.low, one.interval.high]
        for each, one in zip(wanted, found)
        if one.interval is not None
    }
    sampled, later = result.judgement.sampled, result.judgement
    if sampled is not None:
        ends[GAIN] = list(sampled)
    if later.low is not None and later.high is not None:
        ends[FORECAST] = [later.low, later.high]
    return ends


def judged(result: Result) -> dict[str, Any]:
    """Return the figures of the judge: the same requests for all machines of one trace."""
    judgement = result.judgement
    pair, whole = judgement.judged, judgement.pairs["whole"]
    return {
        GAIN: judgement.gain,
        WHOLE_GAIN: whole.gain(judgement.goal, judgement.adapts),
        FORECAST: judgement.expected,
        "forecast.low": judgement.low,
        "forecast.high": judgement.high,
        WORK: pair.cached.both.count,
        WORK_NS: pair.cached.both.total_ns,
        ALONE + WORK_NS: pair.plain.both.total_ns,
    }


def measures() -> Iterator[Measure]:
    """Yield all measures."""
    percentiles = [f"p{percent:g}" for percent in PERCENTILES]
    for names, directions, phases in (
        ((*OF_REQUESTS, *percentiles), DIRECTIONS, PHASES),
        (OF_PHASES, ("reads",), PHASES),
        (OF_RUNS, ("reads",), ("warm",)),
    ):
        for name, direction, phase in itertools.product(names, directions, phases):
            yield Measure(name, name, direction, phase)


def name_of(measure: Measure) -> str:
    """Return the canonical name of a measure: 'mean' and 'mean.warm' are 'mean.reads.warm'."""
    if measure.measure in OF_RUNS:
        return measure.measure
    name = measure.measure
    if name[1:2].isdigit():
        name = f"p{float(name[1:]):g}"
    direction = f".{measure.direction}" if has_direction(measure.measure) else ""
    return f"{name}{direction}.{measure.phase}"


Figures = Mapping[str, Any]


class Objective(NamedTuple):
    """One objective, and whether it is minimised or maximised."""

    text: str
    measure: Measure | None  # None: one of OWN

    @classmethod
    def parse(cls, text: str) -> Objective:
        """Parse an objective; raise UsageError if the text is not one."""
        text = text.strip()
        if text in OWN:
            return cls(text, None)
        measure = parse_measure(text)
        percent = measure.measure[1:]
        if percent[:1].isdigit() and float(percent) not in PERCENTILES:
            percentiles = ", ".join(f"p{each:g}" for each in PERCENTILES)
            raise UsageError(f"{text!r}: a sweep stores {percentiles}")
        return cls(text, measure)

    @property
    def wants_less(self) -> bool:
        """Whether it is minimised."""
        return self.text not in GAINS if self.measure is None else self.measure.measure not in MORE

    @property
    def sign(self) -> int:
        """What a value is multiplied with so that less is better."""
        return 1 if self.wants_less else -1

    @property
    def name(self) -> str:
        """Name of the stored figure, if it is one."""
        return self.text if self.measure is None else name_of(self.measure)

    @property
    def is_time(self) -> bool:
        """Whether it is a time in nanoseconds."""
        return self.measure is not None and self.measure.is_time

    @property
    def is_share(self) -> bool:
        """Whether it is shown in percent."""
        return self.measure is not None and self.measure.is_share

    def value(self, figures: Figures, scenario: Scenario) -> float | None:
        """Return the value for a machine; None if unknown."""
        if self.text != COST:
            value = figures["ssd_bytes" if self.text == SSD else self.name]
            return None if value is None else float(value)
        price = pricing(scenario).price
        disks = drives_cost(scenario.backing, price)
        ssds = cache_cost(scenario, price) if figures["ssd_bytes"] else 0.0
        return None if disks is None or ssds is None else disks + ssds

    def worded(self, value: float | None) -> str:
        """Return the text of a value."""
        if value is None:
            return NONE
        if self.measure is not None:
            return self.measure.worded(value)
        if self.text in GAINS:
            return times(value)
        return human_size(value) if self.text == SSD else f"{value:,.2f}"
