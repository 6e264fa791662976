"""The guide's five I/O parameters of a machine: without a cache, with an empty and a warm cache.

Sequential write and read, random write, cold random read (of data that no cache holds) and hot
random read (of a hot spot that fits into the cache), each at doubling queue depths, as jobs of fio.
All three machines serve the same requests at a depth, so that their rates are a gain.  Each is
measured twice in a row.  If the second result differs from the first by more than DRIFT and
more than chance explains, it is marked as not steady.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hybridsim.answers.outcome import SECOND
from hybridsim.foundation.documents import headed
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.in_notebooks import DataFrame, frame_of
from hybridsim.foundation.units import format_size, human_size
from hybridsim.foundation.wording import percent
from hybridsim.scenario import Scenario
from hybridsim.studies.fio import Progress, fio
from hybridsim.studies.sweep.seeds import LEVEL, estimate
from hybridsim.workloads.fio.jobfile import Written, read
from hybridsim.workloads.fio.pattern import READ, WRITE
from hybridsim.workloads.fio.results import JobResult

SCHEMA = "hybridsim.bench/1"
DRIFT = 0.05  # relative difference of two equal measurements that is still steady
STANDARD_ERRORS = 4  # of their difference that are attributed to chance
JOBS_MAX = 1000  # of a bench: each has its own random numbers
RUN_S = 120  # maximum simulated time of a job, as in the guide
SEQUENTIAL_SHARE = 10  # divisor of the number of sequential requests, which are larger
WARM_UP_TOUCHES = 64  # reads per page of the hot spot
WARM_UP_DEPTH = 32
WARM_UP_MIN, WARM_UP_MAX = 100_000, 8_000_000  # requests
HOT_BYTES = 1 << 30  # the hot spot if the size of the cache is a share
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
STATES = ("without", "cold", "warm")
Status = Callable[[str], None]


@dataclass(frozen=True)
class Parameter:
    """One of the five parameters, as a job of fio."""

    name: str
    rw: str
    is_sequential: bool = False
    is_hot: bool = False

    @property
    def direction(self) -> int:
        """The direction in which fio counts the requests."""
        return WRITE if "write" in self.rw else READ


# The order of the measurements: those that evict the hot spot come last.
PARAMETERS = (
    Parameter("hot random read", "randread", is_hot=True),
    Parameter("cold random read", "randread"),
    Parameter("sequential read", "read", is_sequential=True),
    Parameter("sequential write", "write", is_sequential=True),
    Parameter("random write", "randwrite"),
)


@dataclass(frozen=True)
class Point:
    """One parameter at one depth, in one state of the cache."""

    state: str  # one of STATES
    parameter: str
    depth: int
    iops: float
    bytes_per_s: float
    mean_ns: float
    p99_ns: int | None
    drift: float  # relative change from the first measurement to the second; 0.1 is 10% faster
    steady: bool
    iops_half: float | None = None  # half width of the 95% interval over several seeds
    requests: int = 0  # of the second measurement: fewer than planned if it took RUN_S

    @classmethod
    def of(cls, state: str, parameter: Parameter, depth: int, pair: Sequence[JobResult]) -> Point:
        """Return the point of two measurements: the figures are those of the second."""
        before, now = (
            each.directions[parameter.direction].count * SECOND / each.span_ns for each in pair
        )
        measured = pair[1].directions[parameter.direction]
        drift = now / before - 1 if before else 0.0
        allowed = max(DRIFT, STANDARD_ERRORS * _doubt(pair, parameter))
        return cls(
            state,
            parameter.name,
            depth,
            now,
            measured.moved_bytes * SECOND / pair[1].span_ns,
            measured.mean_ns,
            measured.latency.percentile(99),
            drift,
            abs(drift) <= allowed,
            requests=measured.count,
        )


@dataclass(frozen=True)
class Setting:
    """The parameters of the measurements."""

    hot_bytes: int
    block_bytes: int
    sequential_bytes: int
    depths: list[int]
    requests: int  # of each measurement
    warm_up: int  # requests
    randseed: int | None = None  # of random requests; None: 0

    @property
    def wanted(self) -> list[tuple[Parameter, int]]:
        """The parameters and depths to measure, in order."""
        return [(one, depth) for one in PARAMETERS for depth in self.depths]


@dataclass(frozen=True)
class Bench:
    """All points, and the machine."""

    machine: str
    scenario: dict[str, Any]
    setting: Setting
    points: list[Point]
    notes: list[str] = field(default_factory=list)

    def at(self, state: str, parameter: str, depth: int) -> Point | None:
        """Return a point, or None if it was not measured."""
        found = (one for one in self.points if (one.state, one.parameter) == (state, parameter))
        return next((one for one in found if one.depth == depth), None)

    def gain(self, parameter: str, depth: int) -> float | None:
        """How many times sooner the same requests are done with the warm cache; None if unknown."""
        before, after = (self.at(state, parameter, depth) for state in ("without", "warm"))
        if before is None or after is None or before.requests != after.requests or not before.iops:
            return None  # one of them was cut short: they did other requests
        return after.iops / before.iops

    def best(self, state: str, parameter: str) -> Point | None:
        """Return the point with the highest IOPS; of equals the one with the lowest depth."""
        known = [one for one in self.points if (one.state, one.parameter) == (state, parameter)]
        return max(known, key=lambda one: one.iops, default=None)

    def frame(self) -> DataFrame:
        """Return a pandas frame: a row per parameter, state of the cache and queue depth.

        Columns: `parameter`, `state` (without, cold, warm), `depth`, `iops`, `bytes_per_s`,
        `mean_ns`, `p99_ns`, `steady`, and `gain`: how many times sooner the same requests are done
        than without the cache (of state warm).  NaN where unknown.  Needs pandas
        (`hybridsim[notebooks]`).
        """
        return frame_of(
            {
                "parameter": each.parameter, "state": each.state, "depth": each.depth,
                "iops": each.iops, "bytes_per_s": each.bytes_per_s, "mean_ns": each.mean_ns,
                "p99_ns": each.p99_ns, "steady": each.steady,
                "gain": self.gain(each.parameter, each.depth) if each.state == "warm" else None,
            }
            for each in self.points
        )  # fmt: skip

    def __repr__(self) -> str:
        return f"<Bench of {self.machine}: {len(self.points)} points>"

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        return {
            **headed(SCHEMA),
            "machine": self.machine,
            "scenario": self.scenario,
            "setting": vars(self.setting),
            "points": [vars(one) for one in self.points],
            "gains": [
                {"parameter": one.name, "depth": depth, "gain": self.gain(one.name, depth)}
                for one in PARAMETERS
                for depth in self.setting.depths
                if self.at("warm", one.name, depth) is not None
            ],
            "notes": self.notes,
        }


def bench(
    scenario: Scenario | None = None,
    depths: Sequence[int] = DEPTHS,
    hot_bytes: int | None = None,
    block_bytes: int = 4096,
    sequential_bytes: int = 1 << 20,
    requests: int = 10_000,
    randseed: int | None = None,
    status: Status = lambda text: None,
    progress: Progress = lambda done, now_ns: None,
) -> Bench:
    """Measure the five parameters of a scenario's machine.

    The default hot spot is half of the cache.  A cache whose size is a share (of the data that a
    trace touches) gets twice the size of the hot spot.  Raises UsageError for invalid sizes, depths
    or numbers of requests, and ScenarioError for a hot spot that does not fit on the array.

    >>> found = bench(Scenario.default().with_options(cache="none"), depths=[1], requests=20)
    >>> found.frame()["parameter"].tolist()[:2]
    ['hot random read', 'cold random read']
    """
    scenario = scenario or Scenario.default()
    notes: list[str] = []
    has_cache = scenario.cache.kind != "none"
    _check(scenario, hot_bytes or 0, block_bytes, sequential_bytes)
    if has_cache and "%" in str(scenario.cache.size):
        hot_bytes = hot_bytes or HOT_BYTES
        scenario = scenario.with_options(cache_size=format_size(2 * hot_bytes))
        notes.append(f"the size of the cache is twice the hot spot, {scenario.cache.size}: the "
                     "scenario specifies a share of a trace, and there is no trace")  # fmt: skip
    cache_bytes = scenario.cache.pages(0) * scenario.cache.page_bytes if has_cache else 0
    hot_bytes = hot_bytes or cache_bytes // 2 or HOT_BYTES
    if not depths or min(depths) < 1 or requests < SEQUENTIAL_SHARE:
        raise UsageError(
            f"depths must be at least 1, and the number of requests at least {SEQUENTIAL_SHARE}"
        )
    _check(scenario, hot_bytes, block_bytes, sequential_bytes)
    pages = -(-(hot_bytes - hot_bytes % block_bytes) // max(scenario.cache.page_bytes, block_bytes))
    setting = Setting(
        hot_bytes - hot_bytes % block_bytes, block_bytes, sequential_bytes, sorted(set(depths)),
        requests, min(max(WARM_UP_TOUCHES * pages, WARM_UP_MIN), WARM_UP_MAX), randseed,
    )  # fmt: skip
    if 0 < cache_bytes < hot_bytes:
        notes.append(f"the hot spot ({human_size(hot_bytes)}) is larger than the cache "
                     f"({human_size(cache_bytes)}): the cache cannot hold all of it")  # fmt: skip
    status("the array without its cache")
    words, points = _measured(scenario, setting, "without", setting.wanted, progress)
    if has_cache:
        for parameter, depth in setting.wanted:
            if depth == setting.depths[0]:
                status(f"an empty cache: {parameter.name}")
            points += _measured(scenario, setting, "cold", [(parameter, depth)], progress)[1]
        status(f"the cache is warmed with {setting.warm_up:,} reads, then measured")
        words, warm = _measured(scenario, setting, "warm", setting.wanted, progress)
        points += warm
    about = {"file": scenario.origin.name or None, "toml": scenario.to_toml()}
    return Bench(words, about, setting, points, notes)


def _check(scenario: Scenario, hot_bytes: int, block_bytes: int, sequential_bytes: int) -> None:
    """Raise an error for sizes that contradict each other; a hot spot of 0 is not checked."""
    minimum = max(block_bytes, scenario.cache.page_bytes)
    if block_bytes < 512 or sequential_bytes < 512:
        raise UsageError("the size of a request must be at least 512 bytes")
    if 0 < hot_bytes < minimum:
        raise UsageError(
            f"a hot spot of {human_size(hot_bytes)} is too small: it must hold a request and a "
            f"page of the cache, at least {human_size(minimum)}"
        )
    held = scenario.backing.held_bytes
    if held < hot_bytes + 2 * max(block_bytes, sequential_bytes):
        raise ScenarioError(
            f"a hot spot of {human_size(hot_bytes)} and data outside of it do not fit on the "
            f"array, which holds {human_size(held)}"
        )


def _measured(
    scenario: Scenario,
    setting: Setting,
    state: str,
    chosen: Sequence[tuple[Parameter, int]],
    progress: Progress,
) -> tuple[str, list[Point]]:
    """Measure parameters at depths in sequence on one machine; return also its name."""
    jobs = [warm_up(setting)] if state == "warm" else []
    for one in chosen:
        first = 2 * setting.wanted.index(one)  # the same requests as on the other machines
        for turn in (first, first + 1):
            jobs.append(job(scenario, setting, *one, turn, len(jobs) + 1))
    result = fio(written(jobs), scenario, progress=progress, cached=state != "without")
    measured = result.of_jobs[-2 * len(chosen) :]
    pairs = zip(measured[::2], measured[1::2])
    return result.machine, [Point.of(state, *one, pair) for one, pair in zip(chosen, pairs)]


def job(
    scenario: Scenario, setting: Setting, parameter: Parameter, depth: int, turn: int, thread: int
) -> list[str]:
    """Return the options of fio that measure a parameter once.

    A sequential job continues where the previous one (`turn`) ended: no data is used twice.  The
    random offsets depend on `turn` alone, not on the jobs before: `thread` is the job's number
    in its run, from 1, by which fio multiplies the seed.
    """
    size, number = setting.block_bytes, setting.requests
    begin, end = setting.hot_bytes, scenario.backing.held_bytes
    if parameter.is_hot:
        begin, end = 0, begin
    elif parameter.is_sequential:
        size, number = setting.sequential_bytes, number // SEQUENTIAL_SHARE
        begin = -(-begin // size) * size
        turns = max((end - begin) // (number * size), 1)
        begin += turn % turns * number * size
    span = (end - begin) // size * size
    return [
        *_options(parameter.rw, size, begin, span, depth, number, f"{RUN_S}s"),
        *_seed(setting, turn, thread),
    ]


def warm_up(setting: Setting) -> list[str]:
    """Return the options of fio that read the hot spot into the cache."""
    size, span = setting.block_bytes, setting.hot_bytes
    options = _options("randread", size, 0, span, WARM_UP_DEPTH, setting.warm_up, "30d")
    return options if setting.randseed is None else [*options, f"--randseed={setting.randseed}"]


def _seed(setting: Setting, turn: int, thread: int) -> list[str]:
    """Return the options for random offsets that depend on the seed and `turn` alone.

    `thread` is turn + 1, turn + 2 (after a warm-up), 1 or 2 (on an empty cache): their product, and
    so seed * thread, is the same for all.
    """
    number = (setting.randseed or 0) * JOBS_MAX + turn + 1
    product = 2 * (turn + 1) * (turn + 2) * number
    return [f"--randseed={product // thread}", "--randrepeat=0"]


def _options(
    rw: str, size: int, begin: int, span: int, depth: int, number: int, runtime: str
) -> list[str]:
    return [
        f"--rw={rw}", f"--bs={size}", f"--offset={begin}", f"--size={span}", f"--iodepth={depth}",
        f"--io_size={number * size}", f"--runtime={runtime}", "--norandommap=1",
        "--filename=volume", "--ioengine=libaio", "--direct=1", "--stonewall",
    ]  # fmt: skip


def written(jobs: Sequence[Sequence[str]]) -> Written:
    """Return jobs as a command line of fio."""
    words = [word for number, each in enumerate(jobs) for word in (f"--name=job{number}", *each)]
    return read(words)


def _doubt(pair: Sequence[JobResult], parameter: Parameter) -> float:
    """Return the standard error of the relative difference of two rates.

    At a fixed depth a rate is the depth over the mean latency (Little's law); latencies are assumed
    to be independent.
    """
    squares = 0.0
    for result in pair:
        measured = result.directions[parameter.direction]
        if measured.count and measured.mean_ns:
            relative = measured.deviation_ns / measured.mean_ns
            squares += relative**2 / measured.count
    return float(squares**0.5)


# Several seeds.


def over_seeds(scenario: Scenario, seeds: int, measure: Callable[[Scenario, int], Bench]) -> Bench:
    """Return the means of `measure(scenario, seed)` over seeds from the scenario's on.

    The seed determines the random requests and the random decisions of the machine.  A mean is
    steady if each of its measurements is.
    """
    chosen = range(scenario.seed, scenario.seed + seeds)
    benches = [measure(scenario.with_options(seed=seed), seed) for seed in chosen]
    points = [_mean(each) for each in zip(*(one.points for one in benches))]
    return replace(benches[0], points=points, notes=[*benches[0].notes, _words(points, seeds)])


def _mean(points: Sequence[Point]) -> Point:
    """Return the mean of one figure over seeds."""
    number = len(points)
    result = estimate([each.iops for each in points])
    assert result is not None
    known = [each.p99_ns for each in points if each.p99_ns is not None]
    return replace(
        points[0],
        iops=result.mean,
        iops_half=result.half,
        bytes_per_s=sum(each.bytes_per_s for each in points) / number,
        mean_ns=sum(each.mean_ns for each in points) / number,
        p99_ns=round(sum(known) / len(known)) if len(known) == number else None,
        drift=max((each.drift for each in points), key=abs),
        steady=all(each.steady for each in points),
    )


def _words(points: Sequence[Point], seeds: int) -> str:
    shares = [((each.iops_half or 0.0) / each.iops, each) for each in points if each.iops]
    if not shares:
        return f"means of {seeds} seeds"
    widest, point = max(shares, key=lambda pair: pair[0])
    where = f"{point.parameter}, {point.state}, depth {point.depth}"
    interval = f"{percent(LEVEL)} interval is ± {percent(widest)} ({where})"
    return f"means of {seeds} seeds; the widest {interval}"
