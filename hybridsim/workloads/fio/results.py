"""Results of jobs: latencies, rates over time, and the entries of their logs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.histogram import Distribution
from hybridsim.foundation.in_notebooks import DataFrame, frame_of
from hybridsim.foundation.units import format_time, human_time
from hybridsim.requests.inflight import Facts
from hybridsim.requests.jobs import (
    BROKE_NS,
    BROKE_OP,
    BROKEN_NS,
    HIGHEST,
    IS_DONE,
    JUDGED,
    LATE,
    MEASURED_NS,
    NOW,
    OVER_NS,
    START_NS,
    WHOLE,
    Jobs,
)
from hybridsim.workloads.fio.conditions import Progress
from hybridsim.workloads.fio.job import MILLISECOND, SECOND, Job
from hybridsim.workloads.fio.jobfile import Written
from hybridsim.workloads.fio.pattern import DATA_SYNC, READ, SYNC
from hybridsim.workloads.fio.requests import Feeds

NAMES, MIXED = ("read", "write", "trim"), "mixed"
TIMED_OUT, IO_ERROR = 110, 5  # errno
Mask = npt.NDArray[np.bool_]
# Upper ends of fio's coarse latency bins; the last bin, above all of them, has no entry.
STEPS = (2, 4, 10, 20, 50, 100, 250, 500, 750, 1000)
EDGES_NS = np.array([u * each for u in (1, 10**3, 10**6) for each in STEPS] + [2 * 10**9], np.int64)


@dataclass
class Windows:
    """Sums over consecutive windows of equal width."""

    width_ns: int
    sums: npt.NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))

    def add(self, time_ns: Ints, amount: Ints) -> None:
        """Add amounts at their times, which count from 0."""
        if not len(time_ns):
            return
        at = time_ns // self.width_ns
        needed = int(at.max()) + 1
        if needed > len(self.sums):
            self.sums = np.append(self.sums, np.zeros(max(needed, len(self.sums)), np.int64))
        np.add.at(self.sums, at, amount)

    def __add__(self, other: Windows) -> Windows:
        """Return the sums of both."""
        sums = np.zeros(max(len(self.sums), len(other.sums)), np.int64)
        for each in (self.sums, other.sums):
            sums[: len(each)] += each
        return Windows(self.width_ns, sums)

    def whole(self, span_ns: int) -> Ints:
        """Return the sums of all complete windows of a span; at least one window."""
        sums: Ints = np.zeros(max(1, span_ns // self.width_ns), np.int64)
        part = self.sums[: len(sums)]
        sums[: len(part)] = part
        return sums


@dataclass
class Measured:
    """Results of one direction of a job."""

    latency: Distribution = field(default_factory=Distribution)
    squares: float = 0.0
    min_ns: int = 0
    moved_bytes: int = 0
    done: Windows = field(default_factory=lambda: Windows(SECOND // 2))  # requests
    moved: Windows = field(default_factory=lambda: Windows(SECOND // 2))

    @property
    def count(self) -> int:
        """Number of requests."""
        return self.latency.count

    @property
    def mean_ns(self) -> float:
        """Mean latency in ns."""
        return self.latency.mean_ns or 0.0

    @property
    def deviation_ns(self) -> float:
        """Sample standard deviation of the latency in ns."""
        if self.count < 2:
            return 0.0
        spread = self.squares - self.count * self.mean_ns**2
        return float(np.sqrt(max(spread, 0.0) / (self.count - 1)))

    def add(self, latency_ns: Ints, since_ns: Ints, length: Ints) -> None:
        """Add completed requests; `since_ns` counts from the start of the measurement."""
        if not len(latency_ns):
            return
        minimum = int(latency_ns.min())
        self.min_ns = min(self.min_ns, minimum) if self.count else minimum
        self.latency += Distribution.of(latency_ns)
        self.squares += float(np.square(latency_ns.astype(np.float64)).sum())
        self.moved_bytes += int(length.sum())
        self.done.add(since_ns, np.ones(len(since_ns), np.int64))
        self.moved.add(since_ns, length)

    def __add__(self, other: Measured) -> Measured:
        """Return the sum of both."""
        minima = [each.min_ns for each in (self, other) if each.count]
        return Measured(
            self.latency + other.latency,
            self.squares + other.squares,
            min(minima, default=0),
            self.moved_bytes + other.moved_bytes,
            self.done + other.done,
            self.moved + other.moved,
        )


@dataclass
class JobResult:
    """Results of one job, or of several that are reported together."""

    jobs: list[Job]
    directions: list[Measured]  # read, write, trim, sync
    coarse: Ints  # requests per bin of EDGES_NS
    levels: Ints
    begin_ns: int = 0  # start of the measurement
    end_ns: int = 0  # last completion; of a job that is over, when it was
    data_syncs: int = 0  # those of fdatasync, among the syncs
    merged_ns: int = 0  # of merged results: the longest duration
    # Of a job that only writes, and reads back what it wrote: time of the passes of writes and of
    # those of reads; 0: other jobs. Of merged results the longest of each.
    written_ns: int = 0
    read_back_ns: int = 0
    depths: list[Ints] = field(default_factory=list)  # state of the depth search, by job
    checked: list[Progress] = field(default_factory=list)  # minimum rates, steady state, by job
    log: list[npt.NDArray[np.int64]] = field(default_factory=list)
    issued: list[npt.NDArray[np.int64]] = field(default_factory=list)  # order, ns: for write_iolog
    generated: npt.NDArray[np.int64] | None = None  # kind, offset, length, file: requests in order

    def forget(self) -> None:
        """Restart the measurement; logs continue."""
        self.directions = _directions(self.jobs[0])
        self.coarse[:] = 0
        self.end_ns = self.written_ns = self.read_back_ns = self.data_syncs = 0

    def add_passes(self, begin_ns: int, done_ns: Ints, is_read: Mask) -> None:
        """Add the time between completions to the passes of writes, or to those of reads."""
        passed_ns = np.diff(done_ns, prepend=self.end_ns or begin_ns)
        self.read_back_ns += int(passed_ns[is_read].sum())
        self.written_ns += int(passed_ns[~is_read].sum())

    @property
    def span_ns(self) -> int:
        """Duration of the measurement in ns; of merged results as in fio the longest one."""
        return self.merged_ns or max(self.end_ns - self.begin_ns, 1)

    @property
    def span_ms(self) -> int:
        """Duration of the measurement in ms, rounded as by fio."""
        return max(1, round(self.span_ns / MILLISECOND))

    def span_of(self, direction: str) -> int:
        """Return the duration in ns that the rates of a direction refer to, as in fio."""
        if not self.read_back_ns or direction == MIXED:
            return self.span_ns
        return max(self.read_back_ns if direction == NAMES[READ] else self.written_ns, 1)

    def span_ms_of(self, direction: str) -> int:
        """Return the same in ms, rounded as by fio."""
        return max(1, round(self.span_of(direction) / MILLISECOND))

    @property
    def reported(self) -> list[tuple[str, Measured]]:
        """Reported results of reads, writes and trims by name; unified_rw_reporting merges them."""
        directions = self.directions[:SYNC]
        apart = list(zip(NAMES, directions)) if self.jobs[0].reports_apart else []
        if not self.jobs[0].reports_mixed:
            return apart
        return [*apart, (MIXED, sum(directions[1:], directions[0]))]

    @property
    def counts(self) -> list[int]:
        """Completed reads, writes, trims and syncs; as in fio those of fdatasync do not count."""
        *requests, syncs = (each.count for each in self.directions)
        return [*requests, syncs - self.data_syncs]

    @property
    def depth(self) -> int:
        """Queue depth at the end; with latency_target, the result of the search."""
        return int(self.depths[-1][NOW])

    @property
    def error(self) -> int:
        """Exit status as in fio: 0 or an errno."""
        if any(each.broken for each in self.checked):
            return IO_ERROR
        return TIMED_OUT if any(each[BROKE_NS] for each in self.depths) else 0

    def __add__(self, other: JobResult) -> JobResult:
        """Return the merged results of both."""
        return JobResult(
            self.jobs + other.jobs,
            [a + b for a, b in zip(self.directions, other.directions)],
            self.coarse + other.coarse,
            self.levels + other.levels,
            min(self.begin_ns, other.begin_ns),
            max(self.end_ns, other.end_ns),
            self.data_syncs + other.data_syncs,
            merged_ns=max(self.span_ns, other.span_ns),
            written_ns=max(self.written_ns, other.written_ns),
            read_back_ns=max(self.read_back_ns, other.read_back_ns),
            depths=self.depths + other.depths,
            checked=self.checked + other.checked,
        )


@dataclass(frozen=True)
class FioResult:
    """Results of all jobs, with notes about them."""

    jobs: list[Job]
    of_jobs: list[JobResult]  # one per process, in order
    reported: list[JobResult]  # merged by group_reporting
    written: Written
    machine: str
    notes: list[str]
    end_ns: int
    counters: Mapping[str, Ints] = field(default_factory=dict)  # of the cache, over `time_ns`

    def frame(self) -> DataFrame:
        """Return a pandas frame: a row per job and direction that has requests.

        Columns: `job`, `direction` (read, write, trim; mixed), `requests`, `iops`, `bytes_per_s`,
        `mean_ns`, `p50_ns`, `p99_ns` and `max_ns` of the latency, `span_ns` that the job took.
        Needs pandas (`hybridsim[notebooks]`).
        """
        return frame_of(
            {
                "job": each.jobs[0].name, "direction": name, "requests": one.count,
                "iops": one.count * SECOND / each.span_of(name),
                "bytes_per_s": one.moved_bytes * SECOND / each.span_of(name),
                "mean_ns": one.mean_ns, "p50_ns": one.latency.percentile(50),
                "p99_ns": one.latency.percentile(99), "max_ns": one.latency.percentile(100),
                "span_ns": each.span_of(name),
            }
            for each, name, one in self._measured()
        )  # fmt: skip

    def over_time(self) -> DataFrame:
        """Return a pandas frame: a row per job, direction and half second of its run.

        Columns: `job`, `direction`, `time_ns` since the job began, `iops`, `bytes_per_s`.
        """
        rows: list[dict[str, Any]] = []
        for each, name, one in self._measured():
            span_ns = each.span_of(name)
            per_s = SECOND / min(one.done.width_ns, span_ns)
            sums = zip(one.done.whole(span_ns), one.moved.whole(span_ns))
            for number, (done, moved) in enumerate(sums):
                rows.append({
                    "job": each.jobs[0].name, "direction": name,
                    "time_ns": number * one.done.width_ns,
                    "iops": done * per_s, "bytes_per_s": moved * per_s,
                })  # fmt: skip
        return frame_of(rows)

    def _measured(self) -> Iterator[tuple[JobResult, str, Measured]]:
        for each in self.of_jobs:
            for name, one in zip(NAMES, each.directions):
                if one.count:
                    yield each, name, one

    def __repr__(self) -> str:
        requests = sum(one.count for _, _, one in self._measured())
        return f"<FioResult: {len(self.of_jobs)} jobs, {requests:,} requests>"


@dataclass(frozen=True)
class Moment:
    """The state of all jobs at a simulated time."""

    time_ns: int
    jobs: list[Job]
    begun_ns: Ints  # by job; negative: not yet
    over_ns: Ints
    moved_bytes: Ints  # [job, read ... trim], since the start of the measurement
    requests: Ints

    def states(self) -> list[tuple[Job, int, int]]:
        """Return each job, when it began, and when it was over; negative: not yet."""
        begun = np.where(self.begun_ns > self.time_ns, -1, self.begun_ns)  # a start delay
        return list(zip(self.jobs, begun.tolist(), self.over_ns.tolist()))


class Results:
    """The results of all jobs, accumulated from completed requests.

    `source` is the machine's: the start times and the depth search of each job are read from it.
    `feeds` know the kinds of syncs.
    """

    def __init__(self, jobs: Sequence[Job], source: Jobs, feeds: Feeds) -> None:
        coarse = np.zeros((len(jobs), len(EDGES_NS) + 1), np.int64)
        rows = zip(jobs, coarse, source.levels, source.depths.state)
        self.of_jobs = [
            JobResult([job], _directions(job), bins, levels, depths=[depths])
            for job, bins, levels, depths in rows
        ]
        self._feeds = feeds
        self._start_ns = source.standing[:, START_NS]
        self._over_ns = source.standing[:, OVER_NS]
        self._measured_ns = np.zeros(len(jobs), np.int64)

    def moment(self, time_ns: int, begin_ns: int) -> Moment:
        """Return the state of all jobs; times count from `begin_ns`."""
        directions = [result.directions[:SYNC] for result in self.of_jobs]
        return Moment(
            time_ns - begin_ns,
            [result.jobs[0] for result in self.of_jobs],
            np.where(self._start_ns < 0, -1, self._start_ns - begin_ns),
            np.where(self._over_ns < 0, -1, self._over_ns - begin_ns),
            np.array([[each.moved_bytes for each in job] for job in directions], np.int64),
            np.array([[each.count for each in job] for job in directions], np.int64),
        )

    def add(self, facts: Facts) -> None:
        """Add completed requests."""
        orders, owner = np.divmod(facts.number, len(self.of_jobs))
        rows = np.stack([facts.done_ns, facts.issue_ns, facts.op, facts.length, orders])
        for number, result in enumerate(self.of_jobs):
            done_ns, issue_ns, kind, length, order = rows[:, owner == number]
            latency_ns = done_ns - issue_ns
            job = result.jobs[0]
            start_ns = int(self._start_ns[number])
            ramped_ns = start_ns + job.ramp_ns
            measured_ns = int(result.depths[0][MEASURED_NS])
            if measured_ns > self._measured_ns[number]:
                self._measured_ns[number] = measured_ns
                result.forget()
            begin_ns = max(ramped_ns, measured_ns)
            if job.iolog:
                result.issued.append(np.stack([order, issue_ns - start_ns]))
            kept = done_ns >= ramped_ns
            if job.logs:
                columns = (done_ns - ramped_ns, latency_ns, kind, length, order)
                result.log.append(np.stack(columns)[:, kept])
            syncs = kind == SYNC
            if syncs.any():
                kind[syncs] = self._feeds[number].kinds_of_syncs(order[syncs])
            kept &= issue_ns >= measured_ns
            if not kept.any():
                continue
            done_ns, latency_ns, length, kind = (
                column[kept] for column in (done_ns, latency_ns, length, kind)
            )
            result.data_syncs += int(np.count_nonzero(kind == DATA_SYNC))
            kind[kind == DATA_SYNC] = SYNC
            for direction, measured in enumerate(result.directions):
                chosen = kind == direction
                measured.add(latency_ns[chosen], done_ns[chosen] - begin_ns, length[chosen])
            coarse = np.searchsorted(EDGES_NS, latency_ns[kind < SYNC])
            result.coarse += np.bincount(coarse, minlength=len(EDGES_NS) + 1)
            if job.pattern.reads_back_alone:
                result.add_passes(begin_ns, done_ns, kind == READ)
            result.begin_ns = begin_ns
            result.end_ns = max(result.end_ns, int(done_ns[-1]))

    def end(self) -> None:
        """Let the measurements of jobs that are over end with them: a pause may follow the last."""
        for result, over_ns in zip(self.of_jobs, self._over_ns.tolist()):
            if result.end_ns:
                result.end_ns = max(result.end_ns, over_ns)

    def reported(self) -> list[JobResult]:
        """Return the results, merged by group_reporting."""
        merged: dict[int, JobResult] = {}
        for result in self.of_jobs:
            key = result.jobs[0].reported_with
            merged[key] = merged[key] + result if key in merged else result
        return list(merged.values())


def _directions(job: Job) -> list[Measured]:
    return [
        Measured(done=Windows(job.iops_window_ns), moved=Windows(job.rate_window_ns))
        for _ in range(4)
    ]


def endings(result: JobResult) -> Iterator[str]:
    """Yield at most one message about one process of a job: none if no limit ended it."""
    (job,), (state,) = result.jobs, result.depths
    if result.checked and result.checked[0].broken:
        yield f"job {job.name} ended: {result.checked[0].broken}"
    depth = int(state[NOW])
    if state[BROKE_NS]:
        took, limit = human_time(int(state[BROKE_NS])), format_time(int(state[BROKEN_NS]))
        which = "latency_target" if state[BROKEN_NS] == job.target_ns else "max_latency"
        where = ", at depth 1: no depth meets the target" if which == "latency_target" else ""
        kind = NAMES[int(state[BROKE_OP])]
        yield f"job {job.name} ended: a {kind} took {took}, more than {which}={limit}{where}"
    elif job.target_ns and not job.keeps_on:
        met = f"{job.percent:g}% within latency_target={format_time(job.target_ns)}"
        if state[IS_DONE]:
            limit = f"not at {state[HIGHEST]}" if depth < state[HIGHEST] else "the job's iodepth"
            yield f"job {job.name}: {met} up to depth {depth}, {limit}"
        elif depth == 1 and state[LATE] * WHOLE > state[JUDGED] * (WHOLE - job.share):
            yield f"job {job.name}: {met} is not met even at depth 1"
        else:
            yield (
                f"job {job.name} ended at depth {depth} before the search for the largest "
                f"depth with {met} was complete: use time_based with a longer runtime, or a "
                "shorter latency_window"
            )
