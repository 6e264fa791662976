"""Find the time of a load's first request, on the clock of the samples.

The file with the start time of fio is too early: a program needs tenths of a second to load, in an
emulated guest whole seconds.  The times in fio's own log count from its first request, and the
cache (or /proc/diskstats of its device) counts requests by uptime.  The shift with the smallest
distance between both is the time that fio needed to start.  The log of each job counts from the
start of that job, after its startdelay.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hybridsim.answers.measurements import gather
from hybridsim.answers.measurements.measurement import SECOND
from hybridsim.foundation.arrays import Floats
from hybridsim.workloads.fio.requests import Pace
from validate.twin.pace import paces, together
from validate.twin.record import Record

STEP_S = 0.01
READS_DONE, WRITES_DONE = 3, 7  # fields of a line of /proc/diskstats
COUNTED = ("read_hits", "read_misses", "write_hits", "write_misses")
DISKSTATS, STATUS, STARTED = "diskstats.log", "dmcache-status.log", "workload-start-uptime.txt"


def begin_s(record: Record) -> float | None:
    """Return the uptime in seconds of the first request; None if the start time is missing."""
    folder, jobs = record.folder, record.jobs
    started = folder / STARTED
    if not started.exists():
        return None
    started_s = float(started.read_text().split()[0])
    counted = _counted(folder, record.cached_device)
    if counted is None:
        return started_s
    logged = paces(folder, jobs)
    if not logged:
        return started_s
    pace, (at_s, count, is_of_issued) = together(jobs, logged), counted
    ahead = sum(job.depth for job in jobs) if is_of_issued else 0
    return started_s + lateness_s(pace, at_s - started_s, count, ahead)


def lateness_s(pace: Pace, at_s: Floats, counted: Floats, ahead: int = 0) -> float:
    """Return the shift in seconds between a log of completions and samples of a counter.

    `counted` are the values of the counter at `at_s`; `ahead` is the number of requests in flight
    if it counts issued requests, else 0.  The shift lies between the last sample of 0 and the first
    greater one; it minimises the mean distance.
    """
    ends_s = pace.time_ns / SECOND
    positive = np.flatnonzero(counted > 0)
    if not len(positive):
        return 0.0
    first = positive[0]
    earliest_s = float(at_s[first - 1]) if first else 0.0
    shifts = np.arange(max(earliest_s, 0.0), max(float(at_s[first]), STEP_S), STEP_S)

    def error(shift_s: float) -> float:
        since = at_s - shift_s
        inside = (since > 1) & (since < ends_s[-1])
        if not inside.any():
            return float("inf")
        expected = np.interp(since, ends_s, pace.done) + ahead
        return float(np.abs(expected - counted)[inside].mean())

    return float(min(shifts, key=error))


def _counted(folder: Path, device: str) -> tuple[Floats, Floats, bool] | None:
    """Return uptimes, requests counted since the first one, and whether issued ones are counted.

    dm-cache counts issued requests, /proc/diskstats completed ones.
    """
    status = folder / STATUS
    if status.exists():
        measurement = gather(str(status), begin_s=0.0)
        series = [measurement.counters[name] for name in COUNTED]
        total = np.sum([each.value for each in series], axis=0)
        return series[0].time_ns / SECOND, total - total[0], True
    diskstats = folder / DISKSTATS
    if not diskstats.exists() or not device:
        return None
    rows = [line.split() for line in diskstats.read_text().splitlines()]
    mine = [row for row in rows if len(row) > WRITES_DONE + 1 and row[3] == device]
    if not mine:
        return None
    at = np.array([float(row[0]) for row in mine])
    total = np.array([int(row[1 + READS_DONE]) + int(row[1 + WRITES_DONE]) for row in mine])
    return at, total - float(total[0]), False
