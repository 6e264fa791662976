"""Lines of a stacked chart."""

from __future__ import annotations

from dataclasses import replace

from hybridsim.show.charts.chart import Chart


def stacked(chart: Chart) -> Chart:
    """Return a chart whose lines are the running sums of the lines; all have the same x.

    A sum with an unknown value is unknown.
    """
    sums: list[float | int | None] = [0] * max((len(line.y) for line in chart.lines), default=0)
    lines = []
    for line in chart.lines:
        sums = [None if a is None or b is None else a + b for a, b in zip(sums, line.y)]
        lines.append(replace(line, y=sums))
    return replace(chart, lines=lines)
