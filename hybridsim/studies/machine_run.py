"""The run of one machine over a trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from hybridsim.answers.life import Backup
from hybridsim.answers.metrics import Collector
from hybridsim.engine import loops
from hybridsim.engine.life import LivedRun
from hybridsim.engine.loops import HOLD_NS
from hybridsim.engine.machine import FOREVER, Machine, Run
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Change, Op
from hybridsim.foundation.histogram import Distribution
from hybridsim.foundation.machine_parameters import EventParameters
from hybridsim.requests.inflight import Batch, Facts
from hybridsim.requests.source import NEVER, PASS_FROM
from hybridsim.storage.controller import Controller
from hybridsim.studies.counter_sampling import Sampler


class Pump:
    """One running machine, with the sums of its facts and samples of its counters."""

    def __init__(
        self,
        machine: Machine,
        step_ns: int,
        steps: Sequence[EventParameters] = (),
        collector: Collector | None = None,
    ) -> None:
        """Sample the counters every `step_ns` of the load, and less often in a long run.

        `steps` happen to the machine during the load; times are those of the load, without the time
        for which a step holds it.
        """
        self.run = LivedRun(machine, steps) if steps else Run(machine)
        self._loses = any(step.change == Change.SSD_DIES for step in steps)
        self._writes: list[tuple[Ints, Ints]] = []
        self._backup = Distribution()
        self._backup_bytes = self._backup_ns = 0
        self._end_bytes = max((step.end_bytes for step in steps), default=0)
        self.collector = collector or Collector()
        self.backlogs: list[int] = []  # after each batch
        self._samples = Sampler(step_ns)
        self._samples.take(0, self._row(0))  # the initial levels, which a warm start sets
        if not steps:  # these hold the load themselves
            machine.clock[HOLD_NS] = NEVER  # until all requests are complete

    def take(self, batch: Batch) -> None:
        """Run until all requests of the batch are issued; after the last batch, to the end."""
        self.collector.ledger.arrive(int(batch.state[2]), batch.arrival_ns)
        self.run.feed(batch)
        while True:
            due_ns = self._samples.due_ns
            shift_ns = self._shift_ns
            status, facts = self.run.advance(due_ns + shift_ns)
            if facts is not None:
                self._collect(facts)
            elif status == loops.REACHED and shift_ns == self._shift_ns:
                self._samples.take(due_ns, self._row(due_ns))
            elif status == loops.HELD:
                self._add_sample()
                self.run.machine.clock[HOLD_NS] = FOREVER
            elif status != loops.REACHED:
                break
        self._collect(self.run.drained())
        self.backlogs.append(self.run.machine.source.outstanding)
        if status == loops.FINISHED:
            self._add_sample()

    @property
    def _shift_ns(self) -> int:
        """Simulated time less that of the load."""
        return self.run.shift_ns if isinstance(self.run, LivedRun) else 0

    def writes(self) -> tuple[Ints, Ints]:
        """Return numbers of writes in order, and when each was issued; only before an SSD dies."""
        number, issue_ns = (np.concatenate(each) for each in zip(*self._writes, strict=True))
        order = np.argsort(number)
        return number[order], issue_ns[order]

    @property
    def backup(self) -> Backup:
        """The reads of a backup beside the load."""
        read = self._backup
        return Backup(
            self._backup_bytes, self._end_bytes, read.mean_ns, read.percentile(99), self._backup_ns
        )

    def _collect(self, facts: Facts) -> None:
        is_backup = facts.number >= PASS_FROM
        if is_backup.any():
            latency = (facts.done_ns - facts.issue_ns)[is_backup]
            self._backup += Distribution.of(latency)
            self._backup_bytes += int(facts.length[is_backup].sum())
            self._backup_ns = int(facts.done_ns[is_backup].max())
            columns = (column[~is_backup] for column in facts[:-1])
            facts = Facts._make([*columns, np.array([int((~is_backup).sum())])])
        self.collector.add(facts)
        if self._loses:
            written = facts.op == Op.WRITE
            self._writes.append((facts.number[written], facts.issue_ns[written]))

    @property
    def backlog(self) -> int:
        """Requests outstanding after the last batch."""
        return self.backlogs[-1]

    def counters(self) -> dict[str, Any]:
        """Return the counters over time, by name."""
        return self._samples.columns()

    def _add_sample(self) -> None:
        now_ns = self.run.now_ns - self._shift_ns
        self._samples.add(now_ns, self._row(now_ns))

    def _row(self, time_ns: int) -> dict[str, int]:
        """Return all counters at this time of the load."""
        machine, now_ns = self.run.machine, time_ns + self._shift_ns
        slow, fast = machine.below.slow, machine.below.fast
        row = {"slow_members": slow.members, "fast_members": fast.members}
        for name, tier in (("slow", slow), ("fast", fast)):
            totals = tier.device.totals(now_ns) | tier.totals(now_ns)
            row |= {f"{name}_{key}": value for key, value in totals.items()}
        if isinstance(slow, Controller):
            totals = slow.dram_totals()
            row |= {f"controller_{key}": value for key, value in totals.items()}
        return row | self.run.cache_totals()
