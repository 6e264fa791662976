"""Runs on a cache that another run has filled, was stopped and started again.

The twin does both loads, one after the other.  Its dm-cache is stopped and started in between, when
the real one was: it forgets its hotspot queue then, and counts its 60 s anew.  Other kinds stay as
they were.
"""

from __future__ import annotations

from dataclasses import replace

from hybridsim.answers.measurements.gathering import settled
from hybridsim.answers.measurements.measurement import CACHE, HIT_RATIO, SECOND, Measurement, Name
from hybridsim.show.fio_json import measurement
from hybridsim.workloads.fio.job import jobs_of
from hybridsim.workloads.fio.results import FioResult
from validate.twin.jobs import written

RELOADED = "the cache is warm from the run before, stopped and started when the real one was"
KEPT = "the cache is warm from the run before, kept as it was: a real one is stopped and started"
LEVELS = {"used_blocks", "dirty_blocks"}
AGAIN = " (2)"  # of a job whose name another has


def length_s(job: str) -> float:
    """Return for how long a load runs by itself, which is not how long fio does."""
    return max(one.delay_ns + one.ramp_ns + one.run_ns for one in jobs_of(written(job))) / SECOND


def second_load(result: FioResult, lead_ns: int, name: str) -> Measurement:
    """Return what the second load measured; times count from its first request."""
    whole = measurement(result, name)
    begins = [each.begin_ns for each in result.of_jobs]
    later = begins[len(begins) // 2 :]
    whole.begin_s = (min(later) - lead_ns) / SECOND
    whole.levels = set(LEVELS)
    first = [job for job in whole.jobs if not job.endswith(AGAIN)]
    whole.figures = {at: each for at, each in whole.figures.items() if _is_kept(at, first)}
    whole.curves = {at: each for at, each in whole.curves.items() if _is_kept(at, first)}
    whole.latencies = {at: each for at, each in whole.latencies.items() if _is_kept(at, first)}
    whole.jobs = [job for job in whole.jobs if job.endswith(AGAIN)]
    for job in list(whole.jobs):
        whole.rename(job, job.removesuffix(AGAIN))
    return settled(replace(whole))


def _is_kept(name: Name, first: list[str]) -> bool:
    return name.job not in first and (name.what, name.measure) != (CACHE, HIT_RATIO)
