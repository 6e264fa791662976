"""Compare two curves on the same bins: the distance of their shapes, and their warm-up.

Warm-up is that of `answers/warmup.py`: times and levels are compared if both curves are steady.
The distance of two curves is their mean absolute difference over the common time, each smoothed by
a median of five bins and divided by its own level if both are steady, else by its own mean.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybridsim.answers.comparison.rows import Aligned, Comparison, Row, row_of
from hybridsim.answers.comparison.tolerances import Tolerances
from hybridsim.answers.measurements.measurement import (
    BANDWIDTH,
    HIT_RATIO,
    IOPS,
    SECOND,
    Curve,
    Floats,
    Ints,
    Name,
)
from hybridsim.answers.warmup import FEWEST_BINS, State, WarmUp, judge

MOST_BINS = 512
FEWEST = 5  # minimum bins of a curve
WARMING = (IOPS, HIT_RATIO)  # curves that show the warm-up of a cache
RATES = (IOPS, BANDWIDTH)


def edges_of(real: Curve, simulated: Curve) -> Ints:
    """Return the edges in ns of bins over the common time of two curves.

    Bins are a second wide; wider if a curve is coarser or there would be too many bins, narrower
    if there would be too few.
    """
    width = max(real.width_ns, simulated.width_ns, 1)
    until = min(real.until_ns, simulated.until_ns)
    if width < SECOND and until >= FEWEST_BINS * SECOND:
        width = SECOND
    width *= max(1, -(-until // (width * MOST_BINS)))
    return np.arange(0, until + 1, width)


def curve_rows(comparison: Comparison, name: Name, tolerances: Tolerances) -> Iterator[Row]:
    """Align a curve of both runs, and yield its rows."""
    curves = comparison.real.curves[name], comparison.simulated.curves[name]
    edges = edges_of(*curves)
    if len(edges) < 2:
        comparison.notes.append(f"{name} over time: the curves do not overlap in time")
        return
    values = [each.binned(edges, name.measure in RATES) for each in curves]
    present = ~np.isnan(values[0]) & ~np.isnan(values[1])
    width = int(edges[1])
    start = edges[:-1][present]
    real, simulated = (judge(start, each[present], width, name.measure) for each in values)
    aligned = Aligned(name, start, width, real, simulated)
    comparison.curves.append(aligned)
    is_warming = name.measure in WARMING or _stands_for_iops(comparison, name)
    if is_warming:
        yield from _warm_up(comparison, aligned, tolerances)
    apart = _apart(real, simulated)
    if apart is not None:
        label = name._replace(measure=f"{name.measure} curve")
        yield Row(label, None, None, apart, tolerances.of("curve") if is_warming else None)
    elif is_warming:
        comparison.notes.append(
            f"{name} over time: not comparable over the {len(start)} common bins"
        )


def _stands_for_iops(comparison: Comparison, name: Name) -> bool:
    """Return whether this is a curve of bandwidth, and not both runs have one of IOPS."""
    iops = name._replace(measure=IOPS)
    runs = (comparison.real, comparison.simulated)
    return name.measure == BANDWIDTH and not all(iops in run.curves for run in runs)


def _apart(real: WarmUp, simulated: WarmUp) -> float | None:
    """Return the distance of two curves, as in the module's docstring; None if too short."""
    both = (real, simulated)
    if len(real.smooth) < FEWEST:
        return None
    wholes = [float(each.smooth.mean()) for each in both]
    if real.steady and simulated.steady:
        wholes = [each.level or 0.0 for each in both]
    if not all(wholes):
        return None
    shapes: list[Floats] = [each.smooth / whole for each, whole in zip(both, wholes)]
    return float(np.abs(shapes[0] - shapes[1]).mean())


def _warm_up(comparison: Comparison, aligned: Aligned, tolerances: Tolerances) -> Iterator[Row]:
    name, real, simulated = aligned.name, aligned.real, aligned.simulated
    if name not in comparison.real.figures or name not in comparison.simulated.figures:
        means = [float(each.curve.mean()) for each in (real, simulated)]
        label = name._replace(measure=f"{name.measure} mean")
        yield row_of(label, means[0], means[1], tolerances.of("mean"))
    if real.level is not None and simulated.level is not None:
        label = name._replace(measure=f"{name.measure} level")
        tolerance = tolerances.of("hit ratio" if name.measure == HIT_RATIO else "level")
        tolerance = tolerance if real.steady and simulated.steady else None
        if name.measure == HIT_RATIO:
            yield Row(label, real.level, simulated.level, simulated.level - real.level, tolerance)
        else:
            yield row_of(label, real.level, simulated.level, tolerance)
    for share in (50, 90):
        label = name._replace(measure=f"{name.measure} t{share}")
        tolerance = tolerances.of(f"t{share}")
        if real.state == simulated.state == State.STEADY:
            times = [each.reached_ns[share] for each in (real, simulated)]
            yield row_of(label, times[0], times[1], tolerance, aligned.width_ns)
        elif (real.state == State.STEADY) != (simulated.state == State.STEADY):
            known = [each.reached_ns.get(share) for each in (real, simulated)]
            yield Row(label, known[0], known[1], None, tolerance)
    if not real.state == simulated.state == State.STEADY:
        comparison.notes.append(
            f"{name} over time: {_state('real', real)}; {_state('simulated', simulated)}"
        )


def _state(run: str, warm_up: WarmUp) -> str:
    if warm_up.state == State.STEADY:
        return f"{run} warms up and is steady"
    return f"{run}: {warm_up.why or warm_up.state}"
