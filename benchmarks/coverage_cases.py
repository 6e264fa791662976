"""Cases of intervals that hold or not, and the rows that they make: see coverage.py."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

LIMITS = {0.9: (0.87, 0.97), 0.95: (0.90, 0.98)}  # of the share found, by that promised


class Case(NamedTuple):
    """One interval and whether the truth was inside, or the share of a curve that was."""

    what: str
    promised: float | None  # None: a share without a promise of its own
    inside: float
    half_width: float
    at_least: bool = False  # the promise has no upper limit


@dataclass(frozen=True)
class Row:
    """One interval: what is promised and found."""

    what: str
    promised: float | None
    inside: float
    cases: int
    half_width: float  # the median one
    at_least: bool = False

    @property
    def found(self) -> float:
        return self.inside / self.cases

    @property
    def limits(self) -> tuple[float, float]:
        """Between which shares the promise is kept."""
        if self.promised is None:
            return 0.0, 1.0
        low, high = LIMITS[self.promised]
        return low, 1.0 if self.at_least else high

    @property
    def met(self) -> bool:
        low, high = self.limits
        return low <= self.found <= high


def rows(cases: Iterable[Case]) -> Iterator[Row]:
    """Yield the row of each interval, in the order of their first cases."""
    of_interval: dict[tuple[str, float | None, bool], list[tuple[float, float]]] = {}
    for what, promised, inside, half_width, at_least in cases:
        of_interval.setdefault((what, promised, at_least), []).append((inside, half_width))
    for (what, promised, at_least), some in of_interval.items():
        inside, widths = np.array(some, float).T
        median = float(np.median(widths))
        yield Row(what, promised, float(inside.sum()), len(some), median, at_least)


def kept(path: Path) -> list[Case] | None:
    """Return the cases of a piece that was kept in a file; None without it."""
    return [Case(*each) for each in json.loads(path.read_text())] if path.exists() else None


def keep(path: Path, cases: list[Case]) -> None:
    """Write the cases of a piece, whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(json.dumps(cases))
    part.replace(path)
