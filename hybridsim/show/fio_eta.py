"""The line that fio shows while jobs run (--eta), for simulated time."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.show.fio_text import short
from hybridsim.workloads.fio.job import SECOND, Job
from hybridsim.workloads.fio.pattern import READ, TRIM, WRITE
from hybridsim.workloads.fio.results import Moment

LETTERS = {READ: "r", WRITE: "w", TRIM: "d"}  # of one direction; capital: sequential
MIXED, DONE, NOT_BEGUN = "m", "_", "P"
UNKNOWN = -1


class Eta:
    """The lines of one run; rates are those since the line before."""

    def __init__(self, newline_ns: int = 0) -> None:
        self._newline_ns = newline_ns
        self._line_ns = 0  # time of the last line that stays
        self._last_ns = 0
        self._bytes: Ints = np.zeros(3, np.int64)
        self._requests: Ints = np.zeros(3, np.int64)

    def line(self, moment: Moment) -> str:
        """Return the line with its end: as in fio a return, or each --eta-newline a new line."""
        states = [_state(job, begun, over) for job, begun, over in moment.states()]
        running = [state not in (DONE, NOT_BEGUN) for state in states]
        files = sum(len(job.files) for job, is_on in zip(moment.jobs, running) if is_on)
        text = f"Jobs: {sum(running)} (f={files}){_limits(moment, running)}"
        left_ns = _left_ns(moment)
        if any(running) and left_ns != UNKNOWN:
            text += f": [{_compressed(states)}]{_percent(moment.time_ns, left_ns)}"
            text += f"{self._rates(moment)}[eta {_time(left_ns)}]"
        self._bytes, self._requests = moment.moved_bytes.sum(0), moment.requests.sum(0)
        self._last_ns = moment.time_ns
        is_line = self._newline_ns and moment.time_ns - self._line_ns >= self._newline_ns
        if is_line:
            self._line_ns = moment.time_ns
        return text + ("\n" if is_line else "\r")

    def _rates(self, moment: Moment) -> str:
        seconds = max(moment.time_ns - self._last_ns, 1) / SECOND
        # A new measurement (ramp_time, latency_target) starts at 0.
        moved = np.maximum(moment.moved_bytes.sum(0) - self._bytes, 0) / seconds
        done = np.maximum(moment.requests.sum(0) - self._requests, 0) / seconds
        kinds = [kind for kind in (READ, WRITE, TRIM) if moment.requests[:, kind].any()]
        if not kinds:
            return ""
        names = {READ: "r", WRITE: "w", TRIM: "t"}
        bandwidths = ",".join(f"{names[kind]}={short(moved[kind], 1024)}B/s" for kind in kinds)
        rates = ",".join(f"{names[kind]}={short(done[kind], 1000)}" for kind in kinds)
        return f"[{bandwidths}][{rates} IOPS]"


def _state(job: Job, begun_ns: int, over_ns: int) -> str:
    if begun_ns < 0:
        return NOT_BEGUN
    if over_ns >= 0:
        return DONE
    directions = job.pattern.directions
    is_mixed = len(directions) > 1 and not job.pattern.writes_what_it_trims
    letter = MIXED if is_mixed else LETTERS[directions[0]]
    return letter if job.pattern.is_random else letter.upper()


def _compressed(states: list[str]) -> str:
    return ",".join(f"{state}({len(list(each))})" for state, each in groupby(states))


def _limits(moment: Moment, running: list[bool]) -> str:
    jobs = [job for job, is_on in zip(moment.jobs, running) if is_on]
    least = sum(sum(job.floor.bytes_per_s) for job in jobs)
    most = sum(sum(job.bytes_per_s) for job in jobs)
    if least or most:
        return f", {short(least, 1024)}-{short(most, 1024)}B/s"
    fewest = sum(sum(job.floor.requests_per_s) for job in jobs)
    limit = sum(sum(job.requests_per_s) for job in jobs)
    return f", {fewest}-{limit} IOPS" if fewest or limit else ""


def _left_ns(moment: Moment) -> int:
    """Return how long the jobs still take, by their runtime or the bytes that they have left."""
    left: list[int] = []
    for number, (job, begun_ns, over_ns) in enumerate(moment.states()):
        if over_ns >= 0:
            continue
        spent_ns = max(moment.time_ns - begun_ns, 0) if begun_ns >= 0 else 0
        known: list[int] = []
        if job.run_ns:
            known.append(max(job.ramp_ns + job.run_ns - spent_ns, 0))
        total = job.pattern.pass_bytes * job.pattern.passes
        moved = int(moment.moved_bytes[number].sum())
        if not job.pattern.is_endless and total and moved:
            known.append(max(spent_ns * (total - moved) // moved, 0))
        if known:
            left.append(min(known))
    return max(left, default=UNKNOWN)


def _percent(time_ns: int, left_ns: int) -> str:
    return f"[{100 * time_ns / max(time_ns + left_ns, 1):.1f}%]"


def _time(left_ns: int) -> str:
    seconds = round(left_ns / SECOND)
    days, hours = seconds // 86400, seconds // 3600 % 24
    text = f"{days:02}d:" if days else ""
    text += f"{hours:02}h:" if days or hours else ""
    return f"{text}{seconds // 60 % 60:02}m:{seconds % 60:02}s"
