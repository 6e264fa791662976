"""Counters that the engine reads now and then: cumulative, by name, with the time of each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]


class Counters:
    """Counters by name; between two rows each is taken to grow evenly."""

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
        if times[0] > 0:  # nothing had happened at time 0
            times, column = np.concatenate([[0], times]), np.concatenate([[0], column])
        shown: npt.NDArray[np.float64] = np.interp(times_ns, times, column)
        return shown

    def between(self, name: str, start_ns: int, end_ns: int) -> int | None:
        """How much the counter grew in this time."""
        ends = self.at(name, np.array([start_ns, end_ns], np.int64))
        return None if ends is None else round(float(ends[1] - ends[0]))

    def constant(self, name: str, otherwise: int) -> int:
        """A number that does not change, such as the number of members."""
        column = self._columns.get(name)
        return otherwise if column is None or not len(column) else int(column[-1])
