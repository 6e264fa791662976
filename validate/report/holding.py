"""Every real run beside its twin."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from hybridsim.answers.comparison.comparing import compare
from hybridsim.answers.comparison.rows import Comparison
from hybridsim.answers.comparison.tolerances import Tolerances
from hybridsim.answers.measurements.gathering import gather
from hybridsim.answers.measurements.measurement import CACHE, Measurement, Name
from validate.report.bounds import judged
from validate.twin.folders import record
from validate.twin.record import Record
from validate.twin.simulate import Twin, twin

IN_CLOSED_LOOP = " in closed loop"
Tell = Callable[[int, int, str], None]  # runs done, of how many, which is next


@dataclass(frozen=True)
class Held:
    """A real run beside its twin."""

    record: Record
    twin: Twin
    found: Comparison
    noise: Mapping[Name, float]  # how far repeated real runs of this experiment are apart
    repeats: int  # runs of this experiment, this one among them

    @property
    def is_met(self) -> bool:
        """Whether all that is judged is within bounds."""
        return not self.found.failed


def held(folders: Sequence[Path], tell: Tell = lambda done, of, name: None) -> list[Held]:
    """Simulate the twin of each run and compare; runs of one experiment are each other's noise.

    Raises RecordError, ScenarioError, MeasurementError or UsageError, as reading and running do.
    """
    records = [record(folder) for folder in folders]
    found = []
    for done, each in enumerate(records):
        tell(done, len(records), each.name)
        found.append(_beside(each, twin(each)))
    tell(len(records), len(records), "")
    return list(_with_noise(found))


def _beside(real: Record, simulated: Twin) -> Held:
    found = compare(measured(real, simulated), simulated.measured, Tolerances())
    if simulated.paced is not None:
        paced = compare(measured(real, simulated), simulated.paced, Tolerances())
        found = at_its_pace(found, paced)
    return Held(real, simulated, found, {}, 1)


def measured(real: Record, simulated: Twin) -> Measurement:
    """Return what a real run measured, from when its first request came."""
    return gather(str(real.folder), simulated.began_s)


def at_its_pace(closed: Comparison, paced: Comparison) -> Comparison:
    """Return a comparison in closed loop, with what the cache did as at the real run's pace."""
    cached = [row for row in paced.rows if row.name.what == CACHE]
    told = [
        replace(row, name=row.name._replace(measure=f"{row.name.measure}{IN_CLOSED_LOOP}"))
        for row in closed.rows
        if row.name.what == CACHE
    ]
    others = [row for row in closed.rows if row.name.what != CACHE]
    curves = [each for each in closed.curves if each.name.what != CACHE]
    curves += [each for each in paced.curves if each.name.what == CACHE]
    simulated = replace(closed.simulated, counters=paced.simulated.counters)
    return replace(closed, rows=[*others, *cached, *told], curves=curves, simulated=simulated)


def _with_noise(runs: Iterable[Held]) -> Iterator[Held]:
    runs = list(runs)
    same: dict[str, list[Held]] = {}
    for one in runs:
        same.setdefault(one.record.title, []).append(one)
    noises = {title: noise(ones) for title, ones in same.items() if len(ones) > 1}
    for one in runs:
        of_it = noises.get(one.record.title, {})
        one.found.rows = [judged(row, of_it.get(row.name)) for row in one.found.rows]
        yield Held(one.record, one.twin, one.found, of_it, len(same[one.record.title]))


def noise(runs: Sequence[Held]) -> dict[Name, float]:
    """Return how far real runs are apart at most, by figure, each pair compared as with a twin."""
    apart: dict[Name, float] = {}
    for one, other in combinations(runs, 2):
        both = [measured(each.record, each.twin) for each in (one, other)]
        for row in compare(both[0], both[1], Tolerances()).rows:
            if row.error is not None:
                apart[row.name] = max(apart.get(row.name, 0.0), abs(row.error))
    return apart
