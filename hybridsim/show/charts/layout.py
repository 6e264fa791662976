"""What both renderers need of a chart: colours, ticks, rows of labels, the sums of a stack.

The colours are distinguishable with any form of colour blindness: M. Okabe and K. Ito, "Color
Universal Design", 2008 (jfly.uni-koeln.de/color); on a dark page the same hues, lighter where they
would sink into it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hybridsim.show.charts import Axis, Chart, Mark

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, YELLOW, GREY = range(8)
LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b0588c", "#c98a00", "#3f9fd6", "#a69a00", "#6b6b6b")
DARK = ("#4da6e0", "#ff8a4c", "#2cc79b", "#e39ac4", "#f0b94a", "#8fd0f5", "#f0e442", "#a8a8a8")

# Frequent series have the same colour in all charts.
ROLES = {
    "none": GREY, "cold": SKY, "warm": VERMILLION, "cached": VERMILLION, "real": BLUE,
    "simulated": VERMILLION, "mean": BLUE, "p50": GREEN, "p99": VERMILLION, "other": GREY,
}  # fmt: skip
INTERVAL = ROLES["warm"]  # colour of the interval of a mark
MOST_DOUBLINGS = 10
DECADES_MAX = 7  # with one tick per decade
WANTED = 5  # distances between ticks
STEPS = (1, 2, 2.5, 5, 10)
NEAR = 0.1  # of the axis: minimum distance of labels in a row
LETTER = 0.02  # of the axis: width of a letter


def colours(roles: Sequence[str]) -> list[int]:
    """Return a colour for each role; empty roles get unused colours, in order."""
    used = {ROLES[each] for each in roles if each in ROLES}
    free = iter([each for each in range(8) if each not in used] + list(range(8)) * len(roles))
    return [ROLES[each] if each in ROLES else next(free) for each in roles]


def ticks(axis: Axis, low: float, high: float) -> list[float]:
    """Return the ticks of an axis between two values, all in its unit."""
    if not axis.log:
        return linear(low, high)
    return doublings(low, high) if axis.base == 2 else logarithmic(low, high)


def linear(low: float, high: float) -> list[float]:
    """Return round numbers from low to high, at about as many distances as WANTED."""
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / WANTED))
    step = power * min(STEPS, key=lambda each: abs((high - low) / (each * power) - WANTED))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [float(f"{index * step:.12g}") for index in range(first, last + 1)]


def doublings(low: float, high: float) -> list[float]:
    """Return powers of two from low to high, all or every n-th; round numbers if there is none."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    if last < first:
        return linear(low, high)
    step = 1 + (last - first) // MOST_DOUBLINGS
    return [2.0**power for power in range(first, last + 1, step)]


def logarithmic(low: float, high: float) -> list[float]:
    """Return powers of ten from low to high, with numbers between them if they are few.

    A range of less than an octave gets round numbers, as on a linear axis.
    """
    if low < high < 2 * low:
        return linear(low, high)
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    decades = math.log10(high / low)
    factors = (1, 1.5, 2, 3, 4, 5, 7) if decades < 1 else (1, 2, 5) if decades < 2 else (1,)
    step = 1 + int(decades // DECADES_MAX)
    powers = range(-(-first // step) * step, last + 1, step)
    candidates = [factor * 10.0**power for power in powers for factor in factors]
    return [float(f"{each:.6g}") for each in candidates if low * 0.999 <= each <= high * 1.001]


def tick_text(value: float) -> str:
    """Return the shortest text of a tick's number."""
    if value and abs(value) >= 10_000:
        for power, letter in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
            if abs(value) >= 10**power:
                return f"{value / 10**power:g}{letter}"
    return f"{value:.6g}"


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


def stacked(chart: Chart) -> Chart:
    """Return a chart whose lines are the running sums of the lines; all have the same x.

    A sum with an unknown value is unknown.
    """
    sums: list[float | int | None] = [0] * max((len(line.y) for line in chart.lines), default=0)
    lines = []
    for line in chart.lines:
        sums = [None if a is None or b is None else a + b for a, b in zip(sums, line.y)]
        lines.append(replace(line, y=sums))
    return replace(chart, lines=lines)
