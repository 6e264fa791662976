"""read_iolog: the requests of a job come from a log, at its times or as fast as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import UsageError
from hybridsim.requests.rows import Requests
from hybridsim.workloads.fio.job import Job
from hybridsim.workloads.fio.pattern import READ, SYNC, TRIM, WRITE
from hybridsim.workloads.fio.replay import Log

KINDS = {Op.READ: READ, Op.WRITE: WRITE, Op.WRITE_ZEROES: WRITE, Op.DISCARD: TRIM, Op.FLUSH: SYNC}
LEAST_BYTES = 4096


@dataclass
class Made:
    """Some requests in order, each of a file."""

    kind: Bytes
    offset: Ints
    length: Ints
    due_ns: Ints
    file: Ints  # the how-manieth of the job

    @classmethod
    def of(cls, parts: Sequence[Made]) -> Made:
        """Return parts as one."""
        none = np.zeros(0, np.int64)
        columns = zip(*(vars(part).values() for part in parts)) if parts else [[none]] * 5
        kind, *others = (np.concatenate([none, *column]) for column in columns)
        return cls(kind.astype(np.uint8), *others)

    def __getitem__(self, rows: slice) -> Made:
        return Made(*(column[rows] for column in vars(self).values()))


def opened(job: Job, read: Callable[[str], Log]) -> Job:
    """Return a job with its log open, and the file and span of that log; other jobs as they are.

    `read` opens a trace by its path.  Raises UsageError for a log of several files, TraceError for
    one that cannot be read.
    """
    if job.replay is None:
        return job
    trace = read(job.replay.path)
    summary = trace.summary()
    if len(trace.devices) > 1:
        names = ", ".join(device.name for device in trace.devices)
        raise UsageError(
            f"job {job.name}: read_iolog={job.replay.path} is of {len(trace.devices)} files "
            f"({names}); logs of one are supported: split it"
        )
    end = job.replay.placed(np.array([summary.max_end_bytes]))[0]
    end = max(int(end) + job.replay.align_bytes, LEAST_BYTES)
    pattern = replace(job.pattern, file_bytes=end, pass_bytes=end, offset_bytes=0)
    file = job.replay.redirect or trace.devices[0].name
    log = replace(job.replay, log=trace)
    return replace(job, replay=log, pattern=pattern, files=(file,), has_size=True)


def requests(job: Job) -> Iterator[Made]:
    """Yield the requests of a job's log, in order."""
    replay = job.replay
    assert replay is not None
    assert replay.log is not None, "a log is opened before it is replayed"
    for chunk in replay.log.chunks():
        kind = _kinds(chunk)
        wanted = ~np.isin(kind, replay.skipped)
        due = np.zeros(len(kind), np.int64)
        if not replay.is_unstalled:
            due = chunk.arrival_ns * 100 // replay.time_percent
        yield Made(
            kind[wanted],
            replay.placed(chunk.offset_bytes)[wanted],
            chunk.length_bytes[wanted],
            due[wanted],
            np.zeros(np.count_nonzero(wanted), np.int64),
        )


def _kinds(chunk: Requests) -> Bytes:
    kind = np.full(len(chunk.op), SYNC, np.uint8)
    for op, direction in KINDS.items():
        kind[chunk.op == op] = direction
    return kind
