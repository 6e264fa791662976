"""Runs on a cache that was filled by another run, stopped and restarted.

The twin runs both loads, one after the other.  Its dm-cache is restarted between them at the time
of the real one: it loses its hotspot queue, and its periods of 60 s start again.  Other kinds are
not restarted.
"""

from __future__ import annotations

from dataclasses import replace

from hybridsim.answers.measurements import settled
from hybridsim.answers.measurements.measurement import CACHE, HIT_RATIO, SECOND, Measurement, Name
from hybridsim.show.fio_json import measurement
from hybridsim.workloads.fio.job import jobs_of
from hybridsim.workloads.fio.results import FioResult
from validate.twin.jobs import written

RELOADED = "the cache is warm from the previous run, and restarted at the time of the real one"
KEPT = "the cache is warm from the previous run, but not restarted as the real one is"
AGAIN = " (2)"  # suffix of a job whose name another job has


def length_s(job: str) -> float:
    """Return the duration of a load in seconds by its options; fio itself runs longer."""
    return (
        max(one.delay_ns + max(one.ramp_ns, one.run_ns) for one in jobs_of(written(job))) / SECOND
    )


def second_load(result: FioResult, lead_ns: int, name: str) -> Measurement:
    """Return the measurement of the second load; times count from its first request."""
    whole = measurement(result, name)
    begins = [each.begin_ns for each in result.of_jobs]
    later = begins[len(begins) // 2 :]
    whole.begin_s = (min(later) - lead_ns) / SECOND
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
