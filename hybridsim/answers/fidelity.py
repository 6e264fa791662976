"""How closely a model reproduces measured latencies."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybridsim.foundation.histogram import VALUES, Distribution

POINTS = 2000  # quantiles at which two distributions are compared
GOOD, FAIR = 0.10, 0.25  # highest demerit; validated disk simulators reach 0.01 to 0.07
OTHER_KIND = 5.0  # ratio of the medians from which on the capture is not one of disks
PERCENTS = (50, 95, 99)


@dataclass(frozen=True)
class Fidelity:
    """The measured and the modelled latencies of the same requests."""

    measured: Distribution
    modelled: Distribution
    why_not: str = ""  # set where the two cannot be compared
    demerit: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        if not self.why_not and not (self.measured.count and self.modelled.count):
            object.__setattr__(self, "why_not", "no latencies were recorded")
        if not self.why_not:
            object.__setattr__(self, "demerit", demerit(self.measured, self.modelled))

    @property
    def is_known(self) -> bool:
        """Whether the two could be compared."""
        return not self.why_not

    @property
    def likeness(self) -> str:
        """Return the demerit as a word: good, fair or poor."""
        return "good" if self.demerit <= GOOD else "fair" if self.demerit <= FAIR else "poor"

    @property
    def is_other_kind(self) -> bool:
        """Return whether the capture comes from storage that is too fast for disks."""
        measured, modelled = self.measured.percentile(50), self.modelled.percentile(50)
        return measured is not None and (modelled or 0) > OTHER_KIND * measured

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the result's JSON."""
        return {
            "why_not": self.why_not or None,
            "demerit": self.demerit if self.is_known else None,
            "measured": figures(self.measured),
            "modelled": figures(self.modelled),
        }


def demerit(measured: Distribution, modelled: Distribution) -> float:
    """Return the root mean square horizontal distance of two distributions over the measured mean.

    Ruemmler and Wilkes, An introduction to disk drive modeling, IEEE Computer 27 (1994) 3.
    """
    apart = _quantiles(modelled) - _quantiles(measured)
    return float(np.sqrt(np.mean(apart**2)) / max(measured.mean_ns or 0.0, 1.0))


def distance(measured: Distribution, modelled: Distribution) -> float:
    """Return the Kolmogorov-Smirnov distance: the maximum difference of the cumulative shares."""
    shares = [np.cumsum(each.bins) / max(each.count, 1) for each in (measured, modelled)]
    return float(np.abs(shares[0] - shares[1]).max())


def figures(
    of: Distribution, percents: tuple[float, ...] = PERCENTS
) -> dict[str, float | int | None]:
    """Return number, mean and percentiles by name."""
    named = {f"p{percent}_ns": of.percentile(percent) for percent in percents}
    return {"n": of.count, "mean_ns": of.mean_ns, **named}


def _quantiles(of: Distribution) -> np.ndarray[Any, np.dtype[np.float64]]:
    shares = (np.arange(POINTS) + 0.5) / POINTS
    place = np.searchsorted(np.cumsum(of.bins), shares * of.count)
    return np.minimum(VALUES[place], of.max_ns).astype(np.float64)
