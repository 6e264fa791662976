"""Points, workers and the store brought together: each point once, and on disk before it is told.

The first point of each compiled kind goes ahead, unless its machine code is there from before; the
others of the kind follow when it is done, so that workers find that code on disk.  A point that
another client computes is waited for.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

from hybridsim.studies.sweep.compute import Kind, compiled_kind
from hybridsim.studies.sweep.point import Point
from hybridsim.studies.sweep.store import Row, Store
from hybridsim.studies.sweep.workers import Crew, Settled

QUIET_S = 1.0  # planning that is over sooner is not told
LOOK_AGAIN_S = 1.0  # for what other clients did


@dataclass
class Progress:
    """How far a sweep is."""

    to_plan: int = 0  # settings of a search's next step
    planned: int = 0
    total: int = 0
    known: int = 0  # were on disk when asked for
    computed: int = 0
    failed: int = 0
    crew: str = ""
    link: str = ""
    begun: float = field(default_factory=time.monotonic)

    @property
    def done(self) -> int:
        """Points that are settled, one way or the other."""
        return self.known + self.computed + self.failed

    @property
    def passed_s(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self.begun

    @property
    def left_s(self) -> float | None:
        """Seconds to go at the pace so far; None before anything was computed."""
        worked = self.computed + self.failed
        return self.passed_s / worked * (self.total - self.done) if worked else None


Tell = Callable[[Progress, Settled | None], None]


def silent(progress: Progress, settled: Settled | None) -> None:
    """Tell nobody."""


class Running:
    """A sweep under way."""

    def __init__(self, hire: Callable[[], Crew], store: Store, tell: Tell = silent) -> None:
        """Let a crew compute what the store does not have; `tell` hears of each point.

        The crew is hired when there is something to compute.
        """
        self._hire, self._store, self._tell = hire, store, tell
        self._hired: Crew | None = None
        self.progress = Progress()
        self.failures: dict[str, Settled] = {}  # by key
        self._under_way: dict[str, Point] = {}
        self._begun: set[str] = set()  # by key
        self._compiled: dict[Kind, bool] = {}  # by kind; False: under way

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *_: object) -> None:
        if self._hired is not None:
            self._hired.close()

    @property
    def _crew(self) -> Crew:
        if self._hired is None:
            self._hired = self._hire()
            self.progress.link = self._hired.link
        self.progress.crew = self._hired.words
        return self._hired

    def plan(self, done: int, of: int) -> None:
        """Tell how far the settings of a search's next step are made out."""
        self.progress.planned, self.progress.to_plan = done, of
        if self.progress.passed_s > QUIET_S:
            self._tell(self.progress, None)

    def finish(self, points: Iterable[Point]) -> dict[str, Row]:
        """Settle all of these points; return the rows of those that succeeded, by key."""
        wanted = {point.key: point for point in points}
        self.progress.total += len(wanted)
        self._store.refresh()
        waiting = deque(point for point in wanted.values() if not self._is_known(point))
        if waiting:
            waiting = deque(dealt(list(waiting), self._crew.lanes))
        while waiting or self._under_way:
            self._hand_out(waiting)
            if self._under_way:
                self._tell(self.progress, None)
                settled = self._crew.next(LOOK_AGAIN_S)
                if settled is not None:
                    self._settle(settled)
            elif waiting:  # all of it is under way elsewhere
                time.sleep(LOOK_AGAIN_S / 10)
        rows = {key: self._store.get(key) for key in wanted}
        return {key: row for key, row in rows.items() if row is not None}

    def on_disk(self, points: Iterable[Point]) -> dict[str, dict[str, Any]]:
        """Return the figures of those points that are on disk, by key.

        What was computed is counted anew: an interrupt may come between writing and counting.
        """
        self._store.refresh()
        self.progress.computed = sum(self._store.get(key) is not None for key in self._begun)
        rows = {point.key: self._store.get(point.key) for point in points}
        return {key: row["figures"] for key, row in rows.items() if row is not None}

    def _hand_out(self, waiting: deque[Point]) -> None:
        """Give points to the crew while it has room; those that cannot begin wait on."""
        for _ in range(len(waiting)):
            if len(self._under_way) >= self._crew.room:
                return
            point = waiting.popleft()
            if not self._begin(point):
                waiting.append(point)

    def _is_known(self, point: Point) -> bool:
        row = self._store.get(point.key)
        if row is None:
            return False
        self.progress.known += 1
        self._tell(self.progress, Settled(point, row))
        return True

    def _begin(self, point: Point) -> bool:
        """Begin a point, unless it has to wait; tell whether it is done or under way here."""
        kind = compiled_kind(point)
        if self._compiled.get(kind) is False or not self._store.claim(point.key):
            return False
        self._store.refresh()
        if self._is_known(point):  # finished elsewhere, before the claim was free
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
            row = self._store.add(point.key, _about(point) | settled.row)
            settled = settled._replace(row=row)
            self.progress.computed += 1
        self._tell(self.progress, settled)


def dealt(points: Sequence[Point], lanes: int) -> Iterator[Point]:
    """Yield points of as many stretches of them in turn: what lies together is for one worker."""
    length = -(-len(points) // lanes)
    stretches = [points[at : at + length] for at in range(0, len(points), length)]
    for row in zip_longest(*stretches):
        yield from (point for point in row if point is not None)


def _about(point: Point) -> Row:
    """Return what tells a person which point a row is of; its key says it to programs."""
    return {"trace": point.trace.name, "values": dict(point.values), "seed": point.seed}
