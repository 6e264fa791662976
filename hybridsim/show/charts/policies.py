"""Policies beside each other: each against the best in every cell of a table."""

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
    """Return each policy's values over the best baseline's in the same cell.

    Without baselines all policies are.  Cells in which the best is not above 0 are left out.
    """
    cells: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.get(value) is not None and row.get(policy) is not None:
            place = tuple(row.get(each) for each in cell)
            cells[place][str(row[policy])] = float(row[value])
    found: dict[str, list[float]] = defaultdict(list)
    for by_policy in cells.values():
        known = [number for name, number in by_policy.items() if not baselines or name in baselines]
        best = min(known, default=0.0)
        if best > 0:
            for name, number in by_policy.items():
                found[name].append(number / best)
    return dict(found)


def compared(
    ratios: Mapping[str, Sequence[float]], baselines: Sequence[str] = (), what: str = "disk time"
) -> Dots:
    """Return a dot a cell for each policy, the best by its geometric mean first.

    Where there are baselines, the others are those that are judged.
    """
    means = {name: geometric_mean(each) for name, each in ratios.items()}
    order = sorted(ratios, key=lambda name: means[name])
    rows = [(name, list(ratios[name])) for name in order]
    x = Axis(f"{what} / that of the best{' baseline' if baselines else ''}", log=True)
    judged = [name for name in order if baselines and name not in baselines]
    centres = [means[name] for name in order]
    return Dots("policies", "Policies", x, rows, centres, "geometric mean", judged)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the mean of ratios."""
    positive = [each for each in values if each > 0]
    return math.exp(sum(map(math.log, positive)) / len(positive)) if positive else math.nan
