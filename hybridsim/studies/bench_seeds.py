"""A bench repeated over seeds: each figure is the mean, with its interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from hybridsim.foundation.wording import percent
from hybridsim.scenario import Scenario
from hybridsim.studies.bench import Bench, Point
from hybridsim.studies.sweep.confidence import LEVEL, estimate

Measure = Callable[[Scenario, int], Bench]


def over_seeds(scenario: Scenario, seeds: int, measure: Measure) -> Bench:
    """Measure with `seeds` seeds, starting with the scenario's; return the means.

    The seed determines the random requests and the random decisions of the machine.  A mean is
    steady if each of its measurements is.
    """
    chosen = range(scenario.seed, scenario.seed + seeds)
    benches = [measure(scenario.with_options(seed=seed), seed) for seed in chosen]
    points = [_mean(each) for each in zip(*(one.points for one in benches))]
    return replace(benches[0], points=points, notes=[*benches[0].notes, _words(points, seeds)])


def _mean(points: Sequence[Point]) -> Point:
    """Return the mean of one figure over seeds."""
    number = len(points)
    result = estimate([each.iops for each in points])
    assert result is not None
    known = [each.p99_ns for each in points if each.p99_ns is not None]
    return replace(
        points[0],
        iops=result.mean,
        iops_half=result.half,
        bytes_per_s=sum(each.bytes_per_s for each in points) / number,
        mean_ns=sum(each.mean_ns for each in points) / number,
        p99_ns=round(sum(known) / len(known)) if len(known) == number else None,
        drift=max((each.drift for each in points), key=abs),
        steady=all(each.steady for each in points),
    )


def _words(points: Sequence[Point], seeds: int) -> str:
    shares = [((each.iops_half or 0.0) / each.iops, each) for each in points if each.iops]
    if not shares:
        return f"means of {seeds} seeds"
    widest, point = max(shares, key=lambda pair: pair[0])
    where = f"{point.parameter}, {point.state}, depth {point.depth}"
    interval = f"{percent(LEVEL)} interval is ± {percent(widest)} ({where})"
    return f"means of {seeds} seeds; the widest {interval}"
