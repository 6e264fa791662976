"""The error of the model: how far real runs on kernel caches were from their simulation.

The errors of all real runs on file (real_errors.csv, written by benchmarks/real_errors.py) are
pooled by figure.  As kinds of caches and loads have errors of different sizes, each is divided by
the mean absolute error of its group: reads on each kind of cache, and loads with writes on all of
them, which are few.  Of n scores that are even draws, the ceil((n + 1) p)-th smallest is exceeded
by the next one with a probability of at most 1 - p (split conformal prediction with normalised
scores: H. Papadopoulos et al., ECAI 2008).  Repeated runs of one experiment are not independent, so
the m experiments count instead: p becomes p (1 + 1 / m), and the scale of a group of k experiments
grows by 1 / k.  Assumption: the next machine and load are drawn like the experiments on file.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hybridsim.foundation.wording import counted

if TYPE_CHECKING:
    from hybridsim.answers.result import Result

TABLE = Path(__file__).parent / "real_errors.csv"
LEVEL = 0.9
FEWEST = 3  # experiments of a group
FEWEST_POOLED = 10  # experiments of all groups: fewer have no quantile of LEVEL
FEW_WRITES = 0.02  # share of the requests: the load is taken as one of reads
# Errors of these are shares of the figure; of the others, differences.
RELATIVE = ("iops", "steady_iops", "read_mean", "write_mean")
WITH_WRITES = "reads and writes"  # the group of all kinds of caches
COUNTED = {"dm-cache": "promotions", "bcache": "cache_misses"}  # `promotions` of the table
TABLED = dict.fromkeys(COUNTED.values(), "promotions")  # figure: its column of the table
TINY = 1e-9
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
    errors: dict[str, float]

    @property
    def group(self) -> str:
        """The group of runs whose errors have the same scale."""
        return group(self.kind, self.writes > FEW_WRITES)


@dataclass(frozen=True)
class ModelError:
    """The intervals of a replay's figures, or why there are none."""

    kind: str
    load: str  # "reads", "reads and writes"
    runs: int
    level: float
    figures: dict[str, tuple[float, float, float]]  # value, low, high
    why_not: str = ""

    @property
    def covers(self) -> str:
        """One sentence: what the interval covers, and what it does not."""
        where = "all kinds of caches" if self.load == WITH_WRITES else self.kind
        share = f"{self.level:.0%} interval from {self.runs} real runs on {where}"
        return f"{share} ({self.load}). {COVERS}."

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
    """Return the group of a run on a kind of cache: all loads with writes are one group."""
    return WITH_WRITES if has_writes else kind


def half_width(runs: Sequence[RealRun], name: str, figure: str) -> float | None:
    """Return half the width of a figure's interval in a group; None from too few experiments."""
    errors: dict[str, list[float]] = {}
    experiments: dict[str, set[str]] = {}
    for run in runs:
        if figure in run.errors:
            errors.setdefault(run.group, []).append(abs(run.errors[figure]))
            experiments.setdefault(run.group, set()).add(run.experiment)
    pooled = sum(map(len, experiments.values()))
    if len(experiments.get(name, ())) < FEWEST or pooled < FEWEST_POOLED:
        return None
    scale = {
        each: max(sum(some) / len(some), TINY) * (1 + 1 / len(experiments[each]))
        for each, some in errors.items()
    }
    scores = sorted(one / scale[each] for each, some in errors.items() for one in some)
    rank = math.ceil(len(scores) * LEVEL * (1 + 1 / pooled) - 1e-9)
    return scores[min(rank, len(scores)) - 1] * scale[name]


def interval(figure: str, value: float, half: float) -> tuple[float, float]:
    """Return the ends of the interval of a simulated figure."""
    if figure in COUNTED.values():  # the error is a share of the real count
        return value / (1 + half), value / max(1 - half, TINY)
    reach = value * half if figure in RELATIVE else half
    low, high = max(value - reach, 0.0), value + reach
    return (low, high) if figure in RELATIVE else (low, min(high, 1.0))


def model_error(result: Result) -> ModelError | None:
    """Return the intervals of a replay's figures; None where it has no cache."""
    kind = str(result.scenario.get("cache_kind", "none"))
    if kind == "none":
        return None
    whole = result.cached.whole.figures
    requests = sum(whole.done.values())
    has_writes = whole.writes.count > FEW_WRITES * max(requests, 1)
    load, its = WITH_WRITES if has_writes else "reads", group(kind, has_writes)
    alike = [run for run in real_runs() if run.group == its]
    if not any(run.kind == kind for run in alike):
        alike = []
    simulated = _figures(result, kind)
    halves = {
        name: half_width(real_runs(), its, TABLED.get(name, name)) for name in simulated if alike
    }
    figures = {
        name: (value, *interval(name, value, half))
        for name, value in simulated.items()
        if (half := halves.get(name)) is not None
    }
    why_not = "" if figures else _why_not(kind, load, len(alike))
    return ModelError(kind, load, len(alike), LEVEL, figures, why_not)


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
