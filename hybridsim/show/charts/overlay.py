"""Overlay of a real and a simulated run."""

from __future__ import annotations

from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Axis, Chart, Line
from hybridsim.show.charts.documents import Document

FEWEST = 4  # minimum number of bins for a curve


def overlays(document: Document) -> list[Chart]:
    """Return one chart for each curve that both runs have, from `compare --json`."""
    return [
        _overlay(number, each)
        for number, each in enumerate(document["curves"])
        if len(each["time_ns"]) > FEWEST
    ]


def _overlay(number: int, curve: Document) -> Chart:
    width = curve["width_ns"]
    x = [start + width / 2 for start in curve["time_ns"]]
    lines = [
        Line(f"{side}-{number}", side, x, curve[side]["x"], role=side)
        for side in ("real", "simulated")
    ]
    end = curve["time_ns"][-1] + width
    y = _axis(curve["name"], axes.maximum(value for line in lines for value in line.y))
    name = str(curve["name"])
    return Chart(f"overlay-{number}", name, axes.times(end), y, lines, sync="time")


def _axis(name: str, highest: float) -> Axis:
    """Return the axis of a measure by its name."""
    if "hit ratio" in name:
        return axes.shares("hit ratio")
    if "bandwidth" in name:
        return axes.rates(highest, "bandwidth")
    if "lat" in name.rpartition(" ")[2]:
        return axes.latencies(highest)
    return axes.counts(name.rpartition(" ")[2])
