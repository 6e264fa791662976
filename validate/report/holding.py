"""Compare real runs with their twins."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from hybridsim.answers.comparison import Comparison, Tolerances, compare
from hybridsim.answers.measurements import gather
from hybridsim.answers.measurements.measurement import CACHE, Measurement, Name
from validate.report import chance
from validate.report.bounds import judged
from validate.twin.folders import record
from validate.twin.record import Record
from validate.twin.simulate import Twin, twin

IN_CLOSED_LOOP = " in closed loop"
Progress = Callable[[int, int, str], None]  # runs done, number of runs, name of the next


@dataclass(frozen=True)
class Held:
    """A real run, its twin, and their comparison."""

    record: Record
    twin: Twin
    found: Comparison
    noise: Mapping[Name, float]  # largest difference of repeated real runs of this experiment
    repeats: int  # number of runs of this experiment
    # Share of pairs of twins, begun at other moments, that exceed a bound; empty: not simulated.
    chance: Mapping[Name, float] = field(default_factory=dict)

    @property
    def is_met(self) -> bool:
        """Whether all checked figures are within their bounds."""
        return not self.found.failed


def held(
    folders: Sequence[Path],
    progress: Progress = lambda done, of, name: None,
    others: int = 0,
) -> list[Held]:
    """Simulate the twin of each run and compare; repeated runs of an experiment give the noise.

    So many other twins of each run, if any, give the share of chance.

    Raises RecordError, ScenarioError, MeasurementError or UsageError.
    """
    records = [record(folder) for folder in folders]
    comparisons = []
    more: list[list[Twin]] = []
    for done, each in enumerate(records):
        progress(done, len(records), each.name)
        comparisons.append(_compared(each, twin(each)))
        more.append(list(chance.others(each, others)))
    progress(len(records), len(records), "")
    return [_with_chance(*both) for both in zip(_with_noise(comparisons), more)]


def _with_chance(run: Held, others: Sequence[Twin]) -> Held:
    if not others:
        return run
    return replace(run, chance=chance.beyond(run.found.rows, [run.twin, *others], of_twins))


def of_twins(one: Twin, other: Twin) -> Comparison:
    """Compare a twin with another one, as a real run is compared with it."""
    comparison = compare(one.measured, other.measured, Tolerances())
    if one.paced is None or other.paced is None:
        return comparison
    return at_its_pace(comparison, compare(one.paced, other.paced, Tolerances()))


def _compared(real: Record, simulated: Twin) -> Held:
    comparison = compare(measured(real, simulated), simulated.measured, Tolerances())
    if simulated.paced is not None:
        paced = compare(measured(real, simulated), simulated.paced, Tolerances())
        comparison = at_its_pace(comparison, paced)
    return Held(real, simulated, comparison, {}, 1)


def measured(real: Record, simulated: Twin) -> Measurement:
    """Return the measurement of a real run; times count from its first request."""
    return gather(str(real.folder), simulated.began_s)


def at_its_pace(closed: Comparison, paced: Comparison) -> Comparison:
    """Return the comparison in closed loop, with the cache's counters of the paced one."""
    cached = [row for row in paced.rows if row.name.what == CACHE]
    unpaced = [
        replace(row, name=row.name._replace(measure=f"{row.name.measure}{IN_CLOSED_LOOP}"))
        for row in closed.rows
        if row.name.what == CACHE
    ]
    others = [row for row in closed.rows if row.name.what != CACHE]
    curves = [each for each in closed.curves if each.name.what != CACHE]
    curves += [each for each in paced.curves if each.name.what == CACHE]
    simulated = replace(closed.simulated, counters=paced.simulated.counters)
    return replace(closed, rows=[*others, *cached, *unpaced], curves=curves, simulated=simulated)


def _with_noise(runs: Iterable[Held]) -> Iterator[Held]:
    runs = list(runs)
    same: dict[str, list[Held]] = {}
    for one in runs:
        same.setdefault(one.record.title, []).append(one)
    noises = {title: noise(ones) for title, ones in same.items() if len(ones) > 1}
    for one in runs:
        own = noises.get(one.record.title, {})
        kind = str(one.record.cache.get("kind"))
        one.found.rows = [judged(row, own.get(row.name), kind) for row in one.found.rows]
        yield Held(one.record, one.twin, one.found, own, len(same[one.record.title]))


def noise(runs: Sequence[Held]) -> dict[Name, float]:
    """Return the largest difference of any two real runs, by figure, compared as with a twin."""
    apart: dict[Name, float] = {}
    for one, other in combinations(runs, 2):
        both = [measured(each.record, each.twin) for each in (one, other)]
        for row in compare(both[0], both[1], Tolerances()).rows:
            if row.error is not None:
                apart[row.name] = max(apart.get(row.name, 0.0), abs(row.error))
    return apart
