"""The miss-ratio curve with its knee and the chosen size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Chart, Line, Mark
from hybridsim.show.curve import no_knee


def overlaid(curves: Mapping[str, Mapping[str, Any]], chosen_bytes: int | None = None) -> Chart:
    """Return a curve with its knee, or several named curves, each with its knee."""
    charts = {name: miss_ratio(each, chosen_bytes) for name, each in curves.items()}
    if len(charts) == 1:
        return next(iter(charts.values()))
    first = next(iter(charts.values()))
    lines = [
        replace(chart.lines[0], gid=f"miss-ratio-{name}", label=name, role="")
        for name, chart in charts.items()
    ]
    marks = {
        replace(mark, label=f"{mark.label}, {name}") if mark.y is not None else mark: None
        for name, chart in charts.items()
        for mark in chart.marks
    }
    return replace(first, lines=lines, marks=list(marks),
                   x=axes.sizes(max(axes.maximum(line.x) for line in lines)))  # fmt: skip


def miss_ratio(curve: Mapping[str, Any], chosen_bytes: int | None = None) -> Chart:
    """Return a curve of `mrc --json` or `size --json`."""
    page = curve["page_bytes"]
    sizes = [each["pages"] * page for each in curve["curve"]]
    ratios = [each["miss_ratio"] for each in curve["curve"]]
    errors = [each["error"] for each in curve["curve"]]
    line = Line("miss-ratio", f"{curve['policy'].upper()}", sizes, ratios, role="real")
    note = ""
    if any(errors):
        line = replace(
            line,
            low=[max(ratio - error, 0.0) for ratio, error in zip(ratios, errors)],
            high=[min(ratio + error, 1.0) for ratio, error in zip(ratios, errors)],
        )
        note = "Shaded: the interval of 95 % of a sampled curve."
    marks = []
    if no_knee(ratios[0], ratios[-1]) is None:
        knee = curve["knee_pages"] * page
        near = min(range(len(sizes)), key=lambda at: abs(sizes[at] - knee))
        marks.append(Mark("knee", sizes[near], ratios[near]))
    if chosen_bytes is not None:
        marks.append(Mark("chosen", chosen_bytes))
    return Chart(
        "miss-ratio-curve", "Miss ratio by cache size",
        axes.sizes(sizes[-1]), axes.shares("miss ratio"), [line], marks=marks, note=note,
    )  # fmt: skip
