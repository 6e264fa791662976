"""What a real run did that its simulated twin shall do as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hybridsim.requests.source import NEVER
from hybridsim.workloads.fio.arrivals import Pace
from hybridsim.workloads.fio.job import Job, jobs_of
from hybridsim.workloads.fio.jobfile import Written


@dataclass(frozen=True)
class RealRun:
    """How old its cache was, how fast it was, and what came after it; all times in ns."""

    lead_ns: int = 0  # age of the cache when the jobs began, from where all times count
    paces: Sequence[Pace] = ()  # one a process, of both loads: no faster than these
    later: Written | None = None  # what another fio ran on the same cache
    gap_ns: int = 0  # between the end of the jobs and the begin of those
    reload_ns: int = NEVER  # when the cache was stopped and started in between

    def jobs(self, written: Written) -> list[Job]:
        """Return the jobs, and behind them those of the later fio, which counts its own anew."""
        first = jobs_of(written)
        if self.later is None:
            return self._paced(first)
        later = [
            replace(again(job, 1, first), delay_ns=job.delay_ns + self.gap_ns)
            for job in jobs_of(self.later)
        ]
        return self._paced([*first, *later])

    def _paced(self, jobs: list[Job]) -> list[Job]:
        if not self.paces:
            return jobs
        return [replace(job, pace=pace) for job, pace in zip(jobs, self.paces, strict=True)]


SIMULATED = RealRun()  # nothing is to be as anywhere


def again(job: Job, run: int, once: Sequence[Job]) -> Job:
    """Return a job as it is in a later run: after all jobs of the runs before."""
    groups = once[-1].group + 1
    reported = max(abs(each.reported_with) for each in once) + 1
    sign = 1 if job.reported_with >= 0 else -1
    return replace(
        job,
        group=job.group + run * groups,
        reported_with=job.reported_with + sign * run * reported,
    )
