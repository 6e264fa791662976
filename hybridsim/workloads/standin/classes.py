"""Classes of sizes, counts, births and lives; distributions as quantiles or histograms."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybridsim.workloads.draws import Draws, Floats, Ints

PAGE_BYTES = 1 << 16
SIZE_EDGES = np.array([1, *(2**power + 1 for power in range(24))])  # pages: 1, 2, 3-4, 5-8, ...
COUNT_EDGES = np.array(
    [1, 2, 3, *(edge for power in range(2, 40) for edge in (1 << power, 3 << power >> 1))]
)
# shares of the trace, with narrower slices at its beginning, where most objects are new
BIRTH_EDGES = np.array([0.0, *(2.0**-power for power in range(12, 4, -1)), *np.arange(1, 16) / 16])
# shares of the rest of the trace after an object's birth
LIFE_EDGES = np.array(
    [0.0, *(2.0**-power for power in range(24, 3, -1)), *np.arange(2, 16) / 16]
    + [1 - 2.0**-power for power in range(5, 9)]
)
WRITE_EDGES = np.array([0.0, 1e-9, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0])  # share of visits that write
NOTHING = -99  # the half octave of values <= 0
GROUPS = 13  # of objects by size; the last is 2,049 pages and more


def class_of(values: ArrayLike, edges: NDArray[np.generic]) -> Ints:
    """Return the class of each value; class i begins at edges[i]."""
    return np.searchsorted(edges, values, "right").astype(np.int64) - 1


def size_group(size_class: Ints) -> Ints:
    """Return the group of a size class."""
    return np.minimum(size_class, GROUPS - 1)


def quantiles(values: NDArray[np.generic], points: int) -> list[float]:
    """Return `points` evenly spaced quantiles, rounded to four digits; [] without values."""
    if not len(values):
        return []
    values_at = np.quantile(values.astype(np.float64), np.linspace(0, 1, points))
    return [float(f"{each:.4g}") for each in values_at]


def drawn(table: list[float], draws: Draws, rows: int) -> Floats:
    """Draw `rows` values from a distribution that is specified by its quantiles."""
    values: Floats = np.interp(draws.uniform(rows), np.linspace(0, 1, len(table)), table)
    return values


def histogram(values: NDArray[np.generic]) -> list[list[int]]:
    """Return rows of [half octave, number of values in it]."""
    bins, number = np.unique(half_octaves(values.astype(np.float64)), return_counts=True)
    return np.stack([bins, number]).T.astype(np.int64).tolist()  # type: ignore[no-any-return]


def half_octaves(values: Floats) -> Ints:
    """Return the half octave n of each value, which begins at 2^(n/2); NOTHING for <= 0."""
    octave = np.floor(2 * np.log2(np.maximum(values, 1e-30)))
    return np.where(values > 0, octave, NOTHING).astype(np.int64)


def from_histogram(
    table: list[list[int]], draws: Draws, rows: int, share: Floats | None = None
) -> Floats:
    """Draw `rows` values from a distribution that is specified by half octaves.

    `share` is the cumulative share of each value; it is random by default.
    """
    bins, number = np.array(table or [[NOTHING, 1]], np.int64).T
    below = np.cumsum(number)[:-1] / number.sum()
    bin = bins[np.searchsorted(below, draws.uniform(rows) if share is None else share, "right")]
    low = np.exp2(bin / 2)
    values: Floats = low * (1 + draws.uniform(rows) * (2**0.5 - 1))
    return np.where(bin == NOTHING, 0.0, values)


def within(classes: Ints, edges: Floats, end: float, draws: Draws) -> Floats:
    """Draw a value from each class, uniformly between its edges."""
    ends = np.append(edges[1:], end)
    values: Floats = edges[classes] + draws.uniform(len(classes)) * (ends - edges)[classes]
    return values
