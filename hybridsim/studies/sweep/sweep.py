"""Run many replays with varied settings, to find the best machine for given traces.

A search is a generator: it yields settings, receives the scores of each (one value per objective,
None where a setting failed), and may yield more.  The same scores lead to the same settings: a
sweep that is restarted after a crash requests the points that are on disk, and continues there.
"""

from __future__ import annotations

import functools
import itertools
import os
import warnings
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.in_notebooks import bar, with_keywords
from hybridsim.foundation.suggest import hint
from hybridsim.scenario import Scenario
from hybridsim.scenario.options import OPTIONS, Choices
from hybridsim.studies.sweep import fork_server as nursery
from hybridsim.studies.sweep import seeds as chance
from hybridsim.studies.sweep.answer import Failed, Setting, SweepResult
from hybridsim.studies.sweep.named_trace import AnyTrace, NamedTrace, volumes_of
from hybridsim.studies.sweep.plan import Axis, Plan, of_tables
from hybridsim.studies.sweep.point import Compute, Point, compiled_kind, point, replayed, shared
from hybridsim.studies.sweep.running import Crew, Here, Report, Running, silent
from hybridsim.studies.sweep.store import FOLDER, Store

if TYPE_CHECKING:
    from pandas import DataFrame

Values = dict[str, Any]
Score = Sequence[float | None] | None
Search = Generator[list[Values], list[Score], None]
GENERATION = 20  # settings per generation
CLUSTER_MISSING = (
    "{} needs dask.distributed: pip install 'hybridsim[cluster]'; --workers 1 needs no package"
)


def search(plan: Plan) -> Search:
    """Return the search of a plan."""
    return {"grid": grid, "random": at_random, "pareto": pareto}[plan.kind](plan)


def grid(plan: Plan) -> Search:
    """Try every setting; the last key changes fastest."""
    keys = [axis.key for axis in plan.axes]
    every = itertools.product(*(axis.values for axis in plan.axes))
    yield [dict(zip(keys, values)) for values in every]


def at_random(plan: Plan) -> Search:
    """Try uniformly random settings by the seed of the search, without duplicates."""
    draw = np.random.default_rng(plan.seed)
    settings: dict[str, Values] = {}
    for _ in range(10 * plan.trials):  # there may be fewer distinct settings than trials
        if len(settings) == plan.trials:
            break
        values = {axis.key: axis.at(float(draw.random())) for axis in plan.axes}
        settings.setdefault(repr(values), values)
    yield list(settings.values())


def pareto(plan: Plan) -> Search:
    """Try generations of settings by NSGA-II (Deb et al., 2002), as implemented by optuna."""
    try:
        import optuna
    except ImportError:
        raise UsageError(
            "a Pareto search needs optuna: pip install 'hybridsim[opt]'; "
            "the kinds random and grid need no extra package"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    directions = ["minimize" if each.wants_less else "maximize" for each in plan.objectives]
    sampler = optuna.samplers.NSGAIISampler(population_size=GENERATION, seed=plan.seed)
    study = optuna.create_study(directions=directions, sampler=sampler)
    remaining = plan.trials
    while remaining > 0:
        trials = [study.ask() for _ in range(min(GENERATION, remaining))]
        scores = yield [_suggested(trial, plan.axes) for trial in trials]
        for trial, score in zip(trials, scores):
            if score is None or None in score:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, list(score))
        remaining -= len(trials)


def _suggested(trial: Any, axes: Sequence[Axis]) -> Values:
    """Return the setting of a trial: for a range a share of it, for choices an index."""
    return {
        axis.key: axis.at(trial.suggest_float(axis.key, 0.0, 1.0))
        if not isinstance(axis.choices, tuple)
        else axis.choices[trial.suggest_categorical(axis.key, range(len(axis.choices)))]
        for axis in axes
    }


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
            running.finish(in_order(points))
            self._figures |= running.on_disk(points)
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
        if not points or any(each.key not in self._figures for each in points):
            return None
        figures = tuple(self._figures[each.key] for each in points)
        return Setting(tuple(points), figures, self._plan.objectives)

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
        self._figures |= running.on_disk(one for points in self._points for one in points)
        settings = [self._setting(points) for points in self._points]
        failed = [
            Failed(words_of(each.point), each.why, each.point.command)
            for each in running.failures.values()
        ]
        return SweepResult(
            self._plan, [setting for setting in settings if setting], [*self._impossible, *failed],
            progress.computed, progress.known, progress.passed_s, progress.total - progress.done,
            self.interrupted,
        )  # fmt: skip


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
    words += [] if point.seed is None else [f"seed {point.seed}"]
    return " ".join(words) or "the scenario"


@with_keywords(Choices)
def what_if(
    trace: AnyTrace,
    site: Scenario | None = None,
    vary: Mapping[str, Sequence[Any]] | None = None,
    *,
    folder: str | os.PathLike[str] = FOLDER,
    workers: int | None = 1,
    progress: bool = True,
    **options: Unpack[Choices],
) -> DataFrame:
    """Replay a trace on each machine of a grid; return a pandas frame with one row per machine.

    The keywords are the options of `Scenario.with_options`, with a list of values for each that is
    varied, or one value:

        what_if("sda.blktrace.0", cache=["bcache", "dm-cache"], cache_size=["16GiB", "64GiB"])

    `vary` does the same for any key of the scenario: {"backing.drive.rpm": [7200, 10000]}.

    All rows are judged on the same requests: the whole trace.  Columns: what is varied; `answer`
    (yes, no, unsure); `hit_ratio`; mean and p99 latencies of reads and writes, with the cache and
    on the disks alone, in ms; `warm_after_s`; `ssd_gib`; `drive_writes_per_day`; `gain` (of the
    second half of the work) and `forecast` (of the load that goes on).  Units are in the names;
    unknown values are NaN.  With the cache, `read_ms_low` and `read_ms_high` are the ends of the
    interval of 90 % of `read_ms`, and so for the other latencies and `hit_ratio`.

    Results are kept in `folder`, so that a repeated call, or one with more values, only computes
    what is new.  `workers` is the number of processes (None: one per core, which needs
    `hybridsim[cluster]`).  `progress` shows a bar, in notebooks and on terminals.

    Raises UsageError for an unknown option, an empty list or standard input, TraceError for a trace
    that cannot be read, ScenarioError for a wrong value.  Machines that cannot be built are left
    out with a warning.

    >>> frame = what_if("gen:zipf,requests=300,span=16MiB,rate=100", cache_size=["1MiB", "4MiB"],
    ...                 progress=False)
    >>> frame["cache_size"].tolist()
    ['1MiB', '4MiB']
    """
    lists: dict[str, Sequence[Any]] = {}
    values: dict[str, Any] = {}
    for option, value in options.items():
        if option not in OPTIONS:
            raise UsageError(f"no option {option!r}: {hint(option, OPTIONS)}")
        if isinstance(value, list | tuple | range):
            lists[_key(option)] = value
        else:
            values[option] = value
    lists |= vary or {}
    empty = next((key for key, choices in lists.items() if not len(choices)), None)
    if empty:
        raise UsageError(f"{empty}: specify at least one value")
    axes = tuple(Axis(key, tuple(dict.fromkeys(choices))) for key, choices in lists.items())
    scenario = (site or Scenario.default()).with_options(**values)
    plan = Plan((NamedTrace.of(trace),), scenario, axes)
    with bar("machines", progress) as show:
        result = sweep(
            plan, folder, workers, report=lambda so_far, _: show(so_far.done, plan.settings)
        )
    for failed in result.failed:
        warnings.warn(f"left out: {failed.words}: {failed.why}", stacklevel=2)
    return result.frame().rename(columns={_key(option): option for option in options})


def _key(option: str) -> str:
    """Return the key that an option sets."""
    return ".".join(map(str, OPTIONS[option]))
