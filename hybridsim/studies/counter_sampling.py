"""Samples of counters at regular intervals, which double in a long run."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from hybridsim.foundation.arrays import Ints

SAMPLES_MAX = 512


class Sampler:
    """At most SAMPLES_MAX rows of counters, and one at time 0; the next sample is at `due_ns`."""

    def __init__(self, step_ns: int) -> None:
        self.due_ns = step_ns
        self._step_ns = step_ns
        self._rows: list[Mapping[str, int]] = []

    def take(self, time_ns: int, row: Mapping[str, int]) -> None:
        """Add the row of a sample."""
        self._rows.append({"time_ns": time_ns, **row})
        has_first = self._rows[0]["time_ns"] == 0  # the row at time 0 is kept
        if len(self._rows) == SAMPLES_MAX + has_first:
            del self._rows[has_first::2]
            self._step_ns *= 2
        if time_ns >= self.due_ns:
            self.due_ns += self._step_ns

    def add(self, time_ns: int, row: Mapping[str, int]) -> None:
        """Add a row that is kept."""
        self._rows.append({"time_ns": time_ns, **row})

    def columns(self) -> dict[str, Ints]:
        """Return the counters over time, by name."""
        # A rebuild that begins during the run has counters from then on.
        names = dict.fromkeys(name for row in (self._rows[:1] + self._rows[-1:]) for name in row)
        return {
            name: np.array([row.get(name, 0) for row in self._rows], np.int64) for name in names
        }
