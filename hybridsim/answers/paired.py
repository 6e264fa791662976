"""How sure the ratio or difference of two paired sums is: from slow waves in that of their parts.

Two machines serve the same requests, and their sums are cut into the same parts.  What both have
in common, such as bursts, is in neither part of the difference; what remains is for a large part
slow: what the drives' buffers and a small cache hold changes for thousands of requests.  Single
parts, and draws of them, then scatter too little.  The variance of the sum is that of the slow end
of the spectrum, and is estimated there: the differences are projected on the q slowest cosines over
the capture, whose mean square has q degrees of freedom, as Student's t with so few demands (U. K.
Mueller, A theory of robust long-run variance estimation, Journal of Econometrics 141 (2007) 1331;
E. Lazarus et al., HAR inference, Journal of Business & Economic Statistics 36 (2018) 541).

How slow is not known.  Few cosines are slow but scatter; more include waves that are too fast.  So
there are three estimates (COSINES), and the widest interval counts.  They were chosen on generated
loads other than those that judge the interval (benchmarks/coverage.py).  What is slower than the
capture is long does not show in it.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from hybridsim.answers import student
from hybridsim.answers.bootstrap import LEVEL

Floats = npt.NDArray[np.float64]

COSINES = (2, 4, 8)


def interval(old: Floats, new: Floats) -> tuple[float, float]:
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


def difference(old: Floats, new: Floats, counts: Floats) -> tuple[float, float]:
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
        student.reach(count, LEVEL) * math.sqrt(len(parts) * float(strength[:count].mean()))
        for count in waves
    )


@functools.lru_cache(maxsize=8)
def cosines(parts: int, count: int) -> Floats:
    """Return the slowest cosines over some parts, of length 1, one a row; all add up to 0."""
    turns = np.arange(1, count + 1)[:, None] * (np.arange(parts) + 0.5) / parts
    result: Floats = math.sqrt(2 / parts) * np.cos(math.pi * turns)
    result.flags.writeable = False
    return result
