"""Compare one measurement with another.

Errors are shares of the real value.  Counters are compared every ten seconds, or at their samples
if these are rarer; the row has the largest error, as a share of the last real value.  The hit ratio
of each ten seconds is compared too; its row has the largest difference.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from hybridsim.answers.comparison.curves import curve_rows
from hybridsim.answers.comparison.rows import Comparison, Row, row_of
from hybridsim.answers.comparison.tolerances import Tolerances
from hybridsim.answers.fidelity import demerit, distance
from hybridsim.answers.measurements.gathering import HITS
from hybridsim.answers.measurements.measurement import (
    CACHE,
    COMPLETION,
    DIRECTIONS,
    HIT_RATIO,
    LATENCY,
    SECOND,
    Curve,
    Floats,
    Ints,
    Measurement,
    Name,
    Samples,
)
from hybridsim.foundation.errors import MeasurementError

FEW = 6  # names listed in the error if there is nothing to compare
LONGER = 1.05  # ratio of the lengths of both runs above which it is noted
FEWEST = 100  # minimum reads in ten seconds for a hit ratio
STEP_NS = 10 * SECOND  # between comparisons of counters
COUNTERS = "counters"
ALL = "all"  # directions together
T = TypeVar("T")


def compare(real: Measurement, simulated: Measurement, tolerances: Tolerances) -> Comparison:
    """Compare a simulated run with a real one; MeasurementError if they share no figures."""
    result = Comparison(real, simulated)
    match_jobs(result)
    for each, other in ((real, simulated), (simulated, real)):
        add_up(each, other)
        if each.is_instant:
            each.figures = with_completions(each.figures, other.figures)
            each.latencies = with_completions(each.latencies, other.latencies)
    _until_the_same_time(result)
    result.rows += _figures(result, tolerances)
    result.rows += _distributions(result, tolerances)
    for name in in_both(real.curves, simulated.curves):
        result.rows += curve_rows(result, name, tolerances)
    result.rows += _counters(result, tolerances)
    result.rows += _hit_ratios(result, tolerances)
    # Rows of the same job and kind stand together, in the order of their first row; CACHE last.
    places = {row.name[:2]: at for at, row in reversed(list(enumerate(result.rows)))}
    result.rows.sort(key=lambda row: (row.name.what == CACHE, places[row.name[:2]]))
    _note_lengths(result)
    if not result.judged:
        raise MeasurementError(
            f"nothing to compare: {', '.join(real.sources)} has {_holdings(real)}; "
            f"{', '.join(simulated.sources)} has {_holdings(simulated)}"
            + "".join(f"; {note}" for note in result.notes)
        )
    _note_differences(result)
    return result


def _holdings(one: Measurement) -> str:
    names = list(dict.fromkeys(str(name) for name in [*one.figures, *one.curves, *one.counters]))
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(names[:FEW]) + more


# Jobs, curves and latencies of both runs that are compared.


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


def _figures(comparison: Comparison, tolerances: Tolerances) -> Iterator[Row]:
    for name, real in comparison.real.figures.items():
        simulated = comparison.simulated.figures.get(name)
        if simulated is not None:
            yield row_of(name, real, simulated, tolerances.of(name.measure))


def _distributions(comparison: Comparison, tolerances: Tolerances) -> Iterator[Row]:
    for name, real in comparison.real.latencies.items():
        simulated = comparison.simulated.latencies.get(name)
        if simulated is None or not (real.count and simulated.count):
            continue
        for word, measure in (("KS", distance), ("demerit", demerit)):
            error = measure(real, simulated)
            row_name = name._replace(measure=f"{name.measure} {word}")
            yield Row(row_name, None, None, error, tolerances.of(word))


def _counters(comparison: Comparison, tolerances: Tolerances) -> Iterator[Row]:
    for counter, real in comparison.real.counters.items():
        simulated = comparison.simulated.counters.get(counter)
        if simulated is None:
            continue
        times = _times(real, simulated)
        values = [each.at(times) for each in (real, simulated)]
        whole = np.abs(values[0]).max() if counter in comparison.real.levels else values[0][-1]
        differences = values[1] - values[0]
        worst = float(differences[np.abs(differences).argmax()])
        error = worst / float(whole) if whole else (None if worst else 0.0)
        name = Name("", CACHE, counter)
        last = float(values[0][-1]), float(values[1][-1])
        yield Row(name, *last, error, tolerances.of(counter, COUNTERS))


def _times(real: Samples, simulated: Samples) -> Ints:
    """Return the times to compare at: every ten seconds and the end, or the samples if rarer."""
    until = min(int(real.time_ns[-1]), int(simulated.time_ns[-1]))
    steps = np.diff(real.time_ns)
    if len(steps) and float(np.median(steps)) > STEP_NS:
        return real.time_ns[real.time_ns <= until]
    return np.append(np.arange(STEP_NS, until, STEP_NS), until)


def _hit_ratios(comparison: Comparison, tolerances: Tolerances) -> Iterator[Row]:
    """Yield the hit ratio of the ten seconds with the largest difference."""
    for hits, misses in HITS.items():
        if not all(
            {hits, misses} <= run.counters.keys() for run in (comparison.real, comparison.simulated)
        ):
            continue
        times = np.append(
            0, _times(comparison.real.counters[misses], comparison.simulated.counters[misses])
        )
        ratios = [
            _interval_ratio(*(run.counters[name].at(times) for name in (hits, misses)))
            for run in (comparison.real, comparison.simulated)
        ]
        present = ~np.isnan(ratios[0]) & ~np.isnan(ratios[1])
        if not present.any():
            continue
        worst = int(np.abs(np.where(present, ratios[1] - ratios[0], 0)).argmax())
        real, simulated = (float(each[worst]) for each in ratios)
        name = Name("", CACHE, f"{HIT_RATIO} each 10 s")
        yield Row(name, real, simulated, simulated - real, tolerances.of(name.measure, HIT_RATIO))
        return


def _until_the_same_time(comparison: Comparison) -> None:
    """Recompute hit ratios of whole runs up to the last sample of the shorter run."""
    name = Name("", CACHE, HIT_RATIO)
    both = (comparison.real, comparison.simulated)
    for hits, misses in HITS.items():
        if not all({hits, misses} <= run.counters.keys() and name in run.figures for run in both):
            continue
        until = np.array([min(int(run.counters[misses].time_ns[-1]) for run in both)])
        for run in both:
            hit, missed = (float(run.counters[each].at(until)[0]) for each in (hits, misses))
            if hit + missed > 0:
                run.figures[name] = hit / (hit + missed)
        return


def _interval_ratio(hits: Floats, misses: Floats) -> Floats:
    """Return the share of hits in each interval; NaN where fewer than FEWEST were counted."""
    hit, missed = np.diff(hits), np.diff(misses)
    counted = hit + missed
    return np.asarray(np.where(counted >= FEWEST, hit / np.maximum(counted, 1), np.nan))


# Differences that are no rows.


def _note_lengths(comparison: Comparison) -> None:
    common = in_both(comparison.real.curves, comparison.simulated.curves)
    ends = [
        max((run.curves[name].until_ns for name in common), default=0)
        for run in (comparison.real, comparison.simulated)
    ]
    if max(ends) > LONGER * min(ends):
        lasts = [f"{each / SECOND:.0f} s" for each in ends]
        comparison.notes.append(
            f"real lasts {lasts[0]}, simulated {lasts[1]}: curves and counters are compared over "
            "the common time, figures of whole runs unchanged"
        )


def _note_differences(comparison: Comparison) -> None:
    real, simulated = comparison.real, comparison.simulated
    comparison.only_real += _alone(real, simulated)
    comparison.only_simulated += _alone(simulated, real)
    comparison.notes += [*real.notes, *simulated.notes]


def _alone(one: Measurement, other: Measurement) -> Iterator[tuple[Name, str]]:
    """Yield the figures that `one` reports and `other` does not."""
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
