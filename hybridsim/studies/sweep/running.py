"""Execution of a sweep: assigns points to workers and stores each result before reporting it.

The first point of each compiled kind runs first, unless its machine code exists; the other points
of the kind follow when it is done, so that workers find the code on disk.  A point that another
client computes is waited for.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from hybridsim.foundation.errors import HybridsimError
from hybridsim.studies.sweep.point import Compute, Kind, Point, compiled_kind, computed
from hybridsim.studies.sweep.store import Store

if TYPE_CHECKING:
    from hybridsim.studies.sweep.cluster import Cluster

QUIET_S = 1.0  # shorter planning is not reported
LOOK_AGAIN_S = 1.0  # interval to check for results of other clients


class Settled(NamedTuple):
    """A computed point, or the reason why it failed."""

    point: Point
    row: dict[str, Any] | None
    why: str = ""


class Here:
    """This process as the only worker, one point at a time: the other kind is a Cluster."""

    room = 1  # maximum number of submitted points
    lanes = 1  # sequences of points that run in parallel, each on its own worker
    words = "this process alone"
    link = ""  # of a dashboard

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

    close = drop


def why_of(error: BaseException) -> str:
    """Return the reason of a failed point as text."""
    if isinstance(error, HybridsimError):
        return str(error)
    return f"{type(error).__name__}: {error}".rstrip(": ")


@dataclass
class Progress:
    """Progress of a sweep."""

    to_plan: int = 0  # settings in the next step of the search
    planned: int = 0
    total: int = 0
    known: int = 0  # were on disk already
    computed: int = 0
    failed: int = 0
    crew: Crew | None = None  # from the first point on that must be computed
    begun: float = field(default_factory=time.monotonic)
    took_s: list[float] = field(default_factory=list)  # of each computed point, on its worker

    @property
    def done(self) -> int:
        """Number of settled points: on disk before, computed or failed."""
        return self.known + self.computed + self.failed

    @property
    def passed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.begun

    @property
    def left_s(self) -> float | None:
        """Estimated seconds to go; None before the first computed point."""
        worked = self.computed + self.failed
        return self.passed_s / worked * (self.total - self.done) if worked else None


Crew: TypeAlias = "Here | Cluster"
Report = Callable[[Progress, Settled | None], None]


class Clock(Protocol):
    """Decides how long a sweep may take."""

    def may_begin(self, under_way: int) -> bool:
        """Return whether one more point may begin beside those under way."""

    def is_up(self) -> bool:
        """Return whether points under way are not waited for any longer."""


def silent(progress: Progress, settled: Settled | None) -> None:
    """Report nothing."""


class Running:
    """A sweep in progress."""

    def __init__(self, hire: Callable[[], Crew], store: Store, report: Report = silent) -> None:
        """Compute the points that the store lacks; call `report` for each point.

        `hire` returns the workers; it is called when the first point must be computed.
        """
        self._hire, self._store, self._report = hire, store, report
        self.progress = Progress()
        self.failures: dict[str, Settled] = {}  # by key
        self._under_way: dict[str, Point] = {}
        self._begun: set[str] = set()  # by key
        self._compiled: dict[Kind, bool] = {}  # by kind; False: being compiled

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self.progress.crew is not None:
            self.progress.crew.close()

    @property
    def _crew(self) -> Crew:
        if self.progress.crew is None:
            self.progress.crew = self._hire()
        return self.progress.crew

    def plan(self, done: int, of: int) -> None:
        """Report how many settings of the search's next step are resolved."""
        self.progress.planned, self.progress.to_plan = done, of
        if self.progress.passed_s > QUIET_S:
            self._report(self.progress, None)

    def finish(self, points: Iterable[Point], clock: Clock | None = None) -> None:
        """Settle all points: then the successful ones are on disk.

        With a clock points begin in their order, none once it has refused one, and those
        under way when its time is up are dropped.
        """
        wanted = {point.key: point for point in points}
        self.progress.total += len(wanted)
        self._store.refresh()
        waiting = deque(point for point in wanted.values() if not self._is_known(point))
        if waiting and clock is None:
            waiting = deque(dealt(list(waiting), self._crew.lanes))
        while waiting or self._under_way:
            self._hand_out(waiting, clock)
            if clock is not None and self._under_way and clock.is_up():
                self._drop()
            elif self._under_way:
                self._report(self.progress, None)
                settled = self._crew.next(LOOK_AGAIN_S)
                if settled is not None:
                    self._settle(settled)
            elif waiting:  # other clients compute all remaining points
                time.sleep(LOOK_AGAIN_S / 10)

    def on_disk(self, points: Iterable[Point]) -> dict[str, dict[str, Any]]:
        """Return the figures of the points that are on disk, by key.

        Recounts the computed points: an interrupt may occur between writing and counting.
        """
        self._store.refresh()
        self.progress.computed = sum(self._store.get(key) is not None for key in self._begun)
        rows = {point.key: self._store.get(point.key) for point in points}
        return {key: row["figures"] for key, row in rows.items() if row is not None}

    def _drop(self) -> None:
        """Drop the points under way; other clients, or a later call, may compute them."""
        self._crew.drop()
        for key, point in self._under_way.items():
            self._store.give_back(key)
            self._begun.discard(key)
            self._compiled.pop(compiled_kind(point), None)  # it is looked for again
        self._under_way.clear()

    def _hand_out(self, waiting: deque[Point], clock: Clock | None) -> None:
        """Submit points while the crew has room; points that cannot start yet keep their place."""
        later = []
        while waiting and len(self._under_way) < self._crew.room:
            if clock is not None and not clock.may_begin(len(self._under_way)):
                waiting.clear()
                return
            point = waiting.popleft()
            if not self._begin(point):
                later.append(point)
        waiting.extendleft(reversed(later))

    def _is_known(self, point: Point) -> bool:
        row = self._store.get(point.key)
        if row is None:
            return False
        self.progress.known += 1
        self._report(self.progress, Settled(point, row))
        return True

    def _begin(self, point: Point) -> bool:
        """Start a point unless it has to wait; return whether it is done or was started here."""
        kind = compiled_kind(point)
        if self._compiled.get(kind) is False or not self._store.claim(point.key):
            return False
        self._store.refresh()
        if self._is_known(point):  # finished by another client before the claim was free
            self._store.give_back(point.key)
            return True
        self._compiled.setdefault(kind, self._crew.has_code(kind))
        self._under_way[point.key] = point
        self._begun.add(point.key)
        self._crew.submit(point)
        return True

    def _settle(self, settled: Settled) -> None:
        point = settled.point
        del self._under_way[point.key]
        self._compiled[compiled_kind(point)] = True
        if settled.row is None:
            self._store.give_back(point.key)
            self.failures[point.key] = settled
            self.progress.failed += 1
        else:
            # For readers; programs use the key.
            about = {"trace": point.trace.name, "values": dict(point.values), "seed": point.seed}
            row = self._store.add(point.key, about | settled.row)
            settled = settled._replace(row=row)
            self.progress.computed += 1
            self.progress.took_s.append(float(row["run"]["seconds"]))
        self._report(self.progress, settled)


def dealt(points: Sequence[Point], lanes: int) -> Iterator[Point]:
    """Yield points from `lanes` consecutive parts in turn, so that neighbours share a worker."""
    length = -(-len(points) // lanes)
    stretches = [points[at : at + length] for at in range(0, len(points), length)]
    for row in zip_longest(*stretches):
        yield from (point for point in row if point is not None)
