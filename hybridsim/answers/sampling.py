"""How sure a figure of a capture is: blocks drawn with replacement, slow waves, and Student's t.

Blocks (`interval`) are drawn as if other captures were made of them.

Paired sums (`ratio`, `difference`): two machines serve the same requests, and their sums are cut
into the same parts.  What both have in common, such as bursts, is in neither part of the
difference; what remains is for a large part slow: what the drives' buffers and a small cache hold
changes for thousands of requests.  Single parts, and draws of them, then scatter too little.  The
variance of the sum is that of the slow end of the spectrum, and is estimated there: the differences
are projected on the q slowest cosines over the capture, whose mean square has q degrees of freedom,
as Student's t with so few demands (U. K. Mueller, A theory of robust long-run variance estimation,
Journal of Econometrics 141 (2007) 1331; E. Lazarus et al., HAR inference, Journal of Business &
Economic Statistics 36 (2018) 541).

How slow is not known.  Few cosines are slow but scatter; more include waves that are too fast.  So
there are three estimates (COSINES), and the widest interval counts.  They were chosen on generated
loads other than those that judge the interval (benchmarks/coverage.py).  What is slower than the
capture is long does not show in it.

Student's t is for whole degrees of freedom, from its finite series (M. Abramowitz and I. Stegun,
Handbook of Mathematical Functions (1964), 26.7.3 and 26.7.4).  scipy has it too, but takes a tenth
of a short replay to import.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from statistics import NormalDist
from typing import TypeVar

import numpy as np

from hybridsim.foundation.arrays import Floats

Angle = TypeVar("Angle", float, Floats)
DRAWS = 2000
SEED = 20  # always the same draws: an answer does not change from one call to the next
LEVEL = 0.9  # of an interval: 5 to 95 %
JOINS = (1, 2, 4)  # neighbouring blocks that are drawn together
FEWEST_JOINED = 5  # runs of neighbours: fewer say little of their scatter
COSINES = (2, 4, 8)


@functools.cache
def student_reach(freedom: int, level: float) -> float:
    """Return how many standard errors an interval of a level (0 to 1) reaches to either side.

    `freedom` are the degrees of freedom, 1 or more.
    """
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if _within(freedom, middle) < level else (low, middle)
    return math.sqrt(freedom) * math.tan(high)


def student_below(freedom: int, values: Floats) -> Floats:
    """Return how likely t is below each value."""
    inside = _within(freedom, np.arctan(np.abs(values) / math.sqrt(freedom)))
    return np.asarray((1 + np.sign(values) * inside) / 2)


def _within(freedom: int, angle: Angle) -> Angle:
    """Return how likely |t| is below sqrt(freedom) * tan(angle)."""
    sine, cosine = np.sin(angle), np.cos(angle)
    is_odd = freedom % 2
    if freedom == 1:
        return angle * 2 / math.pi
    term = total = cosine if is_odd else 1.0
    for step in range(2 + is_odd, freedom, 2):
        term = term * cosine * cosine * (step - 1) / step
        total = total + term
    result: Angle = (angle + sine * total) * 2 / math.pi if is_odd else sine * total
    return result


def interval(
    blocks: int, ratio: Callable[[Floats], Floats], draws: int = DRAWS, held: int = 0
) -> tuple[float, float]:
    """Return the 5 % and 95 % quantiles of a ratio over blocks that are drawn with replacement.

    `ratio` takes how often each block was drawn, one row a draw (draws, blocks), and returns the
    ratio of each row; rows whose ratio is not finite are left out.  `held` is the number of blocks
    that hold something.  With it the quantiles are farther out, as those of few blocks are too
    narrow (`tail`), and neighbours are drawn together in ones, twos and fours (JOINS): the widest
    of these intervals counts.  What lasts longer than a block, such as the contents of the drives'
    buffers, makes neighbours alike, and single blocks then scatter too little.
    """
    joins = [each for each in JOINS if each == 1 or held // each >= FEWEST_JOINED]
    found = []
    for join in joins:
        with np.errstate(divide="ignore", invalid="ignore"):
            values = ratio(drawn(blocks, join, draws))
        values = values[np.isfinite(values)]
        if not len(values):
            return 0.0, math.inf
        outside = tail(held // join) if held > 1 else (1 - LEVEL) / 2
        low, high = np.quantile(values, [outside, 1 - outside])
        found.append((float(low), float(high)))
    return max(found, key=lambda ends: ends[1] - ends[0])


@functools.lru_cache(maxsize=8)
def drawn(blocks: int, join: int, draws: int) -> Floats:
    """Return how often each block is drawn, one row a draw; the same for all calls.

    Runs of `join` neighbours are drawn together.
    """
    groups = blocks // join
    picked = np.random.default_rng(SEED).integers(0, groups, (draws, groups))
    often = np.zeros((draws, groups))
    np.add.at(often, (np.arange(draws)[:, None], picked), 1.0)
    place = np.minimum(np.arange(blocks) // join, groups - 1)
    result = often[:, place]
    result.flags.writeable = False
    return result


@functools.cache
def tail(held: int) -> float:
    """Return the share of the draws beyond either end of an interval of LEVEL from a few blocks.

    Draws of n blocks scatter by a factor of sqrt((n - 1) / n) too little, and their scatter is
    itself an estimate (the expanded percentile interval: T. Hesterberg, What Teachers Should Know
    about the Bootstrap, The American Statistician 69 (2015) 4).
    """
    return NormalDist().cdf(-math.sqrt(held / (held - 1)) * student_reach(held - 1, LEVEL))


def ratio_interval(old: Floats, new: Floats) -> tuple[float, float]:
    """Return the interval of LEVEL of sum(old) / sum(new), from their parts in order of time.

    It is (0, infinity) where a sum is not positive, or too few parts hold something.
    """
    sums = old.sum(), new.sum()
    held = int(np.count_nonzero((old != 0) | (new != 0)))
    waves = [count for count in COSINES if count < held]
    if not waves or min(sums) <= 0:
        return 0.0, math.inf
    # What each part adds to the logarithm of the ratio.
    half = _reach(old / sums[0] - new / sums[1], waves)
    ratio = float(sums[0] / sums[1])
    return ratio * math.exp(-half), ratio * math.exp(half)


def difference_interval(old: Floats, new: Floats, counts: Floats) -> tuple[float, float]:
    """Return the interval of LEVEL of sum(old - new) / sum(counts), from their parts.

    It has no ends where too few parts hold something.
    """
    waves = [count for count in COSINES if count < np.count_nonzero(counts)]
    if not waves:
        return -math.inf, math.inf
    number = counts.sum()
    value = float((old - new).sum() / number)
    half = _reach((old - new - value * counts) / number, waves)
    return value - half, value + half


def _reach(parts: Floats, waves: list[int]) -> float:
    """Return half the interval of the sum of parts that add up to 0, the widest of all waves."""
    strength = np.square(cosines(len(parts), waves[-1]) @ parts)
    return max(
        student_reach(count, LEVEL) * math.sqrt(len(parts) * float(strength[:count].mean()))
        for count in waves
    )


@functools.lru_cache(maxsize=8)
def cosines(parts: int, count: int) -> Floats:
    """Return the slowest cosines over some parts, of length 1, one a row; all add up to 0."""
    turns = np.arange(1, count + 1)[:, None] * (np.arange(parts) + 0.5) / parts
    result: Floats = math.sqrt(2 / parts) * np.cos(math.pi * turns)
    result.flags.writeable = False
    return result
