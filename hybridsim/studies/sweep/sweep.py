"""Run many replays with varied settings, to find the best machine for given traces."""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.studies.sweep import fork_server as nursery
from hybridsim.studies.sweep import seeds as chance
from hybridsim.studies.sweep.answer import Failed, Setting, SweepResult
from hybridsim.studies.sweep.compute import Compute, compiled_kind, replayed, shared
from hybridsim.studies.sweep.fleet import volumes_of
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.studies.sweep.plan import Plan
from hybridsim.studies.sweep.plan_file import of_tables
from hybridsim.studies.sweep.point import Point, point
from hybridsim.studies.sweep.running import Report, Running, silent
from hybridsim.studies.sweep.search import Score, Values, search
from hybridsim.studies.sweep.store import FOLDER, Store
from hybridsim.studies.sweep.workers import Crew, Here

CLUSTER_MISSING = (
    "{} needs dask.distributed: pip install 'hybridsim[cluster]'; --workers 1 needs no package"
)


def sweep(
    plan: Plan | Mapping[str, Any],
    folder: str | os.PathLike[str] = FOLDER,
    workers: int | None = None,
    scheduler: str | None = None,
    report: Report = silent,
    compute: Compute = replayed,
) -> SweepResult:
    """Replay every setting of a plan; return the settings, the best ones, and effects of the keys.

    `plan` is a Plan, or the tables of a sweep's TOML file as dictionaries (`what_if` is shorter):

    >>> found = sweep({"sweep": {"traces": ["gen:zipf,requests=300,span=16MiB,rate=100"]},
    ...                "vary": {"cache.size": ["1MiB", "4MiB"]}}, workers=1)
    >>> found.frame()["cache.size"].tolist()
    ['1MiB', '4MiB']

    Results are stored in `folder` by their inputs: points that are on disk are not computed again.
    `workers` is a number of processes on this machine (None: one per core); `scheduler` is the
    address of a dask scheduler whose workers are used instead.  `report` is called for each point
    once it is on disk; `compute` computes the figures of a point.

    Raises UsageError for a plan without any valid point, or for a missing package.  A failed point
    is reported in the result; the sweep continues.
    """
    if isinstance(plan, Mapping):
        plan = of_tables(plan)
    check_crew(workers, scheduler)
    if plan.fleet is not None:
        parts = [volumes_of(trace, plan.fleet, Path(folder)) for trace in plan.traces]
        plan = replace(plan, traces=tuple(volume for volumes in parts for volume in volumes))
    under_way = UnderWay(plan)
    hire = functools.partial(crew, workers, scheduler, compute)
    with Store(folder) as store, Running(hire, store, report) as running:
        try:
            under_way.run(running)
        except KeyboardInterrupt:
            under_way.interrupted = True
        return under_way.result(running)


def check_crew(workers: int | None, scheduler: str | None) -> None:
    """Raise UsageError for workers that need a missing package."""
    if workers is not None and workers < 1:
        raise UsageError("--workers must be at least 1")
    if (scheduler or (workers or 1) > 1) and find_spec("distributed") is None:
        option = "--scheduler" if scheduler else f"--workers {workers}"
        raise UsageError(CLUSTER_MISSING.format(option))


def crew(workers: int | None, scheduler: str | None, compute: Compute) -> Crew:
    """Return the workers: this process if one is enough or dask is missing, else a cluster."""
    processes = nursery.wanted(workers, scheduler)
    if scheduler is None and processes == 1:
        return Here(compute)
    if scheduler is None:
        nursery.begin()
    from hybridsim.studies.sweep.cluster import Cluster

    return Cluster(compute, processes, scheduler)


class UnderWay:
    """One sweep in progress: its search, and the results that the search depends on."""

    def __init__(self, plan: Plan) -> None:
        """Open the traces; raise TraceError for an invalid one."""
        self._plan = plan
        self._digests = {trace: trace.digest() for trace in plan.traces}
        self._is_generated = {trace: trace.open().is_generated for trace in plan.traces}
        self._impossible: list[Failed] = []
        self._points: list[list[Point]] = []  # of each setting
        self._figures: dict[str, dict[str, Any]] = {}  # by key
        self.interrupted = False

    def run(self, running: Running) -> None:
        """Run the search to its end."""
        settings = search(self._plan)
        batch = next(settings, None)
        while batch is not None:
            expanded = []
            for done, each in enumerate(batch):
                running.plan(done, len(batch))
                expanded.append([self._expanded(trace, each) for trace in self._plan.traces])
            running.plan(len(batch), len(batch))
            points = [one for each in expanded for of_trace in each for one in of_trace]
            if not points:
                raise UsageError(self._impossible[0].why)
            self._points += [of_trace for each in expanded for of_trace in each if of_trace]
            rows = running.finish(in_order(points))
            self._figures |= {key: row["figures"] for key, row in rows.items()}
            try:
                batch = settings.send([self._score(each) for each in expanded])
            except StopIteration:
                return

    def _expanded(self, trace: NamedTrace, values: Values) -> list[Point]:
        """Return the points of a setting, one per seed; none if the setting is invalid."""
        scenario, digest = self._plan.scenario, self._digests[trace]
        try:
            first = point(trace, digest, scenario, values, None)
        except ScenarioError as error:
            words = " ".join(f"{key}={value}" for key, value in values.items())
            if all(each.why != str(error) for each in self._impossible):
                self._impossible.append(Failed(words, str(error), ""))
            return []
        if not self._plan.seeds or not chance.drawn(first.scenario, self._is_generated[trace]):
            return [first]
        seeds = range(first.scenario.seed, first.scenario.seed + self._plan.seeds)
        return [point(trace, digest, scenario, values, seed) for seed in seeds]

    def _setting(self, points: Sequence[Point]) -> Setting | None:
        """Return a setting; None if one of its points is not done."""
        figures = [self._figures.get(each.key) for each in points]
        complete = [each for each in figures if each is not None]
        if not complete or len(complete) < len(points):
            return None
        return Setting.of(points, complete, self._plan.objectives)

    def _score(self, of_traces: Sequence[Sequence[Point]]) -> Score:
        """Return the mean of each objective over all traces; None if one is unknown."""
        settings = [self._setting(points) for points in of_traces]
        scores = [setting.score for setting in settings if setting]
        if len(scores) < len(of_traces):
            return None
        return [
            None if None in values else sum(value or 0.0 for value in values) / len(values)
            for values in zip(*scores)
        ]

    def result(self, running: Running) -> SweepResult:
        """Return the result so far."""
        progress = running.progress
        if self.interrupted:
            self._figures |= running.on_disk(one for points in self._points for one in points)
        settings = [self._setting(points) for points in self._points]
        failed = [
            Failed(words_of(each.point), each.why, each.point.command)
            for each in running.failures.values()
        ]
        return SweepResult(
            self._plan,
            [setting for setting in settings if setting],
            [*self._impossible, *failed],
            [],
            progress.computed,
            progress.known,
            progress.passed_s,
            progress.total - progress.done,
            self.interrupted,
        )


def in_order(points: Sequence[Point]) -> list[Point]:
    """Return points in an order in which workers can reuse trace, machine code and disks."""
    places: dict[Any, int] = {}

    def place(of: Any) -> int:
        return places.setdefault(of, len(places))

    def order(of: Point) -> tuple[int, int, int]:
        return place((of.digest, of.seed)), place(compiled_kind(of)), place(shared(of))

    return sorted(points, key=order)


def words_of(point: Point) -> str:
    """Return the values and the seed of a point as text."""
    words = [f"{key}={value}" for key, value in point.values]
    return (
        " ".join([*words, *([f"seed {point.seed}"] if point.seed is not None else [])])
        or "the scenario"
    )
