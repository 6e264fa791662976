"""read_iolog and the options of its replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import UsageError
from hybridsim.workloads.fio.options import Reader, option, read_options, size
from hybridsim.workloads.fio.pattern import READ, SYNC, TRIM, WRITE

if TYPE_CHECKING:
    from hybridsim.traces.trace import Trace
    from hybridsim.workloads.fio.job import Job

MIN_FILE_BYTES = 4096


def _skipped(text: str) -> tuple[int, ...]:
    kinds = {"read": READ, "write": WRITE, "trim": TRIM, "sync": SYNC}
    names = [name.strip() for name in text.split(",")]
    if not set(names) <= kinds.keys():
        raise ValueError(f"{text!r}: must be a list of read, write, trim and sync")
    return tuple(kinds[name] for name in names)


@dataclass(frozen=True)
class Replay:
    """Source of a job's requests if it is a log."""

    path: str
    redirect: str = option(lambda it: it.read("replay_redirect", str, ""))  # the file's other name
    is_unstalled: bool = option(lambda it: it.flag("replay_no_stall"))  # not at the log's times
    # 200: in half the time.
    time_percent: int = option(lambda it: it.number("replay_time_scale", 100, 1))
    scale: int = option(lambda it: it.number("replay_scale", 1, 1))  # divisor of offsets
    # offsets are rounded down to multiples of it
    align_bytes: int = option(lambda it: it.read("replay_align", size, 0))
    # directions that are not replayed
    skipped: tuple[int, ...] = option(lambda it: it.read("replay_skip", _skipped, ()))
    log: Trace | None = None  # the file at `path`, once it is open

    def placed(self, offset: Ints) -> Ints:
        """Return scaled and aligned offsets."""
        offset = offset // self.scale
        return offset // self.align_bytes * self.align_bytes if self.align_bytes else offset


def replay_of(reader: Reader) -> Replay | None:
    """Return the replay options of a job; None without read_iolog."""
    path = reader.read("read_iolog", str, "")
    if not path:
        return None
    return Replay(path, **read_options(Replay, reader))


class Columns(NamedTuple):
    """A sequence of requests in columns."""

    kind: Bytes  # a direction, or another kind of request of the generator
    offset: Ints
    length: Ints
    due_ns: Ints
    file: Ints  # index in the job's files


NOTHING = Columns(np.zeros(0, np.uint8), *np.zeros((4, 0), np.int64))


def opened(job: Job, read: Callable[[str], Trace]) -> Job:
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


class Replayed:
    """Source of requests: a log."""

    def __init__(self, job: Job) -> None:
        self._chunks = self._read(job.replay)
        self._rest = NOTHING

    def take(self, count: int) -> Columns:
        """Return the next `count` requests; fewer at the end of the log."""
        parts, rows = [self._rest], len(self._rest.kind)
        while rows < count and (chunk := next(self._chunks, None)) is not None:
            parts.append(chunk)
            rows += len(chunk.kind)
        whole = Columns._make(map(np.concatenate, zip(*parts)))
        self._rest = Columns._make(column[count:] for column in whole)
        return Columns._make(column[:count] for column in whole)

    def _read(self, replay: Replay | None) -> Iterator[Columns]:
        assert replay is not None
        assert replay.log is not None, "the log must be open"
        for chunk in replay.log.chunks():
            kind = np.where(chunk.op == Op.WRITE_ZEROES, np.uint8(WRITE), chunk.op)
            due = chunk.arrival_ns * 100 // replay.time_percent * (not replay.is_unstalled)
            place = replay.placed(chunk.offset_bytes)
            file = np.zeros(len(kind), np.int64)
            wanted = ~np.isin(kind, replay.skipped)
            columns = kind, place, chunk.length_bytes, due, file
            yield Columns._make(column[wanted] for column in columns)
