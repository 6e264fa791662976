"""Who computes points: this process itself, or workers of a cluster (cluster.py)."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple, Protocol

from hybridsim.foundation.errors import HybridsimError
from hybridsim.studies.sweep.compute import Compute, Kind, computed
from hybridsim.studies.sweep.point import Point


class Settled(NamedTuple):
    """A point that was computed, or why it could not be."""

    point: Point
    row: dict[str, Any] | None
    why: str = ""


class Crew(Protocol):
    """Workers, however many."""

    link: str  # of a dashboard; empty without one

    @property
    def room(self) -> int:
        """How many points may be under way at once."""

    @property
    def lanes(self) -> int:
        """How many stretches of points go side by side, each to a worker of its own."""

    @property
    def words(self) -> str:
        """Who works, for the eye."""

    def has_code(self, kind: Kind) -> bool:
        """Tell whether all of them have the machine code of a kind of points already."""

    def submit(self, point: Point) -> None:
        """Take a point."""

    def next(self, timeout_s: float) -> Settled | None:
        """Return a settled point; None if there is none within the time."""

    def close(self) -> None:
        """Let go of the workers, and of points that are under way."""


class Here:
    """This process: one point after the other."""

    room = lanes = 1
    words = "this process alone"
    link = ""

    def __init__(self, compute: Compute) -> None:
        """Compute points in this way."""
        self._compute = compute
        self._waiting: deque[Point] = deque()

    def has_code(self, kind: Kind) -> bool:
        """Compile where it is needed: there is nobody else to wait for it."""
        return False

    def submit(self, point: Point) -> None:
        """Take a point, to be computed when its result is asked for."""
        self._waiting.append(point)

    def next(self, timeout_s: float) -> Settled | None:
        """Compute the oldest point, however long it takes."""
        if not self._waiting:
            return None
        point = self._waiting.popleft()
        try:
            return Settled(point, computed(self._compute, point))
        except Exception as error:
            return Settled(point, None, why_of(error))

    def close(self) -> None:
        """Forget points that were not computed."""
        self._waiting.clear()


def why_of(error: BaseException) -> str:
    """Return the words of what went wrong with a point."""
    if isinstance(error, HybridsimError):
        return str(error)
    return f"{type(error).__name__}: {error}".rstrip(": ")
