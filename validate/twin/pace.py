"""The pace of a real run, from its own logs: completed requests over time.

A busy host slows a run down at times, and a cache with fewer requests fills more slowly.  So the
counters of a cache are compared with a twin at the run's own pace, and its speed in closed loop.

The pace is a limit, so a twin that must not be ahead of it at all is behind it on average, and its
requests come evenly spaced, which those of a closed loop do not: the hottest page of a Zipf load
has pauses then that it never had.  The log does not say where in a window a request completed, so
the twin may be ahead by half a window.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hybridsim.answers.measurements import fio_log
from hybridsim.answers.measurements.measurement import SECOND, Curve
from hybridsim.foundation.arrays import Ints
from hybridsim.workloads.fio.job import Job
from hybridsim.workloads.fio.requests import Pace
from validate import layout


def paces(folder: Path, jobs: Sequence[Job]) -> list[Pace]:
    """Return the pace of each process; an empty list if a log is missing."""
    result = []
    for number, _ in enumerate(jobs, 1):
        path = folder / f"{layout.FIO_LOGS}_iops.{number}.log"
        if not path.exists():
            return []
        curves = fio_log.read(str(path), path.read_text(encoding="utf-8")).curves.values()
        result.append(completed(list(curves)))
    return result


def completed(curves: Sequence[Curve]) -> Pace:
    """Return the number of completed requests over time, of all directions together."""
    ends: Ints = np.unique(np.concatenate([np.append(0, each.end_ns) for each in curves]))
    done = np.zeros(len(ends))
    for each in curves:
        sums = np.cumsum(each.value * (each.end_ns - each.start_ns)) / SECOND
        done += np.interp(ends, np.append(0, each.end_ns), np.append(0, sums))
    rising = np.append(True, np.diff(done) > 0)
    return Pace(ends[rising], np.rint(done[rising]).astype(np.int64))


def loosened(pace: Pace) -> Pace:
    """Return a pace that allows each request half a window of its log earlier.

    What the real run did not get to does not come before the end of its log either.
    """
    windows = np.diff(pace.time_ns)
    ahead_ns = int(np.median(windows)) // 2 if len(windows) else 0
    earlier_ns = np.maximum(pace.time_ns - ahead_ns, 0)
    return Pace(np.append(earlier_ns, pace.time_ns[-1]), np.append(pace.done, pace.done[-1] + 1))


def together(jobs: Sequence[Job], logged: Sequence[Pace]) -> Pace:
    """Return the pace of all processes that start together or after their startdelay.

    Those that wait for others start at an unknown time: the pace ends when the first group does.
    """
    first = [
        Pace(pace.time_ns + job.delay_ns, pace.done)
        for job, pace in zip(jobs, logged, strict=True)
        if job.group == jobs[0].group and job.after < 0
    ]
    times: Ints = np.unique(np.concatenate([each.time_ns for each in first]))
    done = np.zeros(len(times), np.int64)
    for each in first:
        done += np.interp(times, each.time_ns, each.done).astype(np.int64)
    return Pace(times, done)
