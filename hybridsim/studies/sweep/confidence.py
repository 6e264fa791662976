"""A mean over several seeds, and how far the true one may be from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

LEVEL = 0.95
LEAST_SHOWN = 0.0005  # of the mean; what is closer differs in no printed digit
PLUS_MINUS = "±"


@dataclass(frozen=True)
class Estimate:
    """A mean of independent runs and half the width of its interval at LEVEL."""

    mean: float
    half: float | None  # None of a single run: it tells nothing of others
    n: int

    def worded(self, written: Callable[[float], str]) -> str:
        """Return it for the eye: '2.38 ms ± 0.10 ms'."""
        if self.half is None or self.half <= LEAST_SHOWN * abs(self.mean):
            return written(self.mean)
        return f"{written(self.mean)} {PLUS_MINUS} {written(self.half)}"

    def to_dict(self) -> dict[str, float | int | None]:
        """Return it for JSON."""
        return {"mean": self.mean, "half": self.half, "n": self.n}


def estimate(values: Sequence[float | None]) -> Estimate | None:
    """Return the mean with its interval by Student's t; None if a value is not known.

    Each value is the result of one seed.  Equal values have an interval of no width.
    """
    known = [float(value) for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    n = len(known)
    if min(known) == max(known):  # to the digit, and also of what is endless
        return Estimate(known[0], None if n < 2 else 0.0, n)
    mean = math.fsum(known) / n
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in known) / (n - 1))
    return Estimate(mean, quantile(n - 1) * deviation / math.sqrt(n), n)


def quantile(degrees: int) -> float:
    """Return how many standard errors half an interval at LEVEL is wide."""
    from scipy.special import stdtrit  # scipy.stats takes half a second to import

    return float(stdtrit(degrees, (1 + LEVEL) / 2))
