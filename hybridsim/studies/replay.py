"""Replay a trace on the machine of a scenario, or of several, and without a cache."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from hybridsim.answers.advice.alternatives import bill
from hybridsim.answers.dirt import Dirt, marks
from hybridsim.answers.fitting import answer
from hybridsim.answers.goals import GOALS
from hybridsim.answers.life import compared, costs
from hybridsim.answers.outcome import Outcome
from hybridsim.answers.requirements import Requirement, check_answerable
from hybridsim.answers.result import Result, Warning, conclude, dirt_of, warm_up_of
from hybridsim.answers.setup import metadata_ram
from hybridsim.caches.page.fills import COLD_START
from hybridsim.caches.warm_start.saved_cache import SavedCache
from hybridsim.engine.machine import Machine
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import ScenarioError, TraceError, UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import span
from hybridsim.jit import compiled
from hybridsim.requests.rows import TraceWarning, no_requests
from hybridsim.scenario import Scenario, building
from hybridsim.studies.batches import Sent, batches
from hybridsim.studies.runs import (
    Alone,
    Build,
    Pump,
    Ran,
    Report,
    Task,
    go_on,
    look_back,
    pumped,
    reading,
    taken,
)
from hybridsim.studies.warm_start import Begin, begin, check_kind
from hybridsim.traces.summary import Summary
from hybridsim.traces.trace import Trace, check_is_read

TOO_MUCH = (
    "The recorded arrivals exceed what these disks can serve without a cache. Each request is "
    "therefore issued after those it waited for when captured (--mode think), on both machines.",
    "--mode open shows the backlog; more disks (--members) may keep up",
)
LOST = {"detach": "with the cache removed", "ssd": "with the SSD dead"}  # events that end a cache
OF_SUMMARY = (
    "requests", "reads", "writes", "discards", "flushes", "bytes_read", "bytes_written", "span_ns",
    "active_ns", "footprint_bytes",
)  # fmt: skip
REMOVED = (
    "The cache was removed during the load: the verdict and the figures include the time without.",
    "for a verdict on the cache replay without --event",
)
FLUSH_WRITES = 400  # of a flush, simulated: a stretch of the volume as dense as the whole
FLUSH_DEPTH = 32  # writes at a time
SECOND = 10**9
EVERY_S = 10.0  # at least, between two answers on a stream, and before the first one
SHARE = 0.2  # of the time that these may take
Status = Callable[[str], None]
AT_ONCE = 6  # machines with a cache that run in parallel; limits the memory


def replay(
    trace: Trace,
    scenario: Scenario | None = None,
    report: Report | None = None,
    *,
    warm_start: Trace | SavedCache | None = None,
    ssd_kept: bool = False,
    save_cache: str | None = None,
    require: Sequence[Requirement] = (),
    alone: Alone | None = None,
    goal: str = "time",
) -> Result:
    """Replay a trace with and without the scenario's cache, and judge the cache.

    `report` is called with the progress after each chunk.  The cache starts with the pages of
    `warm_start`: loaded from the disks, or kept on the SSD if `ssd_kept`.  Its contents at the end
    are written to the file `save_cache`.  `require` are requirements to check.  The results of the
    disks alone are kept in `alone` for other replays of the same trace.  `goal`, one of
    answers.goals.GOALS, decides whether the cache is worth it.

    Raises TraceError for a trace that cannot be replayed, ScenarioError for an array too small for
    it, UsageError for a warm start that does not match the cache or a goal that cannot be judged.

    >>> trace = Trace.read("gen:zipf,theta=1.2,requests=300,span=16MiB,rate=100")
    >>> result = replay(trace, Scenario.default().with_options(cache_size="4MiB"))
    >>> result.trace["requests"], 0 < result.phases["whole"].figures.hit_ratio < 1
    (300, True)
    """
    check_is_read(trace)
    if goal not in GOALS:
        raise UsageError(f"unknown goal {goal!r}: {hint(goal, GOALS)}")
    scenario = scenario or Scenario.default()
    if save_cache:
        check_kind(scenario, "--save-cache")
    for event in scenario.events:
        if save_cache and event.ssd:
            raise UsageError(f"--save-cache: after {event.text} there is no cache to save")
        if warm_start and scenario.cache.kind == "page" and event.reboot:
            raise UsageError(f"--warm-start: {event.text} empties the cache; use one of the two")
    summary = read_once(trace, report)
    check(trace, summary, scenario)
    check_answerable(require, summary.reads, summary.writes)
    first = begin(warm_start, scenario, summary, ssd_kept) if warm_start else None
    task = Task(trace, summary, scenario, report, first, alone, goal)
    result, cache = _replayed(task)
    if save_cache:
        SavedCache.of(cache, summary.max_end_bytes).write(save_cache)
    return result.with_requirements(require)


def _replayed(task: Task) -> tuple[Result, Any]:
    """Replay in the scenario's mode or a suitable one; return the result and the cache's state."""
    mode, summary = decided(task), task.summary
    is_auto, has_waits = mode == "auto", summary.incomplete < summary.requests
    if is_auto and (found := _replay(task, "open", may_give_up=has_waits)):
        return found
    found = _replay(task, "think" if is_auto else mode)
    assert found is not None
    if is_auto:
        found[0].warnings.append(Warning("arrivals", *TOO_MUCH))
    return found


def decided(task: Task) -> str:
    """Return the mode that scenario, trace and goal decide; "auto" if the disks alone do.

    Raises UsageError for a goal that needs a load that adapts to the machine, if there is none.
    """
    mode, summary = str(task.scenario.replay.mode), task.summary
    if mode == "auto" and summary.is_untimed:
        mode = "closed"
    if task.goal != "throughput":
        return mode
    if mode == "auto" and summary.incomplete < summary.requests:
        return "think"
    if mode in ("auto", "open"):
        raise UsageError(
            "--goal throughput: with recorded arrivals the throughput is the same on every "
            "machine; add --mode closed, or --mode think if the trace has completions"
        )
    return mode


def _replay(task: Task, mode: str, may_give_up: bool = False) -> tuple[Result, Any] | None:
    """Replay in one mode; None if it may give up and the disks alone do not keep up."""
    scenario, first = task.scenario, task.begin
    pages = scenario.cache.pages(task.summary.footprint_bytes)
    starts = [(pages, first.warm if first else COLD_START), (0, COLD_START)]
    starts += [(pages, COLD_START)] if first else []

    build = partial(building.machine, scenario, mode, has_life=True)
    builds = [partial(build, pages=number, warm=warm) for number, warm in starts]
    ran = _ran(task, mode, builds, 1, may_give_up, 2)
    if ran is None:
        return None
    cached, plain, *cold = ran
    result = concluded(task, mode, cached, plain)
    assert isinstance(cached, Pump)
    if scenario.events:
        result = _with_events(task, mode, cached, result)
    if first:
        result = _beside(result, first, cold[0])
    return result, cached.run.machine.cache


def _ran(
    task: Task,
    mode: str,
    builds: Sequence[Build],
    plain: int,
    may_give_up: bool,
    going_on: int | None = None,
) -> list[Pump | Ran] | None:
    """Run machines over the trace, and the first `going_on` over the load after it.

    Number `plain` is the disks alone, whose results may be known.  None if the run may be given up,
    as these do not keep up.
    """
    # A run with events is not shared.
    alone = (not task.scenario.events and task.alone) or Alone()
    which = alone.which(task.scenario, mode, task.volume_bytes)
    known = alone.get(which)
    machines: list[Machine | Ran] = [
        known if known and number == plain else build(task.volume_bytes)
        for number, build in enumerate(builds)
    ]
    pumps = pumped(task, mode, machines, plain if may_give_up else None)
    if pumps is None or (may_give_up and is_overloaded(pumps[plain])):
        return None
    go_on(task, mode, builds[:going_on], pumps)
    look_back(task, mode, pumps[plain])
    alone.keep(which, pumps[plain])
    return pumps


def _with_events(task: Task, mode: str, cached: Pump, result: Result) -> Result:
    """Add the cost of the events; raise UsageError for one that did not happen."""
    scenario = task.scenario
    load = batches(task.trace, scenario.replay.speed, mode == "think")
    happened = taken(
        cached, scenario.events, scenario.cache.page_bytes, task.summary.max_end_bytes, load
    )
    kind, page_bytes = scenario.cache.kind, scenario.cache.page_bytes
    warnings, verdict = list(result.warnings), result.verdict
    for each in happened:
        if each.what in LOST:
            warnings.append(Warning("events", *REMOVED))
            verdict = verdict.under(f"{LOST[each.what]} from {span(each.at_ns)} on")
            break
    events = costs(result.cached, kind, page_bytes, happened)
    return dataclasses.replace(result, events=events, warnings=warnings, verdict=verdict)


def _beside(result: Result, first: Begin, cold: Pump | Ran) -> Result:
    """Add the comparison of a warm start with the same cache starting empty."""
    without = outcome_of(cold, result.scenario["mode"] == "open")
    warm_up = warm_up_of(cold.collector, result.plain.collector, result.scenario["mode"])
    beginning = compared(
        first.source, len(first.warm.kept) > 0, first.listed, first.chosen,
        first.warm.memory is not None, result.cached, without,
        (result.warm_up, warm_up),
    )  # fmt: skip
    warnings = [*result.warnings, *first.warnings]
    return dataclasses.replace(result, beginning=beginning, warnings=warnings)


def concluded(task: Task, mode: str, cached: Pump | Ran, plain: Pump | Ran) -> Result:
    """Return the result of the runs of both machines, with the costs."""
    trace, summary, scenario = task[:3]
    pages = scenario.cache.pages(summary.footprint_bytes)
    result = conclude(
        _about_trace(trace, summary),
        _about_scenario(scenario, mode, pages),
        cached.collector,
        cached.counters,
        plain.collector,
        plain.counters,
        warnings=[_warning(each) for each in summary.warnings],
        seed=scenario.seed,
        engine="numba" if compiled else "python",
        recorded=None if trace.is_generated else summary.recorded,
        goal=task.goal,
    )
    cost = bill(scenario, result)
    ram = metadata_ram(scenario, pages)
    return dataclasses.replace(
        result,
        cost=None if cost is None else cost.to_dict(),
        dirty=_dirty(scenario, result, summary.max_end_bytes),
        metadata_ram=None if ram is None else dataclasses.asdict(ram),
    )


def _dirty(scenario: Scenario, result: Result, volume_bytes: int) -> Dirt | None:
    """Return what was dirty, and how long the disks need for a flush of it."""
    found = dirt_of(result)
    if found is None:
        return None
    most = max(found.end_bytes, found.p99_bytes)
    rate = flush_rate(scenario, volume_bytes, most, found.piece_bytes)
    return found if rate is None else found.flushed_at(rate)


def read_once(trace: Trace, report: Report | None) -> Summary:
    """Return the summary of a trace by a first pass over it, and report its progress."""
    with reading(trace, report) as counted:
        return trace.summary(counted)


def is_overloaded(plain: Pump | Ran) -> bool:
    """Return whether recorded arrivals exceed what the disks alone serve.

    Their latencies then depend on the length of the run alone.  No cache has a part in it, so that
    all commands replay a trace on the same disks in the same mode.
    """
    return outcome_of(plain, True).saturated


def outcome_of(run: Pump | Ran, is_open: bool) -> Outcome:
    """Return the figures of a machine that ran."""
    return Outcome(run.collector, run.counters, is_open)


def _warning(trace_warning: TraceWarning) -> Warning:
    number = f" (x {trace_warning.count:,})" if trace_warning.count > 1 else ""
    place = f" [{trace_warning.place}]" if trace_warning.place else ""
    return Warning(trace_warning.code, f"{trace_warning.text}{number}{place}", trace_warning.fix)


def check(trace: Trace, summary: Summary, scenario: Scenario) -> None:
    """Raise an error for a trace that cannot be replayed in the scenario's mode."""
    if summary.reads + summary.writes == 0:
        raise TraceError(f"{trace.name}: has no reads or writes, so there is nothing to replay")
    if scenario.replay.mode == "think" and summary.incomplete == summary.requests:
        raise UsageError(
            f"{trace.name} has no completions, so think times are unknown: "
            "use --mode open or closed, or capture with complete events"
        )


def _about_trace(trace: Trace, summary: Summary) -> dict[str, Any]:
    return {
        "name": trace.name,
        "format": trace.format,
        "arguments": trace.arguments,
        **{key: getattr(summary, key) for key in OF_SUMMARY},
        "volume_bytes": summary.max_end_bytes,
        "incomplete": summary.incomplete,
        "has_completions": summary.incomplete < summary.requests,
        "requests_sha256": summary.requests_sha256,
        "address_map": summary.address_map.to_dict(),
    }


def _about_scenario(scenario: Scenario, mode: str, pages: int) -> dict[str, Any]:
    backing, cache = scenario.backing, scenario.cache
    cache_bytes = pages * cache.page_bytes
    array = scenario.words[0]
    if backing.failed:
        array += f", {len(backing.failed)} failed"
    if backing.rebuild:
        array += f", member {backing.rebuild.member} being rebuilt"
    if backing.controller is not None:
        array += f", {human_size(backing.controller.memory_bytes)} of controller DRAM"
    drive = f"{human_size(cache_bytes)} of {scenario.ssds}, {cache.words}"
    with_cache = drive if pages else "none"
    return {
        "summary": f"{array}; cache: {with_cache}",
        "file": scenario.origin.name or None,
        "options": scenario.options,
        "mode": mode,
        "speed": scenario.replay.speed,
        "is_fitted": backing.drive.name == answer.NAME,
        "cache": with_cache,
        "cache_kind": cache.kind if pages else "none",
        "cache_mode": cache.write_policy,
        "cache_members": cache.members,
        "cache_bytes": cache_bytes,
        "cache_pages": pages,
        "dirty_marks": marks(cache, cache_bytes),
        "endurance_bytes": cache.endurance_bytes,
        "capacity_bytes": cache.members * cache.drive.capacity_bytes,
        "toml": scenario.to_toml(),
    }


def flush_rate(
    scenario: Scenario, volume_bytes: int, dirty_bytes: int, piece_bytes: int
) -> float | None:
    """Return bytes a second of a flush in order of address; None for less than one piece.

    The dirty pieces are taken to be spread evenly at random over the volume, and to be written in
    order of address, FLUSH_DEPTH at a time, as bcache does and a disk scheduler brings about for
    others.
    """
    dirty = dirty_bytes // piece_bytes
    places = volume_bytes // piece_bytes
    if not dirty or not places:
        return None
    number = min(dirty, FLUSH_WRITES, places)
    span = max(places * number // max(dirty, number), number)
    chosen = np.random.default_rng(scenario.seed).choice(span, number, replace=False)
    offsets = np.sort(chosen).astype(np.int64) * piece_bytes
    # Flushes at the end, as many as are issued at a time: until the last one, all is on the disks.
    rows = no_requests(number + FLUSH_DEPTH)
    rows.op[:number], rows.op[number:] = Op.WRITE, Op.FLUSH
    rows.offset_bytes[:number], rows.length_bytes[:number] = offsets, piece_bytes
    site = scenario.with_options(depth=FLUSH_DEPTH)
    pump = Pump(building.machine(site, "closed", volume_bytes, 0, has_life=True), SECOND)
    for batch in batches(Sent("the flush", rows)):
        pump.take(batch)
    took: Any = pump.collector.last_done_ns
    return number * piece_bytes * SECOND / took if took else None


class SoFar:
    """Takes what has arrived, and replays it if that is due."""

    def __init__(self, scenario: Scenario, goal: str, show: Callable[[Result], None]) -> None:
        """Replay with a scenario and a goal; `show` gets the results."""
        self._scenario, self._goal, self._show = scenario, goal, show
        self._due_s = time.monotonic() + EVERY_S

    def __call__(self, trace: Trace) -> None:
        """Replay a trace if that is due; what is too little for an answer is waited for."""
        begun_s = time.monotonic()
        if begun_s < self._due_s or trace.sample is not None:
            return
        try:
            self._show(replay(trace, self._scenario, goal=self._goal))
        except (TraceError, ScenarioError, UsageError):  # an event may still be to come
            pass
        finally:
            ended_s = time.monotonic()
            self._due_s = ended_s + max(EVERY_S, (ended_s - begun_s) * (1 / SHARE - 1))


class Several:
    """Replays of a trace that share its summary, the mode and the results of the disks alone.

    If the scenario's mode is auto and the trace has times, the first call decides: recorded
    arrivals if the disks alone keep up with them, or if the think times are unknown.
    """

    def __init__(
        self,
        trace: Trace,
        scenario: Scenario,
        report: Report | None = None,
        goal: str = "time",
        status: Status = lambda text: None,
    ) -> None:
        """Read the trace once; raise the errors of `replay` for an unsuitable trace.

        `status` is called with the name of each step of the study.
        """
        check_is_read(trace)
        self.status = status
        self.summary = read_once(trace, report)
        check(trace, self.summary, scenario)
        self.task = Task(trace, self.summary, scenario, report, None, Alone(), goal)
        mode = decided(self.task)
        self.mode = "" if mode == "auto" else mode

    def results(self, scenarios: Sequence[Scenario]) -> list[Result]:
        """Replay scenarios that differ only in their caches, and the disks alone.

        At most AT_ONCE machines are in memory; the disks alone run once for all calls.
        """
        done: list[Result] = []
        if not self.mode and scenarios:
            has_waits = self.summary.incomplete < self.summary.requests
            first = self._pass(scenarios[:AT_ONCE], "open", may_give_up=has_waits)
            if first is None:
                self.mode = "think"
            else:
                self.mode, done, scenarios = "open", first, scenarios[AT_ONCE:]
        for start in range(0, len(scenarios), AT_ONCE):
            done += self._pass(scenarios[start : start + AT_ONCE], self.mode) or []
        return done

    def outcomes(self, sites: Sequence[tuple[Scenario, bool]], mode: str) -> list[Outcome]:
        """Replay any scenarios, each with its cache (True) or without it (False)."""
        end = self.summary.max_end_bytes
        machines = [self._build(each, mode, cached)(end) for each, cached in sites]
        pumps = pumped(self.task, mode, machines) or []
        return [outcome_of(pump, mode == "open") for pump in pumps]

    def _pass(
        self, scenarios: Sequence[Scenario], mode: str, may_give_up: bool = False
    ) -> list[Result] | None:
        """Replay scenarios in one pass; None if the disks alone do not keep up and it may end."""

        builds = [self._build(each, mode) for each in scenarios]
        builds.append(self._build(self.task.scenario, mode, has_cache=False))
        ran = _ran(self.task, mode, builds, len(scenarios), may_give_up)
        if ran is None:
            return None
        *pumps, plain = ran
        return [
            concluded(self.task._replace(scenario=scenario), mode, pump, plain)
            for scenario, pump in zip(scenarios, pumps)
        ]

    def _build(self, scenario: Scenario, mode: str, has_cache: bool = True) -> Build:
        pages = scenario.cache.pages(self.summary.footprint_bytes) if has_cache else 0
        return partial(building.machine, scenario, mode, pages=pages)
