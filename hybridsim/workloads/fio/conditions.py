"""rate_min, rate_iops_min and steadystate: conditions on a job's rates that end it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from hybridsim.requests.inflight import Facts
from hybridsim.requests.jobs import IS_DONE, IS_OVER, NOT_YET, START_NS, Jobs
from hybridsim.requests.source import NEVER
from hybridsim.workloads.fio.options import Reader, Three, decimal, option, size

if TYPE_CHECKING:
    from hybridsim.workloads.fio.job import Job

SECOND, MILLISECOND = 10**9, 10**6


@dataclass(frozen=True)
class Floor:
    """Minimum rates of reads, writes and trims; 0: none."""

    bytes_per_s: Three = option(lambda it: it.three("rate_min", size, 0))
    requests_per_s: Three = option(lambda it: it.three("rate_iops_min", size, 0))
    cycle_ns: int = option(lambda it: it.time("rate_cycle", MILLISECOND) or SECOND)

    @property
    def is_set(self) -> bool:
        """Whether any rate has a minimum."""
        return any(self.bytes_per_s) or any(self.requests_per_s)


@dataclass(frozen=True)
class Steady:
    """A criterion of a steady state: the job ends when it is met."""

    of: str = ""  # iops or bw
    is_slope: bool = False  # else the largest deviation from the mean
    limit: float = 0.0
    is_percent: bool = False
    seconds: int = 0  # that are considered; 0: no criterion
    ramp_ns: int = 0


def steady_of(reader: Reader) -> Steady:
    """Return steadystate, its duration and its ramp time."""

    def parse(text: str) -> Steady:
        name, _, limit = text.partition(":")
        of, _, slope = name.partition("_")
        if of not in ("iops", "bw") or slope not in ("", "slope") or not limit:
            names = "iops:, bw:, iops_slope: or bw_slope: and a limit, for example iops:5%"
            raise ValueError(f"{text}: expected {names}")
        is_percent = limit.endswith("%")
        value = decimal(limit[:-1]) if is_percent else float(size(limit))
        return Steady(of, bool(slope), value, is_percent)

    steady = reader.read("steadystate", parse, Steady())
    seconds = reader.time("steadystate_duration", SECOND) // SECOND
    if not steady.of or not seconds:
        return Steady()
    ramp_ns = reader.time("steadystate_ramp_time", SECOND)
    return replace(steady, seconds=seconds, ramp_ns=ramp_ns)


def criterion(steady: Steady, values: Sequence[float]) -> float:
    """Return the slope per second of values of one second each, or their largest deviation."""
    y = np.asarray(values, np.float64)
    mean = float(y.mean())
    if steady.is_slope:
        x = np.arange(len(y)) - (len(y) - 1) / 2
        result = float((x * (y - mean)).sum() / (x * x).sum()) if len(y) > 1 else 0.0
    else:
        result = float(np.abs(y - mean).max())
    if steady.is_percent:
        return 100 * result / mean if mean else float("inf")
    return result


NAMES = ("read", "write", "trim")
SETTLE_NS = 2 * SECOND  # as in fio, no minimum rate is checked earlier


@dataclass
class Progress:
    """What the monitor knows of one job: totals of completed requests at its last checks."""

    steady: Steady = Steady()
    prev_ns: int = NOT_YET
    iops: list[float] = field(default_factory=list)  # of each second, of the job or its group
    bandwidth: list[float] = field(default_factory=list)  # bytes/s
    is_attained: bool = False
    criterion: float = 0.0
    broken: str = ""  # the minimum rate that was not reached, and the rate
    floor_ns: int = NOT_YET  # time of the last check of minimum rates

    @property
    def last(self) -> tuple[list[float], list[float]]:
        """IOPS and bytes/s of the last seconds that count."""
        return self.iops[-self.steady.seconds :], self.bandwidth[-self.steady.seconds :]


class Monitor:
    """Checks the conditions of all jobs each second and ends those that meet them."""

    def __init__(self, jobs: Sequence[Job], source: Jobs, begin_ns: int = 0) -> None:
        self._jobs = jobs
        self._source = source
        self.of_jobs = [Progress(job.steady) for job in jobs]
        # Requests and bytes: so far, and at the last check, of all and of minimum rates.
        self._totals = np.zeros((2, len(jobs), len(NAMES)), np.int64)
        self._seen = [[0, 0]] * len(jobs)
        self._base = self._totals.copy()
        is_used = any(job.floor.is_set or job.steady.of for job in jobs)
        self.due_ns = begin_ns + SECOND if is_used else NEVER

    def add(self, facts: Facts) -> None:
        """Count completed requests."""
        if self.due_ns == NEVER:
            return
        data = facts.op < len(NAMES)
        at = facts.number[data] % len(self._jobs), facts.op[data]
        np.add.at(self._totals[0], at, 1)
        np.add.at(self._totals[1], at, facts.length[data])

    def check(self, now_ns: int) -> None:
        """Check all jobs; the next check is a second later."""
        self.due_ns = now_ns + SECOND
        rates: dict[int, tuple[float, float]] = {}
        standing = self._source.standing
        going = [
            number
            for number in range(len(self._jobs))
            if NOT_YET != standing[number, START_NS] <= now_ns and standing[number, IS_OVER] == 0
        ]
        for number in going:
            job, progress = self._jobs[number], self.of_jobs[number]
            if job.floor.is_set and not progress.broken:
                self._check_floor(now_ns, number)
            if not job.steady.of or progress.is_attained:
                continue
            start_ns = int(standing[number, START_NS])
            since_ns = max(now_ns - max(progress.prev_ns, start_ns), 1)
            progress.prev_ns = now_ns
            now = self._totals[:, number].sum(axis=1).tolist()
            before, self._seen[number] = self._seen[number], now
            if job.steady.ramp_ns and now_ns < start_ns + job.steady.ramp_ns + SECOND:
                continue
            iops, bandwidth = ((new - old) * SECOND / since_ns for new, old in zip(now, before))
            sums = rates.get(job.reported_with, (0.0, 0.0))
            rates[job.reported_with] = (sums[0] + iops, sums[1] + bandwidth)
        for group, (iops, bandwidth) in rates.items():
            members = [n for n in going if self._jobs[n].reported_with == group]
            for number in members:
                progress = self.of_jobs[number]
                progress.iops.append(iops)
                progress.bandwidth.append(bandwidth)
            steady, progress = self._jobs[members[0]].steady, self.of_jobs[members[0]]
            if len(progress.iops) >= steady.seconds:
                values = progress.last[0 if steady.of == "iops" else 1]
                progress.criterion = criterion(steady, values)
                if abs(progress.criterion) < steady.limit:
                    for number in members:
                        self.of_jobs[number].is_attained = True
                        self._end(number)

    def _check_floor(self, now_ns: int, number: int) -> None:
        job, progress = self._jobs[number], self.of_jobs[number]
        start_ns = int(self._source.standing[number, START_NS])
        since_ns = progress.floor_ns
        is_due = since_ns == NOT_YET or now_ns - since_ns >= job.floor.cycle_ns
        if now_ns < start_ns + SETTLE_NS or not is_due:
            return
        now = self._totals[:, number].copy()
        grown = now - self._base[:, number]
        self._base[:, number] = now
        progress.floor_ns = now_ns
        if since_ns == NOT_YET:
            return
        for direction in np.flatnonzero(now[0]).tolist():
            iops, moved = (
                each * SECOND // (now_ns - since_ns) for each in grown[:, direction].tolist()
            )
            floor = job.floor.bytes_per_s[direction]
            if moved < floor:
                progress.broken = f"rate_min={floor}B/s not met, got {moved}B/s"
            floor = job.floor.requests_per_s[direction]
            if iops < floor:
                progress.broken = f"rate_iops_min={floor} not met, got {iops} IOPS"
        if progress.broken:
            self._end(number)

    def _end(self, number: int) -> None:
        """End a job; at most one request that is already scheduled follows."""
        self._source.depths.state[number, IS_DONE] = 1
        self._source.retry(number)
