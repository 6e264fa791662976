"""Constraints from a real run that a simulation must reproduce."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from hybridsim.requests.source import NEVER
from hybridsim.workloads.fio.arrivals import Pace
from hybridsim.workloads.fio.job import Job, jobs_of
from hybridsim.workloads.fio.jobfile import Written


@dataclass(frozen=True)
class RealRun:
    """Age of the cache, pace, and later load of a real run; times in ns."""

    lead_ns: int = 0  # age of the cache at the start of the jobs, the origin of all times
    paces: Sequence[Pace] = ()  # upper limits: one per process, of both loads
    later: Written | None = None  # jobs of a second fio on the same cache
    gap_ns: int = 0  # from the end of the jobs to the start of those
    reload_ns: int = NEVER  # time of a stop and restart of the cache in between

    def jobs(self, written: Written) -> list[Job]:
        """Return the jobs followed by those of the later fio, in later groups."""
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


SIMULATED = RealRun()  # no constraints


def again(job: Job, run: int, once: Sequence[Job]) -> Job:
    """Return the copy of a job for a repeated run, in groups after those of all earlier runs."""
    groups = once[-1].group + 1
    reported = max(abs(each.reported_with) for each in once) + 1
    sections = max(each.section for each in once) + 1
    sign = 1 if job.reported_with >= 0 else -1
    return replace(
        job,
        group=job.group + run * groups,
        kin=job.kin + run * (max(each.kin for each in once) + 1),
        section=job.section + run * sections,
        waits_for=job.waits_for + run * sections if job.waits_for >= 0 else -1,
        flow=job.flow + run * (max(each.flow for each in once) + 1),
        reported_with=job.reported_with + sign * run * reported,
    )
