"""SVG paths through points, simplified by less than a visible distance."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

Point = tuple[float, float]
Points = Sequence[Point | None]  # None is a gap

TENTH = 10  # coordinates are written in tenths of a pixel
NEAR = 0.6  # pixels: points closer to each other are dropped
OFF = 0.35  # pixels: points closer to a straight line are dropped


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
    words, command = [_numbers("M", *whole[0])], ""
    for move in moves:
        if move == (0, 0):
            continue
        now = "v" if move[0] == 0 else "h" if move[1] == 0 else "l"
        words.append(_numbers(now if now != command else " ", *(each for each in move if each)))
        command = now
    return "".join(words).replace(" -", "-")


def _numbers(first: str, *tenths: int) -> str:
    return first + " ".join(_number(each) for each in tenths)


def _number(tenths: int) -> str:
    """Return a number of tenths in its shortest form: .5, -1.2, 3."""
    whole, part = divmod(abs(tenths), TENTH)
    digits = f"{whole or ''}.{part}" if part else str(whole)
    return f"-{digits}" if tenths < 0 else digits
