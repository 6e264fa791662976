"""Rows for labels of marks, so that they do not overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hybridsim.show.charts.chart import Axis, Mark

NEAR = 0.1  # of the axis: minimum distance of labels in a row
LETTER = 0.02  # of the axis: width of a letter


def rows_of(marks: Sequence[Mark], axis: Axis, low: float, high: float) -> list[int]:
    """Return the row of each label, from 0; `low` and `high` are the ends of the axis."""

    def place(value: float) -> float:
        return math.log(max(value, 1e-300)) if axis.log else value

    span = place(high) - place(low)
    rows = [0] * len(marks)
    last: list[float] = []  # end of the last label, by row
    for number in sorted(range(len(marks)), key=lambda each: marks[each].x):
        at = place(marks[number].x)
        free = [row for row, end in enumerate(last) if at >= end]
        rows[number] = free[0] if free else len(last)
        end = at + max(NEAR, LETTER * len(marks[number].label)) * span
        last[rows[number] : rows[number] + 1] = [end]
    return rows
