"""The run of one machine over a trace."""

from __future__ import annotations

from typing import Any

from hybridsim.answers.metrics import Collector
from hybridsim.engine import loops
from hybridsim.engine.machine import Machine, Run
from hybridsim.requests.inflight import Batch
from hybridsim.storage.controller import Controller
from hybridsim.studies.counter_sampling import Sampler


class Pump:
    """One running machine, with the sums of its facts and samples of its counters."""

    def __init__(self, machine: Machine, step_ns: int) -> None:
        """Sample the counters every `step_ns` of simulated time, and less often in a long run."""
        self.run = Run(machine)
        self.collector = Collector()
        self.backlogs: list[int] = []  # after each batch
        self._samples = Sampler(step_ns)
        self._sample(self.run.now_ns)  # the initial levels, which a warm start sets

    def take(self, batch: Batch) -> None:
        """Run until all requests of the batch are issued; after the last batch, to the end."""
        self.collector.ledger.arrive(int(batch.state[2]), batch.arrival_ns)
        self.run.feed(batch)
        while True:
            until_ns = self._samples.due_ns
            status, facts = self.run.advance(until_ns)
            if facts is not None:
                self.collector.add(facts)
            elif status == loops.REACHED:
                self._sample(until_ns)
            else:
                break
        self.collector.add(self.run.facts.drained())
        self.backlogs.append(self.run.machine.source.outstanding)
        if status == loops.FINISHED:
            self._sample(self.run.now_ns)

    @property
    def backlog(self) -> int:
        """Requests outstanding after the last batch."""
        return self.backlogs[-1]

    def counters(self) -> dict[str, Any]:
        """Return the counters over time, by name."""
        return self._samples.columns()

    def _sample(self, time_ns: int) -> None:
        machine = self.run.machine
        slow, fast = machine.below.slow, machine.below.fast
        row = {"slow_members": slow.members, "fast_members": fast.members}
        for name, tier in (("slow", slow), ("fast", fast)):
            totals = tier.device.totals(time_ns) | tier.totals(time_ns)
            row |= {f"{name}_{key}": value for key, value in totals.items()}
        if isinstance(slow, Controller):
            totals = slow.dram_totals()
            row |= {f"controller_{key}": value for key, value in totals.items()}
        self._samples.take(time_ns, row | machine.cache.totals())
