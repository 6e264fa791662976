"""Classes of sizes, counts, births and lives; and quantiles, which stand for a distribution."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybridsim.workloads.draws import Draws, Floats, Ints

PAGE_BYTES = 1 << 16
SIZE_EDGES = np.array([1, *(2**power + 1 for power in range(24))])  # pages: 1, 2, 3-4, 5-8, ...
COUNT_EDGES = np.array(
    [1, 2, 3, *(edge for power in range(2, 40) for edge in (1 << power, 3 << power >> 1))]
)
# of the trace: ever wider slices at its beginning, where most is new
BIRTH_EDGES = np.array([0.0, *(2.0**-power for power in range(12, 4, -1)), *np.arange(1, 16) / 16])
# of what is left of the trace when an object is born
LIFE_EDGES = np.array(
    [0.0, *(2.0**-power for power in range(24, 3, -1)), *np.arange(2, 16) / 16]
    + [1 - 2.0**-power for power in range(5, 9)]
)
WRITE_EDGES = np.array([0.0, 1e-9, 0.05, 0.2, 0.5, 0.8, 0.95, 1.0])  # shares of visits that write
NOTHING = -99  # the half octave of 0
GROUPS = 13  # of objects by size: the last has 2,049 pages and more


def class_of(values: ArrayLike, edges: NDArray[np.generic]) -> Ints:
    """Return the class that each value lies in; class i begins at edges[i]."""
    return np.searchsorted(edges, values, "right").astype(np.int64) - 1


def size_group(size_class: Ints) -> Ints:
    """Return the group of a size class."""
    return np.minimum(size_class, GROUPS - 1)


def quantiles(values: NDArray[np.generic], points: int) -> list[float]:
    """Return the values at even shares, to four figures; [] of none."""
    if not len(values):
        return []
    found = np.quantile(values.astype(np.float64), np.linspace(0, 1, points))
    return [float(f"{each:.4g}") for each in found]


def drawn(table: list[float], draws: Draws, rows: int) -> Floats:
    """Return values of a distribution that is given by quantiles."""
    found: Floats = np.interp(draws.uniform(rows), np.linspace(0, 1, len(table)), table)
    return found


def histogram(values: NDArray[np.generic]) -> list[list[int]]:
    """Return how many values lie in each half octave: [number of the half octave, values]."""
    bins, number = np.unique(half_octaves(values.astype(np.float64)), return_counts=True)
    return np.stack([bins, number]).T.astype(np.int64).tolist()  # type: ignore[no-any-return]


def half_octaves(values: Floats) -> Ints:
    """Return the half octave of each value, from 2^(n/2) on; NOTHING of 0 and less."""
    found = np.floor(2 * np.log2(np.maximum(values, 1e-30)))
    return np.where(values > 0, found, NOTHING).astype(np.int64)


def from_histogram(
    table: list[list[int]], draws: Draws, rows: int, share: Floats | None = None
) -> Floats:
    """Return values of a distribution that is given by half octaves.

    `share` tells how much of the distribution is below each; by chance if it is not given.
    """
    bins, number = np.array(table or [[NOTHING, 1]], np.int64).T
    below = np.cumsum(number)[:-1] / number.sum()
    bin = bins[np.searchsorted(below, draws.uniform(rows) if share is None else share, "right")]
    low = np.exp2(bin / 2)
    found: Floats = low * (1 + draws.uniform(rows) * (2**0.5 - 1))
    return np.where(bin == NOTHING, 0.0, found)


def within(classes: Ints, edges: Floats, end: float, draws: Draws) -> Floats:
    """Return values anywhere in their classes."""
    ends = np.append(edges[1:], end)
    found: Floats = edges[classes] + draws.uniform(len(classes)) * (ends - edges)[classes]
    return found
