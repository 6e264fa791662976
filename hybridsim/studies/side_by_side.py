"""One trace on many machines side by side, all in the mode that suits it."""

from __future__ import annotations

from collections.abc import Sequence

from hybridsim.answers.counters import Counters
from hybridsim.answers.outcome import Outcome
from hybridsim.answers.result import Result
from hybridsim.caches.page.preload import COLD_START
from hybridsim.engine.machine import Machine
from hybridsim.scenario import Scenario, building
from hybridsim.studies.disks_alone import Ran
from hybridsim.studies.machine_run import Pump
from hybridsim.studies.recorded_latency import RecordedLatencies
from hybridsim.studies.replay import (
    Report,
    Task,
    check,
    concluded,
    is_overloaded,
    pumped,
    watched,
)
from hybridsim.traces.trace import Trace, check_is_read


class Several:
    """Replays of a trace: what is found out once (summary, mode, the disks alone) is kept.

    The mode, where the scenario leaves it open, is found out by the first machines: recorded
    arrivals if the machine of the first scenario can keep up, with its cache or without.
    """

    def __init__(self, trace: Trace, scenario: Scenario, report: Report | None = None) -> None:
        """Read the trace once; raise what `replay` raises for a trace that cannot be replayed."""
        check_is_read(trace)
        self.trace = trace
        self.scenario = scenario
        self.report = report
        self.summary = trace.summary(lambda chunks: watched(chunks, report))
        check(trace, self.summary, scenario)
        said = scenario.replay.mode
        self.mode = "" if said == "auto" else said
        self._plain: Pump | Ran | None = None
        self._recorded = RecordedLatencies()

    def results(self, scenarios: Sequence[Scenario]) -> list[Result]:
        """Replay scenarios that differ in their caches alone; each beside the disks alone."""
        if self.mode:
            return self._results(scenarios, self.mode) or []
        knows_waits = self.summary.incomplete < self.summary.requests
        found = self._results(scenarios, "open", may_give_up=knows_waits)
        self.mode = "open"
        if found is None or (knows_waits and is_overloaded(found[0])):
            self.mode, self._plain = "think", None
            found = self._results(scenarios, "think")
        return found or []

    def outcomes(self, sites: Sequence[tuple[Scenario, bool]], mode: str) -> list[Outcome]:
        """Replay scenarios of any kind, each with its cache or (False) without."""
        machines = [self._machine(each, mode, None if cached else 0) for each, cached in sites]
        pumps = pumped(self._task(self.scenario), mode, machines, RecordedLatencies()) or []
        is_open = mode == "open"
        return [Outcome(pump.collector, Counters(pump.counters()), is_open) for pump in pumps]

    def _results(
        self, scenarios: Sequence[Scenario], mode: str, may_give_up: bool = False
    ) -> list[Result] | None:
        machines = [self._machine(each, mode) for each in scenarios]
        recorded = RecordedLatencies()
        if self._plain is None:
            machines.append(self._machine(self.scenario, mode, pages=0))
            self._recorded = recorded
        pumps = pumped(self._task(self.scenario), mode, machines, recorded, may_give_up)
        if pumps is None:
            return None
        if len(pumps) > len(scenarios):
            self._plain = pumps.pop()
        plain = self._plain
        assert plain is not None
        return [
            concluded(self._task(scenario), mode, pump, plain, self._recorded)
            for scenario, pump in zip(scenarios, pumps)
        ]

    def _machine(self, scenario: Scenario, mode: str, pages: int | None = None) -> Machine:
        if pages is None:
            pages = scenario.cache.pages(self.summary.footprint_bytes)
        return building.machine(scenario, mode, self.summary.max_end_bytes, pages, COLD_START)

    def _task(self, scenario: Scenario) -> Task:
        return Task(self.trace, self.summary, scenario, self.report, None)
