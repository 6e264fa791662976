"""Replay one trace on many machines in parallel, all in the same mode."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from hybridsim.answers.metrics import Counters
from hybridsim.answers.outcome import Outcome
from hybridsim.answers.result import Result
from hybridsim.caches.page.preload import COLD_START
from hybridsim.engine.machine import Machine
from hybridsim.scenario import Scenario, building
from hybridsim.studies.disks_alone import Ran
from hybridsim.studies.hindsight import look_back
from hybridsim.studies.replay import check, concluded, decided, is_overloaded, read_once
from hybridsim.studies.runs import RecordedLatencies, Report, Task, go_on, pumped
from hybridsim.traces.trace import Trace, check_is_read

AT_ONCE = 6  # machines with a cache that run in parallel; limits the memory


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
    ) -> None:
        """Read the trace once; raise the errors of `replay` for an unsuitable trace."""
        check_is_read(trace)
        self.trace = trace
        self.scenario = scenario
        self.report = report
        self.summary = read_once(trace, report)
        check(trace, self.summary, scenario)
        self.goal = goal
        mode = decided(self._task(scenario))
        self.mode = "" if mode == "auto" else mode
        self._plain: Ran | None = None
        self._recorded = RecordedLatencies()

    def results(self, scenarios: Sequence[Scenario]) -> list[Result]:
        """Replay scenarios that differ only in their caches, and the disks alone.

        At most AT_ONCE machines are in memory; the disks alone run once for all calls.
        """
        if not self.mode and scenarios:
            has_waits = self.summary.incomplete < self.summary.requests
            first = self._pass(scenarios[:AT_ONCE], "open", may_give_up=has_waits)
            if first is not None:
                self.mode = "open"
                return first + self._results(scenarios[AT_ONCE:])
            self.mode, self._plain = "think", None
        return self._results(scenarios)

    def outcomes(self, sites: Sequence[tuple[Scenario, bool]], mode: str) -> list[Outcome]:
        """Replay any scenarios, each with its cache (True) or without it (False)."""
        machines = [self._machine(each, mode, None if cached else 0) for each, cached in sites]
        pumps = pumped(self._task(self.scenario), mode, machines, RecordedLatencies()) or []
        is_open = mode == "open"
        return [Outcome(pump.collector, Counters(pump.counters()), is_open) for pump in pumps]

    def _results(self, scenarios: Sequence[Scenario]) -> list[Result]:
        result: list[Result] = []
        for start in range(0, len(scenarios), AT_ONCE):
            result += self._pass(scenarios[start : start + AT_ONCE], self.mode) or []
        return result

    def _pass(
        self, scenarios: Sequence[Scenario], mode: str, may_give_up: bool = False
    ) -> list[Result] | None:
        """Replay scenarios in one pass; None if the disks alone do not keep up and it may end."""

        def built(volume_bytes: int, which: int) -> Machine:
            alone = which == len(scenarios)
            site = self.scenario if alone else scenarios[which]
            return self._machine(site, mode, 0 if alone else None, volume_bytes)

        builds = [partial(built, which=each) for each in range(len(scenarios) + 1)]
        volume_bytes = self.summary.max_end_bytes
        machines: list[Machine | Ran] = [each(volume_bytes) for each in builds[:-1]]
        recorded = RecordedLatencies()
        known = self._plain
        if known is None:
            machines.append(builds[-1](volume_bytes))
        alone = -1 if may_give_up else None
        pumps = pumped(self._task(self.scenario), mode, machines, recorded, alone)
        if pumps is None:
            return None
        disks = known or pumps[-1]
        if may_give_up and is_overloaded(
            Outcome(disks.collector, Counters(disks.counters()), mode == "open")
        ):
            return None
        go_on(self._task(self.scenario), mode, builds, pumps if known is None else [*pumps, known])
        look_back(self._task(self.scenario), mode, disks)
        if known is None:
            self._plain, self._recorded = Ran(pumps.pop()), recorded
        plain = self._plain
        assert plain is not None
        return [
            concluded(self._task(scenario), mode, pump, plain, self._recorded)
            for scenario, pump in zip(scenarios, pumps)
        ]

    def _machine(
        self,
        scenario: Scenario,
        mode: str,
        pages: int | None = None,
        volume_bytes: int | None = None,
    ) -> Machine:
        if pages is None:
            pages = scenario.cache.pages(self.summary.footprint_bytes)
        volume_bytes = volume_bytes or self.summary.max_end_bytes
        return building.machine(scenario, mode, volume_bytes, pages, COLD_START)

    def _task(self, scenario: Scenario) -> Task:
        return Task(self.trace, self.summary, scenario, self.report, None, None, self.goal)
