"""Random numbers for generators: whole columns at once, the same on every machine.

Only raw bits of PCG64 are used, which numpy promises not to change, and only operations that IEEE
754 rounds exactly; logarithms and powers come from tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

UNIT = 2.0**-53
STEPS = 4096  # of the table of logarithms; linear interpolation, error below 1e-8
EXACT_RANKS = 1 << 12  # the first ranks of a power law; the others share weights
RANKS_PER_OCTAVE = 128


class Draws:
    """Random numbers of one block of a load; each block has an independent generator."""

    def __init__(self, *key: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(key))

    def uniform(self, rows: int) -> Floats:
        """Return uniform numbers in [0, 1)."""
        shifted = (self._bits.random_raw(rows) >> np.uint64(11)).astype(np.float64)
        shifted *= UNIT
        return shifted

    def below(self, limits: Ints | int, rows: int) -> Ints:
        """Return uniform integers in [0, limit); limits are below 2^53."""
        return (self.uniform(rows) * limits).astype(np.int64)

    def happens(self, probability: float | Floats, rows: int) -> NDArray[np.bool_]:
        """Return booleans that are true with a probability."""
        return np.asarray(self.uniform(rows) < probability)

    def exponential(self, rows: int) -> Floats:
        """Return exponentially distributed numbers of mean 1: -log of a uniform number."""
        bits = self._bits.random_raw(rows)
        # The leading zeros of the highest 53 bits.
        _, exponent = np.frexp((bits >> np.uint64(11)).astype(np.float64))
        halvings = np.minimum((53 - exponent).astype(np.int64), 40)
        rest = self.uniform(rows)
        at = rest * STEPS
        index = at.astype(np.int64)
        table = _negative_logs()
        low = table[index]
        return halvings * math.log(2) + low + (table[index + 1] - low) * (at - index)


@cache
def _negative_logs() -> Floats:
    """Return -log(1 - x / 2) at x = 0, 1/STEPS, ... 1."""
    return np.array([-math.log(1 - step / STEPS / 2) for step in range(STEPS + 1)])


class Weighted:
    """A random choice by weights."""

    def __init__(self, weights: Sequence[float] | Floats) -> None:
        cumulated = np.cumsum(np.asarray(weights, np.float64))
        self._below = cumulated[:-1] / cumulated[-1]

    def choose(self, draws: Draws, rows: int) -> Ints:
        """Return the indices of random choices."""
        if not len(self._below):
            return np.zeros(rows, np.int64)
        return np.searchsorted(self._below, draws.uniform(rows), "right").astype(np.int64)


class PowerLaw:
    """Random ranks from 0 on; rank i has a probability in proportion to (i + 1)^-theta.

    Beyond the first EXACT_RANKS, ranks within 0.5 % of each other share a weight.
    """

    def __init__(self, ranks: int, theta: float) -> None:
        exact = min(ranks, EXACT_RANKS)
        weights = [rank**-theta for rank in range(1, exact + 1)]
        begins = list(range(exact))
        step = 2 ** (1 / RANKS_PER_OCTAVE)
        begin = exact
        while begin < ranks:
            end = min(max(math.ceil(begin * step), begin + 1), ranks)
            begins.append(begin)
            weights.append(_sum_of_powers(begin, end, theta))
            begin = end
        self._begins = np.array([*begins, ranks], np.int64)
        self._choice = Weighted(weights)

    def choose(self, draws: Draws, rows: int) -> Ints:
        """Return random ranks."""
        bin = self._choice.choose(draws, rows)
        begin = self._begins[bin]
        width = self._begins[bin + 1] - begin
        wide = width > 1
        if wide.any():
            begin[wide] += draws.below(width[wide], int(wide.sum()))
        return begin


def _sum_of_powers(begin: int, end: int, theta: float) -> float:
    """Return the sum of (i + 1)^-theta over ranks from `begin` up to `end`, as an integral."""
    low, high = begin + 0.5, end + 0.5
    if abs(theta - 1) < 1e-9:
        return math.log(high / low)
    return float((high ** (1 - theta) - low ** (1 - theta)) / (1 - theta))


class Scattered:
    """A pseudo-random permutation of the numbers below `count`, without a table.

    Multiplications by odd numbers and shifts are one-to-one on a power of two; numbers outside the
    range are permuted again until they are inside.
    """

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        bits = max((count - 1).bit_length(), 2)
        self._mask = np.uint64((1 << bits) - 1)
        self._shift = np.uint64((bits + 1) // 2)
        raw = np.random.PCG64(np.random.SeedSequence([seed, count])).random_raw(6)
        self._rounds = [(odd | np.uint64(1), plus) for odd, plus in zip(raw[:3], raw[3:])]

    def __getitem__(self, numbers: Ints) -> Ints:
        """Return the images of numbers."""
        images = self._once(numbers.astype(np.uint64))
        outside = images >= self._count
        while outside.any():
            images[outside] = self._once(images[outside])
            outside = images >= self._count
        return images.astype(np.int64)

    def _once(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        for odd, plus in self._rounds:
            numbers = (numbers * odd + plus) & self._mask
            numbers = numbers ^ (numbers >> self._shift)
        return numbers
