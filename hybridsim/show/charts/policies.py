"""Comparison of policies: each relative to the best one in every cell of a table."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from hybridsim.show.charts.chart import Axis, Dots


def relative(
    rows: Sequence[Mapping[str, Any]],
    value: str,
    policy: str,
    cell: Sequence[str],
    baselines: Sequence[str] = (),
) -> dict[str, list[float]]:
    """Return each policy's values relative to the best baseline in the same cell.

    By default all policies are baselines.  Cells whose best value is not above 0 are skipped.
    """
    cells: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.get(value) is not None and row.get(policy) is not None:
            place = tuple(row.get(each) for each in cell)
            cells[place][str(row[policy])] = float(row[value])
    ratios: dict[str, list[float]] = defaultdict(list)
    for by_policy in cells.values():
        best_of = baselines or by_policy
        values = [number for name, number in by_policy.items() if name in best_of]
        best = min(values, default=0.0)
        if best > 0:
            for name, number in by_policy.items():
                ratios[name].append(number / best)
    return dict(ratios)


def compared(
    ratios: Mapping[str, Sequence[float]], baselines: Sequence[str] = (), what: str = "disk time"
) -> Dots:
    """Return one dot per cell for each policy, sorted by the geometric mean.

    Policies that are not baselines are highlighted.
    """
    means = {name: geometric_mean(each) for name, each in ratios.items()}
    order = sorted(ratios, key=lambda name: means[name])
    rows = [(name, list(ratios[name])) for name in order]
    x = Axis(f"{what} / that of the best{' baseline' if baselines else ''}", log=True)
    judged = [name for name in order if baselines and name not in baselines]
    centres = [means[name] for name in order]
    return Dots("policies", "Policies", x, rows, centres, "geometric mean", judged)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of ratios."""
    positive = [each for each in values if each > 0]
    return math.exp(sum(map(math.log, positive)) / len(positive)) if positive else math.nan
