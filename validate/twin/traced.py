"""The pace of a real run, from a blktrace of its cached device.

fio's logs have means over a second; a trace has each arrival, and the offsets, which are compared
with those of the job.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.traces.trace import Trace
from hybridsim.workloads.fio.job import Job
from hybridsim.workloads.fio.places import lay_out
from hybridsim.workloads.fio.requests import Generated, Pace
from validate.twin.record import Record

WHOLE = 0.98  # minimum share of fio's requests in the trace of a whole run
MOVES = (Op.READ, Op.WRITE)


def pace(record: Record, jobs: Sequence[Job], requests: float) -> tuple[Pace, str] | None:
    """Return the pace by the trace, and in words how many requests are those of the job.

    Return None if there is no trace of the whole run, or if the load has several processes, which
    a trace does not distinguish.
    """
    if record.trace is None or len(jobs) != 1 or not list(record.trace.glob("*.blktrace.*")):
        return None
    arrival, offset = _traced(record)
    if len(arrival) < WHOLE * requests:
        return None
    same = _same(offset, jobs[0], record.origin_bytes)
    words = (
        f"the trace has the arrival times of {len(arrival):,} requests; the first {same:,} have "
        "the offsets of the job, in order"
    )
    return of_arrivals(arrival, jobs[0].depth), words


def of_arrivals(arrival_ns: Ints, depth: int) -> Pace:
    """Return the pace that makes each request due at its arrival."""
    done = np.arange(len(arrival_ns)) - depth
    return Pace(arrival_ns - arrival_ns[0], done)


def _traced(record: Record) -> tuple[Ints, Ints]:
    """Return arrivals and offsets of all reads and writes of the cached device."""
    assert record.trace is not None
    chunks = list(Trace.read(record.trace / record.cached_device, "blktrace").chunks())
    op = np.concatenate([each.op for each in chunks])
    moves = np.isin(op, [int(each) for each in MOVES])
    arrival = np.concatenate([each.arrival_ns for each in chunks])[moves]
    return arrival, np.concatenate([each.offset_bytes for each in chunks])[moves]


def _same(offset: Ints, job: Job, volume_bytes: int) -> int:
    """Return the number of requests, from the first on, with the offsets of the job."""
    laid = lay_out([job], volume_bytes)
    expected = Generated(laid.jobs[0]).take(len(offset)).offset
    different = np.flatnonzero(expected[: len(offset)] != offset[: len(expected)])
    return int(different[0]) if len(different) else min(len(offset), len(expected))
