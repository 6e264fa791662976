"""Numbers by chance for generators: whole columns at once, the same on every machine.

Only raw bits of PCG64 are taken, which numpy promises not to change, and only operations that IEEE
754 rounds exactly; logarithms and powers enter through tables.
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
STEPS = 4096  # of the table of logarithms: straight lines between, wrong by less than 1e-8
EXACT_RANKS = 1 << 12  # the first ranks of a power law; the others share weights
RANKS_PER_OCTAVE = 128


class Draws:
    """Draws for one block of one load: a generator of its own, so that blocks are independent."""

    def __init__(self, *key: int) -> None:
        self._bits = np.random.PCG64(np.random.SeedSequence(key))

    def uniform(self, rows: int) -> Floats:
        """Return numbers from 0 up to 1."""
        shifted = (self._bits.random_raw(rows) >> np.uint64(11)).astype(np.float64)
        shifted *= UNIT
        found: Floats = shifted
        return found

    def below(self, limits: Ints | int, rows: int) -> Ints:
        """Return whole numbers from 0 up to each limit, which is below 2^53."""
        found: Ints = (self.uniform(rows) * limits).astype(np.int64)
        return found

    def happens(self, probability: float | Floats, rows: int) -> NDArray[np.bool_]:
        """Return true with a probability."""
        return np.asarray(self.uniform(rows) < probability)

    def exponential(self, rows: int) -> Floats:
        """Return numbers of the exponential distribution of mean 1: -log of a uniform number."""
        bits = self._bits.random_raw(rows)
        halvings = np.minimum(_leading_zeros(bits), 40)
        rest = self.uniform(rows)
        at = rest * STEPS
        index = at.astype(np.int64)
        table = _negative_logs()
        low = table[index]
        found: Floats = halvings * math.log(2) + low + (table[index + 1] - low) * (at - index)
        return found


def _leading_zeros(bits: NDArray[np.uint64]) -> Ints:
    """Return how many of the highest 53 bits are zero before the first that is not."""
    _, exponent = np.frexp((bits >> np.uint64(11)).astype(np.float64))
    return (53 - exponent).astype(np.int64)


@cache
def _negative_logs() -> Floats:
    """Return -log(1 - x / 2) at x = 0, 1/STEPS, ... 1."""
    return np.array([-math.log(1 - step / STEPS / 2) for step in range(STEPS + 1)])


class Weighted:
    """A choice between things of given weights."""

    def __init__(self, weights: Sequence[float] | Floats) -> None:
        cumulated = np.cumsum(np.asarray(weights, np.float64))
        self._below = cumulated[:-1] / cumulated[-1]

    def choose(self, draws: Draws, rows: int) -> Ints:
        """Return which thing is chosen, by number."""
        if not len(self._below):
            return np.zeros(rows, np.int64)
        return np.searchsorted(self._below, draws.uniform(rows), "right").astype(np.int64)


class PowerLaw:
    """Ranks from 0 on, of which rank i is chosen in proportion to (i + 1)^-theta.

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
        """Return ranks."""
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
    """A shuffle of the numbers from 0 up to `count`, without a table of them.

    Multiplications by odd numbers and shifts are one-to-one on a power of two; numbers that leave
    the range are sent on until they are back in it.
    """

    def __init__(self, count: int, seed: int) -> None:
        self._count = count
        bits = max((count - 1).bit_length(), 2)
        self._mask = np.uint64((1 << bits) - 1)
        self._shift = np.uint64((bits + 1) // 2)
        raw = np.random.PCG64(np.random.SeedSequence([seed, count])).random_raw(6)
        self._rounds = [(odd | np.uint64(1), plus) for odd, plus in zip(raw[:3], raw[3:])]

    def __getitem__(self, numbers: Ints) -> Ints:
        """Return where the numbers go."""
        found = self._once(numbers.astype(np.uint64))
        outside = found >= self._count
        while outside.any():
            found[outside] = self._once(found[outside])
            outside = found >= self._count
        return found.astype(np.int64)

    def _once(self, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        for odd, plus in self._rounds:
            numbers = (numbers * odd + plus) & self._mask
            numbers = numbers ^ (numbers >> self._shift)
        return numbers


def hashed(numbers: Ints, seed: int) -> NDArray[np.uint64]:
    """Return 64 bits that look random for each number: the finaliser of splitmix64."""
    mixed = numbers.astype(np.uint64) + np.uint64((seed + 1) * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
