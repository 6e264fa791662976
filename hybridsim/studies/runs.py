"""Runs of several machines over one trace, and over the load that goes on after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

from hybridsim.answers.metrics import Collector
from hybridsim.engine.machine import Machine
from hybridsim.foundation.codes import Op
from hybridsim.foundation.histogram import Distribution
from hybridsim.requests.inflight import Batch, Facts
from hybridsim.requests.rows import UNKNOWN, Requests
from hybridsim.scenario import Scenario
from hybridsim.studies.batches import batches
from hybridsim.studies.disks_alone import Alone, Ran
from hybridsim.studies.machine_run import SAMPLES_MAX, Pump, steps
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


class Pairs(Collector):
    """Keeps what pairs of machines are compared by, and no figures over time."""

    def add(self, facts: Facts) -> None:
        """Add a chunk of facts."""
        self.ledger.add(facts)


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
            take_batch(threads, pumps, batch)
            done += len(batch.arrival_ns)
            if report:
                report(Progress(done, summary.requests, first.run.now_ns))
            if alone is not None and pumps[alone].backlog > HOPELESS_REQUESTS:
                return None
    return pumps


def take_batch(threads: ThreadPoolExecutor, pumps: Sequence[Pump | Ran], batch: Batch) -> None:
    """Let each machine take a batch."""
    futures = [
        threads.submit(pump.take, batch._replace(state=batch.state.copy())) for pump in pumps
    ]
    for future in futures:
        future.result()
