"""Charts of columns of a table: lines, bars, dots, the Pareto front, policies compared."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hybridsim.show.charts import Axis, Beside, Chart, Dots, Line, Value, maximum

Rows = Sequence[Mapping[str, Any]]

FAR = 0.4  # of the largest value: if all values are above it, the axis need not begin at 0
EDGE = 0.08  # of the values' span
ROOM = 1.08  # factor above the highest point
MOST_DIRECT = 8  # lines that are named at their ends
MANY = 30  # maximum number of points with markers
UNITS = {"_ms": "ms", "_s": "s", "_gib": "GiB"}  # of the columns of frames


def front(x: Sequence[float], y: Sequence[float]) -> list[int]:
    """Return the indices of undominated points by x; less is better, the first of equals stays."""
    best, front = float("inf"), []
    for at in sorted(range(len(x)), key=lambda each: (x[each], y[each], each)):
        if y[at] < best:
            best = y[at]
            front.append(at)
    return front


def pareto(
    rows: Rows,
    x: str,
    y: str,
    name: str = "",
    more: Sequence[str] = (),
    unbeaten: Sequence[int] | None = None,
) -> Chart:
    """Return all points and their front; `more` names the axis on which larger is better.

    The unit is the suffix of a name: `_ns`, `_bytes`, `_ratio`, `_share`.  Rows without a
    value are skipped.  `unbeaten` are the rows on a front of more than these two values.
    """
    known = {at: each for at, each in enumerate(rows)
             if each.get(x) is not None and each.get(y) is not None}  # fmt: skip
    xs, ys = ([float(each[key]) for each in known.values()] for key in (x, y))
    signs = [-1 if key in more else 1 for key in (x, y)]
    on_front = front([signs[0] * each for each in xs], [signs[1] * each for each in ys])
    if unbeaten is not None:
        on_front = [place for place, at in enumerate(known) if at in unbeaten]
    if on_front and xs[on_front[0]] > xs[on_front[-1]]:
        on_front.reverse()
    names = [str(each.get(name, "")) for each in known.values()] if name else []
    at_front = [names[at] for at in on_front] if names else []
    label = "Pareto front" if unbeaten is None else "Pareto front of all objectives"
    lines = [
        Line("points", "all", xs, ys, "points", "other", names=names),
        Line("front", label, [xs[at] for at in on_front], [ys[at] for at in on_front],
             "both" if unbeaten is None else "points", "warm", names=at_front),
    ]  # fmt: skip
    across, up = _around(named(x, xs), xs), _around(named(y, ys), ys)
    return Chart("pareto", "Pareto front", across, up, lines)


def _around(axis: Axis, values: Sequence[float]) -> Axis:
    """Return an axis that does not start at 0, if all values are far from 0."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if not FAR * high < low < high:
        return axis
    return replace(axis, low=low - EDGE * (high - low), high=high + EDGE * (high - low))


def named(key: str, values: Sequence[float]) -> Axis:
    """Return the axis of a column by the end of its name."""
    words = key.replace("_", " ").replace(".", " ")
    if key == "time_ns":
        return Axis.times(maximum(values))
    if key.endswith("_ratio"):
        return Axis.shares(words, high=None)
    if key.endswith("_share"):
        return Axis.shares(words.removesuffix(" share"), high=None)
    for suffix, unit in UNITS.items():
        if key.endswith(suffix):
            return Axis(words[: -len(suffix)], unit, low=0)
    if key.endswith("_ns"):
        return Axis.latencies(maximum(values), words.removesuffix(" ns"))
    if key.endswith("_bytes"):
        return Axis.sizes(maximum(values), words.removesuffix(" bytes"))
    return Axis.counts(words.replace("iops", "IOPS"))


def lines(rows: Rows, x: str, y: str, by: str | Sequence[str] = "") -> Chart:
    """Return y over x, one line for each value of the column `by`, in order of first appearance.

    Of several columns, it is one line for each combination of their values.

    The unit follows from the end of a name, as in `named`.  Rows without an x are skipped; an
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
    rows: Rows,
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


def relative(
    rows: Rows,
    value: str,
    policy: str,
    cell: Sequence[str],
    baselines: Sequence[str] = (),
) -> dict[str, list[float]]:
    """Return each policy's values relative to the best baseline in the same cell.

    By default all policies are baselines.  Cells whose best value is not above 0 are skipped.
    """
    cells: dict[tuple[Any, ...], dict[str, float]] = defaultdict(dict)
    for row in rows:
        if row.get(value) is not None and row.get(policy) is not None:
            place = tuple(row.get(each) for each in cell)
            cells[place][str(row[policy])] = float(row[value])
    ratios: dict[str, list[float]] = defaultdict(list)
    for by_policy in cells.values():
        best_of = baselines or by_policy
        values = [number for name, number in by_policy.items() if name in best_of]
        best = min(values, default=0.0)
        if best > 0:
            for name, number in by_policy.items():
                ratios[name].append(number / best)
    return dict(ratios)


def compared(
    ratios: Mapping[str, Sequence[float]], baselines: Sequence[str] = (), what: str = "disk time"
) -> Dots:
    """Return one dot per cell for each policy, sorted by the geometric mean.

    Policies that are not baselines are highlighted.
    """
    means = {name: geometric_mean(each) for name, each in ratios.items()}
    order = sorted(ratios, key=lambda name: means[name])
    rows = [(name, list(ratios[name])) for name in order]
    x = Axis(f"{what} / that of the best{' baseline' if baselines else ''}", log=True)
    judged = [name for name in order if baselines and name not in baselines]
    centres = [means[name] for name in order]
    return Dots("policies", "Policies", x, rows, centres, "geometric mean", judged)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of ratios."""
    positive = [each for each in values if each > 0]
    return math.exp(sum(map(math.log, positive)) / len(positive)) if positive else math.nan
