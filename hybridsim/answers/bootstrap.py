"""How sure a figure of a capture is: its blocks are drawn with replacement."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from hybridsim.answers import student

Floats = npt.NDArray[np.float64]

DRAWS = 2000
SEED = 20  # always the same draws: an answer does not change from one call to the next
LEVEL = 0.9  # of an interval: 5 to 95 %
JOINS = (1, 2, 4)  # neighbouring blocks that are drawn together
FEWEST_JOINED = 5  # runs of neighbours: fewer say little of their scatter


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
    result: Floats = often[:, place]
    result.flags.writeable = False
    return result


@functools.cache
def tail(held: int) -> float:
    """Return the share of the draws beyond either end of an interval of LEVEL from a few blocks.

    Draws of n blocks scatter by a factor of sqrt((n - 1) / n) too little, and their scatter is
    itself an estimate (the expanded percentile interval: T. Hesterberg, What Teachers Should Know
    about the Bootstrap, The American Statistician 69 (2015) 4).
    """
    return NormalDist().cdf(-math.sqrt(held / (held - 1)) * student.reach(held - 1, LEVEL))
