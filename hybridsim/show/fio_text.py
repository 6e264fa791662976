"""Results of jobs as text, in the layout of fio 3.33, and its line while jobs run (--eta)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.version import __version__
from hybridsim.show.fio_json import DEPTHS, FORM, coarse, percentiles, shares
from hybridsim.workloads.fio.conditions import Progress
from hybridsim.workloads.fio.job import SECOND, Job
from hybridsim.workloads.fio.pattern import READ, SYNC, TRIM, WRITE
from hybridsim.workloads.fio.results import (
    MIXED,
    NAMES,
    FioResult,
    JobResult,
    Measured,
    Moment,
)

BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi")
DECIMAL = ("", "k", "M", "G", "T", "P")
UNITS = {"nsec": 1, "usec": 10**3, "msec": 10**6}
LETTERS = {READ: "r", WRITE: "w", TRIM: "d"}  # of one direction; capital: sequential
MIX, DONE, NOT_BEGUN = "m", "_", "P"
UNKNOWN = -1


def text(result: FioResult) -> str:
    """Return the report."""
    return heading(result.jobs) + results(result)


def heading(jobs: Sequence[Job]) -> str:
    """Return the first lines: the jobs."""
    return "\n".join([*_heading(jobs), "", ""])


def results(result: FioResult) -> str:
    """Return the report without its heading."""
    lines: list[str] = []
    for each in result.reported:
        lines += _job(each)
    lines += _groups(result)
    lines += ["", f"machine: {result.machine}"]
    lines += [f"note: {note}" for note in result.notes]
    return "\n".join(lines) + "\n"


def short(number: float, base: int, figures: int = 4) -> str:
    """Return a number with its prefix, rounded to a few digits: 8704, 23.4k, 91.6Mi."""
    prefixes = BINARY if base == 1024 else DECIMAL
    rank = 0
    while round(number) >= 10**figures and rank + 1 < len(prefixes):
        number, rank = number / base, rank + 1
    digits = 0 if rank == 0 else max(0, figures - 1 - len(str(int(number))))
    return f"{number:.{digits}f}{prefixes[rank]}"


def _both(rate: float) -> str:
    return f"{short(rate, 1024)}B/s ({short(rate, 1000)}B/s)"


def _heading(jobs: Sequence[Job]) -> Iterator[str]:
    seen: list[Job] = []
    for job in jobs:
        if seen and (job.name, job.kin) == (seen[-1].name, seen[-1].kin):
            if len(seen) < 2 or seen[-2].name != job.name:
                yield "..."
        else:
            sizes = ", ".join(
                f"({letter}) {short(each.minimum, 1024)}B-{short(each.maximum, 1024)}B"
                for letter, each in zip("RWT", job.pattern.sizes)
            )
            engine = job.specified.get("ioengine", "psync")
            yield (
                f"{job.name}: (g={job.kin}): rw={job.specified.get('rw', 'read')}, bs={sizes}, "
                f"ioengine={engine}, iodepth={job.depth}"
            )
        seen.append(job)
    yield f"hybridsim-{__version__}, simulated; output format of {FORM}"
    yield f"Starting {len(jobs)} process{'es' if len(jobs) > 1 else ''}"


def _job(result: JobResult) -> Iterator[str]:
    job = result.jobs[0]
    error = "err= 0"
    if result.error:
        error = f"err={result.error} (func=max latency exceeded, error=Connection timed out)"
    yield f"{job.name}: (groupid={job.kin}, jobs={len(result.jobs)}): {error}: pid=0: simulated"
    for name, measured in result.reported:
        if measured.count:
            yield from _direction(name, measured, result, job)
    yield from _coarse(result)
    syncs = result.directions[SYNC]
    if syncs.count:
        yield "  fsync/fdatasync/sync_file_range:"
        yield f"    sync {_moments(syncs)}"
        yield from _percentiles("sync", syncs, job)
    depths = ", ".join(f"{name}={share:.1f}%" for name, share in zip(DEPTHS, shares(result.levels)))
    yield f"  IO depths    : {depths}"
    one_by_one = "0=0.0%, 4=100.0%, 8=0.0%, 16=0.0%, 32=0.0%, 64=0.0%, >=64=0.0%"
    yield f"     submit    : {one_by_one}"
    yield f"     complete  : {one_by_one}"
    counts = ",".join(map(str, result.counts))
    yield f"     issued rwts: total={counts} short=0,0,0,0 dropped=0,0,0,0"
    target = f"target={job.target_ns}, window={job.window_ns // 1000}"
    yield f"     latency   : {target}, percentile={job.percent:.2f}%, depth={result.depth}"
    if job.steady.of:
        yield _steady(result.checked[0])


def _steady(progress: Progress) -> str:
    """Return the line of steadystate."""
    steady = progress.steady
    iops, bandwidth = (sum(each) / steady.seconds for each in progress.last)
    what = " slope" if steady.is_slope else " mean dev"
    return (
        f"  steadystate  : attained={'yes' if progress.is_attained else 'no'}, "
        f"bw={_both(bandwidth)}, iops={short(iops, 1000)}, "
        f"{steady.of}{what}={progress.criterion:.3f}{'%' if steady.is_percent else ''}"
    )


def _direction(name: str, measured: Measured, result: JobResult, job: Job) -> Iterator[str]:
    seconds = result.span_of(name.strip()) / SECOND
    rate = measured.moved_bytes / seconds
    iops = short(measured.count / seconds, 1000)
    moved = f"{short(measured.moved_bytes, 1024)}B/{result.span_ms_of(name.strip())}msec"
    yield f"  {name}: IOPS={iops}, BW={_both(rate)}({moved})"
    yield f"    clat {_moments(measured)}"
    yield f"     lat {_moments(measured)}"
    yield from _percentiles("clat", measured, job)
    windows = measured.moved.whole(result.span_ns) * (SECOND / measured.moved.width_ns)
    unit, per = ("MiB/s", 2**20) if windows.mean() > 2**30 else ("KiB/s", 2**10)
    yield f"   bw (  {unit}): {_of_windows(windows / per, 'per=100.00%, ')}"
    windows = measured.done.whole(result.span_ns) * (SECOND / measured.done.width_ns)
    yield f"   iops        : {_of_windows(windows, '')}"


def _of_windows(windows, share: str) -> str:  # type: ignore[no-untyped-def]
    deviation = windows.std(ddof=1) if len(windows) > 1 else 0.0
    return (
        f"min={windows.min():5.0f}, max={windows.max():5.0f}, {share}avg={windows.mean():5.2f}, "
        f"stdev={deviation:5.2f}, samples={len(windows)}"
    )


def _unit(low: float, high: float, deviation: float) -> str:
    """Return the unit that fio would choose for times in this range, in ns."""
    if low > 2 * 10**6 and high >= 10**8 and deviation > 10**6:
        return "msec"
    return "usec" if low > 2000 and high >= 10**5 and deviation > 1000 else "nsec"


def _moments(measured: Measured) -> str:
    unit = _unit(measured.min_ns, measured.latency.max_ns, measured.deviation_ns)
    per = UNITS[unit]
    low, high = measured.min_ns // per, measured.latency.max_ns // per
    return (
        f"({unit}): min={short(low, 1000, 6)}, max={short(high, 1000, 6)}, "
        f"avg={measured.mean_ns / per:5.2f}, stdev={measured.deviation_ns / per:5.2f}"
    )


def _percentiles(what: str, measured: Measured, job: Job) -> Iterator[str]:
    values = percentiles(measured, job)
    unit = _unit(min(values.values()), max(values.values()), float("inf"))
    yield f"    {what} percentiles ({unit}):"
    rounded = {percent: -(-value // UNITS[unit]) for percent, value in values.items()}  # up
    given = job.specified.get("percentile_list")  # fio's own have two decimals
    decimals = 2 if given is None else max(len(p.partition(".")[2]) for p in given.split(":"))
    width = max(5, *(len(str(value)) for value in rounded.values()))
    result = [
        f"{percent:{decimals + 3}.{decimals}f}th=[{value:{width}d}]"
        for percent, value in rounded.items()
    ]
    per_line = (80 - 7) // (decimals + 10 + width)
    for begin in range(0, len(result), per_line):
        comma = "," if begin + per_line < len(result) else ""
        yield f"     | {', '.join(result[begin : begin + per_line])}{comma}"


def _coarse(result: JobResult) -> Iterator[str]:
    for unit, bins in coarse(result).items():
        used = [f"{edge}={share:.2f}%" for edge, share in bins.items() if share]
        for begin in range(0, len(used), 5):
            yield f"  lat ({unit}ec)   : {', '.join(used[begin : begin + 5])}"


def _groups(result: FioResult) -> Iterator[str]:
    for group in sorted({job.kin for job in result.jobs}):
        yield ""
        yield f"Run status group {group} (all jobs):"
        members = [each for each in result.of_jobs if each.jobs[0].kin == group]
        for wanted in (*NAMES, MIXED):
            pairs = [
                (each, part.moved_bytes)
                for each in members
                for name, part in each.reported
                if name == wanted and part.count
            ]
            if not pairs:
                continue
            moved = sum(part for _, part in pairs)
            span = max(each.span_of(wanted) for each, _ in pairs)  # as in fio, without their delays
            rates = [part * SECOND / each.span_of(wanted) for each, part in pairs]
            spans = [each.span_ms_of(wanted) for each, _ in pairs]
            low, high = min(rates), max(rates)
            yield (
                f"{wanted.upper():>7}: bw={_both(moved * SECOND / span)}, "
                f"{short(low, 1024)}B/s-{short(high, 1024)}B/s "
                f"({short(low, 1000)}B/s-{short(high, 1000)}B/s), "
                f"io={short(moved, 1024)}B ({short(moved, 1000)}B), "
                f"run={min(spans)}-{max(spans)}msec"
            )


# --eta, for simulated time.


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
            grouped = ",".join(f"{state}({len(list(each))})" for state, each in groupby(states))
            share = 100 * moment.time_ns / max(moment.time_ns + left_ns, 1)
            text += f": [{grouped}][{share:.1f}%]{self._rates(moment)}[eta {_time(left_ns)}]"
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
    letter = MIX if is_mixed else LETTERS[directions[0]]
    return letter if job.pattern.is_random else letter.upper()


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
            known.append(max(job.run_ns - spent_ns, 0))
        total = job.pattern.pass_bytes * job.pattern.passes
        moved = int(moment.moved_bytes[number].sum())
        if not job.pattern.is_endless and total and moved:
            known.append(max(spent_ns * (total - moved) // moved, 0))
        if known:
            left.append(min(known))
    return max(left, default=UNKNOWN)


def _time(left_ns: int) -> str:
    seconds = round(left_ns / SECOND)
    days, hours = seconds // 86400, seconds // 3600 % 24
    text = f"{days:02}d:" if days else ""
    text += f"{hours:02}h:" if days or hours else ""
    return f"{text}{seconds // 60 % 60:02}m:{seconds % 60:02}s"
