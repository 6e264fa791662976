"""How an application used its storage: outstanding requests, and the processes that issued them.

One pass over a trace.  A request is outstanding from its arrival to its completion; while none is,
the application computes or is idle.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.foundation.histogram import Distribution
from hybridsim.requests.rows import UNKNOWN, Requests

PROCESSES_MAX = 5  # processes reported
READS, WRITES, BYTES_READ, BYTES_WRITTEN, SEQUENTIAL_READS, SEQUENTIAL_WRITES = range(6)


class Covered:
    """The time covered by the union of intervals, which are added in order of their starts."""

    def __init__(self) -> None:
        self.busy_ns = 0
        self.gaps = Distribution()  # times not covered between intervals
        self._until_ns: int | None = None

    def add(self, begin_ns: Ints, end_ns: Ints) -> None:
        """Add intervals that do not start before those already added."""
        if not len(begin_ns):
            return
        first = int(begin_ns[0]) if self._until_ns is None else self._until_ns
        until = np.maximum.accumulate(np.concatenate(([first], end_ns)))
        gaps = begin_ns - until[:-1]
        gaps = gaps[gaps > 0]
        self.busy_ns += int(until[-1]) - first - int(gaps.sum())
        self.gaps += Distribution.of(gaps)
        self._until_ns = int(until[-1])


@dataclass(frozen=True)
class Process:
    """The requests of one process."""

    stream: int  # process id
    reads: int
    writes: int
    bytes_read: int
    bytes_written: int
    sequential_reads: int  # that begin where the previous read of the process ended
    sequential_writes: int

    @property
    def random_reads(self) -> float | None:
        """Share of its reads that do not continue the previous read; None without reads."""
        return 1 - self.sequential_reads / self.reads if self.reads else None

    @property
    def read_share(self) -> float:
        """Share of reads among its reads and writes."""
        return self.reads / max(self.reads + self.writes, 1)


@dataclass
class Activity:
    """The figures of one pass."""

    all_of_them: Covered = field(default_factory=Covered)
    reads: Covered = field(default_factory=Covered)
    latency: Distribution = field(default_factory=Distribution)
    read_latency: Distribution = field(default_factory=Distribution)
    _counts: dict[int, Ints] = field(default_factory=dict)  # by process
    _ends: dict[tuple[int, int], int] = field(default_factory=dict)  # by process and direction

    def add(self, chunk: Requests) -> None:
        """Add the next requests."""
        known = chunk.complete_ns != UNKNOWN
        known &= chunk.op != Op.DISCARD
        arrival_ns, complete_ns = chunk.arrival_ns[known], chunk.complete_ns[known]
        complete_ns = np.maximum(complete_ns, arrival_ns)
        is_read = chunk.op[known] == Op.READ
        self.all_of_them.add(arrival_ns, complete_ns)
        self.reads.add(arrival_ns[is_read], complete_ns[is_read])
        latency_ns = complete_ns - arrival_ns
        self.latency += Distribution.of(latency_ns)
        self.read_latency += Distribution.of(latency_ns[is_read])
        self._add_processes(chunk)

    def _add_processes(self, chunk: Requests) -> None:
        is_read = chunk.op == Op.READ
        is_write = (chunk.op == Op.WRITE) | (chunk.op == Op.WRITE_ZEROES)
        directions = (
            (is_read, READS, BYTES_READ, SEQUENTIAL_READS),
            (is_write, WRITES, BYTES_WRITTEN, SEQUENTIAL_WRITES),
        )
        for chosen, number, moved, sequential in directions:
            stream, offset = chunk.stream[chosen], chunk.offset_bytes[chosen]
            length = chunk.length_bytes[chosen]
            for process in np.unique(stream).tolist():
                mine = stream == process
                begin, size = offset[mine], length[mine]
                before = self._ends.get((process, number), -1)
                ends = np.concatenate(([before], begin + size))
                counts = self._counts.setdefault(process, np.zeros(6, np.int64))
                counts[number] += len(begin)
                counts[moved] += int(size.sum())
                counts[sequential] += int((begin == ends[:-1]).sum())
                self._ends[process, number] = int(ends[-1])

    @property
    def outstanding(self) -> float | None:
        """Mean number of outstanding requests while there is at least one; None if unknown."""
        busy = self.all_of_them.busy_ns
        return self.latency.total_ns / busy if busy else None

    @property
    def whole(self) -> Process:
        """All processes together; requests are sequential within one process only."""
        total = np.zeros(6, np.int64)
        for counts in self._counts.values():
            total += counts
        return Process(UNKNOWN, *total.tolist())

    @property
    def processes(self) -> list[Process]:
        """The processes with the most requests, busiest first; empty if the trace records none."""
        known = [(stream, counts) for stream, counts in self._counts.items() if stream != UNKNOWN]
        known.sort(key=lambda each: (-int(each[1][READS] + each[1][WRITES]), each[0]))
        return [Process(stream, *counts.tolist()) for stream, counts in known[:PROCESSES_MAX]]

    def busy_share(self, span_ns: int) -> float | None:
        """Return the share of the time in which a request was outstanding; None if unknown."""
        return self.all_of_them.busy_ns / span_ns if self.latency.count and span_ns else None

    def most_gain(self, span_ns: int) -> float | None:
        """Return the upper bound of the application's speedup, that of storage with zero latency.

        G. M. Amdahl, AFIPS 1967: the time without outstanding requests remains.  An application
        that computes while its requests are outstanding gains less.
        """
        busy = self.busy_share(span_ns)
        return None if busy is None else 1 / max(1 - busy, 1e-9)

    def to_dict(self, span_ns: int) -> dict[str, Any]:
        """Return the fields of the JSON."""
        return {
            "busy_share": self.busy_share(span_ns),
            "reads_busy_share": self.reads.busy_ns / span_ns if span_ns else None,
            "outstanding": self.outstanding,
            "mean_ns": self.latency.mean_ns,
            "think_ns": self.all_of_them.gaps.percentile(50),
            "most_gain": self.most_gain(span_ns),
            "processes": [vars(each) for each in self.processes],
            "random_reads": self.whole.random_reads,
            "read_share": self.whole.read_share,
        }
