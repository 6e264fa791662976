"""Ticks of an axis: round numbers, or powers of ten."""

from __future__ import annotations

import math
from collections.abc import Callable

from hybridsim.show.charts.chart import Axis

MOST_DOUBLINGS = 10
DECADES_MAX = 7  # with one tick per decade
STEPS = (1, 2, 2.5, 5, 10)


def of(axis: Axis) -> Callable[[float, float], list[float]]:
    """Return the function that finds the ticks of an axis between two values in its unit."""
    if not axis.log:
        return linear
    return doublings if axis.base == 2 else logarithmic


def linear(low: float, high: float, wanted: int = 5) -> list[float]:
    """Return round numbers from low to high, at about as many distances as `wanted`."""
    if not high > low:
        return [low]
    power = 10.0 ** math.floor(math.log10((high - low) / wanted))
    step = power * min(STEPS, key=lambda each: abs((high - low) / (each * power) - wanted))
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


def text(value: float) -> str:
    """Return the shortest text of a tick's number."""
    if value and abs(value) >= 10_000:
        for power, letter in ((12, "T"), (9, "G"), (6, "M"), (3, "k")):
            if abs(value) >= 10**power:
                return f"{value / 10**power:g}{letter}"
    return f"{value:.6g}"
