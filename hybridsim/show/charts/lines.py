"""One column over another: one line for each group of rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hybridsim.show.charts.chart import Chart, Line, Value
from hybridsim.show.charts.pareto import named

ROOM = 1.08  # factor above the highest point
MANY = 30  # maximum number of points with markers


def lines(rows: Sequence[Mapping[str, Any]], x: str, y: str, by: str = "") -> Chart:
    """Return y over x, one line for each value of `by`, in order of first appearance.

    The unit follows from the end of a name, as in pareto.py.  Rows without an x are skipped; an
    unknown y is a gap in the line.
    """
    series: dict[str, list[tuple[float, Value]]] = defaultdict(list)
    for row in rows:
        if row.get(x) is not None:
            series[str(row.get(by, ""))].append((float(row[x]), row.get(y)))
    drawn = [_line(name, points) for name, points in series.items()]
    xs = [point for points in series.values() for point, _ in points]
    ys = [value for points in series.values() for _, value in points if value is not None]
    up = replace(named(y, ys), high=ROOM * max(ys, default=1.0))
    return Chart(f"{y}-by-{x}", f"{y} by {x}", named(x, xs), up, drawn)


def _line(name: str, points: Sequence[tuple[float, Value]]) -> Line:
    xs, ys = zip(*points)
    return Line(f"line-{name}", name, xs, ys, "both" if len(xs) <= MANY else "line")
