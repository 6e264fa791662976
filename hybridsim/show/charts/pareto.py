"""The Pareto front: points that no other point dominates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hybridsim.show.charts import axes
from hybridsim.show.charts.chart import Axis, Chart, Line

FAR = 0.4  # of the largest value: if all values are above it, the axis need not begin at 0
EDGE = 0.08  # of the values' span


def front(x: Sequence[float], y: Sequence[float]) -> list[int]:
    """Return the indices of undominated points by x; less is better, the first of equals stays."""
    best, front = float("inf"), []
    for at in sorted(range(len(x)), key=lambda each: (x[each], y[each], each)):
        if y[at] < best:
            best = y[at]
            front.append(at)
    return front


def pareto(
    rows: Sequence[Mapping[str, Any]],
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
    names = [str(each.get(name, "")) for each in known.values()] if name else []
    at_front = [names[at] for at in on_front] if names else []
    label = "Pareto front" if unbeaten is None else "Pareto front of all objectives"
    lines = [
        Line("points", "all", xs, ys, "points", "other", names=names),
        Line("front", label, [xs[at] for at in on_front], [ys[at] for at in on_front],
             "both" if unbeaten is None else "points", "warm", names=at_front),
    ]  # fmt: skip
    if xs and on_front and xs[on_front[0]] > xs[on_front[-1]]:
        lines[1] = _backwards(lines[1])
    across, up = _around(named(x, xs), xs), _around(named(y, ys), ys)
    return Chart("pareto", "Pareto front", across, up, lines)


def _around(axis: Axis, values: Sequence[float]) -> Axis:
    """Return an axis that does not start at 0, if all values are far from 0."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    if not FAR * high < low < high:
        return axis
    return replace(axis, low=low - EDGE * (high - low), high=high + EDGE * (high - low))


def _backwards(line: Line) -> Line:
    return Line(line.gid, line.label, list(line.x)[::-1], list(line.y)[::-1], line.style, line.role,
                names=list(line.names)[::-1])  # fmt: skip


UNITS = {"_ms": "ms", "_s": "s", "_gib": "GiB"}  # of the columns of frames


def named(key: str, values: Sequence[float]) -> Axis:
    """Return the axis of a column by the end of its name."""
    words = key.replace("_", " ").replace(".", " ")
    if key == "time_ns":
        return axes.times(axes.maximum(values))
    if key.endswith("_ratio"):
        return axes.shares(words, high=None)
    if key.endswith("_share"):
        return axes.shares(words.removesuffix(" share"), high=None)
    for suffix, unit in UNITS.items():
        if key.endswith(suffix):
            return Axis(words[: -len(suffix)], unit, low=0)
    if key.endswith("_ns"):
        return axes.latencies(axes.maximum(values), words.removesuffix(" ns"))
    if key.endswith("_bytes"):
        return axes.sizes(axes.maximum(values), words.removesuffix(" bytes"))
    return axes.counts(words.replace("iops", "IOPS"))
