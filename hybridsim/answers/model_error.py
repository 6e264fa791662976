"""The error of the model: how far real runs on kernel caches were from their simulation.

The errors of all real runs on file (real_errors.csv, written by benchmarks/real_errors.py) are
pooled by figure.  Kinds of caches and loads have errors of different sizes; they are groups: reads
on each kind of cache, loads with writes on each, but on bcache and dm-cache together, as these are
few.  A kind with too few experiments has the widest interval of the other kinds with such a load,
times an allowance for a new kind, and says so.  The allowance is what the same rule would have
needed on file: each kind is left out and judged by the others, and the factor is the one that holds
LEVEL of all pairs of a kind and a figure, and one more.

The interval is conformal, at three levels.  *Runs* of one experiment are not independent, so each
experiment counts once, its runs in equal parts (Y. Lee, R. F. Barber, R. Willett, Distribution-free
inference with hierarchical data, 2023).  *Experiments* of a group are taken to be exchangeable, the
next one with them.  *Groups* share the shape of their errors, not the size, so an error is compared
as its logarithm less the centre of its group: the mean over the group's experiments, among which
the mean of all other groups counts as one more, as little is known of a size from three
experiments.  A new error is inside if less than LEVEL of the n + 1 experiments, itself among them,
have a smaller score, where it counts in its group's centre as all others do (full conformal
prediction: V. Vovk, A. Gammerman, G. Shafer, Algorithmic Learning in a Random World, 2005).  An
error that made its own group's centre larger is thus compared fairly, however small the group.

Assumptions: the next experiment of a group is drawn like those on file, with each group as often as
on file.  The share of LEVEL is then one over all groups, not one of each: for that each group would
need nine experiments.  A group of few experiments with far larger errors than the others holds less
often, one with far smaller errors more often.  A kind of cache without experiments has no such
guarantee at all.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybridsim.foundation.wording import counted

if TYPE_CHECKING:
    from hybridsim.answers.result import Result

TABLE = Path(__file__).parent / "real_errors.csv"
LEVEL = 0.9
FEWEST = 3  # experiments of a group
FEWEST_POOLED = 9  # experiments of all groups: LEVEL of these and one more
FEW_WRITES = 0.02  # share of the requests: the load is taken as one of reads
# Errors of these are factors, less 1, in either direction; of the others, differences.
RELATIVE = (
    "iops", "steady_iops", "read_mean", "write_mean", "read_p99", "write_p99", "t90",
)  # fmt: skip
READS, WITH_WRITES = "reads", "reads and writes"  # loads; the latter also the group of POOLED
POOLED = ("bcache", "dm-cache")  # kinds whose loads with writes are one group
COUNTED = {"dm-cache": "promotions", "bcache": "cache_misses"}  # `promotions` of the table
TABLED = dict.fromkeys(COUNTED.values(), "promotions")  # figure: its column of the table
UNLIKE = "dm-writecache"  # it keeps no reads: its errors say nothing of other kinds
TINY = 1e-9
FINEST = 0.005  # an error below it is finer than what is printed: sizes of errors start here
# The same of t90, which is known to a second, from 10 s on.  Of 0.02, 0.05 and 0.1 it was chosen
# with the intervals on file in view.
FINEST_T90 = 0.1
COVERS = (
    "It covers the error of the model on machines and loads like those of these runs; not another "
    "load tomorrow, other drives than the scenario's, or a fault"
)


@dataclass(frozen=True)
class RealRun:
    """The errors of the twin of one real run, by figure; see real_errors.csv."""

    kind: str
    experiment: str
    name: str
    writes: float  # share of the requests
    errors: dict[str, float] = field(hash=False)

    @property
    def group(self) -> str:
        """The group of runs whose errors have the same scale."""
        return group(self.kind, self.writes > FEW_WRITES)


@dataclass(frozen=True)
class Half:
    """Half the width of the interval of a figure, and the real runs that it rests on."""

    width: float
    group: str
    runs: int
    kind: str
    is_own: bool  # the runs are of that kind of cache and load
    factor: float = 1.0  # allowed for a kind without runs; within `width`

    @property
    def basis(self) -> str:
        """The real runs in words."""
        few = "" if self.is_own else f", as there are too few of {self.kind} with such a load"
        times = "" if self.factor == 1 else f" times {self.factor:.1f}"
        return f"{counted(self.runs, 'real run')} on {named(self.group)}{times}{few}"


@dataclass(frozen=True)
class ModelError:
    """The intervals of a replay's figures, or why there are none."""

    kind: str
    load: str  # READS or WITH_WRITES
    runs: int  # on this kind with such a load
    bases: tuple[str, ...]  # real runs that the figures rest on, in words
    level: float
    figures: dict[str, tuple[float, float, float]]  # value, low, high
    why_not: str = ""

    @property
    def covers(self) -> str:
        """One sentence: what the interval covers, and what it does not."""
        return f"{self.level:.0%} interval from {'; '.join(self.bases)}. {COVERS}."

    def to_dict(self) -> dict[str, Any]:
        """Return it as what JSON can hold."""
        names = ("value", "low", "high")
        return {
            "kind": self.kind,
            "load": self.load,
            "runs": self.runs,
            "level": self.level if self.figures else None,
            "figures": {name: dict(zip(names, three)) for name, three in self.figures.items()},
            "covers": self.covers if self.figures else None,
            "why_not": self.why_not or None,
        }


@cache
def real_runs() -> tuple[RealRun, ...]:
    """Return all real runs on file."""
    lines = TABLE.read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    fixed = ("kind", "experiment", "run", "writes")
    return tuple(
        RealRun(
            row["kind"],
            row["experiment"],
            row["run"],
            float(row["writes"]),
            {name: float(cell) for name, cell in row.items() if cell and name not in fixed},
        )
        for row in rows
    )


def group(kind: str, has_writes: bool) -> str:
    """Return the group of a run on a kind of cache: loads with writes on POOLED are one."""
    if not has_writes:
        return kind
    return WITH_WRITES if kind in POOLED else f"{kind} with writes"


def named(group_name: str) -> str:
    """Return a group in words: which caches, which load."""
    if group_name == WITH_WRITES:
        return f"{' and '.join(POOLED)} ({WITH_WRITES})"
    kind, writes, _ = group_name.partition(" with writes")
    return f"{kind} ({WITH_WRITES if writes else READS})"


def half_of(
    kind: str, has_writes: bool, figure: str, runs: Sequence[RealRun] | None = None
) -> Half | None:
    """Return half the width of a figure's interval for a kind of cache and load.

    Where too few experiments are of that kind and load, those of that kind with the other load
    count; without them the widest interval of the other kinds with such a load, then the widest of
    all, times the allowance for a new kind.  None from too few experiments in all.
    """
    return _half_of(kind, has_writes, figure, real_runs() if runs is None else tuple(runs))


@lru_cache(maxsize=512)
def _half_of(kind: str, has_writes: bool, figure: str, runs: tuple[RealRun, ...]) -> Half | None:
    number = Counter(run.group for run in runs if figure in run.errors)
    for name in (group(kind, has_writes), group(kind, not has_writes)):
        width = half_width(runs, name, figure)
        if width is not None:
            return Half(width, name, number[name], kind, name == group(kind, has_writes))
    if (widest := _widest(has_writes, figure, runs)) is None:
        return None
    name, width = widest
    factor = new_kind_factor(runs)
    least = finest(figure)
    return Half((width + least) * factor - least, name, number[name], kind, False, factor)


def _widest(has_writes: bool, figure: str, runs: Sequence[RealRun]) -> tuple[str, float] | None:
    """Return the group with the widest interval of a figure, of those with such a load if any."""
    load = {run.group: run.writes > FEW_WRITES for run in runs if figure in run.errors}
    known = [
        (name, width)
        for name in sorted(load)
        if not name.startswith(UNLIKE) and (width := half_width(runs, name, figure)) is not None
    ]
    alike = [pair for pair in known if load[pair[0]] == has_writes] or known
    return max(alike, key=lambda pair: pair[1], default=None)


@lru_cache(maxsize=64)
def new_kind_factor(runs: tuple[RealRun, ...]) -> float:
    """Return how many times the widest interval of the others is that of a kind without runs.

    Each kind on file is left out and judged by the others: the factor holds LEVEL of all pairs of
    such a kind and a figure, and one more.  A pair counts by its experiments in equal parts.
    """
    needed: list[tuple[float, float]] = []  # the factor of a run, and its weight
    pairs = 0
    for kind in sorted({run.kind for run in runs}):
        others = tuple(run for run in runs if run.kind != kind)
        own = [run for run in runs if run.kind == kind]
        for figure in sorted({name for run in own for name in run.errors}):
            some = [run for run in own if figure in run.errors]
            of_experiment = Counter(run.experiment for run in some)
            loads = {run.writes > FEW_WRITES for run in some}
            widest = {load: found for load in loads if (found := _widest(load, figure, others))}
            if len(widest) < len(loads):
                continue
            pairs += 1
            for run in some:
                _, width = widest[run.writes > FEW_WRITES]
                least = finest(figure)
                factor = (size_of(figure, run.errors[figure]) + least) / (width + least)
                weight = 1 / of_experiment[run.experiment] / len(of_experiment)
                needed.append((factor, weight))
    needed.sort()
    reached = accumulate(weight for _, weight in needed)
    enough = LEVEL * (pairs + 1) - 1e-9
    largest = needed[-1][0] if needed else 1.0
    factor = next((one for (one, _), weight in zip(needed, reached) if weight >= enough), largest)
    return max(factor, 1.0)


def half_width(runs: Sequence[RealRun], name: str, figure: str) -> float | None:
    """Return half the width of a figure's interval in a group; None from too few experiments."""
    sizes: dict[str, dict[str, list[float]]] = {}  # by group and experiment
    least = finest(figure)
    for run in runs:
        if figure in run.errors:
            size = math.log(least + size_of(figure, run.errors[figure]))
            sizes.setdefault(run.group, {}).setdefault(run.experiment, []).append(size)
    experiments = sum(map(len, sizes.values()))
    if len(sizes.get(name, ())) < FEWEST or experiments < FEWEST_POOLED:
        return None
    # The difference of two scores is linear in the size of the new error: from its values at two
    # sizes follows the size from which on the new error's score is the larger one.
    at_0, at_1 = _ahead(sizes, name, 0.0), _ahead(sizes, name, 1.0)
    overtaken = sorted(
        (zero / (zero - one), weight) for (zero, weight), (one, _) in zip(at_0, at_1)
    )
    needed = LEVEL * (experiments + 1) - 1e-9
    reached = accumulate(weight for _, weight in overtaken)
    size = next(size for (size, _), weight in zip(overtaken, reached) if weight >= needed)
    return max(math.exp(size) - least, 0.0)


def _ahead(
    sizes: Mapping[str, Mapping[str, Sequence[float]]], name: str, new: float
) -> list[tuple[float, float]]:
    """Return by how much the score of each run exceeds that of a new error in a group.

    Each comes with the weight of the run: 1 over the number of runs of its experiment.
    """
    means = {group: [_mean(some) for some in each.values()] for group, each in sizes.items()}
    means[name].append(new)
    centre = {}
    for group, own in means.items():
        others = [one for other, some in means.items() if other != group for one in some]
        centre[group] = _mean([*own, _mean(others)] if others else own)
    return [
        (size - centre[group] - (new - centre[name]), 1 / len(some))
        for group, each in sizes.items() for some in each.values() for size in some
    ]  # fmt: skip


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def finest(figure: str) -> float:
    """Return the size of an error below which errors are alike: they cannot be measured."""
    return FINEST_T90 if figure == "t90" else FINEST


def size_of(figure: str, error: float) -> float:
    """Return how large an error of the table is: a factor counts the same in both directions."""
    return math.expm1(abs(math.log1p(error))) if figure in RELATIVE else abs(error)


def interval(figure: str, value: float, half: float) -> tuple[float, float]:
    """Return the ends of the interval of a simulated figure."""
    if figure in COUNTED.values():  # the error is a share of the real count
        return value / (1 + half), value / max(1 - half, TINY)
    if figure in RELATIVE:
        return value / (1 + half), value * (1 + half)
    return max(value - half, 0.0), min(value + half, 1.0)


def model_error(result: Result) -> ModelError | None:
    """Return the intervals of a replay's figures; None where it has no cache."""
    kind = str(result.scenario.get("cache_kind", "none"))
    if kind == "none":
        return None
    whole = result.cached.whole.figures
    requests = sum(whole.done.values())
    has_writes = whole.writes.count > FEW_WRITES * max(requests, 1)
    load = WITH_WRITES if has_writes else READS
    simulated = _figures(result, kind)
    halves = {
        name: half
        for name in simulated
        if (half := half_of(kind, has_writes, TABLED.get(name, name))) is not None
    }
    figures = {
        name: (simulated[name], *interval(name, simulated[name], half.width))
        for name, half in halves.items()
    }
    runs = sum(run.kind == kind and run.group == group(kind, has_writes) for run in real_runs())
    bases = tuple(dict.fromkeys(half.basis for half in halves.values()))
    why_not = "" if figures else _why_not(kind, load, runs)
    return ModelError(kind, load, runs, bases, LEVEL, figures, why_not)


def _figures(result: Result, kind: str) -> dict[str, float]:
    """Return the figures of the machine with its cache that real runs have too."""
    whole, warm_up = result.cached.whole, result.warm_up
    figures: dict[str, float] = {}
    if result.scenario.get("mode", "open") != "open" and whole.iops:
        figures["iops"] = whole.iops  # in open loop the arrivals determine it
    if whole.figures.hit_ratio is not None:
        figures["hit_ratio"] = whole.figures.hit_ratio
    if warm_up.steady and warm_up.level is not None:
        figures["steady_iops" if warm_up.measure == "IOPS" else "steady_hit_ratio"] = warm_up.level
    if counted := whole.counters.get(COUNTED.get(kind, "")):
        figures[COUNTED[kind]] = float(counted)
    return figures


def _why_not(kind: str, load: str, runs: int) -> str:
    words = counted(runs, "real run")
    return f"{words} on {kind} with {load} on file"
