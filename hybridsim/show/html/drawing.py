"""Geometry of charts as SVG: for print, browsers without scripts, and charts without interaction.

templates/drawings.html writes the SVG and escapes all text.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from hybridsim.show.charts import Axis, Bars, Chart, Heat, Line, Ranges
from hybridsim.show.charts import ticks as ticks_of
from hybridsim.show.charts.labels import rows_of
from hybridsim.show.charts.palette import BLUE, INTERVAL, VERMILLION, colours
from hybridsim.show.charts.stacking import stacked
from hybridsim.show.html.paths import areas, between, outline
from hybridsim.show.html.png import png

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 14, 40
BAR = 26
RANGE = 30  # height of a row with its name above
LETTER = 6.6  # approximate width of a letter
LINE = 13  # height of a line of text


@dataclass(frozen=True)
class Scale:
    """Positions of the values of an axis."""

    axis: Axis
    low: float
    high: float
    start: float  # position of `low` in the picture
    end: float  # position of `high`

    @classmethod
    def of(cls, axis: Axis, values: Sequence[Any], start: float, end: float) -> Scale:
        """Return a scale for all values, or for the range that the axis specifies."""
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
        """Return the position of a value; values outside of the range are at its ends."""
        low, high = self.low, self.high
        if self.axis.log:
            value, low, high = (math.log10(max(each, 1e-300)) for each in (value, low, high))
        share = min(max((value - low) / (high - low), -0.02), 1.02)
        return round(self.start + share * (self.end - self.start), 1)

    @property
    def ticks(self) -> list[tuple[float, str]]:
        """Return positions and texts of the ticks."""
        find = ticks_of.of(self.axis)
        values = find(self.low / self.axis.per, self.high / self.axis.per)
        return [(self.at(each * self.axis.per), ticks_of.text(each)) for each in values]


@dataclass
class Drawing:
    """Geometry of one picture, for the template that writes it as SVG."""

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
    areas: list[tuple[int, str, bool]] = field(default_factory=list)  # colour, path, is_stacked
    intervals: list[tuple[int, str]] = field(default_factory=list)  # colour, path
    paths: list[tuple[int, str, bool]] = field(default_factory=list)  # colour, path, dashed
    dots: list[tuple[int, float, float]] = field(default_factory=list)
    bands: list[tuple[float, float, str, float]] = field(default_factory=list)  # x, x, label, its x
    marks: list[tuple[float, float | None, str, str, float]] = field(default_factory=list)
    rects: list[tuple[int, float, float, float, float, str]] = field(default_factory=list)
    labels: list[tuple[float, str]] = field(default_factory=list)  # of rows: y, text
    captions: list[tuple[float, float, str]] = field(default_factory=list)  # of rows: x, y, text
    legend: list[tuple[int, str]] = field(default_factory=list)
    image: str = ""


def of_chart(chart: Chart) -> Drawing:
    """Return the geometry of a chart."""
    chart = stacked(chart) if chart.is_stacked else chart
    xs = [value for line in chart.lines for value in line.x]
    ys = [value for line in chart.lines for value in (*line.y, *line.low, *line.high)]
    x = Scale.of(chart.x, xs, LEFT, WIDTH - RIGHT)
    y = Scale.of(chart.y, ys, HEIGHT - BOTTOM, TOP)
    drawing = Drawing(
        WIDTH, HEIGHT, LEFT, WIDTH - RIGHT, TOP, HEIGHT - BOTTOM, chart.x.title, chart.y.title,
        x.ticks, y.ticks,
    )  # fmt: skip
    lines = [x.at(mark.x) for mark in chart.marks if mark.y is None]
    for band in chart.bands:
        start, end = x.at(band.start), x.at(band.end)
        written = next((at for at in lines if 0 <= at - start < LETTER * len(band.label)), start)
        drawing.bands.append((start, max(end - start, 0), band.label, written + 5))
    order = list(zip(chart.lines, colours([line.role for line in chart.lines])))
    # In a stacked chart the highest area is drawn first and covered by the others.
    for line, colour in reversed(order) if chart.is_stacked else order:
        _line(drawing, line, colour, x, y, chart.is_stacked)
    drawing.legend = [(colour, line.label) for line, colour in order]
    for mark, row in zip(chart.marks, rows_of(chart.marks, chart.x, x.low, x.high)):
        place = x.at(mark.x)
        if mark.low is not None and mark.high is not None:
            ends = x.at(mark.low), x.at(mark.high)
            edges = [[(each, edge) for each in ends] for edge in (drawing.top, drawing.bottom)]
            drawing.intervals += [(INTERVAL, each) for each in between(*edges)]
        anchor = "end" if place > 0.8 * WIDTH else "start"
        point = None if mark.y is None else y.at(mark.y)
        written = TOP + 26 + LINE * row if point is None else point - 9
        drawing.marks.append((place, point, mark.label, anchor, written))
    return drawing


def _line(drawing: Drawing, line: Line, colour: int, x: Scale, y: Scale, is_stacked: bool) -> None:
    points = [
        None if a is None or b is None or (b <= 0 and y.axis.log) else (x.at(a), y.at(b))
        for a, b in zip(line.x, line.y)
    ]
    if line.low:
        edges = [
            [None if a is None or b is None else (x.at(a), y.at(b)) for a, b in zip(line.x, edge)]
            for edge in (line.low, line.high)
        ]  # fmt: skip
        drawing.intervals += [(colour, each) for each in between(*edges)]
    if line.style in ("points", "both"):
        drawing.dots += [(colour, *each) for each in points if each]
    if line.style == "points":
        return
    if line.style == "area":
        closed = areas(points, drawing.bottom)
        drawing.areas += [(colour, each, is_stacked) for each in closed]
    if not is_stacked:
        drawing.paths.append((colour, outline(points, line.style == "steps"), line.dashed))


def of_bars(bars: Bars, width: float = WIDTH) -> Drawing:
    """Return the geometry of stacked bars."""
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
            title = f"{label}: {part} {ticks_of.text(round(value / bars.x.per, 2))} {bars.x.unit}"
            drawing.rects.append((colour, start, top, max(end - start, 0), BAR, title))
            done += value
    drawing.legend = list(zip(palette, bars.parts))
    return drawing


def of_ranges(ranges: Ranges, width: float = WIDTH) -> Drawing:
    """Return the geometry of intervals, each under its name; the first row has its own colour."""
    left, top = RIGHT, TOP + LINE * bool(ranges.marks)
    bottom = top + RANGE * len(ranges.rows)
    values = [each for row in ranges.rows for each in row[1:]]
    values += [value for _, value in ranges.marks]
    x = Scale.of(ranges.x, values, left, width - RIGHT)
    drawing = Drawing(
        width, bottom + BOTTOM, left, width - RIGHT, top, bottom, ranges.x.title, x_ticks=x.ticks
    )
    for row, (name, low, centre, high) in enumerate(ranges.rows):
        colour = VERMILLION if row == 0 else BLUE
        y = top + RANGE * row + LINE
        start, middle, end = (x.at(each) for each in (low, centre, high))
        words = f"{centre:.2f} {ranges.x.unit} ({low:.2f} to {high:.2f})"
        drawing.captions.append((left + 6, y - 2, f"{name}: {words}"))
        drawing.rects.append((colour, start, y + 4, max(end - start, 1), 3, f"{name}: {words}"))
        drawing.dots.append((colour, middle, y + 5.5))
    for name, value in ranges.marks:
        place = x.at(value)
        anchor = "end" if place > 0.8 * width else "start"
        drawing.marks.append((place, None, name, anchor, TOP + 6))
    return drawing


def of_heat(heat: Heat, width: float = WIDTH) -> Drawing:
    """Return the geometry of a heat map; higher counts are darker."""
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
