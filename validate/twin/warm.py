"""Runs on a cache that another run has filled, was stopped and started again.

The twin does both loads, one after the other, and keeps its cache as it was in between.  A real one
writes it down and reads it back: dm-cache forgets its hotspot queue then, and counts its 60 s anew;
the twin does not.
"""

from __future__ import annotations

import re
from dataclasses import replace

from hybridsim.fio.results import FioResult
from hybridsim.measurements.gathering import settled
from hybridsim.measurements.measurement import CACHE, HIT_RATIO, SECOND, Measurement, Name
from hybridsim.report.fio_json import measurement

ASSUMED = (
    "the cache is warm from the run before, kept as it was: a real one is stopped and started, "
    "forgets its hotspot queue and counts its 60 s anew"
)
LEVELS = {"used_blocks", "dirty_blocks"}
AGAIN = " (2)"  # of a job whose name another has


def one_after_the_other(before: str, later: str, gap_s: float) -> str:
    """Return a job file of two loads, the second one so long after the end of the first."""
    first, *others = re.split(r"(?m)^(?=\[(?!global\]))", later)
    delay = f"startdelay={gap_s * 1000:.0f}ms\n"
    jobs = [each.replace("]\n", f"]\n{delay}", 1) for each in others]
    jobs[0] = jobs[0].replace("]\n", "]\nstonewall\n", 1)
    return "\n".join([before, first, *jobs])


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
