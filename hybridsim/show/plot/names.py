"""Placement of names beside points, without overlaps if there is room."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

LETTERS = 22  # of a line
SIZE = 6
END_SIZE = 7  # of the names of lines
AWAY = 4  # from the point, in pt
LEADER = {"arrowstyle": "-", "lw": 0.4, "color": "0.5", "shrinkA": 0, "shrinkB": 2}
FARTHER = (0, 9, 18, 27, 36, 48, 60, 75)  # further distances, with a line to the point
SIDES = ((1, 1), (1, -1), (-1, 1), (-1, -1), (0, 1), (0, -1))  # of a point: right, up
ACROSS = {1: "left", 0: "center", -1: "right"}
PER_PT = 8  # square pixels covered that a pt nearer to the point is worth
ALONG = 8  # places of each stretch of a line that are kept clear of


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
            "\n".join(textwrap.wrap(name, LETTERS)), (x, y), (0, 0), textcoords="offset points",
            fontsize=SIZE, linespacing=0.95, annotation_clip=False,
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
        groups.append([1, each])
        while len(groups) > 1 and _touch(groups[-2], groups[-1], high):
            number, middle = groups.pop()
            before, other = groups.pop()
            whole = number + before
            groups.append([whole, (number * middle + before * other) / whole])
    result: list[float] = []
    for number, middle in groups:
        half = (number - 1) / 2 * high
        middle = min(max(middle, inside.y0 + half), max(inside.y1 - half, inside.y0 + half))
        result += [middle - half + high * each for each in range(int(number))]
    return result


def _touch(lower: Sequence[float], upper: Sequence[float], high: float) -> bool:
    return upper[1] - lower[1] < (lower[0] + upper[0]) / 2 * high


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
