"""The pace of a real run from a blktrace of its cached device: when each request came.

fio's logs tell a second's mean; a trace tells each arrival, and whether the requests are those of
the job.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.traces.trace import Trace
from hybridsim.workloads.fio.arrivals import Pace
from hybridsim.workloads.fio.job import Job
from hybridsim.workloads.fio.places import lay_out
from hybridsim.workloads.fio.requests import Generated
from validate.twin.record import Record

WHOLE = 0.98  # of the requests that fio tells of; less, and the trace is of a part of the run
MOVES = (Op.READ, Op.WRITE)


def pace(record: Record, jobs: Sequence[Job], requests: float) -> tuple[Pace, str] | None:
    """Return when requests came, and in words whether they are the job's.

    None where there is no trace of the whole run, or where it is of several processes, which a
    trace does not tell apart.
    """
    if record.trace is None or len(jobs) != 1 or not list(record.trace.glob("*.blktrace.*")):
        return None
    arrival, offset = _traced(record)
    if len(arrival) < WHOLE * requests:
        return None
    same = _same(offset, jobs[0], record.origin_bytes)
    words = (
        f"the trace tells when each of {len(arrival):,} requests came; {same:,} of them are the "
        "job's, offset for offset and in order"
    )
    return of_arrivals(arrival, jobs[0].depth), words


def of_arrivals(arrival_ns: Ints, depth: int) -> Pace:
    """Return the pace at which requests are due when they came."""
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
    """Return how many requests from the first on are those that the job makes."""
    laid = lay_out([job], volume_bytes)
    made = Generated(laid.jobs[0]).take(len(offset)).offset
    unlike = np.flatnonzero(made[: len(offset)] != offset[: len(made)])
    return int(unlike[0]) if len(unlike) else min(len(offset), len(made))
