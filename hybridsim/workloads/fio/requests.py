"""The requests of all jobs and their arrival times, generated on demand of the machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.foundation.codes import FUA, Op
from hybridsim.foundation.codes import SYNC as IS_SYNC
from hybridsim.foundation.errors import UsageError
from hybridsim.jit import loop
from hybridsim.requests.jobs import JobBatch
from hybridsim.workloads.fio.blocks import draw, seeded
from hybridsim.workloads.fio.generator import DUE, ELAPSED, FILE_SHIFT, Generator, fill
from hybridsim.workloads.fio.job import Job, Replay
from hybridsim.workloads.fio.pattern import (
    DATA_SYNC,
    END_SYNC,
    FIRST_OF_VERIFY,
    MASK32,
    OF_BACKLOG,
    OF_VERIFY,
    READ,
    SYNC,
    TRIM,
    WRITE,
    Stream,
)
from hybridsim.workloads.fio.places import Laid

MICROSECOND, SECOND = 10**3, 10**9
STREAMS = (Stream.POISSON_READ, Stream.POISSON_WRITE, Stream.POISSON_TRIM)  # by direction


class Poisson:
    """Due times of one direction of a job with rate_process=poisson, as fio 3.33 draws them.

    A gap is the mean, in whole microseconds, times the negative logarithm of a uniform number in
    (0, 1]; verified against the times in fio's logs (benchmarks/RESULTS.md).
    """

    def __init__(self, seed: int, requests_per_s: int) -> None:
        self._states = seeded(seed & MASK32).reshape(1, -1)
        self._mean_us = np.float32(10**6 // max(requests_per_s, 1))
        self._next_us = 0

    @property
    def next_ns(self) -> int:
        """Due time of the next request in ns."""
        return self._next_us * MICROSECOND

    def due_ns(self, count: int) -> Ints:
        """Return the due times of the next `count` requests, in ns."""
        bits = np.zeros(count, np.int64)
        draw_each(self._states, bits)
        even = ((bits + 1) / (MASK32 + 1)).astype(np.float32)
        gaps = (self._mean_us * -np.log(even)).astype(np.int64)
        ends = self._next_us + np.cumsum(gaps)
        due = np.append(self._next_us, ends)[:-1]
        self._next_us = int(ends[-1]) if count else self._next_us
        return np.asarray(due * MICROSECOND, np.int64)


@dataclass(frozen=True)
class Pace:
    """Completed requests of a real run over time: the pace of its simulation."""

    time_ns: Ints  # since the first request
    done: Ints

    def due_ns(self, first: int, count: int, depth: int) -> Ints:
        """Return issue times in ns: a request is issued when the one `depth` before completes."""
        before = np.arange(first, first + count) - depth
        return np.asarray(np.interp(before, self.done, self.time_ns), np.int64)


def evenly_ns(before: Ints, per_s: int) -> Ints:
    """Return the time in ns by which `before` units are done at a rate of `per_s`."""
    return np.asarray(before // per_s * SECOND + before % per_s * SECOND // per_s, np.int64)


@loop
def draw_each(states: Ints, bits: Ints) -> None:
    """Fill an array with the next 32 bits of a stream."""
    for at in range(len(bits)):
        bits[at] = draw(states, 0)


CHUNK = 1 << 14
COLUMNS = 7  # of the rows of a feed
PLAIN = np.arange(9, dtype=np.uint8)  # kinds of the generator as directions or syncs
PLAIN[[END_SYNC, DATA_SYNC]] = SYNC
PLAIN[[FIRST_OF_VERIFY, OF_VERIFY, OF_BACKLOG]] = READ
# By kind: issued when all before are complete; reads of verify; those after a pass.
IS_LAST, IS_CHECKING, IS_ALONE = np.zeros((3, 9), np.bool_)
IS_LAST[[END_SYNC, FIRST_OF_VERIFY]] = True
IS_CHECKING[[FIRST_OF_VERIFY, OF_VERIFY, OF_BACKLOG]] = True
IS_ALONE[[FIRST_OF_VERIFY, OF_VERIFY]] = True


class Columns(NamedTuple):
    """A sequence of requests in columns."""

    kind: Bytes  # a direction, or another kind of request of the generator
    offset: Ints
    length: Ints
    due_ns: Ints
    file: Ints  # index in the job's files


NOTHING = Columns(np.zeros(0, np.uint8), *np.zeros((4, 0), np.int64))


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


class Generated:
    """Source of requests: the options of a job."""

    def __init__(self, job: Job) -> None:
        with np.errstate(over="ignore"):
            self.generator = Generator.new(job.pattern)
        self._name = job.name

    def take(self, count: int) -> Columns:
        """Return the next `count` requests; fewer at the end of the job."""
        kind, offset, length = np.zeros(count, np.uint8), *np.zeros((2, count), np.int64)
        with np.errstate(over="ignore"):
            filled = int(fill(self.generator, kind, offset, length))
            if filled < count and self.generator.history.is_full():
                rows = len(self.generator.history.offset)
                raise UsageError(
                    f"job {self._name}: verify has more than {rows} writes to read at once: use a "
                    "shorter runtime, or a verify_backlog whose verify_backlog_batch is not smaller"
                )
        kind, offset, length = kind[:filled], offset[:filled], length[:filled]
        file, at = offset >> FILE_SHIFT, offset & ((1 << FILE_SHIFT) - 1)
        return Columns(kind, at, length, np.zeros(filled, np.int64), file)


class Feed:
    """Requests of one job that are not yet issued, and their source."""

    def __init__(self, job: Job, begin_bytes: Sequence[int], stream: int) -> None:
        self._source: Replayed | Generated | None = None  # an engine that does not access storage
        if job.replay:
            self._source = Replayed(job)
        elif not job.is_idle:
            self._source = Generated(job)
        seeds = job.pattern.seeds()
        self._poisson = [Poisson(seeds[each], rate_of(job, at)) for at, each in enumerate(STREAMS)]
        self._job = job
        self._begin_bytes = np.array(begin_bytes, np.int64)  # of each of its files
        self._stream = stream
        self._done = np.zeros(4, np.int64)  # requests by direction
        self._moved = np.zeros(4, np.int64)  # bytes
        self._flags = IS_SYNC * (job.is_direct or job.is_durable) | FUA * job.is_durable
        self.is_last = False
        self.is_by_rates = job.pattern.is_by_rates and job.replay is None
        self.generated: list[Ints] = []  # kind, offset, length, file: if a log has offsets
        self._count = 0  # requests so far
        self._special: dict[int, int] = {}  # kinds of END_SYNC and DATA_SYNC, by index of request
        self._rows = np.zeros((COLUMNS, 0), np.int64)

    def rows(self, used: int, elapsed_ns: int | None = 0) -> Ints:
        """Drop the `used` rows that were issued; return those that follow.

        They are columns: op, offset, length, stream, due, think, may_pause of `JobBatch`.
        The next request of a mix with rates depends on the time since the job's start: None if the
        job does not ask for it.
        """
        count = CHUNK
        if self.is_by_rates:
            count = 1 if elapsed_ns is not None else 0
        self._rows = self._rows[:, used:]
        if not self.is_last and self._rows.shape[1] < count:
            if self.is_by_rates:
                assert isinstance(self._source, Generated)
                state = self._source.generator.state
                state[ELAPSED] = elapsed_ns or 0
                state[[DUE + READ, DUE + WRITE]] = [self._next_ns(READ), self._next_ns(WRITE)]
            self._rows = np.concatenate([self._rows, self._more(count)], axis=1)
        return self._rows

    def _more(self, count: int) -> Ints:
        taken = NOTHING if self._source is None else self._source.take(count)
        kind, length = PLAIN[taken.kind], taken.length
        self.is_last = len(kind) < count
        special = np.flatnonzero(np.isin(taken.kind, (END_SYNC, DATA_SYNC)))
        self._special |= zip((self._count + special).tolist(), taken.kind[special].tolist())
        if self._job.iolog or self._job.log_offsets:
            exact = np.where(taken.kind == DATA_SYNC, DATA_SYNC, kind)
            self.generated.append(np.stack([exact, taken.offset, length, taken.file]))
        self._count += len(kind)
        rows = np.zeros((COLUMNS, len(kind)), np.int64)
        op, place, size, stream, due_ns, think_ns, may_pause = rows
        op[:] = kind | np.where(kind == WRITE, self._flags, 0)
        if len(kind):
            place[:] = np.where(kind == SYNC, 0, taken.offset + self._begin_bytes[taken.file])
        size[:], stream[:] = length, self._stream
        due_ns[:] = np.maximum(self._due_ns(taken.kind, length), taken.due_ns)
        if self._job.pace is not None:
            first = int(self._done[:SYNC].sum())
            paced = self._job.pace.due_ns(first, len(kind), self._job.depth)
            due_ns[:] = np.maximum(due_ns, paced)
        may_pause[:] = (kind != SYNC) & ~IS_ALONE[taken.kind]
        self._done += np.bincount(kind, minlength=4)
        self._moved += np.bincount(kind, length, 4).astype(np.int64)  # whole: below 2^53 at once
        think_ns[IS_LAST[taken.kind]] = 1  # think 1 ns: issued when all before are complete
        is_replay = self._job.replay is not None
        if is_replay and self.is_last and self._job.pattern.syncs_at_end and self._done[WRITE]:
            end = [SYNC, 0, 0, self._stream, 0, 1, 0]
            self._special[self._count] = END_SYNC
            return np.append(rows, np.array([end]).T, axis=1)
        return rows

    def kinds_of_syncs(self, order: Ints) -> Ints:
        """Return the kinds of completed syncs (SYNC, DATA_SYNC, END_SYNC), by index of request.

        Each is asked for once: what is remembered of it is dropped.
        """
        return np.array([self._special.pop(each, SYNC) for each in order.tolist()], np.int64)

    def _next_ns(self, direction: int) -> int:
        """Return when the next request of a direction is due by its rate."""
        if self._job.is_poisson and rate_of(self._job, direction):
            return self._poisson[direction].next_ns
        rate = bytes_per_s(self._job, direction)
        return int(evenly_ns(self._moved[direction], rate)) if rate else 0

    def _due_ns(self, exact: Bytes, length: Ints) -> Ints:
        """Return the earliest issue times by the rates of the directions."""
        kind, is_checking = PLAIN[exact], IS_CHECKING[exact]
        due = np.zeros(len(kind), np.int64)
        for direction in (READ, WRITE, TRIM):
            rate = bytes_per_s(self._job, direction)
            if not rate:
                continue
            mine = kind == direction
            if self._job.is_poisson and rate_of(self._job, direction):
                mine &= ~is_checking
                due[mine] = self._poisson[direction].due_ns(int(np.count_nonzero(mine)))
            else:
                before = self._moved[direction] + np.cumsum(length[mine]) - length[mine]
                due[mine] = np.where(is_checking[mine], 0, evenly_ns(before, rate))
        return due


def bytes_per_s(job: Job, direction: int) -> int:
    """Return the job's limit in bytes/s, 0 without one; as in fio one of requests has the smallest.

    With requests of several sizes rate_iops is thus a limit of bytes, and fewer requests are made.
    """
    minimum = job.pattern.sizes[direction].minimum
    return job.bytes_per_s[direction] or job.requests_per_s[direction] * minimum


def rate_of(job: Job, direction: int) -> int:
    """Return the job's limit in requests/s; a rate in bytes is divided by the smallest size."""
    return bytes_per_s(job, direction) // job.pattern.sizes[direction].minimum


class Feeds:
    """The requests of all jobs, as batches for the machine."""

    def __init__(self, laid: Laid) -> None:
        self._feeds = [
            Feed(job, [laid.begin_bytes.get(file, 0) for file in job.files], number)
            for number, job in enumerate(laid.jobs)
        ]
        self._numbers = np.zeros(len(self._feeds), np.int64)
        self.are_by_rates = any(feed.is_by_rates for feed in self._feeds)
        self._batch: JobBatch | None = None
        self._begin = np.zeros(len(self._feeds), np.int64)

    def __getitem__(self, job: int) -> Feed:
        return self._feeds[job]

    @property
    def generated(self) -> list[Ints]:
        """Kind, offset, length and file of all requests of each job, if logs have offsets."""
        none = np.zeros((4, 0), np.int64)
        return [np.concatenate([none, *feed.generated], axis=1) for feed in self._feeds]

    def batch(self, asking: int = -1, elapsed_ns: int = 0) -> JobBatch:
        """Return the next requests, including those of the last batch that were not issued.

        `asking` is the index of the job that is out of requests, at this time since its start.
        """
        used = np.zeros(len(self._feeds), np.int64)
        if self._batch is not None:
            used = self._batch.next - self._begin
            self._numbers = self._batch.number.copy()
        rows = [
            feed.rows(int(count), elapsed_ns if number == asking else None)
            for number, (feed, count) in enumerate(zip(self._feeds, used))
        ]
        lengths = np.array([each.shape[1] for each in rows])
        ends = np.cumsum(lengths)
        self._begin = ends - lengths
        op, *columns, may_pause = np.concatenate(rows, axis=1)
        is_last = np.array([feed.is_last for feed in self._feeds], np.uint8)
        of_jobs = (self._begin.copy(), ends, self._numbers.copy(), is_last)
        self._batch = JobBatch._make(
            [op.astype(np.uint8), *columns, may_pause.astype(np.uint8), *of_jobs]
        )
        return self._batch
