"""The requests of all jobs, generated on demand of the machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import FUA, Op
from hybridsim.foundation.codes import SYNC as IS_SYNC
from hybridsim.foundation.errors import UsageError
from hybridsim.requests.jobs import JobBatch
from hybridsim.workloads.fio.arrivals import STREAMS, Poisson, evenly_ns
from hybridsim.workloads.fio.generator import DUE, ELAPSED, FILE_SHIFT, Generator, fill
from hybridsim.workloads.fio.job import Job
from hybridsim.workloads.fio.pattern import (
    DATA_SYNC,
    END_SYNC,
    FIRST_OF_VERIFY,
    OF_BACKLOG,
    OF_VERIFY,
    READ,
    SYNC,
    TRIM,
    WRITE,
)
from hybridsim.workloads.fio.places import Laid
from hybridsim.workloads.fio.replaying import Columns, requests

CHUNK = 1 << 14
COLUMNS = 7  # op, offset, length, stream, due, think, may_pause
OPS = np.zeros(4, np.uint8)
OPS[[READ, WRITE, TRIM, SYNC]] = [Op.READ, Op.WRITE, Op.DISCARD, Op.FLUSH]
PLAIN = np.arange(9, dtype=np.uint8)  # kinds of the generator as directions or syncs
PLAIN[[END_SYNC, DATA_SYNC, FIRST_OF_VERIFY, OF_VERIFY, OF_BACKLOG]] = [
    SYNC,
    SYNC,
    READ,
    READ,
    READ,
]
IS_LAST, IS_CHECKING, IS_ALONE, IS_OF_DATA = np.zeros((4, 9), np.bool_)  # as in Columns, by kind
IS_LAST[[END_SYNC, FIRST_OF_VERIFY]] = True
IS_CHECKING[[FIRST_OF_VERIFY, OF_VERIFY, OF_BACKLOG]] = True
IS_ALONE[[FIRST_OF_VERIFY, OF_VERIFY]] = True
IS_OF_DATA[DATA_SYNC] = True


class Generated:
    """Source of requests: the options of a job."""

    def __init__(self, job: Job) -> None:
        with np.errstate(over="ignore"):
            self._generator = Generator.new(job.pattern)
        self._name = job.name

    def set_time(self, elapsed_ns: int, due_ns: Sequence[int]) -> None:
        """Set the time since the job's start, and when reads and writes are due (is_by_rates)."""
        self._generator.state[ELAPSED] = elapsed_ns
        self._generator.state[[DUE + READ, DUE + WRITE]] = due_ns

    def take(self, count: int) -> Columns:
        """Return the next `count` requests; fewer at the end of the job."""
        kind, offset, length = np.zeros(count, np.uint8), *np.zeros((2, count), np.int64)
        with np.errstate(over="ignore"):
            filled = int(fill(self._generator, kind, offset, length))
            if filled < count and self._generator.history.is_full():
                rows = len(self._generator.history.offset)
                raise UsageError(
                    f"job {self._name}: verify has more than {rows} writes to read at once: use a "
                    "shorter runtime, or a verify_backlog whose verify_backlog_batch is not smaller"
                )
        kind, offset, length = kind[:filled], offset[:filled], length[:filled]
        file, at = offset >> FILE_SHIFT, offset & ((1 << FILE_SHIFT) - 1)
        if not filled or kind.max() <= SYNC:  # as in most jobs
            none = np.zeros(filled, np.bool_)
            return Columns(kind, at, length, np.zeros(filled, np.int64), file, *[none] * 4)
        return Columns(
            PLAIN[kind],
            at,
            length,
            np.zeros(filled, np.int64),
            file,
            IS_LAST[kind],
            IS_CHECKING[kind],
            IS_ALONE[kind],
            IS_OF_DATA[kind],
        )


class Idle:
    """Source of no requests: an engine that does not access storage."""

    def take(self, count: int) -> Columns:
        """Return no requests."""
        return Columns.of([])


class Replayed:
    """Source of requests: a log."""

    def __init__(self, job: Job) -> None:
        self._chunks = requests(job)
        self._rest = Columns.of([])

    def take(self, count: int) -> Columns:
        """Return the next `count` requests; fewer at the end of the log."""
        parts, rows = [self._rest], len(self._rest.kind)
        while rows < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            parts.append(chunk)
            rows += len(chunk.kind)
        whole = Columns.of(parts)
        self._rest = whole[count:]
        return whole[:count]


class Feed:
    """Requests of one job that are not yet issued, and their source."""

    def __init__(self, job: Job, begin_bytes: Sequence[int], stream: int) -> None:
        self._source: Replayed | Generated | Idle = Idle() if job.is_idle else Generated(job)
        if job.replay:
            self._source = Replayed(job)
        seeds = job.pattern.seeds()
        self._poisson = [Poisson(seeds[each], rate_of(job, at)) for at, each in enumerate(STREAMS)]
        self._job = job
        self._begin_bytes = np.array(begin_bytes, np.int64)  # of each of its files
        self._stream = stream
        self._done = np.zeros(4, np.int64)  # requests by direction
        self._moved = np.zeros(4, np.int64)  # bytes
        self._flags = (IS_SYNC if job.is_direct or job.is_durable else 0) | (
            FUA if job.is_durable else 0
        )
        self.is_last = False
        self.is_by_rates = job.pattern.is_by_rates and job.replay is None
        self.generated: list[Ints] = []  # kind, offset, length, file: if a log has offsets
        self._count = 0  # requests so far
        self._special = {kind: np.zeros(0, np.int64) for kind in (END_SYNC, DATA_SYNC)}
        self._rows = _columns(0)

    def rows(self, used: int, elapsed_ns: int | None = 0) -> list[Ints]:
        """Drop the `used` rows that were issued; return the rows that follow.

        The next request of a mix with rates depends on the time since the job's start: None if the
        job does not ask for it.
        """
        count = CHUNK
        if self.is_by_rates:
            count = 1 if elapsed_ns is not None else 0
        has_enough = self.is_last or len(self._rows[0]) - used >= count
        if not used and has_enough:
            return self._rows
        rest = [column[used:] for column in self._rows]
        if not has_enough:
            if self.is_by_rates:
                due_ns = [self._next_ns(direction) for direction in (READ, WRITE)]
                assert isinstance(self._source, Generated)
                self._source.set_time(elapsed_ns or 0, due_ns)
            more = self._more(count)
            rest = [np.concatenate(pair) for pair in zip(rest, more)]
        self._rows = rest
        return rest

    def _more(self, count: int) -> list[Ints]:
        taken = self._source.take(count)
        kind, offset, length = taken.kind, taken.offset, taken.length
        self.is_last = len(kind) < count
        self._mark(DATA_SYNC, np.flatnonzero(taken.is_of_data))
        self._mark(END_SYNC, np.flatnonzero(taken.is_last & (kind == SYNC)))
        if self._job.keeps_offsets:
            exact = np.where(taken.is_of_data, DATA_SYNC, kind)
            self.generated.append(np.stack([exact, offset, length, taken.file]))
        self._count += len(kind)
        rows = _columns(len(kind))
        flags = np.where(kind == WRITE, self._flags, 0)
        rows[0][:] = OPS[kind] | flags
        if len(kind):
            rows[1][:] = np.where(kind == SYNC, 0, offset + self._begin_bytes[taken.file])
        rows[2][:] = length
        rows[3][:] = self._stream
        rows[4][:] = np.maximum(self._due_ns(taken), taken.due_ns)
        if self._job.pace is not None:
            first = int(self._done[:SYNC].sum())
            paced = self._job.pace.due_ns(first, len(kind), self._job.depth)
            rows[4][:] = np.maximum(rows[4], paced)
        rows[6][:] = (kind != SYNC) & ~taken.is_alone
        self._done += np.bincount(kind, minlength=4)
        self._moved += np.bincount(kind, length, 4).astype(np.int64)  # whole: below 2^53 at once
        rows[5][taken.is_last] = 1  # think 1 ns: issued when all before are complete
        is_replay = self._job.replay is not None
        if is_replay and self.is_last and self._job.pattern.syncs_at_end and self._done[WRITE]:
            end = (int(Op.FLUSH), 0, 0, self._stream, 0, 1, 0)
            self._mark(END_SYNC, np.zeros(1, np.int64))
            return [np.append(column, last) for column, last in zip(rows, end)]
        return rows

    def _mark(self, kind: int, rows: Ints) -> None:
        """Remember the kind of the next syncs in these rows."""
        self._special[kind] = np.append(self._special[kind], self._count + rows)

    def kinds_of_syncs(self, order: Ints) -> Ints:
        """Return the kinds of completed syncs (SYNC, DATA_SYNC, END_SYNC), by index of request.

        Each is asked for once: what is remembered of it is dropped.
        """
        kinds = np.full(len(order), SYNC)
        for kind, marked in self._special.items():
            if len(marked):
                kinds[np.isin(order, marked)] = kind
                self._special[kind] = marked[~np.isin(marked, order)]
        return kinds

    def _next_ns(self, direction: int) -> int:
        """Return when the next request of a direction is due by its rate."""
        if self._job.is_poisson and rate_of(self._job, direction):
            return self._poisson[direction].next_ns
        rate = bytes_per_s(self._job, direction)
        return int(evenly_ns(self._moved[direction], rate)) if rate else 0

    def _due_ns(self, taken: Columns) -> Ints:
        """Return the earliest issue times by the rates of the directions."""
        kind, length = taken.kind, taken.length
        due = np.zeros(len(kind), np.int64)
        for direction in (READ, WRITE, TRIM):
            rate = bytes_per_s(self._job, direction)
            if not rate:
                continue
            mine = kind == direction
            if self._job.is_poisson and rate_of(self._job, direction):
                mine &= ~taken.is_checking
                due[mine] = self._poisson[direction].due_ns(int(np.count_nonzero(mine)))
            else:
                before = self._moved[direction] + np.cumsum(length[mine]) - length[mine]
                due[mine] = np.where(taken.is_checking[mine], 0, evenly_ns(before, rate))
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


def _columns(rows: int) -> list[Ints]:
    return [np.zeros(rows, np.int64) for _ in range(COLUMNS)]


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
        lengths = np.array([len(each[0]) for each in rows])
        ends = np.cumsum(lengths)
        self._begin = ends - lengths
        op, offset, length, stream, due_ns, think_ns, may_pause = (
            np.concatenate(column) for column in zip(*rows)
        )
        self._batch = JobBatch(
            op.astype(np.uint8),
            offset,
            length,
            stream,
            due_ns,
            think_ns,
            may_pause.astype(np.uint8),
            self._begin.copy(),
            ends,
            self._numbers.copy(),
            np.array([feed.is_last for feed in self._feeds], np.uint8),
        )
        return self._batch
