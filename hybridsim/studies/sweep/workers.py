"""Workers that compute points: this process, or a cluster (cluster.py)."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple, Protocol

from hybridsim.foundation.errors import HybridsimError
from hybridsim.studies.sweep.compute import Compute, Kind, computed
from hybridsim.studies.sweep.point import Point


class Settled(NamedTuple):
    """A computed point, or the reason why it failed."""

    point: Point
    row: dict[str, Any] | None
    why: str = ""


class Crew(Protocol):
    """Interface of all kinds of workers."""

    link: str  # of a dashboard; empty without one

    @property
    def room(self) -> int:
        """Maximum number of submitted points."""

    @property
    def lanes(self) -> int:
        """Number of sequences of points that run in parallel, each on its own worker."""

    @property
    def words(self) -> str:
        """Description of the workers."""

    def has_code(self, kind: Kind) -> bool:
        """Return whether all workers have the machine code of a kind of points."""

    def submit(self, point: Point) -> None:
        """Accept a point."""

    def next(self, timeout_s: float) -> Settled | None:
        """Return a settled point; None after `timeout_s` seconds."""

    def drop(self) -> None:
        """Drop the submitted points, also those being computed: `next` does not return them."""

    def close(self) -> None:
        """Stop the workers, and drop the submitted points."""


class Here:
    """This process as the only worker, one point at a time."""

    room = lanes = 1
    words = "this process alone"
    link = ""

    def __init__(self, compute: Compute) -> None:
        """Use `compute` for each point."""
        self._compute = compute
        self._waiting: deque[Point] = deque()

    def has_code(self, kind: Kind) -> bool:
        """Return False: there is no other worker to wait for compiled code."""
        return False

    def submit(self, point: Point) -> None:
        """Queue a point; it is computed by `next`."""
        self._waiting.append(point)

    def next(self, timeout_s: float) -> Settled | None:
        """Compute the oldest point, regardless of the timeout."""
        if not self._waiting:
            return None
        point = self._waiting.popleft()
        try:
            return Settled(point, computed(self._compute, point))
        except Exception as error:
            return Settled(point, None, why_of(error))

    def drop(self) -> None:
        """Drop the points that are not computed."""
        self._waiting.clear()

    def close(self) -> None:
        """Drop the points that are not computed."""
        self.drop()


def why_of(error: BaseException) -> str:
    """Return the reason of a failed point as text."""
    if isinstance(error, HybridsimError):
        return str(error)
    return f"{type(error).__name__}: {error}".rstrip(": ")
