"""The results of a comparison: rows of figures, aligned curves, figures not compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hybridsim.answers.comparison.tolerances import DISTANCES
from hybridsim.answers.intervals import Interval
from hybridsim.answers.measurements.measurement import Ints, Measurement, Name
from hybridsim.answers.warmup import WarmUp
from hybridsim.foundation.in_notebooks import frame_of

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True)
class Row:
    """One figure of both runs.  `error` is a share of the real value, or a distance."""

    name: Name
    real: float | None
    simulated: float | None
    error: float | None
    tolerance: float | None  # None: reported, not checked
    slack: float = 0.0  # error allowed for the resolution of the curves
    ends: tuple[float, float] | None = None  # of the interval of the simulated value

    @property
    def is_inside(self) -> bool | None:
        """Whether the real value is in the interval of the simulated one; None if it has none."""
        if self.ends is None or self.real is None:
            return None
        return self.ends[0] <= self.real <= self.ends[1]

    @property
    def is_met(self) -> bool | None:
        """Whether the error is within its tolerance; None if it has no tolerance."""
        if self.tolerance is None:
            return None
        return self.error is not None and abs(self.error) <= max(self.tolerance, self.slack)


@dataclass(frozen=True)
class Aligned:
    """One curve of both runs on the same bins, which begin at `time_ns`."""

    name: Name
    time_ns: Ints
    width_ns: int
    real: WarmUp
    simulated: WarmUp


@dataclass
class Comparison:
    """All rows and curves, and the figures that could not be compared."""

    real: Measurement
    simulated: Measurement
    rows: list[Row] = field(default_factory=list)
    curves: list[Aligned] = field(default_factory=list)
    only_real: list[tuple[Name, str]] = field(default_factory=list)  # name and description
    only_simulated: list[tuple[Name, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    basis: str = ""  # what the intervals of the simulated figures rest on
    # How many times less the same requests cost in `simulated`, if both runs are replays of them.
    gains: Mapping[str, Interval] = field(default_factory=dict)
    paired: int = 0  # requests that are paired

    def frame(self) -> DataFrame:
        """Return a pandas frame: a row per figure that both runs have.

        Columns: `job`, `what`, `measure`, `real` and `simulated` (latencies in ns, rates in bytes
        or requests per second), `error` (a share of the real value, or a distance), `tolerance`,
        `within` (None: not judged).  NaN where unknown.  Needs pandas (`hybridsim[notebooks]`).
        """
        return frame_of(
            {
                **each.name._asdict(), "real": each.real, "simulated": each.simulated,
                "error": each.error, "tolerance": each.tolerance, "within": each.is_met,
            }
            for each in self.rows
        )  # fmt: skip

    def over_time(self) -> DataFrame:
        """Return a pandas frame: a row per time bin of each curve that both runs have.

        Columns: `job`, `what`, `measure`, `time_ns` (start of the bin), `real`, `simulated`.
        """
        return frame_of(
            [
                {**each.name._asdict(), "time_ns": int(at), "real": real, "simulated": simulated}
                for each in self.curves
                for at, real, simulated in zip(each.time_ns, each.real.curve, each.simulated.curve)
            ],
            [*Name._fields, "time_ns", "real", "simulated"],
        )

    def __repr__(self) -> str:
        beyond = f"{len(self.failed)} of {len(self.judged)} beyond their tolerance"
        return f"<Comparison of {len(self.rows)} figures: {beyond}>"

    @property
    def judged(self) -> list[Row]:
        """The rows that have a tolerance."""
        return [row for row in self.rows if row.is_met is not None]

    @property
    def failed(self) -> list[Row]:
        """The rows that exceed their tolerance."""
        return [row for row in self.rows if row.is_met is False]


def row_of(
    name: Name, real: float, simulated: float, tolerance: float | None, slack: float = 0.0
) -> Row:
    """Return the row of a figure; its error is a share of the real value, or a difference."""
    if name.measure.rpartition(" ")[2] in DISTANCES or name.measure in DISTANCES:
        return Row(name, real, simulated, simulated - real, tolerance)
    if real == simulated:
        return Row(name, real, simulated, 0.0, tolerance)
    error = simulated / real - 1 if real else None
    return Row(name, real, simulated, error, tolerance, slack / real if real else 0.0)
