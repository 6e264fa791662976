"""Drawing of charts by matplotlib, for a column of a paper."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from functools import singledispatch
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from hybridsim.foundation.errors import UsageError
from hybridsim.show.charts import Axis, Bars, Beside, Chart, Dots, Heat, Values
from hybridsim.show.charts.layout import (
    INTERVAL,
    LIGHT,
    colours,
    rows_of,
    stacked,
    tick_text,
    ticks,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 3.4, 2.2  # inches: one column of two
ROW = 0.24  # of bars and dots
LEGEND_LETTERS = 36  # maximum length of a legend line above the axes
TITLE_LETTERS = 42  # of a line
TITLE_LINE = 0.15  # inches
LETTER, NAME_LETTERS = 0.06, 16  # inches; of the names of rows in the usual width
DPI = 200  # of pictures in notebooks
BLANK = {"fc": "white", "ec": "none", "alpha": 0.8, "pad": 0.6}
SHADE = 0.18  # opacity of intervals
MARKERS = "osD^vPX*"
STYLE = {
    "font.size": 8, "axes.labelsize": 8, "axes.titlesize": 8, "legend.fontsize": 7,
    "xtick.labelsize": 7, "ytick.labelsize": 7, "axes.linewidth": 0.6, "lines.linewidth": 1.1,
    "lines.markersize": 3.5, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.linewidth": 0.4, "grid.color": "#dddddd", "axes.axisbelow": True,
    "legend.framealpha": 0.8, "legend.edgecolor": "none", "pdf.fonttype": 42,
}  # fmt: skip
LABEL_LETTERS = 22  # of a line of the name of a point
LABEL_SIZE = 6
END_SIZE = 7  # of the names of lines
AWAY = 4  # from the point, in pt
LEADER = {"arrowstyle": "-", "lw": 0.4, "color": "0.5", "shrinkA": 0, "shrinkB": 2}
FARTHER = (0, 9, 18, 27, 36, 48, 60, 75)  # further distances, with a line to the point
SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (0, -1))  # of a point: right, up
ACROSS = {1: "left", 0: "center", -1: "right"}
PER_PT = 8  # square pixels covered that a pt nearer to the point is worth
ALONG = 8  # places of each stretch of a line that are kept clear of


def drawn(charts: Sequence[Any], title: str = "") -> Figure:
    """Return a Figure of charts one below the other, below a title that states the finding.

    Raises UsageError without matplotlib.
    """
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("figures need matplotlib: install it, or hybridsim[notebooks]") from None
    heights = [_height(each) for each in charts]
    headline = textwrap.wrap(title, TITLE_LETTERS)
    with matplotlib.rc_context(STYLE):
        high = sum(heights) + TITLE_LINE * len(headline)
        wide = WIDTH + max(map(_longer, charts))
        figure = Figure(figsize=(wide, high), dpi=DPI, layout="constrained")
        if headline:
            figure.suptitle("\n".join(headline), x=0.01, ha="left", fontsize=9, fontweight="bold")
        rows = figure.subplots(len(charts), squeeze=False, height_ratios=heights)[:, 0]
        for number, (chart, place) in enumerate(zip(charts, rows)):
            put(chart, place)
            is_shared = isinstance(chart, Chart) and chart.sync and number + 1 < len(charts)
            if is_shared:
                place.set_xlabel("")
        for chart, place in zip(charts, rows):
            if isinstance(chart, Chart):
                _names(place, chart)
                if _has_ends(chart):
                    put_ends(place, [each for each in place.get_lines() if each.get_gid()])
    vars(figure)["_repr_png_"] = lambda: _png(figure)  # notebooks use it to show the figure
    return figure


def _png(figure: Any) -> bytes:
    file = io.BytesIO()
    figure.savefig(file, format="png")
    return file.getvalue()


def _longer(chart: Any) -> float:
    """Return the inches that long names of rows take beyond the usual."""
    if not isinstance(chart, Beside):
        return 0.0
    return LETTER * max(0, max(len(name) for name, _ in chart.rows) - NAME_LETTERS)


def _height(chart: Any) -> float:
    if isinstance(chart, Beside):
        return 0.5 + ROW * len(chart.rows) + (0.2 if len(chart.names) > 1 else 0)
    if isinstance(chart, Bars | Dots):
        return 0.75 + ROW * len(chart.rows)
    return HEIGHT if isinstance(chart, Heat) or not chart.sync else 0.8 * HEIGHT


def _has_ends(chart: Chart) -> bool:
    """Return whether the names of the lines stand at their ends."""
    return chart.is_direct and len(chart.lines) > 1


@singledispatch
def put(chart: Any, place: Any) -> None:
    """Draw a chart into axes."""
    raise TypeError(f"{type(chart).__name__} is not a chart")


@put.register
def _(chart: Chart, place: Any) -> None:
    chart = stacked(chart) if chart.is_stacked else chart
    _axes(place, chart.x, chart.y)
    for number, band in enumerate(chart.bands):
        start, end = band.start / chart.x.per, band.end / chart.x.per
        if number % 2:
            place.axvspan(start, end, color="0.95", lw=0, zorder=0)
        if band.end - band.start > 0.12 * (chart.x.high or band.end):
            place.annotate(band.label, ((start + end) / 2, 1), xycoords=("data", "axes fraction"),
                           ha="center", va="bottom", fontsize=7, color="0.35")  # fmt: skip
    before: list[float] = []
    for number, (line, colour) in enumerate(
        zip(chart.lines, colours([each.role for each in chart.lines]))
    ):
        x, y = _scaled(line.x, chart.x), _scaled(line.y, chart.y)
        looks: dict[str, dict[str, Any]] = {
            "points": {"ls": "none", "marker": "o", "alpha": 0.7},
            "both": {"marker": MARKERS[number % len(MARKERS)]},
            "steps": {"drawstyle": "steps-post"},
        }
        plain = {"ls": "--" if line.dashed else "-", "lw": 0.7 if len(x) > 150 else None}
        place.plot(x, y, color=LIGHT[colour], gid=line.gid, label=line.label or "_",
                   **looks.get(line.style, plain))  # fmt: skip
        if line.low:
            low, high = _scaled(line.low, chart.y), _scaled(line.high, chart.y)
            place.fill_between(x, low, high, color=LIGHT[colour], lw=0, alpha=SHADE,
                               gid=f"{line.gid}-interval")  # fmt: skip
        if line.style == "area":
            opacity = 0.8 if chart.is_stacked else 0.25
            place.fill_between(x, before or [0.0] * len(y), y, color=LIGHT[colour], lw=0,
                               alpha=opacity)  # fmt: skip
            before = y if chart.is_stacked else []
    _marks(place, chart)
    _limits(place, chart)
    if len([each for each in chart.lines if each.label]) > 1 and not _has_ends(chart):
        place.legend(loc="best", handlelength=1.6, labelspacing=0.3, borderpad=0.2)


def _marks(place: Any, chart: Chart) -> None:
    limits = [each * chart.x.per for each in place.get_xlim()]
    span = limits[1] / chart.x.per
    for mark, row in zip(chart.marks, rows_of(chart.marks, chart.x, *limits)):
        x = mark.x / chart.x.per
        is_right = not chart.x.log and x > 0.75 * (chart.x.high or span * chart.x.per) / chart.x.per
        side: dict[str, Any] = {"ha": "right" if is_right else "left", "fontsize": 7}
        shift = -4 if is_right else 4
        if mark.low is not None and mark.high is not None:
            ends = (each / chart.x.per for each in (mark.low, mark.high))
            place.axvspan(*ends, color=LIGHT[INTERVAL], lw=0, alpha=SHADE, zorder=0.5,
                          gid=f"mark-{mark.label}-interval",
                          label=f"{mark.label}, likely")  # fmt: skip
        if mark.y is None:
            place.axvline(x, color="0.2", lw=0.7, ls=":", gid=f"mark-{mark.label}")
            place.annotate(
                mark.label, (x, 0.03), (shift, 8 * row), xycoords=("data", "axes fraction"),
                textcoords="offset points", va="bottom", bbox=BLANK, **side,
            )  # fmt: skip
        else:
            y = mark.y / chart.y.per
            place.plot([x], [y], "o", mfc="none", mec="0.1", ms=6, gid=f"mark-{mark.label}")
            place.annotate(
                mark.label, (x, y), (6, 5 + 9 * row), textcoords="offset points", fontsize=7
            )


def _names(place: Any, chart: Chart) -> None:
    """Draw the names of the points of the last line that has names."""
    points = {
        line.gid: list(zip(_scaled(line.x, chart.x), _scaled(line.y, chart.y)))
        for line in chart.lines
    }
    named = [each for each in chart.lines if any(each.names)]
    for line in named[-1:]:
        own = [(x, y, name) for (x, y), name in zip(points.pop(line.gid), line.names)]
        others = [each for some in points.values() for each in some]
        put_names(place, own, others, is_joined=line.style != "points")


@put.register
def _(chart: Bars, place: Any) -> None:
    rows = range(len(chart.rows))
    left = [0.0] * len(chart.rows)
    palette = colours(chart.roles or [""] * len(chart.parts))
    for number, (part, colour) in enumerate(zip(chart.parts, palette)):
        values = [row[1][number] / chart.x.per for row in chart.rows]
        if not any(values):
            continue
        bars = place.barh(rows, values, left=left, height=0.7, color=LIGHT[colour], label=part)
        for bar in bars:
            bar.set_gid(f"{chart.gid}-{part}")
        left = [a + b for a, b in zip(left, values)]
    _name_rows(place, chart.rows)
    place.invert_yaxis()
    place.set_xlabel(chart.x.title)
    place.grid(visible=False, axis="y")
    place.set_xlim(0, 1.03 * max(left, default=1.0) or 1.0)
    few = sum(map(len, chart.parts)) < LEGEND_LETTERS
    _legend_outside(place, ncols=4 if few else 2, handlelength=1, columnspacing=1)


def _name_rows(place: Any, rows: Sequence[tuple[str, Any]], bold: Sequence[str] = ()) -> None:
    place.set_yticks(range(len(rows)), [label for label, _ in rows])
    for (label, _), name in zip(rows, place.get_yticklabels()):
        name.set_fontweight("bold" if label in bold else "normal")


def _legend_outside(place: Any, **how: Any) -> None:
    """Draw the legend above the axes, or below them if there is a title above."""
    side = "lower" if place.figure.get_suptitle() else "upper"
    place.figure.legend(*place.get_legend_handles_labels(), loc=f"outside {side} left", **how)


@put.register
def _(chart: Dots, place: Any) -> None:
    for row, (label, values) in enumerate(chart.rows):
        x = [each / chart.x.per for each in values]
        place.plot(x, [row] * len(x), "o", ms=2.5, color=LIGHT[0], alpha=0.45, mew=0,
                   gid=f"dots-{label}", label="each cell" if row == 0 else "_")  # fmt: skip
        mean = chart.centres[row] / chart.x.per
        place.plot([mean], [row], "|", ms=10, mew=1.6, color=LIGHT[1],
                   gid=f"mean-{label}", label=chart.centre if row == 0 else "_")  # fmt: skip
    _name_rows(place, chart.rows, chart.judged)
    place.invert_yaxis()
    place.axvline(1 / chart.x.per, color="0.3", lw=0.7, ls=":")
    place.set_xlabel(chart.x.title)
    if chart.x.log:
        place.set_xscale("log")
        _log_ticks(place.xaxis, chart.x)
    _legend_outside(place, ncols=2)


@put.register
def _(chart: Beside, place: Any) -> None:
    rows = range(len(chart.rows))
    columns = [_scaled(each, chart.x) for each in zip(*(values for _, values in chart.rows))]
    _name_rows(place, chart.rows, chart.bold)
    if len(chart.names) == 1:
        shades = [LIGHT[1 if label in chart.bold or not chart.bold else 7]
                  for label, _ in chart.rows]  # fmt: skip
        bars = place.barh(rows, columns[0], height=0.7, color=shades)
        for bar, (label, _) in zip(bars, chart.rows):
            bar.set_gid(f"bar-{label}")
        place.bar_label(bars, [_short(each) for each in columns[0]], padding=3, fontsize=7)
    else:
        for row, figures in enumerate(zip(*columns)):
            known = [each for each in figures if not math.isnan(each)]
            place.plot([min(known), max(known)], [row, row], "-", color="0.75", lw=1.6, zorder=1)
        for number, (name, values) in enumerate(zip(chart.names, columns)):
            look: dict[str, Any] = {"mfc": "none", "mew": 1.4} if number else {"mew": 0}
            place.plot(values, rows, MARKERS[number], ms=5.5 if number else 4, color=LIGHT[number],
                       label=_plain(name), gid=f"dots-{name}", **look)  # fmt: skip
        place.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(chart.names),
                     borderpad=0, handletextpad=0.2, columnspacing=1.2)  # fmt: skip
    place.invert_yaxis()
    place.set_ylim(len(chart.rows) - 0.5, -0.5)
    place.set_xlabel(chart.x.title)
    place.grid(visible=False, axis="y")
    if chart.x.log:
        place.set_xscale("log")
        _log_ticks(place.xaxis, chart.x)
    else:
        known = [each for column in columns for each in column if not math.isnan(each)]
        place.set_xlim(0, (1.16 if len(columns) == 1 else 1.04) * max(known) or 1.0)


def _plain(name: str) -> str:
    """Return the name of a column without its unit, which is that of the axis."""
    return name.rpartition("_")[0].replace("_", " ") if "_" in name else name


def _short(value: float) -> str:
    if math.isnan(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


@put.register
def _(chart: Heat, place: Any) -> None:
    from matplotlib.colors import LogNorm

    highest = max((max(column) for column in chart.counts), default=1)
    grid = [[count or math.nan for count in row] for row in zip(*chart.counts)]
    wide, high = len(chart.counts) * chart.width, len(grid) * chart.height
    image = place.imshow(
        grid, origin="lower", aspect="auto", interpolation="nearest", cmap="cividis_r",
        norm=LogNorm(1, max(highest, 2)), extent=(0, wide / chart.x.per, 0, high / chart.y.per),
        gid=chart.gid,
    )  # fmt: skip
    place.grid(visible=False)
    place.set_xlabel(chart.x.title)
    place.set_ylabel(chart.y.title)
    bar = place.figure.colorbar(image, ax=place, pad=0.02)
    bar.set_label("requests in a cell", fontsize=7)


def _axes(place: Any, x: Axis, y: Axis) -> None:
    place.set_xlabel(x.title)
    place.set_ylabel(y.title)
    if x.log:
        place.set_xscale("log", base=x.base)
    if y.log:
        place.set_yscale("log", base=y.base)


def _limits(place: Any, chart: Chart) -> None:
    """Set the limits of the axes; a logarithmic axis gets plain numbers at its ticks."""
    for axis, drawn_axis, between in (
        (chart.x, place.xaxis, place.set_xlim), (chart.y, place.yaxis, place.set_ylim),
    ):  # fmt: skip
        if axis.log:
            _log_ticks(drawn_axis, axis)
        else:
            between(*(None if each is None else each / axis.per for each in (axis.low, axis.high)))


def _log_ticks(drawn_axis: Any, axis: Axis) -> None:
    values = ticks(axis, *drawn_axis.get_view_interval())
    drawn_axis.set_ticks(values, [tick_text(each) for each in values])
    drawn_axis.set_ticks([], minor=True)


def _scaled(values: Values, axis: Axis) -> list[float]:
    return [math.nan if each is None else each / axis.per for each in values]


# Names beside points and lines, without overlaps if there is room.


def put_names(
    place: Any,
    points: Sequence[tuple[float, float, str]],
    others: Sequence[tuple[float, float]],
    is_joined: bool,
) -> None:
    """Draw names of points (x, y, name); `others` are points to avoid, lines join the points."""
    figure = place.figure
    figure.draw_without_rendering()  # the positions of the axes are valid only then
    inside = place.get_window_extent()
    own = place.transData.transform([(x, y) for x, y, _ in points])
    dots = [*own, *place.transData.transform(list(others))] if others else list(own)
    dot, thin = 1.6 * figure.dpi / 72, 0.5 * figure.dpi / 72
    taken: list[Any] = [_around(each, dot) for each in dots]
    between = ((a, b, step / ALONG) for a, b in pairwise(own) for step in range(1, ALONG))
    taken += [_around(a + share * (b - a), thin) for a, b, share in between] if is_joined else []
    for x, y, name in sorted(points):
        text = place.annotate(
            "\n".join(textwrap.wrap(name, LABEL_LETTERS)), (x, y), (0, 0),
            textcoords="offset points", fontsize=LABEL_SIZE, linespacing=0.95,
            annotation_clip=False,
        )  # fmt: skip
        text.set_in_layout(False)
        best = min(_spots(), key=lambda spot: _covered(text, spot, taken, inside))
        _set(text, best)
        if abs(best[1]) > 2 * AWAY:
            place.annotate(
                "", (x, y), best[:2], textcoords="offset points", arrowprops=LEADER
            ).set_in_layout(False)
        taken.append(text.get_window_extent())


def put_ends(place: Any, lines: Sequence[Any]) -> None:
    """Draw the label of each line behind its last point, in its colour, none over another."""
    figure = place.figure
    figure.draw_without_rendering()  # the positions of the axes are valid only then
    high = 1.25 * END_SIZE * figure.dpi / 72
    ends = []
    for line in lines:
        known = [(x, y) for x, y in zip(*line.get_data()) if x == x and y == y]
        if known and not line.get_label().startswith("_"):
            ends.append((*place.transData.transform(known[-1]), *known[-1], line))
    ends.sort(key=lambda each: each[1])
    at = _apart([each[1] for each in ends], high, place.get_window_extent())
    right = max((each[0] for each in ends), default=0.0)
    for (left, down, x, y, line), up in zip(ends, at):
        away = (right - left) * 72 / figure.dpi + AWAY
        place.annotate(
            line.get_label(), (x, y), (away, (up - down) * 72 / figure.dpi),
            textcoords="offset points", fontsize=END_SIZE, color=line.get_color(), va="center",
            annotation_clip=False,
        )  # fmt: skip


def _apart(wanted: Sequence[float], high: float, inside: Any) -> list[float]:
    """Return positions in order, at least `high` apart and inside, near those wanted."""
    groups: list[list[float]] = []  # neighbours that touch: their number and mean place
    for each in wanted:
        number, middle = 1.0, each
        while groups and middle - groups[-1][1] < (groups[-1][0] + number) / 2 * high:
            before, other = groups.pop()
            whole = number + before
            number, middle = whole, (number * middle + before * other) / whole
        groups.append([number, middle])
    result: list[float] = []
    for number, middle in groups:
        half = (number - 1) / 2 * high
        middle = min(max(middle, inside.y0 + half), max(inside.y1 - half, inside.y0 + half))
        result += [middle - half + high * each for each in range(int(number))]
    return result


def _spots() -> Iterator[tuple[float, float, str, str]]:
    """Yield positions for a name, the best first: offsets in pt, and the side of the point."""
    for right in (1, -1):
        yield 1.5 * right * AWAY, 0, ACROSS[right], "center"
    for more in FARTHER:
        for right, up in SIDES:
            yield right * AWAY, up * (AWAY + more), ACROSS[right], "bottom" if up > 0 else "top"


def _set(text: Any, spot: tuple[float, float, str, str]) -> None:
    text.set_position(spot[:2])
    text.set_ha(spot[2])
    text.set_va(spot[3])


def _covered(
    text: Any, spot: tuple[float, float, str, str], taken: Sequence[Any], inside: Any
) -> float:
    """Return the cost of a position: covered area, area outside of the axes, distance."""
    from matplotlib.transforms import Bbox

    _set(text, spot)
    box = text.get_window_extent()
    common = (Bbox.intersection(box, each) for each in taken)
    within = Bbox.intersection(box, inside)
    outside = box.width * box.height - (within.width * within.height if within else 0.0)
    covered = sum(each.width * each.height for each in common if each is not None)
    return float(covered + 2 * max(outside, 0.0) + PER_PT * abs(spot[1]))


def _around(point: Any, half: float) -> Any:
    from matplotlib.transforms import Bbox

    return Bbox.from_extents(point[0] - half, point[1] - half, point[0] + half, point[1] + half)
