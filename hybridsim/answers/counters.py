"""Counters that the engine reads now and then: counts and levels, by name, with each row's time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.levels import LEVELS

Ints = npt.NDArray[np.int64]


class Counters:
    """Counters by name; between two rows each is taken to change evenly."""

    def __init__(self, columns: Mapping[str, npt.ArrayLike]) -> None:
        self._columns = {name: np.atleast_1d(np.asarray(one)) for name, one in columns.items()}
        self._times = self._columns.get("time_ns", np.zeros(1, np.int64))

    def __iter__(self) -> Iterator[str]:
        """Name the counters."""
        return iter(self._columns)

    def column(self, name: str) -> Ints:
        """What a counter showed, row by row; KeyError if there is no such counter."""
        return self._columns[name]

    def at(self, name: str, times_ns: Ints) -> npt.NDArray[np.float64] | None:
        """What the counter showed at these times, or None if there is no such counter."""
        column = self._columns.get(name)
        if column is None or len(column) != len(self._times):
            return None
        times, column = self._times, column
        if times[0] > 0 and name not in LEVELS:  # nothing had happened at time 0
            times, column = np.concatenate([[0], times]), np.concatenate([[0], column])
        shown: npt.NDArray[np.float64] = np.interp(times_ns, times, column)
        return shown

    def between(self, name: str, start_ns: int, end_ns: int) -> int | None:
        """How much a count grew in this time, or what a level was at the end of it."""
        ends = self.at(name, np.array([start_ns, end_ns], np.int64))
        if ends is None:
            return None
        return round(float(ends[1] if name in LEVELS else ends[1] - ends[0]))

    def constant(self, name: str, otherwise: int) -> int:
        """A number that does not change, such as the number of members."""
        column = self._columns.get(name)
        return otherwise if column is None or not len(column) else int(column[-1])
