"""The run of one machine over a trace."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridsim.answers.life import UNITS, Backup, Lost, Taken
from hybridsim.answers.metrics import Collector
from hybridsim.engine import loops
from hybridsim.engine.life import Happened, LivedRun
from hybridsim.engine.loops import HOLD_NS
from hybridsim.engine.machine import FOREVER, Machine, Run
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import OP_MASK, Change, Op
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.histogram import Distribution
from hybridsim.foundation.machine_parameters import EventParameters
from hybridsim.foundation.wording import span
from hybridsim.requests.inflight import Batch, Facts
from hybridsim.requests.source import NEVER, PASS_BYTES, PASS_FROM
from hybridsim.scenario.event import Event, members
from hybridsim.storage.controller import Controller

SAMPLES_MAX = 512
PERCENTS = (50, 99)
SECOND = 10**9
CHANGES = {
    "detach": Change.DETACH,
    "ssd": Change.SSD_DIES,
    "disk": Change.DISK_FAILS,
    "rebuild": Change.REBUILD,
    "backup": Change.PASS,
}


class Sampler:
    """At most SAMPLES_MAX rows of counters, and one at time 0; the next sample is at `due_ns`."""

    def __init__(self, step_ns: int) -> None:
        self.due_ns = step_ns
        self._step_ns = step_ns
        self._rows: list[Mapping[str, int]] = []

    def take(self, time_ns: int, row: Mapping[str, int]) -> None:
        """Add the row of a sample."""
        self._rows.append({"time_ns": time_ns, **row})
        has_first = self._rows[0]["time_ns"] == 0  # the row at time 0 is kept
        if len(self._rows) == SAMPLES_MAX + has_first:
            del self._rows[has_first::2]
            self._step_ns *= 2
        if time_ns >= self.due_ns:
            self.due_ns += self._step_ns

    def add(self, time_ns: int, row: Mapping[str, int]) -> None:
        """Add a row that is kept."""
        self._rows.append({"time_ns": time_ns, **row})

    def columns(self) -> dict[str, Ints]:
        """Return the counters over time, by name."""
        # A rebuild that begins during the run has counters from then on.
        names = dict.fromkeys(name for row in (self._rows[:1] + self._rows[-1:]) for name in row)
        return {
            name: np.array([row.get(name, 0) for row in self._rows], np.int64) for name in names
        }


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


def steps_of(events: Sequence[Event], volume_bytes: int) -> dict[Event, EventParameters]:
    """Return what each event of a scenario does to a machine with a volume of that size."""
    of_array = members(events)
    result = {}
    for event in events:
        change = Change.REBOOT if event.reboot == "clean" else Change.CRASH
        change = CHANGES.get(event.what, change)
        member = of_array.get(event, 0)
        every_ns = max(PASS_BYTES * SECOND // event.backup, 1) if event.backup else 1
        end_bytes = volume_bytes if event.backup else 0
        numbers = (event.down_ns, member, *event.rates, every_ns, end_bytes)
        result[event] = EventParameters(event.at_ns, change, *numbers)
    return result


def steps(events: Sequence[Event], volume_bytes: int, has_cache: bool) -> list[EventParameters]:
    """Return the steps of a machine; without a cache only those of the machine itself."""
    of_cache = ("detach", "ssd")
    found = steps_of(events, volume_bytes)
    return [found[each] for each in events if has_cache or each.what not in of_cache]


def check_happened(pump: Pump, events: Sequence[Event]) -> None:
    """Raise UsageError if the load ended before an event."""
    run = pump.run
    if not isinstance(run, LivedRun) or not run.to_come:
        return
    missed = run.to_come[0]
    text = next(each.text for each in events if each.at_ns == missed.at_ns)
    end_ns = run.now_ns - run.shift_ns
    raise UsageError(
        f"--event {text}: the load ends after {span(end_ns)}, before this event; "
        "specify an earlier time"
    )


def taken(
    pump: Pump,
    events: Sequence[Event],
    page_bytes: int,
    volume_bytes: int,
    load: Iterable[Batch],
) -> list[Taken]:
    """Return what happened to the machine; `load` are its requests, as they were fed."""
    run = pump.run
    if not isinstance(run, LivedRun):
        return []
    found = steps_of(events, volume_bytes)
    texts = {step: (each.what, each.text) for each, step in found.items()}
    result = []
    for each in run.happened:
        what, how = texts[each.step]
        present = each.cached_pages * page_bytes
        removed = each.removed_load_ns
        lost = None
        if each.step.change == Change.SSD_DIES:
            lost = _lost(each, pump.writes(), load)
        result.append(
            Taken(
                what,
                how,
                each.step.at_ns,
                each.held_ns - each.begun_ns,
                each.step.down_ns,
                present,
                each.dirty_bytes,
                each.cached_after_pages * page_bytes,
                each.dirty_after_bytes,
                removed,
                lost,
                pump.backup if what == "backup" else None,
            )
        )
    return result


def _lost(event: Happened, writes: tuple[Ints, Ints], load: Iterable[Batch]) -> Lost:
    """Return what was lost, how old it was, and the reads that needed it."""
    total = int(event.lost[:, 1].sum())
    unit = next((each for each in UNITS if not (event.lost % each).any()), UNITS[-1])
    units = _units(event.lost, unit)
    written_ns = np.full(len(units), -1, np.int64)
    is_lost = np.ones(len(units), np.bool_)
    numbers, issue_ns = writes
    errors = reads_after = 0
    for batch in load:
        number = int(batch.state[2]) + np.arange(len(batch.offset))
        op = batch.op & OP_MASK
        was_issued = (number < event.next_number) & ~np.isin(number, event.not_issued)
        reads_after += int(((op == Op.READ) & ~was_issued).sum())
        end = batch.offset + batch.length
        first = np.searchsorted(units, batch.offset // unit)
        last = np.searchsorted(units, -(-end // unit))
        touches = (last > first) & (batch.length > 0) & ((op == Op.READ) | (op == Op.WRITE))
        place = np.minimum(np.searchsorted(numbers, number), max(len(numbers) - 1, 0))
        for row in np.flatnonzero(touches):
            a, b = first[row], last[row]
            if was_issued[row]:
                if op[row] == Op.WRITE:
                    written_ns[a:b] = issue_ns[place[row]]
            elif op[row] == Op.READ:
                errors += bool(is_lost[a:b].any())
            else:  # units that the write covers in part stay lost
                covered = units[a:b] * unit >= batch.offset[row]
                covered &= (units[a:b] + 1) * unit <= end[row]
                is_lost[a:b] &= ~covered
    ages = event.step.at_ns - written_ns[written_ns >= 0]
    p50, p99 = (int(np.percentile(ages, each)) if len(ages) else None for each in PERCENTS)
    return Lost(total, p50, p99, errors, reads_after)


def _units(ranges: Ints, unit: int) -> npt.NDArray[np.int64]:
    """Return the numbers of the units of ranges, in order."""
    counts = ranges[:, 1] // unit
    starts = (
        np.repeat(ranges[:, 0] // unit - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
        if len(ranges)
        else np.zeros(0, np.int64)
    )
    return np.sort(starts + np.arange(int(counts.sum())))
