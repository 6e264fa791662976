"""Curves drawn in characters: braille dots, or stars in ASCII output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.wording import percent

if TYPE_CHECKING:
    from hybridsim.studies.mrc import Curve

Floats = npt.NDArray[np.float64]

LEAST_FALL = 0.01  # of the accesses, that a cache of all pages serves: with less there is no knee

BRAILLE = 0x2800
# The bit of each dot of a braille character, by row and column.
DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))


def no_knee(first: float, last: float) -> str | None:
    """Return why a curve has no knee, by its first and last miss ratio; None if it has one."""
    if first == last:
        return f"{percent(first)} misses at every size"
    if first - last < LEAST_FALL:
        return f"the misses fall only from {percent(first)} to {percent(last)} at the largest size"
    return None


def axis(last: str, width: int, mark: str = "", share: float = 0.0) -> str:
    """Return the line below a curve: 0, its end `last`, and a mark at this share of the width."""
    line = "0".ljust(width - len(last)) + last
    if not mark:
        return line
    place = min(max(round(share * width), 2), width - len(last) - len(mark) - 1)
    return line[:place] + mark + line[place + len(mark) :]


def miss_ratios(curve: Curve, width: int, height: int, ascii_only: bool, edge: str) -> list[str]:
    """Return the lines of a miss-ratio curve, each behind its mark and an edge."""
    end = float(curve.pages[-1])
    pages = curve.pages.astype(float)
    lines = draw(pages, curve.miss_ratio, end, 1.0, width, height, ascii_only, gaps=False)
    marks = {0: "100%", height // 2: "50%", height - 1: "0%"}
    return [f"{marks.get(row, ''):>5} {edge}{line}" for row, line in enumerate(lines)]


def draw(
    times: Floats,
    values: Floats,
    end: float,
    top: float,
    width: int,
    height: int,
    ascii_only: bool,
    gaps: bool = True,
) -> list[str]:
    """Return lines of text, the top one first: values from 0 to `top` over times from 0 to `end`.

    With `gaps`, nothing is drawn at times that are far from every value.
    """
    across, down = (1, 1) if ascii_only else (2, 4)
    columns = (np.arange(width * across) + 0.5) * (end / (width * across))
    heights = np.interp(columns, times, values) / top if top else np.zeros(len(columns))
    levels = np.clip(np.rint(heights * (height * down - 1)), 0, height * down - 1).astype(int)
    dots = np.zeros((height * down, width * across), np.bool_)
    known = _is_near(columns, times) if gaps else [True] * len(columns)
    previous = None
    for column, (level, is_known) in enumerate(zip(levels.tolist(), known)):
        if not is_known:
            previous = None
            continue
        previous = level if previous is None else previous
        # Connected to the previous column.
        dots[min(level, previous + 1) : max(level, previous - 1) + 1, column] = True
        previous = level
    dots = dots[::-1]
    if ascii_only:
        return ["".join("*" if dot else " " for dot in row) for row in dots.tolist()]
    cells = np.zeros((height, width), np.int64)
    for row, bits in enumerate(DOTS):
        for column, bit in enumerate(bits):
            cells += dots[row::4, column::2] * bit
    return ["".join(chr(BRAILLE + cell) if cell else " " for cell in row) for row in cells.tolist()]


def _is_near(columns: npt.NDArray[np.floating[Any]], times: Floats) -> list[bool]:
    """Return for each column whether a value is near: within 1.5 times the median distance."""
    if len(times) < 2:
        return [True] * len(columns)
    after = np.clip(np.searchsorted(times, columns), 1, len(times) - 1)
    distance = np.minimum(abs(columns - times[after - 1]), abs(columns - times[after]))
    near = distance <= 1.5 * np.median(np.diff(times))
    return [bool(each) for each in near]
