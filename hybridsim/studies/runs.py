"""Runs of machines over a trace, several in parallel, and over the load that goes on after it."""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
import pickle
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from hybridsim.answers.dirt import marks
from hybridsim.answers.forecast import HORIZON, deviation
from hybridsim.answers.judge import Both, gain_after
from hybridsim.answers.life import UNITS, Backup, Lost, Taken
from hybridsim.answers.metrics import Collector, Counters, Later
from hybridsim.answers.result import sides
from hybridsim.engine import loops
from hybridsim.engine.life import Happened, LivedRun
from hybridsim.engine.loops import HOLD_NS
from hybridsim.engine.machine import FOREVER, Machine, Run
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import OP_MASK, Change, Op
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.histogram import Distribution
from hybridsim.foundation.machine_parameters import EventParameters
from hybridsim.foundation.wording import span
from hybridsim.requests.continuation import continuation
from hybridsim.requests.inflight import Batch, Facts
from hybridsim.requests.rows import joined
from hybridsim.requests.source import NEVER, PASS_BYTES, PASS_FROM
from hybridsim.scenario import DISKS, Scenario, building, identity
from hybridsim.scenario.event import Event, members
from hybridsim.storage.controller import Controller
from hybridsim.studies.batches import Sent, batches
from hybridsim.studies.warm_start import Begin
from hybridsim.traces.summary import Summary
from hybridsim.traces.trace import Trace, Watch, in_memory, watched

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
Build = Callable[[int], Machine]  # anew, for a volume of so many bytes
LATER_SAMPLES = 64  # of the counters, in a load that goes on: of which only sums are asked
HOPELESS_REQUESTS = 1 << 16  # outstanding on the disks alone from which on they do not catch up


@dataclass(frozen=True)
class Progress:
    """Progress of a replay; in the first pass over the trace nothing is simulated."""

    requests: int
    of_requests: int  # 0: first pass over the trace
    simulated_ns: int
    read_bytes: int = 0  # of the files of the trace, in the first pass
    of_bytes: int = 0
    is_later: bool = False  # the load goes on after the trace


Report = Callable[[Progress], None]


def reading(trace: Trace, report: Report | None) -> AbstractContextManager[Watch]:
    """Report the progress of a pass over the files of a trace; the value passes its chunks on."""
    if report is None:
        return watched(trace, None)
    return watched(trace, lambda requests, *read: report(Progress(requests, 0, 0, *read)))


class Task(NamedTuple):
    """The input of a replay."""

    trace: Trace
    summary: Summary
    scenario: Scenario
    report: Report | None
    begin: Begin | None
    alone: Alone | None = None
    goal: str = "time"

    @property
    def volume_bytes(self) -> int:
        """Size of the volume that holds the trace and what the cache starts with."""
        return max(self.summary.max_end_bytes, self.begin.end_bytes if self.begin else 0)


class Pairs(Collector):
    """Keeps what pairs of machines are compared by, and no figures over time."""

    def add(self, facts: Facts) -> None:
        """Add a chunk of facts."""
        self.ledger.add(facts)


def pumped(
    task: Task,
    mode: str,
    machines: Sequence[Machine | Ran],
    alone: int | None = None,
    in_pairs: bool = False,
) -> list[Pump | Ran] | None:
    """Run machines in parallel over the trace, each in a thread.

    `in_pairs` keeps what pairs of machines are compared by, and no figures over time.
    Returns None if the machine number `alone`, the disks alone, does not keep up.
    """
    trace, summary, scenario, report = task[:4]
    samples = LATER_SAMPLES if in_pairs else SAMPLES_MAX // 2
    step_ns = max(int(summary.span_ns / scenario.replay.speed) // samples, 1)
    pumps = [
        each
        if isinstance(each, Ran)
        else Pump(
            each,
            step_ns,
            steps(scenario.events, summary.max_end_bytes, has_cache=number != 1),
            Pairs() if in_pairs else None,
        )
        for number, each in enumerate(machines)
    ]
    running = [each for each in pumps if isinstance(each, Pump)]
    done = 0
    with ThreadPoolExecutor(len(running)) as threads:
        for batch in batches(trace, scenario.replay.speed, mode == "think"):
            take_batch(threads, running, batch)
            done += len(batch.arrival_ns)
            if report:
                report(Progress(done, summary.requests, running[0].run.now_ns))
            if alone is not None and pumps[alone].backlog > HOPELESS_REQUESTS:
                return None
    return pumps


def take_batch(threads: ThreadPoolExecutor, pumps: Sequence[Pump], batch: Batch) -> None:
    """Let each machine take a batch."""
    own = [batch._replace(state=batch.state.copy()) for _ in pumps]
    list(threads.map(lambda pump, copy: pump.take(copy), pumps, own))


# One machine.


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
        self.backlog = self.most_backlog = 0  # requests outstanding after the last batch, after any
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
        self.backlog = self.run.machine.source.outstanding
        self.most_backlog = max(self.most_backlog, self.backlog)
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
    def counters(self) -> Counters:
        """The counters over time, by name."""
        return Counters(self._samples.columns())

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


class Ran(NamedTuple):
    """The results of a machine that has already replayed this trace, in place of a Pump."""

    collector: Collector
    counters: Counters
    backlog: int  # requests outstanding after a batch, at most

    @classmethod
    def of(cls, run: Pump | Ran) -> Ran:
        """Return the results of a machine that ran, without the machine."""
        return run if isinstance(run, Ran) else cls(run.collector, run.counters, run.most_backlog)


# Results of the disks without a cache, kept for other replays of the same trace: those that
# differ only in their caches share them, as most points of a sweep do.

KEPT_MAX = 4


class Alone:
    """The most recent results, by the identity of the disks."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Ran] = OrderedDict()

    @staticmethod
    def which(scenario: Scenario, mode: str, volume_bytes: int) -> str:
        """Return the identity of a scenario's disks: all that determines their results."""
        cache = f"{scenario.cache.kind} {scenario.cache.page_bytes}"  # how requests are counted
        return f"{mode} {volume_bytes} {cache} {identity(scenario, DISKS)}"

    def get(self, which: str) -> Ran | None:
        """Return the results of these disks; None if there are none."""
        if which in self._known:
            self._known.move_to_end(which)
        return self._known.get(which)

    def keep(self, which: str, pump: Pump | Ran) -> None:
        """Keep the results of these disks; drop the least recently used beyond KEPT_MAX."""
        self._known[which] = Ran.of(pump)
        self._known.move_to_end(which)
        while len(self._known) > KEPT_MAX:
            self._known.popitem(last=False)


class SharedAlone(Alone):
    """Results that processes share by files, for replays of one trace.

    Caches of all kinds share them too: the disks do the same beside each, and only the pages that
    their requests touch are counted by the pages of the cache, so that these are of any of them.
    The files are trusted: the folder is to be one that nobody else can write.
    """

    def __init__(self, folder: str) -> None:
        """Keep results in a folder."""
        super().__init__()
        self._folder = Path(folder)

    @staticmethod
    def which(scenario: Scenario, mode: str, volume_bytes: int) -> str:
        """Return the identity of a scenario's disks, whatever the cache in front of them."""
        return f"{mode} {volume_bytes} {identity(scenario, DISKS)}"

    def get(self, which: str) -> Ran | None:
        """Return the results of these disks; None if no process has them yet."""
        known = super().get(which)
        if known is None and (file := self._file(which)).exists():
            known = pickle.loads(zlib.decompress(file.read_bytes()))
            super().keep(which, known)
        return known

    def keep(self, which: str, pump: Pump | Ran) -> None:
        """Keep the results of these disks for all processes."""
        super().keep(which, pump)
        file = self._file(which)
        if not file.exists():
            part = file.with_suffix(f".{os.getpid()}")
            part.write_bytes(zlib.compress(pickle.dumps(Ran.of(pump)), 1))
            part.replace(file)

    def _file(self, which: str) -> Path:
        return self._folder / hashlib.sha256(which.encode()).hexdigest()[:32]


# What happens to a machine during the load.


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


def taken(
    pump: Pump,
    events: Sequence[Event],
    page_bytes: int,
    volume_bytes: int,
    load: Iterable[Batch],
) -> list[Taken]:
    """Return what happened to the machine; `load` are its requests, as they were fed.

    Raises UsageError if the load ended before an event.
    """
    run = pump.run
    assert isinstance(run, LivedRun)
    of_step = {step: event for event, step in steps_of(events, volume_bytes).items()}
    if run.to_come:
        missed, end = of_step[run.to_come[0]], span(run.now_ns - run.shift_ns)
        raise UsageError(
            f"--event {missed.text}: the load ends after {end}, before this event; specify an "
            "earlier time"
        )
    return [
        Taken(
            event.what, event.text, each.step.at_ns, each.held_ns - each.begun_ns,
            each.step.down_ns, each.cached_pages * page_bytes, each.dirty_bytes,
            each.cached_after_pages * page_bytes, each.dirty_after_bytes, each.removed_load_ns,
            _lost(each, pump.writes(), load) if event.ssd else None,
            pump.backup if event.backup else None,
        )
        for event, each in ((of_step[one.step], one) for one in run.happened)
    ]  # fmt: skip


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


# The load that goes on after a capture, and how far off forecasts of its past were.
#
# The first EARLIER part of a capture lets forecast what the rest of it brings.  Two caches of the
# PANEL, a small one and a large one, run through both.  A load whose past was forecast well is
# trusted to go on as it is forecast; one whose past was not gets wider intervals
# (answers/forecast.py).  The panel is the same for all machines that a capture is replayed on, so
# that all of them are judged alike.

FEWEST, MOST = 40, 300_000  # requests of a capture that is continued; the most limit the time
CHUNK_ROWS = 1 << 13  # after each it is seen whether the machines keep up
BEHIND = 1 << 12  # requests outstanding, of a machine that does not
_loads: WeakKeyDictionary[Trace, dict[int, Continued | None]] = WeakKeyDictionary()
EARLIER = 0.3  # of the requests
BACK_MOST = 30_000  # requests of a capture that is looked back at; tried with up to 21,000
PANEL = {"cache.kind": "page", "cache.mode": "write-back"}
SHARES = (0.05, 0.8)  # of what the capture touches: the sizes of the panel
_deviations: WeakKeyDictionary[Trace, dict[str, float | None]] = WeakKeyDictionary()


@dataclass
class Continued(Sent):
    """The requests of a capture, and those after it."""

    captured: int = 0  # the first of the rows
    end_bytes: int = 0


def continued(trace: Trace, scenario: Scenario, end_bytes: int) -> Continued | None:
    """Return a capture with HORIZON times as many requests after it; None if it has no such.

    The volume, of `end_bytes` in the capture, grows to twice its size at most, if the disks of the
    scenario have the room.
    """
    room_bytes = _room(scenario, end_bytes)
    known = _loads.setdefault(trace, {})
    if room_bytes not in known:
        known[room_bytes] = _continued(trace, room_bytes)
    return known[room_bytes]


def _continued(trace: Trace, room_bytes: int) -> Continued | None:
    rows = joined(list(trace.from_first()))
    half = rows.rows // 2
    if not (rows.length_bytes[:half].any() and rows.length_bytes[half:].any()):
        return None
    end_bytes = int((rows.offset_bytes + rows.length_bytes).max())
    more = continuation(rows, round(HORIZON * rows.rows), end_bytes=room_bytes)
    end_bytes = max(end_bytes, int((more.offset_bytes + more.length_bytes).max()))
    return Continued(trace.name, joined([rows, more]), CHUNK_ROWS, rows.rows, end_bytes)


def _room(scenario: Scenario, end_bytes: int) -> int:
    """Return up to where a load may go on."""
    try:
        scenario.backing.member_bytes(2 * end_bytes)
    except ScenarioError:
        return end_bytes
    return 2 * end_bytes


def go_on(task: Task, mode: str, builds: Sequence[Build], pumps: Sequence[Pump | Ran]) -> None:
    """Find what the load that goes on after the capture costs each machine, if that is not known.

    The machines begin anew, with the capture.  No load goes on after one with events, after one
    that is too short, or after one so long that it would take too much time; nor on a machine that
    cannot keep up with it, as its backlog would say how long it went on, and nothing else.
    """
    summary, scenario = task.summary, task.scenario
    if scenario.events or not FEWEST <= summary.requests <= MOST:
        return
    waiting = [(build, pump) for build, pump in zip(builds, pumps) if pump.collector.later is None]
    load = continued(task.trace, scenario, summary.max_end_bytes) if waiting else None
    if load is None:
        return
    end_bytes = max(load.end_bytes, task.begin.end_bytes if task.begin else 0)
    span_ns = int(load.rows.arrival_ns[-1] / scenario.replay.speed)
    step_ns = max(span_ns // LATER_SAMPLES, 1)
    able = [(Pump(build(end_bytes), step_ns, collector=Pairs()), pump) for build, pump in waiting]
    done = 0
    with ThreadPoolExecutor(len(able)) as threads:
        for batch in batches(load, scenario.replay.speed, mode == "think"):
            take_batch(threads, [run for run, _ in able], batch)
            able = [each for each in able if each[0].backlog <= BEHIND]
            if not able:
                return
            done += len(batch.arrival_ns)
            if task.report:
                now_ns = able[0][0].run.now_ns
                task.report(Progress(done, load.rows.rows, now_ns, is_later=True))
    for run, pump in able:
        pump.collector.later = Later(run.collector.ledger, run.counters, load.captured)


def look_back(task: Task, mode: str, plain: Pump | Ran) -> None:
    """Find how far forecasts of the load were off, for the disks alone that ran through it."""
    if plain.collector.later is None or plain.collector.off is not None:
        return
    if task.summary.requests > BACK_MOST:
        return
    known = _deviations.setdefault(task.trace, {})
    which = f"{mode} {identity(task.scenario, DISKS)}"
    if which not in known:
        known[which] = _off(task, mode, plain)
    plain.collector.off = known[which]


def _off(task: Task, mode: str, plain: Pump | Ran) -> float | None:
    """Return the root mean square over the panel, in allowances; None if nothing is known."""
    rows = joined(list(task.trace.from_first()))
    cut = round(EARLIER * rows.rows)
    if cut < FEWEST:
        return None
    early = in_memory(task.trace.name, rows.between(0, cut), task.trace.is_generated)
    sites = [_site(task.scenario, round(share * task.summary.footprint_bytes)) for share in SHARES]
    volume_bytes, adapts = task.summary.max_end_bytes, mode != "open"
    before = task._replace(trace=early, summary=early.summary(), report=None, begin=None)
    if before.summary.reads + before.summary.writes == 0:
        return None
    builds = [partial(building.machine, sites[0], mode, pages=0)]
    builds += [partial(building.machine, each, mode, pages=each.cache.pages(0)) for each in sites]
    seen, came = (
        pumped(part, mode, [build(volume_bytes) for build in some], in_pairs=True)
        for part, some in ((before, builds), (task._replace(report=None), builds[1:]))
    )
    assert seen is not None
    assert came is not None
    go_on(before, mode, builds, seen)
    squares = []
    for site, at_first, whole in zip(sites, seen[1:], came):
        about = _about(site)
        both = Both(*sides(_known_of(seen[0]), _known_of(at_first), about, "time", adapts))
        if both.cached.later is None or both.too_short(both.half):
            return None
        runs = sides(_known_of(plain), _known_of(whole), about, "time", adapts)
        gain = gain_after(*runs, cut, adapts)
        if gain is None:
            return None
        squares.append(deviation(both.course("time", adapts), gain) ** 2)
    return math.sqrt(sum(squares) / len(squares))


def _site(scenario: Scenario, size_bytes: int) -> Scenario:
    """Return a cache of the panel in front of a scenario's disks."""
    size_bytes = max(size_bytes, Scenario.default().cache.page_bytes)
    cache = Scenario.default().with_values(PANEL | {"cache.size": f"{size_bytes}"}).cache
    return dataclasses.replace(scenario, cache=cache)


def _known_of(run: Pump | Ran) -> tuple[Collector, Counters]:
    return run.collector, run.counters


def _about(site: Scenario) -> dict[str, object]:
    """Return what the judge knows of a cache."""
    cache, pages = site.cache, site.cache.pages(0)
    size_bytes = pages * cache.page_bytes
    return {
        "cache_kind": cache.kind,
        "cache_pages": pages,
        "cache_bytes": size_bytes,
        "dirty_marks": marks(cache, size_bytes),
    }
