"""How far a simulated run is from a real one: aligned curves, and one row for each figure.

Shares are of the real value.  A warm-up curve is compared as `warmup.py` reads it: times and levels
where both runs are steady.  The distance of two curves is the mean absolute difference of both,
each smoothed by a median of five bins, over the time that both have; as shares of their own levels
where both are steady, else of their own means, as a level that is no level decides nothing.
Counters are compared every ten seconds:
the row tells the worst, as a share of the real one's last value.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from hybridsim.errors import MeasurementError
from hybridsim.fidelity import demerit, distance
from hybridsim.measurements.measurement import (
    BANDWIDTH,
    CACHE,
    COMPLETION,
    DIRECTIONS,
    HIT_RATIO,
    IOPS,
    LATENCY,
    SECOND,
    Curve,
    Floats,
    Ints,
    Measurement,
    Name,
)
from hybridsim.tolerances import DISTANCES, Tolerances
from hybridsim.warmup import FEWEST_BINS, State, WarmUp, judge

T = TypeVar("T")
ALL = "all"  # directions together
MOST_BINS = 512
FEWEST = 5  # bins that make a curve
FEW = 6  # names, of what has nothing in common
LONGER = 1.05  # times; runs of unlike length are noted
STEP_NS = 10 * SECOND  # between comparisons of counters
COUNTERS = "counters"
WARMING = (IOPS, HIT_RATIO)  # curves that tell how warm a cache is
RATES = (IOPS, BANDWIDTH)


@dataclass(frozen=True)
class Row:
    """One figure of both runs.  `error` is a share of the real one, or a distance."""

    name: Name
    real: float | None
    simulated: float | None
    error: float | None
    tolerance: float | None  # None: told, not judged
    slack: float = 0.0  # error that the resolution of the curves may make

    @property
    def is_met(self) -> bool | None:
        """Whether it is within its tolerance; None if it is not judged."""
        if self.tolerance is None:
            return None
        return self.error is not None and abs(self.error) <= max(self.tolerance, self.slack)


@dataclass(frozen=True)
class Aligned:
    """One curve of both runs over the same bins, which begin at `time_ns`."""

    name: Name
    time_ns: Ints
    width_ns: int
    real: WarmUp
    simulated: WarmUp


@dataclass
class Comparison:
    """All rows and curves, and what could not be compared."""

    real: Measurement
    simulated: Measurement
    rows: list[Row] = field(default_factory=list)
    curves: list[Aligned] = field(default_factory=list)
    only_real: list[tuple[Name, str]] = field(default_factory=list)  # of what, and in words
    only_simulated: list[tuple[Name, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def judged(self) -> list[Row]:
        """The rows that have a tolerance."""
        return [row for row in self.rows if row.is_met is not None]

    @property
    def failed(self) -> list[Row]:
        """The rows that are beyond theirs."""
        return [row for row in self.rows if row.is_met is False]


def compare(real: Measurement, simulated: Measurement, tolerances: Tolerances) -> Comparison:
    """Hold a simulated run against a real one; MeasurementError if they have nothing in common."""
    found = Comparison(real, simulated)
    _match_jobs(found)
    for each, other in ((real, simulated), (simulated, real)):
        _add_up(each, other)
        if each.is_instant:
            each.figures = _with_completions(each.figures, other.figures)
            each.latencies = _with_completions(each.latencies, other.latencies)
    found.rows += _figures(found, tolerances)
    found.rows += _distributions(found, tolerances)
    for name in _in_both(real.curves, simulated.curves):
        found.rows += _curve(found, name, tolerances)
    found.rows += _counters(found, tolerances)
    places = {row.name[:2]: -at for at, row in reversed(list(enumerate(found.rows)))}
    found.rows.sort(key=lambda row: (row.name.what == CACHE, -places[row.name[:2]]))
    _note_lengths(found)
    if not found.judged:
        raise MeasurementError(
            f"nothing to compare: {', '.join(real.sources)} has {_holdings(real)}; "
            f"{', '.join(simulated.sources)} has {_holdings(simulated)}"
            + "".join(f"; {note}" for note in found.notes)
        )
    _note_differences(found)
    return found


def _holdings(one: Measurement) -> str:
    names = list(dict.fromkeys(str(name) for name in [*one.figures, *one.curves, *one.counters]))
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


# What belongs together.


def _match_jobs(found: Comparison) -> None:
    """Call the only job of one run as the only one of the other is called."""
    real, simulated = found.real, found.simulated
    if len(real.jobs) == len(simulated.jobs) == 1 and real.jobs != simulated.jobs:
        title = real.jobs[0] or simulated.jobs[0]
        if real.jobs[0] and simulated.jobs[0]:
            found.notes.append(
                f"job {simulated.jobs[0]!r} is held against {real.jobs[0]!r}: each run has one"
            )
        for run in (real, simulated):
            run.rename(run.jobs[0], title)


def _add_up(one: Measurement, other: Measurement) -> None:
    """Make a curve of all directions where the other run has none but that."""
    for name in [each for each in other.curves if each.what == ALL]:
        parts = [name._replace(what=what) for what in DIRECTIONS]
        curves = [one.curves[part] for part in parts if part in one.curves]
        if name in one.curves or not curves:
            continue
        width = max(curve.width_ns for curve in curves)
        edges = np.arange(0, min(curve.until_ns for curve in curves) + 1, width)
        total = np.sum([curve.binned(edges, True) for curve in curves], axis=0)
        one.curves[name] = Curve(edges[:-1], edges[1:], total)


def _with_completions(mine: dict[Name, T], others: dict[Name, T]) -> dict[Name, T]:
    """Let latencies of a run that hands requests over at once be those of completion, too."""
    found = dict(mine)
    for name in others:
        kind, _, rest = name.measure.partition(" ")
        whole = name._replace(measure=f"{LATENCY} {rest}".strip())
        if kind == COMPLETION and whole in mine:
            found[name] = mine[whole]
            if whole not in others:
                found.pop(whole, None)
    return found


def _in_both(real: dict[Name, Curve], simulated: dict[Name, Curve]) -> list[Name]:
    order = {name: at for at, name in enumerate(real)}
    return sorted(real.keys() & simulated.keys(), key=lambda name: order[name])


# Figures.


def _figures(found: Comparison, tolerances: Tolerances) -> Iterator[Row]:
    for name, real in found.real.figures.items():
        simulated = found.simulated.figures.get(name)
        if simulated is not None:
            yield _row(name, real, simulated, tolerances.of(name.measure))


def _row(
    name: Name, real: float, simulated: float, tolerance: float | None, slack: float = 0.0
) -> Row:
    if name.measure.rpartition(" ")[2] in DISTANCES or name.measure in DISTANCES:
        return Row(name, real, simulated, simulated - real, tolerance)
    if real == simulated:
        return Row(name, real, simulated, 0.0, tolerance)
    error = simulated / real - 1 if real else None
    return Row(name, real, simulated, error, tolerance, slack / real if real else 0.0)


def _distributions(found: Comparison, tolerances: Tolerances) -> Iterator[Row]:
    for name, real in found.real.latencies.items():
        simulated = found.simulated.latencies.get(name)
        if simulated is None or not (real.count and simulated.count):
            continue
        for word, measure in (("KS", distance), ("demerit", demerit)):
            error = measure(real, simulated)
            told = name._replace(measure=f"{name.measure} {word}")
            yield Row(told, None, None, error, tolerances.of(word))


# Curves.


def edges_of(real: Curve, simulated: Curve) -> Ints:
    """Return the edges of bins over the time that both have.

    A second wide; wider where a curve is coarser or there would be too many, narrower where
    there would be few.
    """
    width = max(real.width_ns, simulated.width_ns, 1)
    until = min(real.until_ns, simulated.until_ns)
    if width < SECOND and until >= FEWEST_BINS * SECOND:
        width = SECOND
    width *= max(1, -(-until // (width * MOST_BINS)))
    return np.arange(0, until + 1, width)


def _curve(found: Comparison, name: Name, tolerances: Tolerances) -> Iterator[Row]:
    curves = found.real.curves[name], found.simulated.curves[name]
    edges = edges_of(*curves)
    if len(edges) < 2:
        found.notes.append(f"{name} over time: the curves have no time in common")
        return
    values = [each.binned(edges, name.measure in RATES) for each in curves]
    told = ~np.isnan(values[0]) & ~np.isnan(values[1])
    width = int(edges[1])
    start = edges[:-1][told]
    real, simulated = (judge(start, each[told], width, name.measure) for each in values)
    aligned = Aligned(name, start, width, real, simulated)
    found.curves.append(aligned)
    is_warming = name.measure in WARMING or _stands_for_iops(found, name)
    if is_warming:
        yield from _warm_up(found, aligned, tolerances)
    apart = _apart(real, simulated)
    if apart is not None:
        label = name._replace(measure=f"{name.measure} curve")
        yield Row(label, None, None, apart, tolerances.of("curve") if is_warming else None)
    elif is_warming:
        found.notes.append(f"{name} over time: {len(start)} bins in common are no curve to compare")


def _stands_for_iops(found: Comparison, name: Name) -> bool:
    """Tell whether a curve of bandwidth is all that both runs tell of a rate."""
    iops = name._replace(measure=IOPS)
    runs = (found.real, found.simulated)
    return name.measure == BANDWIDTH and not all(iops in run.curves for run in runs)


def _apart(real: WarmUp, simulated: WarmUp) -> float | None:
    """Return the mean absolute difference of the curves, each as a share of its level or mean."""
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


def _warm_up(found: Comparison, aligned: Aligned, tolerances: Tolerances) -> Iterator[Row]:
    name, real, simulated = aligned.name, aligned.real, aligned.simulated
    if name not in found.real.figures or name not in found.simulated.figures:
        means = [float(each.curve.mean()) for each in (real, simulated)]
        label = name._replace(measure=f"{name.measure} mean")
        yield _row(label, means[0], means[1], tolerances.of("mean"))
    if real.level is not None and simulated.level is not None:
        label = name._replace(measure=f"{name.measure} level")
        tolerance = tolerances.of("hit ratio" if name.measure == HIT_RATIO else "level")
        tolerance = tolerance if real.steady and simulated.steady else None
        if name.measure == HIT_RATIO:
            yield Row(label, real.level, simulated.level, simulated.level - real.level, tolerance)
        else:
            yield _row(label, real.level, simulated.level, tolerance)
    for share in (50, 90):
        label = name._replace(measure=f"{name.measure} t{share}")
        tolerance = tolerances.of(f"t{share}")
        if real.state == simulated.state == State.STEADY:
            times = [each.reached_ns[share] for each in (real, simulated)]
            yield _row(label, times[0], times[1], tolerance, aligned.width_ns)
        elif (real.state == State.STEADY) != (simulated.state == State.STEADY):
            known = [each.reached_ns.get(share) for each in (real, simulated)]
            yield Row(label, known[0], known[1], None, tolerance)
    if not real.state == simulated.state == State.STEADY:
        found.notes.append(
            f"{name} over time: {_state('real', real)}; {_state('simulated', simulated)}"
        )


def _state(whose: str, warm_up: WarmUp) -> str:
    if warm_up.state == State.STEADY:
        return f"{whose} warms up and is steady"
    return f"{whose}: {warm_up.why or warm_up.state}"


# Counters.


def _counters(found: Comparison, tolerances: Tolerances) -> Iterator[Row]:
    for counter, real in found.real.counters.items():
        simulated = found.simulated.counters.get(counter)
        if simulated is None:
            continue
        until = min(int(real.time_ns[-1]), int(simulated.time_ns[-1]))
        times = np.append(np.arange(STEP_NS, until, STEP_NS), until)
        values = [each.at(times) for each in (real, simulated)]
        whole = np.abs(values[0]).max() if counter in found.real.levels else values[0][-1]
        differences = values[1] - values[0]
        worst = float(differences[np.abs(differences).argmax()])
        error = worst / float(whole) if whole else (None if worst else 0.0)
        name = Name("", CACHE, counter)
        last = float(values[0][-1]), float(values[1][-1])
        yield Row(name, *last, error, tolerances.of(counter, COUNTERS))


# What is left.


def _note_lengths(found: Comparison) -> None:
    common = _in_both(found.real.curves, found.simulated.curves)
    ends = [
        max((run.curves[name].until_ns for name in common), default=0)
        for run in (found.real, found.simulated)
    ]
    if max(ends) > LONGER * min(ends):
        lasts = [f"{each / SECOND:.0f} s" for each in ends]
        found.notes.append(
            f"real lasts {lasts[0]}, simulated {lasts[1]}: curves and counters are compared over "
            "what both have, figures of whole runs as they are"
        )


def _note_differences(found: Comparison) -> None:
    real, simulated = found.real, found.simulated
    found.only_real += _alone(real, simulated)
    found.only_simulated += _alone(simulated, real)
    found.notes += [*real.notes, *simulated.notes]


def _alone(one: Measurement, other: Measurement) -> Iterator[tuple[Name, str]]:
    """Yield what one run tells and the other does not."""
    for name in one.figures:
        if name not in other.figures:
            yield name, name.measure
    for name in one.curves:
        if name not in other.curves:
            yield name, f"{name.measure} over time"
    for name in one.latencies:
        if name not in other.latencies:
            yield name, f"distribution of {name.measure}"
    for counter in one.counters:
        if counter not in other.counters:
            yield Name("", CACHE, counter), f"{counter} over time"
