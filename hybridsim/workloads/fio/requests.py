"""The requests of all jobs, made as the machine asks for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.foundation.codes import FUA, Op
from hybridsim.foundation.codes import SYNC as IS_SYNC
from hybridsim.requests.jobs import JobBatch
from hybridsim.workloads.fio.arrivals import STREAMS, Poisson, evenly_ns
from hybridsim.workloads.fio.generator import FILE_SHIFT, Generator, fill
from hybridsim.workloads.fio.job import SECOND, Job
from hybridsim.workloads.fio.pattern import READ, SYNC, TRIM, WRITE
from hybridsim.workloads.fio.places import Laid
from hybridsim.workloads.fio.replaying import Made, requests

CHUNK = 1 << 14
COLUMNS = 6  # op, offset, length, stream, due, think
OPS = np.zeros(4, np.uint8)
OPS[[READ, WRITE, TRIM, SYNC]] = [Op.READ, Op.WRITE, Op.DISCARD, Op.FLUSH]


class Generated:
    """Requests by a job's options."""

    def __init__(self, job: Job) -> None:
        with np.errstate(over="ignore"):
            self._generator = Generator.new(job.pattern)

    def made(self, count: int) -> Made:
        """Return so many requests; fewer are the last."""
        kind, offset, length = np.zeros(count, np.uint8), *np.zeros((2, count), np.int64)
        with np.errstate(over="ignore"):
            made = int(fill(self._generator, kind, offset, length))
        kind, offset, length = kind[:made], offset[:made], length[:made]
        file, at = offset >> FILE_SHIFT, offset & ((1 << FILE_SHIFT) - 1)
        return Made(kind, at, length, np.zeros(made, np.int64), file)


class Replayed:
    """Requests from a log."""

    def __init__(self, job: Job) -> None:
        self._chunks = requests(job)
        self._left = Made.of([])

    def made(self, count: int) -> Made:
        """Return so many requests; fewer are the last."""
        found, rows = [self._left], len(self._left.kind)
        while rows < count:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            found.append(chunk)
            rows += len(chunk.kind)
        whole = Made.of(found)
        self._left = whole[count:]
        return whole[:count]


class Feed:
    """One job's requests: those made and not yet issued, and how to make more."""

    def __init__(self, job: Job, begin_bytes: Sequence[int], stream: int) -> None:
        self._source = Replayed(job) if job.replay else Generated(job)
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
        self.made: list[Ints] = []  # kind, offset, length, file: where a log tells offsets
        self._rows = _columns(0)

    def rows(self, used: int) -> list[Ints]:
        """Drop so many rows, which were issued, and return the next ones."""
        left = [column[used:] for column in self._rows]
        if not self.is_last and len(left[0]) < CHUNK:
            more = self._made(CHUNK)
            left = [np.concatenate(pair) for pair in zip(left, more)]
        self._rows = left
        return left

    def _made(self, count: int) -> list[Ints]:
        made = self._source.made(count)
        kind, offset, length = made.kind, made.offset, made.length
        self.is_last = len(kind) < count
        if self._job.keeps_offsets:
            self.made.append(np.stack([kind, offset, length, made.file]))
        rows = _columns(len(kind))
        flags = np.where(kind == WRITE, self._flags, 0)
        rows[0][:] = OPS[kind] | flags
        rows[1][:] = np.where(kind == SYNC, 0, offset + self._begin_bytes[made.file])
        rows[2][:] = length
        rows[3][:] = self._stream
        rows[4][:] = np.maximum(self._due_ns(kind, length), made.due_ns)
        if self._job.pace is not None:
            first = int(self._done[:SYNC].sum())
            paced = self._job.pace.due_ns(first, len(kind), self._job.depth)
            rows[4][:] = np.maximum(rows[4], paced)
        rows[5][:] = self._think_ns(kind)
        for direction in range(4):
            self._done[direction] += np.count_nonzero(kind == direction)
            self._moved[direction] += length[kind == direction].sum()
        if self.is_last and self._job.syncs_at_end and self._done[WRITE]:
            return [np.append(column, last) for column, last in zip(rows, self._end_sync())]
        return rows

    def _end_sync(self) -> tuple[int, ...]:
        return int(Op.FLUSH), 0, 0, self._stream, 0, 1  # after all others: it thinks a moment

    def _due_ns(self, kind: Bytes, length: Ints) -> Ints:
        """When each may be issued at the earliest, by the rates of its direction."""
        due = np.zeros(len(kind), np.int64)
        for direction in (READ, WRITE, TRIM):
            mine = kind == direction
            if self._job.is_poisson and rate_of(self._job, direction):
                due[mine] = self._poisson[direction].due_ns(int(np.count_nonzero(mine)))
                continue
            rate = self._job.bytes_per_s[direction]
            if rate:
                before = self._moved[direction] + np.cumsum(length[mine]) - length[mine]
                due[mine] = evenly_ns(before, rate)
            rate = self._job.requests_per_s[direction]
            if rate:
                order = self._done[direction] + np.arange(np.count_nonzero(mine))
                due[mine] = np.maximum(due[mine], order * SECOND // rate)
        return due

    def _think_ns(self, kind: Bytes) -> Ints:
        """How long it thinks before each: after so many requests."""
        moves = kind != SYNC
        order = self._done[:SYNC].sum() + np.cumsum(moves) - moves
        is_time = moves & (order > 0) & (order % self._job.think_blocks == 0)
        return np.where(is_time, self._job.think_ns, 0)


def rate_of(job: Job, direction: int) -> int:
    """Return the requests a second that a job is held to; a rate in bytes counts its least."""
    least = job.pattern.sizes[direction].least
    return job.requests_per_s[direction] or job.bytes_per_s[direction] // least


def _columns(rows: int) -> list[Ints]:
    return [np.zeros(rows, np.int64) for _ in range(COLUMNS)]


class Feeds:
    """The requests of all jobs, as batches for the machine."""

    def __init__(self, laid: Laid) -> None:
        self._feeds = [
            Feed(job, [laid.begin_bytes[file] for file in job.files], number)
            for number, job in enumerate(laid.jobs)
        ]
        self._numbers = np.zeros(len(self._feeds), np.int64)
        self._batch: JobBatch | None = None
        self._begin = np.zeros(len(self._feeds), np.int64)

    @property
    def made(self) -> list[Ints]:
        """Kind, offset, length, file of all requests that each job made, if logs tell offsets."""
        none = np.zeros((4, 0), np.int64)
        return [np.concatenate([none, *feed.made], axis=1) for feed in self._feeds]

    def batch(self) -> JobBatch:
        """Return what comes next; what is left of the batch before is in it again."""
        used = np.zeros(len(self._feeds), np.int64)
        if self._batch is not None:
            used = self._batch.next - self._begin
            self._numbers = self._batch.number.copy()
        rows = [feed.rows(int(count)) for feed, count in zip(self._feeds, used)]
        lengths = np.array([len(each[0]) for each in rows])
        ends = np.cumsum(lengths)
        self._begin = ends - lengths
        op, offset, length, stream, due_ns, think_ns = (
            np.concatenate(column) for column in zip(*rows)
        )
        self._batch = JobBatch(
            op.astype(np.uint8),
            offset,
            length,
            stream,
            due_ns,
            think_ns,
            self._begin.copy(),
            ends,
            self._numbers.copy(),
            np.array([feed.is_last for feed in self._feeds], np.uint8),
        )
        return self._batch
