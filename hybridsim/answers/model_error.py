"""The error of the model: how far real runs on caches were from their simulation.

The errors of all real runs on file (real_errors.csv, written by benchmarks/real_errors.py) are
pooled by figure.  Kinds of caches and loads have errors of different sizes; they are groups: reads
on each kind of cache, loads with writes on each, but on bcache and dm-cache together, as these are
few.  A kind with too few experiments has an interval from all kinds on file, and says so.

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
often, one with far smaller errors more often.

*Kinds* are taken to be exchangeable for one that has no experiments.  A conformal quantile of kinds
would need nine of them; there are five, so that a distribution has to be assumed: the centres of
kinds are normal (sizes are logarithms), and the next one is known by Student's t from those on
file, with the spread of this figure's centres about their means, loads of reads and of writes each.
A run of it is as far from its kind's centre as those on file are from theirs; that shape is taken
from all figures and kinds.  A figure that fewer than three kinds determine has the spread of all
figures together.  None of it is fitted to how often it holds, but it was chosen among ten such
rules with that in view (benchmarks/RESULTS.md).
"""

from __future__ import annotations

import csv
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hybridsim.answers.sampling import student_below
from hybridsim.foundation.arrays import Floats
from hybridsim.foundation.documents import Document
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
ALL_KINDS = "all kinds"  # the group of a kind without experiments
FEWEST_FREEDOM = 2  # of the spread between kinds: with one more kind than the loads have means
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


def based_on(halves: Iterable[Half]) -> str:
    """Return the real runs that figures rest on, in words: their numbers differ by figure."""
    runs: dict[tuple[str, str], set[int]] = {}
    for each in halves:
        few = "" if each.is_own else f", as there are too few of {each.kind} with such a load"
        runs.setdefault((named(each.group), few), set()).add(each.runs)
    parts = []
    for (group, few), numbers in runs.items():
        *others, last = sorted(numbers)
        words = f"{', '.join(map(str, others))} or " if others else ""
        parts.append(f"{words}{counted(last, 'real run')} on {group}{few}")
    return "; ".join(parts)


class Simulated(NamedTuple):
    """A figure of a replay with its interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class ModelError(Document):
    """The intervals of a replay's figures, or why there are none."""

    kind: str
    load: str  # READS or WITH_WRITES
    runs: int  # on this kind with such a load
    level: float | None
    figures: dict[str, Simulated]
    covers: str | None  # one sentence, and what the interval does not
    why_not: str | None


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
    if group_name == ALL_KINDS:
        return f"{ALL_KINDS} on file"
    if group_name == WITH_WRITES:
        return f"{' and '.join(POOLED)} ({WITH_WRITES})"
    kind, writes, _ = group_name.partition(" with writes")
    return f"{kind} ({WITH_WRITES if writes else READS})"


@lru_cache(maxsize=512)
def half_of(
    kind: str, has_writes: bool, figure: str, runs: tuple[RealRun, ...] | None = None
) -> Half | None:
    """Return half the width of a figure's interval for a kind of cache and load.

    Where too few experiments are of that kind and load, those of that kind with the other load
    count; without them it is that of a kind without experiments.  None from too few in all.
    """
    runs = real_runs() if runs is None else runs
    number = Counter(run.group for run in runs if figure in run.errors)
    for name in (group(kind, has_writes), group(kind, not has_writes)):
        width = half_width(runs, name, figure)
        if width is not None:
            return Half(width, name, number[name], kind, name == group(kind, has_writes))
    width = new_kind(runs, has_writes, figure)
    return None if width is None else Half(width, ALL_KINDS, number.total(), kind, False)


def new_kind(runs: tuple[RealRun, ...], has_writes: bool, figure: str) -> float | None:
    """Return half the width of a figure's interval for a kind of cache without experiments."""
    centres, off, weight = _kinds(runs)
    of_figure = centres.get(figure, {})
    experiments = {run.experiment for run in runs if figure in run.errors}
    spread, freedom = _spread([of_figure])
    if freedom < FEWEST_FREEDOM:
        spread, freedom = _spread(centres.values())
    if not freedom or len(experiments) < FEWEST_POOLED:
        return None
    known = of_figure.get(has_writes, [])
    if len(known) < 2:
        known = [one for some in of_figure.values() for one in some]
    scale = max(spread * math.sqrt(1 + 1 / len(known)), TINY)

    def below(size: float) -> float:
        return float(weight @ student_below(freedom, (size - off) / scale))

    # Sizes are logarithms: the ends are those of errors of 2e-9 and of 5e8 times the centre's.
    low, high = -20.0, 20.0
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if below(middle) < LEVEL else (low, middle)
    least = finest(figure)
    return max(math.exp(_mean(known) + high) - least, 0.0)


Centres = dict[str, dict[bool, list[float]]]  # of kinds, by figure and whether the load has writes


@lru_cache(maxsize=64)
def _kinds(runs: tuple[RealRun, ...]) -> tuple[Centres, Floats, Floats]:
    """Return the centres of all kinds, how far runs are from these, and the weights of those.

    Runs of an experiment count in equal parts.  A centre of n experiments is itself drawn to each
    of them, by sqrt(1 - 1 / n) on average; of a single one nothing is known.
    """
    sizes: dict[tuple[str, bool, str], dict[str, list[float]]] = defaultdict(dict)
    for run in runs:
        for figure, error in run.errors.items():
            size = math.log(finest(figure) + size_of(figure, error))
            of_kind = sizes[figure, run.writes > FEW_WRITES, run.kind]
            of_kind.setdefault(run.experiment, []).append(size)
    centres: Centres = defaultdict(lambda: defaultdict(list))
    off, weight = [], []
    for (figure, has_writes, _), each in sizes.items():
        centre = _mean([_mean(some) for some in each.values()])
        centres[figure][has_writes].append(centre)
        if len(each) > 1:
            drawn = math.sqrt(1 - 1 / len(each))
            off += [(one - centre) / drawn for some in each.values() for one in some]
            weight += [1 / len(some) for some in each.values() for _ in some]
    return centres, np.array(off), np.array(weight) / max(sum(weight), TINY)


def _spread(figures: Iterable[Mapping[bool, Sequence[float]]]) -> tuple[float, int]:
    """Return the standard deviation between kinds, and its degrees of freedom (0: unknown)."""
    squares, freedom = 0.0, 0
    for centres in (some for loads in figures for some in loads.values()):
        mean = _mean(centres)
        squares += sum((one - mean) ** 2 for one in centres)
        freedom += len(centres) - 1
    return math.sqrt(squares / freedom) if freedom else 0.0, freedom


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
    kind = result._kind
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
        name: Simulated(simulated[name], *interval(name, simulated[name], half.width))
        for name, half in halves.items()
    }
    runs = sum(run.kind == kind and run.group == group(kind, has_writes) for run in real_runs())
    if not figures:
        why_not = f"{counted(runs, 'real run')} on {kind} with {load} on file"
        return ModelError(kind, load, runs, None, {}, None, why_not)
    covers = f"{LEVEL:.0%} interval from {based_on(halves.values())}. {COVERS}."
    return ModelError(kind, load, runs, LEVEL, figures, covers, None)


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
    if changes := whole.counters.get(COUNTED.get(kind, "")):
        figures[COUNTED[kind]] = float(changes)
    return figures
