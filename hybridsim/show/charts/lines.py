"""Columns of a table: one over another, one line for each group of rows; or by the rows' names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hybridsim.show.charts.chart import Beside, Chart, Line, Value
from hybridsim.show.charts.pareto import named

ROOM = 1.08  # factor above the highest point
MOST_DIRECT = 8  # lines that are named at their ends
MANY = 30  # maximum number of points with markers


def lines(rows: Sequence[Mapping[str, Any]], x: str, y: str, by: str | Sequence[str] = "") -> Chart:
    """Return y over x, one line for each value of the column `by`, in order of first appearance.

    Of several columns, it is one line for each combination of their values.

    The unit follows from the end of a name, as in pareto.py.  Rows without an x are skipped; an
    unknown y is a gap in the line.
    """
    keys = [by] if isinstance(by, str) else list(by)
    series: dict[str, list[tuple[float, Value]]] = defaultdict(list)
    for row in rows:
        if row.get(x) is not None:
            name = " ".join(str(row.get(key, "")) for key in keys)
            series[name].append((float(row[x]), row.get(y)))
    drawn = [_line(name, points) for name, points in series.items()]
    xs = [point for points in series.values() for point, _ in points]
    ys = [value for points in series.values() for _, value in points if value is not None]
    up = replace(named(y, ys), high=ROOM * max(ys, default=1.0))
    return Chart(
        f"{y}-by-{x}", f"{y} by {x}", named(x, xs), up, drawn, is_direct=len(drawn) <= MOST_DIRECT
    )


def _line(name: str, points: Sequence[tuple[float, Value]]) -> Line:
    xs, ys = zip(*points)
    return Line(f"line-{name}", name, xs, ys, "both" if len(xs) <= MANY else "line")


def beside(
    rows: Sequence[Mapping[str, Any]],
    name: str,
    figures: Sequence[str],
    bold: Sequence[str] = (),
    log: bool = False,
) -> Beside:
    """Return the columns `figures` of each row, which `name` names; the unit is that of the first.

    Rows without any of the figures are skipped.
    """
    every = [(str(row[name]), [_number(row.get(key)) for key in figures]) for row in rows]
    known = [each for each in every if any(value is not None for value in each[1])]
    axis = named(figures[0], [each for _, values in known for each in values if each is not None])
    if len(figures) > 1:  # their legend has the rest of their names
        axis = replace(axis, label="" if axis.unit else axis.label.rpartition(" ")[2])
    axis = replace(axis, log=log, low=None if log else 0)
    return Beside(f"{figures[0]}-by-{name}", f"{figures[0]} by {name}", axis, figures, known, bold)


def _number(value: Any) -> Value:
    return None if value is None or value != value else float(value)
