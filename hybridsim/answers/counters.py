"""Counters that the engine samples: counts and levels by name, and the time of each sample."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.levels import LEVELS

Ints = npt.NDArray[np.int64]


class Counters:
    """Counters by name; between two samples each is interpolated linearly."""

    def __init__(self, columns: Mapping[str, npt.ArrayLike]) -> None:
        self._columns = {name: np.atleast_1d(np.asarray(one)) for name, one in columns.items()}
        self._times = self._columns.get("time_ns", np.zeros(1, np.int64))

    def __iter__(self) -> Iterator[str]:
        """Return the names of the counters."""
        return iter(self._columns)

    def column(self, name: str) -> Ints:
        """Return the values of a counter by sample; raise KeyError if there is no such counter."""
        return self._columns[name]

    def at(self, name: str, times_ns: Ints) -> npt.NDArray[np.float64] | None:
        """Return the counter's values at these times in ns, or None if there is no such counter."""
        column = self._columns.get(name)
        if column is None or len(column) != len(self._times):
            return None
        times, column = self._times, column
        if times[0] > 0 and name not in LEVELS:  # all counts are 0 at time 0
            times, column = np.concatenate([[0], times]), np.concatenate([[0], column])
        values: npt.NDArray[np.float64] = np.interp(times_ns, times, column)
        return values

    def between(self, name: str, start_ns: int, end_ns: int) -> int | None:
        """Return the growth of a count in [start_ns, end_ns), or the level at `end_ns`."""
        ends = self.at(name, np.array([start_ns, end_ns], np.int64))
        if ends is None:
            return None
        return round(float(ends[1] if name in LEVELS else ends[1] - ends[0]))

    def constant(self, name: str, otherwise: int) -> int:
        """Return a constant such as the number of members; `otherwise` if it is absent."""
        column = self._columns.get(name)
        return otherwise if column is None or not len(column) else int(column[-1])
