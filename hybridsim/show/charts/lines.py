"""Any column over any other: a line for each kind of row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hybridsim.show.charts.chart import Chart, Line, Value
from hybridsim.show.charts.pareto import named

ROOM = 1.08  # above the highest point
MANY = 30  # points: more are not marked one by one


def lines(rows: Sequence[Mapping[str, Any]], x: str, y: str, by: str = "") -> Chart:
    """Return y over x, a line for each value of `by` in the order in which it comes first.

    A unit is told by the end of a name, as in pareto.py.  Rows without an x are left out; where y
    is not known the line has a gap.
    """
    found: dict[str, list[tuple[float, Value]]] = defaultdict(list)
    for row in rows:
        if row.get(x) is not None:
            found[str(row.get(by, ""))].append((float(row[x]), row.get(y)))
    drawn = [_line(name, points) for name, points in found.items()]
    xs = [point for points in found.values() for point, _ in points]
    ys = [value for points in found.values() for _, value in points if value is not None]
    up = replace(named(y, ys), high=ROOM * max(ys, default=1.0))
    return Chart(f"{y}-by-{x}", f"{y} by {x}", named(x, xs), up, drawn)


def _line(name: str, points: Sequence[tuple[float, Value]]) -> Line:
    xs, ys = zip(*points)
    return Line(f"line-{name}", name, xs, ys, "both" if len(xs) <= MANY else "line")
