"""Charts as SVG: for print, for browsers without scripts, and where nothing needs to move.

Geometry only; templates/drawings.html writes it down, so that all text is escaped there.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from hybridsim.charts import Axis, Bars, Chart, Heat, Line
from hybridsim.charts import ticks as ticks_of
from hybridsim.charts.palette import colours
from hybridsim.charts.stacking import stacked
from hybridsim.report.html.png import png

Point = tuple[float, float]

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 14, 40
BAR = 26
NEAR = 0.6  # of a pixel apart: not seen
LETTER = 6.6  # how wide a letter is, about


@dataclass(frozen=True)
class Scale:
    """Where the values of an axis lie."""

    axis: Axis
    low: float
    high: float
    start: float  # in the picture
    end: float

    @classmethod
    def of(cls, axis: Axis, values: Sequence[Any], start: float, end: float) -> Scale:
        """Return a scale that holds all values, or what the axis says."""
        known = [each for each in values if each is not None and (each > 0 or not axis.log)]
        low = min(known, default=1.0) if axis.low is None else axis.low
        high = max(known, default=low) if axis.high is None else axis.high
        if axis.log:
            low, high = (low, high) if high > low else (low / 2, low * 2)
        elif not high > low:
            high = low + axis.per
        elif axis.high is None:
            high += 0.05 * (high - low)
        return cls(axis, low, high, start, end)

    def at(self, value: float) -> float:
        """Return the place of a value."""
        low, high = self.low, self.high
        if self.axis.log:
            value, low, high = (math.log10(max(each, 1e-300)) for each in (value, low, high))
        share = min(max((value - low) / (high - low), -0.02), 1.02)
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return places and texts of its ticks."""
        find = ticks_of.of(self.axis)
        values = find(self.low / self.axis.per, self.high / self.axis.per)
        return [(self.at(each * self.axis.per), ticks_of.text(each)) for each in values]


@dataclass
class Drawing:
    """What a template writes down as SVG."""

    width: float
    height: float
    left: float
    right: float
    top: float
    bottom: float
    x_title: str
    y_title: str = ""
    x_ticks: list[tuple[float, str]] = field(default_factory=list)
    y_ticks: list[tuple[float, str]] = field(default_factory=list)
    areas: list[tuple[int, str, bool]] = field(default_factory=list)  # colour, path, of a stack
    paths: list[tuple[int, str, bool]] = field(default_factory=list)  # colour, path, dashed
    dots: list[tuple[int, float, float]] = field(default_factory=list)
    bands: list[tuple[float, float, str]] = field(default_factory=list)  # x, width, label
    marks: list[tuple[float, float | None, str, str]] = field(default_factory=list)
    rects: list[tuple[int, float, float, float, float, str]] = field(default_factory=list)
    labels: list[tuple[float, str]] = field(default_factory=list)  # of rows: y, text
    legend: list[tuple[int, str]] = field(default_factory=list)
    image: str = ""


def of_chart(chart: Chart) -> Drawing:
    """Return the picture of a chart."""
    chart = stacked(chart) if chart.is_stacked else chart
    xs = [value for line in chart.lines for value in line.x]
    ys = [value for line in chart.lines for value in line.y]
    x = Scale.of(chart.x, xs, LEFT, WIDTH - RIGHT)
    y = Scale.of(chart.y, ys, HEIGHT - BOTTOM, TOP)
    drawing = Drawing(
        WIDTH, HEIGHT, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM, chart.x.title, chart.y.title,
        x.ticks, y.ticks,
    )  # fmt: skip
    for band in chart.bands:
        start, end = x.at(band.start), x.at(band.end)
        drawing.bands.append((start, max(end - start, 0), band.label))
    order = list(zip(chart.lines, colours([line.role for line in chart.lines])))
    # Of a stack the highest is drawn first, and the others over it.
    for line, colour in reversed(order) if chart.is_stacked else order:
        _line(drawing, line, colour, x, y, chart.is_stacked)
    drawing.legend = [(colour, line.label) for line, colour in order]
    for mark in chart.marks:
        place = x.at(mark.x)
        anchor = "end" if place > 0.8 * WIDTH else "start"
        drawing.marks.append((place, None if mark.y is None else y.at(mark.y), mark.label, anchor))
    return drawing


def _line(drawing: Drawing, line: Line, colour: int, x: Scale, y: Scale, is_stacked: bool) -> None:
    points = [
        None if a is None or b is None or (b <= 0 and y.axis.log) else (x.at(a), y.at(b))
        for a, b in zip(line.x, line.y)
    ]
    points = list(_seen(points))
    if line.style in ("points", "both"):
        drawing.dots += [(colour, *each) for each in points if each]
    if line.style == "points":
        return
    if line.style == "area":
        closed = [_closed(part, drawing.bottom) for part in _parts(points)]
        drawing.areas += [(colour, each, is_stacked) for each in closed]
    if not is_stacked:
        path = _path(points, line.style == "steps")
        drawing.paths.append((colour, path, line.dashed))


def _seen(points: Sequence[Point | None]) -> Iterator[Point | None]:
    """Yield points without those that lie on top of the one before."""
    before: Point | None = None
    for each in points:
        near = each and before and max(abs(each[0] - before[0]), abs(each[1] - before[1])) < NEAR
        if not near:
            yield each
            before = each


def _parts(points: Sequence[Point | None]) -> Iterator[list[Point]]:
    """Yield what lies between gaps."""
    for is_gap, part in groupby(points, lambda each: each is None):
        if not is_gap:
            yield [each for each in part if each]


def _closed(points: Sequence[Point], floor: float) -> str:
    """Return the outline of what lies below points."""
    return f"{_path(points, False)}L{points[-1][0]:g} {floor:g}L{points[0][0]:g} {floor:g}Z"


def _path(points: Sequence[Point | None], is_stepped: bool) -> str:
    """Return points as a path; None is a gap."""
    parts: list[str] = []
    before: Point | None = None
    for each in points:
        if each is not None:
            if before is None:
                parts.append(f"M{each[0]:g} {each[1]:g}")
            else:
                corner = f"L{each[0]:g} {before[1]:g}" if is_stepped else ""
                parts.append(f"{corner}L{each[0]:g} {each[1]:g}")
        before = each
    return "".join(parts)


def of_bars(bars: Bars, width: float = WIDTH) -> Drawing:
    """Return the picture of stacked bars."""
    left = 16 + LETTER * max((len(label) for label, _ in bars.rows), default=0)
    bottom = TOP + BAR * 1.4 * len(bars.rows)
    totals = [sum(values) for _, values in bars.rows]
    x = Scale.of(bars.x, [0, *totals], left, width - RIGHT)
    drawing = Drawing(
        width, bottom + BOTTOM, left, width - RIGHT, TOP, bottom, bars.x.title, x_ticks=x.ticks
    )
    palette = colours(bars.roles or [""] * len(bars.parts))
    for row, (label, values) in enumerate(bars.rows):
        top, done = TOP + BAR * 1.4 * row + 0.2 * BAR, 0.0
        drawing.labels.append((top + BAR / 2, label))
        for colour, part, value in zip(palette, bars.parts, values):
            start, end = x.at(done), x.at(done + value)
            said = f"{label}: {part} {ticks_of.text(round(value / bars.x.per, 2))} {bars.x.unit}"
            drawing.rects.append((colour, start, top, max(end - start, 0), BAR, said))
            done += value
    drawing.legend = list(zip(palette, bars.parts))
    return drawing


def of_heat(heat: Heat, width: float = WIDTH) -> Drawing:
    """Return the picture of a heat map: the more, the darker."""
    columns, rows = len(heat.counts), len(heat.counts[0]) if heat.counts else 0
    height = 300
    x = Scale(heat.x, 0, max(columns * heat.width, 1), LEFT, width - RIGHT)
    y = Scale(heat.y, 0, max(rows * heat.height, 1), height - BOTTOM, TOP)
    drawing = Drawing(
        width, height, LEFT, width - RIGHT, TOP, height - BOTTOM, heat.x.title, heat.y.title,
        x.ticks, y.ticks,
    )  # fmt: skip
    drawing.image = f"data:image/png;base64,{base64.b64encode(png(heat.counts)).decode()}"
    return drawing
