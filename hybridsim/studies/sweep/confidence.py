"""Mean over several seeds, with its confidence interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hybridsim.answers.sampling import student_reach

LEVEL = 0.95
MIN_SHOWN = 0.0005  # of the mean; a smaller half width changes no printed digit
PLUS_MINUS = "±"


@dataclass(frozen=True)
class Estimate:
    """The mean of independent runs, and half the width of its confidence interval at LEVEL."""

    mean: float
    half: float | None  # None for a single run
    n: int

    def worded(self, written: Callable[[float], str]) -> str:
        """Return the text of the estimate: '2.38 ms ± 0.10 ms'."""
        if self.half is None or self.half <= MIN_SHOWN * abs(self.mean):
            return written(self.mean)
        return f"{written(self.mean)} {PLUS_MINUS} {written(self.half)}"

    def to_dict(self) -> dict[str, float | int | None]:
        """Return the estimate for JSON."""
        return {"mean": self.mean, "half": self.half, "n": self.n}


def estimate(values: Sequence[float | None]) -> Estimate | None:
    """Return the mean with its interval by Student's t; None if a value is unknown.

    Each value is the result of one seed.  The interval of equal values has zero width.
    """
    numbers = [float(value) for value in values if value is not None]
    if not numbers or len(numbers) < len(values):
        return None
    n = len(numbers)
    if min(numbers) == max(numbers):  # exact, and also for infinite values
        return Estimate(numbers[0], None if n < 2 else 0.0, n)
    mean = math.fsum(numbers) / n
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in numbers) / (n - 1))
    return Estimate(mean, student_reach(n - 1, LEVEL) * deviation / math.sqrt(n), n)
