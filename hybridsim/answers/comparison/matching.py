"""Match the jobs, curves and latencies of two runs."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from hybridsim.answers.comparison.rows import Comparison
from hybridsim.answers.measurements.measurement import (
    COMPLETION,
    DIRECTIONS,
    LATENCY,
    Curve,
    Measurement,
    Name,
)

T = TypeVar("T")
ALL = "all"  # directions together


def match_jobs(comparison: Comparison) -> None:
    """Give the only job of each run the same name."""
    real, simulated = comparison.real, comparison.simulated
    if len(real.jobs) == len(simulated.jobs) == 1 and real.jobs != simulated.jobs:
        title = real.jobs[0] or simulated.jobs[0]
        if real.jobs[0] and simulated.jobs[0]:
            comparison.notes.append(
                f"job {simulated.jobs[0]!r} is compared with {real.jobs[0]!r}: each run has one job"
            )
        for run in (real, simulated):
            run.rename(run.jobs[0], title)


def add_up(one: Measurement, other: Measurement) -> None:
    """Add a curve of all directions together if the other run has one."""
    for name in [each for each in other.curves if each.what == ALL]:
        parts = [name._replace(what=what) for what in DIRECTIONS]
        curves = [one.curves[part] for part in parts if part in one.curves]
        if name in one.curves or not curves:
            continue
        width = max(curve.width_ns for curve in curves)
        edges = np.arange(0, min(curve.until_ns for curve in curves) + 1, width)
        total = np.sum([curve.binned(edges, True) for curve in curves], axis=0)
        one.curves[name] = Curve(edges[:-1], edges[1:], total)


def with_completions(mine: dict[Name, T], others: dict[Name, T]) -> dict[Name, T]:
    """Return latencies with completion latencies added, for a run without submission latency."""
    result = dict(mine)
    for name in others:
        kind, _, rest = name.measure.partition(" ")
        whole = name._replace(measure=f"{LATENCY} {rest}".strip())
        if kind == COMPLETION and whole in mine:
            result[name] = mine[whole]
            if whole not in others:
                result.pop(whole, None)
    return result


def in_both(real: dict[Name, Curve], simulated: dict[Name, Curve]) -> list[Name]:
    """Return the names of the common curves, in the order of the real run."""
    order = {name: at for at, name in enumerate(real)}
    return sorted(real.keys() & simulated.keys(), key=lambda name: order[name])


# Figures.
