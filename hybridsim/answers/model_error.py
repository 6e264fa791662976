"""The error of the model: how far real runs on kernel caches were from their simulation.

The errors of all real runs on file (real_errors.csv, written by benchmarks/real_errors.py) are
taken by kind of cache, and by whether the load has writes.  Of n absolute errors, the
ceil((n + 1) p)-th smallest is exceeded by the next run with a probability of at most 1 - p, if that
run is drawn like those on file (split conformal prediction: V. Vovk et al., Algorithmic Learning in
a Random World, 2005).  Of a kind with too few runs for p, p is n / (n + 1); with fewer than
FEWEST, no interval is stated.
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
FEWEST = 7  # runs that an interval rests on
FEW_WRITES = 0.02  # share of the requests: the load is taken as one of reads
# Errors of these are shares of the figure; of the others, differences.
RELATIVE = ("iops", "steady_iops", "read_mean", "write_mean")
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


@dataclass(frozen=True)
class HalfWidth:
    """Half the width of an interval: a share of the figure, or a difference."""

    value: float
    level: float  # of confidence
    runs: int


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
        share = f"{self.level:.0%} interval from {self.runs} real runs on {self.kind}"
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


def alike(runs: Sequence[RealRun], kind: str, has_writes: bool) -> list[RealRun]:
    """Return the runs of this kind of cache, with such a load."""
    return [run for run in runs if run.kind == kind and (run.writes > FEW_WRITES) == has_writes]


def half_width(runs: Sequence[RealRun], figure: str, level: float = LEVEL) -> HalfWidth | None:
    """Return the conformal quantile of the errors of a figure; None from too few runs."""
    errors = sorted(abs(run.errors[figure]) for run in runs if figure in run.errors)
    count = len(errors)
    if count < FEWEST:
        return None
    level = min(level, count / (count + 1))
    return HalfWidth(errors[math.ceil((count + 1) * level - 1e-9) - 1], level, count)


def interval(figure: str, value: float, half: HalfWidth) -> tuple[float, float]:
    """Return the ends of the interval of a simulated figure."""
    reach = value * half.value if figure in RELATIVE else half.value
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
    load = "reads and writes" if has_writes else "reads"
    runs = alike(real_runs(), kind, has_writes)
    found = {name: half_width(runs, name) for name in _figures(result)}
    figures = {
        name: (value, *interval(name, value, half))
        for name, value in _figures(result).items()
        if (half := found[name]) is not None
    }
    levels = [half.level for half in found.values() if half is not None]
    why_not = "" if figures else _why_not(kind, load, len(runs))
    return ModelError(kind, load, len(runs), min(levels, default=LEVEL), figures, why_not)


def _figures(result: Result) -> dict[str, float]:
    """Return the figures of the machine with its cache that real runs have too."""
    whole, warm_up = result.cached.whole, result.warm_up
    figures = {}
    if result.scenario.get("mode", "open") != "open" and whole.iops:
        figures["iops"] = whole.iops  # in open loop the arrivals determine it
    if whole.figures.hit_ratio is not None:
        figures["hit_ratio"] = whole.figures.hit_ratio
    if warm_up.steady and warm_up.level is not None:
        figures["steady_iops" if warm_up.measure == "IOPS" else "steady_hit_ratio"] = warm_up.level
    return figures


def _why_not(kind: str, load: str, runs: int) -> str:
    words = counted(runs, "real run")
    return f"{words} on {kind} with {load} on file; an interval needs {FEWEST}"
