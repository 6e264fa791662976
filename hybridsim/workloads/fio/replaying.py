"""read_iolog: a job's requests from a log, at the log's times or as fast as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import UsageError
from hybridsim.requests.rows import Requests
from hybridsim.workloads.fio.job import Job
from hybridsim.workloads.fio.pattern import READ, SYNC, TRIM, WRITE
from hybridsim.workloads.fio.replay import Log

KINDS = {Op.READ: READ, Op.WRITE: WRITE, Op.WRITE_ZEROES: WRITE, Op.DISCARD: TRIM, Op.FLUSH: SYNC}
MIN_FILE_BYTES = 4096


@dataclass
class Columns:
    """A sequence of requests in columns."""

    kind: Bytes
    offset: Ints
    length: Ints
    due_ns: Ints
    file: Ints  # index in the job's files
    is_last: npt.NDArray[np.bool_]  # issued when all before are complete
    is_checking: npt.NDArray[np.bool_]  # reads of verify
    is_alone: npt.NDArray[np.bool_]  # those after a pass
    is_of_data: npt.NDArray[np.bool_]  # syncs of fdatasync

    @classmethod
    def of(cls, parts: Sequence[Columns]) -> Columns:
        """Return the concatenation of `parts`."""
        none = np.zeros(0, np.int64)
        columns = zip(*(vars(part).values() for part in parts)) if parts else [[none]] * 9
        kind, offset, length, due, file, *marks = (
            np.concatenate([none, *column]) for column in columns
        )
        masks = (mark.astype(np.bool_) for mark in marks)
        return cls(kind.astype(np.uint8), offset, length, due, file, *masks)

    def where(self, rows: Ints | npt.NDArray[np.bool_]) -> Columns:
        """Return some rows, by index or mask."""
        return Columns(*(column[rows] for column in vars(self).values()))

    def __getitem__(self, rows: slice) -> Columns:
        return Columns(*(column[rows] for column in vars(self).values()))


def opened(job: Job, read: Callable[[str], Log]) -> Job:
    """Return a replaying job with its log open and the log's file and size; others unchanged.

    `read` opens a trace by its path.  Raises UsageError for a log of several files, TraceError for
    an unreadable one.
    """
    if job.replay is None:
        return job
    trace = read(job.replay.path)
    summary = trace.summary()
    if len(trace.devices) > 1:
        names = ", ".join(device.name for device in trace.devices)
        raise UsageError(
            f"job {job.name}: read_iolog={job.replay.path} has requests to {len(trace.devices)} "
            f"files ({names}); only logs of one file are supported: split it"
        )
    end = job.replay.placed(np.array([summary.max_end_bytes]))[0]
    end = max(int(end) + job.replay.align_bytes, MIN_FILE_BYTES)
    pattern = replace(job.pattern, file_bytes=end, pass_bytes=end, offset_bytes=0)
    file = job.replay.redirect or trace.devices[0].name
    log = replace(job.replay, log=trace)
    return replace(job, replay=log, pattern=pattern, files=(file,), has_size=True)


def requests(job: Job) -> Iterator[Columns]:
    """Yield the requests of a job's log, in order."""
    replay = job.replay
    assert replay is not None
    assert replay.log is not None, "the log must be open"
    for chunk in replay.log.chunks():
        kind = _kinds(chunk)
        wanted = ~np.isin(kind, replay.skipped)
        due = np.zeros(len(kind), np.int64)
        if not replay.is_unstalled:
            due = chunk.arrival_ns * 100 // replay.time_percent
        yield Columns(
            kind[wanted],
            replay.placed(chunk.offset_bytes)[wanted],
            chunk.length_bytes[wanted],
            due[wanted],
            np.zeros(np.count_nonzero(wanted), np.int64),
            *(np.zeros(np.count_nonzero(wanted), np.bool_) for _ in range(4)),
        )


def _kinds(chunk: Requests) -> Bytes:
    kind = np.full(len(chunk.op), SYNC, np.uint8)
    for op, direction in KINDS.items():
        kind[chunk.op == op] = direction
    return kind
