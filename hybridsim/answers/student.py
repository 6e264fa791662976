"""Student's t for whole degrees of freedom, from its finite series.

M. Abramowitz and I. Stegun, Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4.  scipy
has it too, but takes a tenth of a short replay to import.
"""

from __future__ import annotations

import functools
import math
from typing import overload

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@functools.cache
def reach(freedom: int, level: float) -> float:
    """Return how many standard errors an interval of a level (0 to 1) reaches to either side.

    `freedom` are the degrees of freedom, 1 or more.
    """
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(freedom, middle) < level else (low, middle)
    return math.sqrt(freedom) * math.tan(high)


def below(freedom: int, values: Floats) -> Floats:
    """Return how likely t is below each value."""
    inside = _within(freedom, np.arctan(np.abs(values) / math.sqrt(freedom)))
    return np.asarray((1 + np.sign(values) * inside) / 2)


@overload
def _within(freedom: int, angle: float) -> float: ...
@overload
def _within(freedom: int, angle: Floats) -> Floats: ...
def _within(freedom: int, angle: float | Floats) -> float | Floats:
    """Return how likely |t| is below sqrt(freedom) * tan(angle)."""
    sine, cosine = np.sin(angle), np.cos(angle)
    is_odd = freedom % 2
    if freedom == 1:
        return angle * 2 / math.pi
    term = total = cosine if is_odd else 1.0
    for step in range(2 + is_odd, freedom, 2):
        term = term * cosine * cosine * (step - 1) / step
        total = total + term
    return (angle + sine * total) * 2 / math.pi if is_odd else sine * total
