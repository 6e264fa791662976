"""Geometry of charts as SVG: for print, browsers without scripts, and charts without interaction.

templates/drawings.html writes the SVG and escapes all text.
"""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Any

from hybridsim.show.charts import Axis, Bars, Chart, Heat, Line, Ranges
from hybridsim.show.charts.layout import (
    BLUE,
    INTERVAL,
    VERMILLION,
    colours,
    rows_of,
    stacked,
    tick_text,
    ticks,
)

Point = tuple[float, float]
Points = Sequence[Point | None]  # None is a gap

WIDTH, HEIGHT = 720, 260
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 14, 40
BAR = 26
RANGE = 30  # height of a row with its name above
LETTER = 6.6  # approximate width of a letter
LINE = 13  # height of a line of text
TENTH = 10  # coordinates are written in tenths of a pixel
NEAR = 0.6  # pixels: points closer to each other are dropped
OFF = 0.35  # pixels: points closer to a straight line are dropped
LEVELS = 64  # of a heat map
# From pale to strong, visible on light and dark pages; the hue changes from step to step.
RAMP = ((86, 180, 233), (0, 114, 178), (120, 60, 150), (213, 94, 0))
FAINTEST = 70  # of 255: opacity of a single request


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
        per = self.axis.per
        values = ticks(self.axis, self.low / per, self.high / per)
        return [(self.at(each * per), tick_text(each)) for each in values]


@dataclass
class Drawing:
    """Geometry of one picture, for the template that writes it as SVG."""

    x: Scale
    bottom: float  # where the x axis is drawn
    y: Scale | None = None
    top: float = TOP
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

    @property
    def size(self) -> tuple[float, float]:
        """Width and height."""
        return self.x.end + RIGHT, self.bottom + BOTTOM


def of_chart(chart: Chart) -> Drawing:
    """Return the geometry of a chart."""
    chart = stacked(chart) if chart.is_stacked else chart
    xs = [value for line in chart.lines for value in line.x]
    ys = [value for line in chart.lines for value in (*line.y, *line.low, *line.high)]
    x = Scale.of(chart.x, xs, LEFT, WIDTH - RIGHT)
    y = Scale.of(chart.y, ys, HEIGHT - BOTTOM, TOP)
    drawing = Drawing(x, HEIGHT - BOTTOM, y)
    lines = [x.at(mark.x) for mark in chart.marks if mark.y is None]
    for band in chart.bands:
        start, end = x.at(band.start), x.at(band.end)
        written = next((at for at in lines if 0 <= at - start < LETTER * len(band.label)), start)
        drawing.bands.append((start, max(end - start, 0), band.label, written + 5))
    order = list(zip(chart.lines, colours([line.role for line in chart.lines])))
    # In a stacked chart the highest area is drawn first and covered by the others.
    for line, colour in reversed(order) if chart.is_stacked else order:
        _line(drawing, line, colour, y, chart.is_stacked)
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


def _line(drawing: Drawing, line: Line, colour: int, y: Scale, is_stacked: bool) -> None:
    x = drawing.x
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
    drawing = Drawing(x, bottom)
    palette = colours(bars.roles or [""] * len(bars.parts))
    for row, (label, values) in enumerate(bars.rows):
        top, done = TOP + BAR * 1.4 * row + 0.2 * BAR, 0.0
        drawing.labels.append((top + BAR / 2, label))
        for colour, part, value in zip(palette, bars.parts, values):
            start, end = x.at(done), x.at(done + value)
            title = f"{label}: {part} {tick_text(round(value / bars.x.per, 2))} {bars.x.unit}"
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
    drawing = Drawing(x, bottom, top=top)
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
    drawing = Drawing(x, height - BOTTOM, y)
    drawing.image = f"data:image/png;base64,{base64.b64encode(png(heat.counts)).decode()}"
    return drawing


# Paths through points, simplified by less than a visible distance.


def outline(points: Points, is_stepped: bool) -> str:
    """Return the path of a line through points."""
    return "".join(_path(_corners(part) if is_stepped else _bends(part)) for part in _parts(points))


def areas(points: Points, floor: float) -> list[str]:
    """Return closed paths between points and a floor, one for each part without gaps."""
    result = []
    for part in _parts(points):
        bends = _bends(part)
        result.append(_path([*bends, (bends[-1][0], floor), (bends[0][0], floor)]) + "z")
    return result


def between(low: Points, high: Points) -> list[str]:
    """Return closed paths between two lines with equal x, one for each part without gaps."""
    result = []
    for is_gap, part in groupby(zip(low, high), lambda each: None in each):
        if not is_gap:
            below, above = ([point for point in edge if point] for edge in zip(*part))
            result.append(_path([*_bends(below), *reversed(_bends(above))]) + "z")
    return result


def _parts(points: Points) -> Iterator[list[Point]]:
    """Yield the parts between gaps, without points closer than NEAR to the previous one."""
    for is_gap, part in groupby(points, lambda each: each is None):
        if not is_gap:
            yield list(_apart([each for each in part if each]))


def _apart(points: Sequence[Point]) -> Iterator[Point]:
    before = (-math.inf, 0.0)
    for each in points:
        if max(abs(each[0] - before[0]), abs(each[1] - before[1])) >= NEAR:
            yield each
            before = each


def _corners(points: Sequence[Point]) -> list[Point]:
    """Return points and the corners of the steps between them."""
    result = list(points[:1])
    for before, each in pairwise(points):
        result += [(each[0], before[1]), each]
    return result


def _bends(points: Sequence[Point]) -> list[Point]:
    """Return the points without those on straight lines between others."""
    kept = list(points[:1])
    start = 0
    for end in range(2, len(points)):
        if any(_off(points[start], points[end], each) for each in points[start + 1 : end]):
            start = end - 1
            kept.append(points[start])
    return kept + list(points[1:][-1:])


def _off(start: Point, end: Point, point: Point) -> bool:
    """Return whether a point is visibly off the straight line from start to end."""
    along, up = end[0] - start[0], end[1] - start[1]
    beside = along * (point[1] - start[1]) - up * (point[0] - start[0])
    return abs(beside) > OFF * math.hypot(along, up)


def _path(points: Sequence[Point]) -> str:
    """Return a path: the start, then each point relative to the previous one."""
    whole = [(round(TENTH * x), round(TENTH * y)) for x, y in points]
    moves = [(x - a, y - b) for (a, b), (x, y) in pairwise(whole)]
    words, command = ["M" + " ".join(map(_number, whole[0]))], ""
    for move in moves:
        if move == (0, 0):
            continue
        now = "v" if move[0] == 0 else "h" if move[1] == 0 else "l"
        numbers = " ".join(_number(each) for each in move if each)
        words.append((now if now != command else " ") + numbers)
        command = now
    return "".join(words).replace(" -", "-")


def _number(tenths: int) -> str:
    """Return a number of tenths in its shortest form: .5, -1.2, 3."""
    whole, part = divmod(abs(tenths), TENTH)
    digits = f"{whole or ''}.{part}" if part else str(whole)
    return f"-{digits}" if tenths < 0 else digits


# PNG: W3C Recommendation "Portable Network Graphics", 2nd ed., sections 5 (chunks) and 11.2.


def png(counts: Sequence[Sequence[int]]) -> bytes:
    """Return columns of counts, row 0 at the bottom, as a picture with one pixel per cell.

    Shades are logarithmic, so that a few hot cells do not hide all others.
    """
    most = max((max(column, default=0) for column in counts), default=0)
    height = len(counts[0]) if counts else 0
    lines = []
    for row in reversed(range(height)):
        shades = bytes(_level(column[row], most) for column in counts)
        lines.append(b"\0" + shades)  # filter: none
    header = struct.pack(">IIBBBBB", len(counts), height, 8, 3, 0, 0, 0)
    palette = b"".join(bytes(_colour(level)) for level in range(LEVELS + 1))
    grown = (min(2 * level / LEVELS, 1) for level in range(1, LEVELS + 1))
    alphas = bytes([0, *(FAINTEST + round((255 - FAINTEST) * each) for each in grown)])
    parts = (
        (b"IHDR", header),
        (b"PLTE", palette),
        (b"tRNS", alphas),
        (b"IDAT", zlib.compress(b"".join(lines), 9)),
        (b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )


def _level(count: int, most: int) -> int:
    if count <= 0:
        return 0
    share = math.log1p(count) / math.log1p(most)
    return max(1, round(share * LEVELS))


def _colour(level: int) -> list[int]:
    place = level / LEVELS * (len(RAMP) - 1)
    index = min(int(place), len(RAMP) - 2)
    share = place - index
    return [round(a + share * (b - a)) for a, b in zip(RAMP[index], RAMP[index + 1])]
