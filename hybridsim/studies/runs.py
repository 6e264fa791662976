"""Runs of several machines over one trace, and over the load that goes on after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from hybridsim.answers.metrics import Later
from hybridsim.engine.machine import Machine
from hybridsim.foundation.codes import Op
from hybridsim.foundation.histogram import Distribution
from hybridsim.requests.inflight import Batch
from hybridsim.requests.rows import UNKNOWN, Requests
from hybridsim.scenario import Scenario
from hybridsim.studies.batches import batches
from hybridsim.studies.continued import BEHIND, FEWEST, MOST, Pairs, continued
from hybridsim.studies.counter_sampling import SAMPLES_MAX
from hybridsim.studies.disks_alone import Alone, Ran
from hybridsim.studies.life import steps
from hybridsim.studies.machine_run import Pump
from hybridsim.studies.warm_start import Begin
from hybridsim.traces.summary import Summary
from hybridsim.traces.trace import Trace

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


class RecordedLatencies:
    """The distribution of the times from arrival to completion of reads and writes."""

    def __init__(self) -> None:
        self.latency = Distribution()

    def add(self, chunk: Requests) -> None:
        """Add a chunk of requests."""
        moves = (chunk.op <= Op.WRITE) | (chunk.op == Op.WRITE_ZEROES)
        moves &= (chunk.length_bytes > 0) & (chunk.complete_ns != UNKNOWN)
        latency_ns = chunk.complete_ns - chunk.arrival_ns
        self.latency += Distribution.of(latency_ns[moves & (latency_ns >= 0)])


class Task(NamedTuple):
    """The input of a replay."""

    trace: Trace
    summary: Summary
    scenario: Scenario
    report: Report | None
    begin: Begin | None
    alone: Alone | None = None
    goal: str = "time"


def pumped(
    task: Task,
    mode: str,
    machines: Sequence[Machine | Ran],
    recorded: RecordedLatencies,
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
    first = pumps[0]
    assert isinstance(first, Pump)
    done = 0
    with ThreadPoolExecutor(len(pumps)) as threads:
        # A generated trace has no recorded latencies.
        watch = recorded.add if not trace.is_generated else (lambda chunk: None)
        for batch in batches(trace, scenario.replay.speed, mode == "think", watch):
            _take(threads, pumps, batch)
            done += len(batch.arrival_ns)
            if report:
                report(Progress(done, summary.requests, first.run.now_ns))
            if alone is not None and pumps[alone].backlog > HOPELESS_REQUESTS:
                return None
    return pumps


def _take(threads: ThreadPoolExecutor, pumps: Sequence[Pump | Ran], batch: Batch) -> None:
    """Let each machine take a batch."""
    futures = [
        threads.submit(pump.take, batch._replace(state=batch.state.copy())) for pump in pumps
    ]
    for future in futures:
        future.result()


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
            _take(threads, [run for run, _ in able], batch)
            able = [each for each in able if each[0].backlog <= BEHIND]
            if not able:
                return
            done += len(batch.arrival_ns)
            if task.report:
                now_ns = able[0][0].run.now_ns
                task.report(Progress(done, load.rows.rows, now_ns, is_later=True))
    for run, pump in able:
        pump.collector.later = Later(run.collector.ledger, run.counters(), load.captured)
