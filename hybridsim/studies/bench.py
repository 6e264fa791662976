"""The guide's five I/O parameters of a machine: without its cache, with an empty and a warm one.

Sequential write and read, random write, cold random read (of places that no cache can have) and hot
random read (of a hot spot that fits the cache), each at queue depths that double, as fio's jobs.
Each is measured twice in a row: where the second differs from the first by more than chance and
DRIFT, the number is not steady, and is marked so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hybridsim.answers.outcome import SECOND
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.units import format_size, human_size
from hybridsim.foundation.version import __version__
from hybridsim.scenario import Scenario
from hybridsim.studies.fio import Progress, fio
from hybridsim.workloads.fio.jobfile import Written, read
from hybridsim.workloads.fio.pattern import READ, WRITE
from hybridsim.workloads.fio.results import JobResult, Measured

SCHEMA = "hybridsim.bench/1"
DRIFT = 0.05  # between two equal measurements in a row
STANDARD_ERRORS = 4  # of their difference, that chance may make
RUN_S = 120  # of simulated time at most, as in the guide
SEQUENTIAL_SHARE = 10  # divisor of the number of requests, as they are larger
WARM_UP_TOUCHES = 64  # of each page of the hot spot
WARM_UP_DEPTH = 32
WARM_UP_LEAST, WARM_UP_MOST = 100_000, 8_000_000  # requests
HOT_BYTES = 1 << 30  # where the cache has no size of its own
DEPTHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
STATES = ("without", "cold", "warm")
Status = Callable[[str], None]


@dataclass(frozen=True)
class Parameter:
    """One of the five, as a job of fio."""

    name: str
    rw: str
    is_sequential: bool = False
    is_hot: bool = False

    @property
    def direction(self) -> int:
        """Where fio counts it."""
        return WRITE if "write" in self.rw else READ


# In this order a warm cache is used: what would make it less warm comes last.
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

    state: str  # of STATES
    parameter: str
    depth: int
    iops: float
    bytes_per_s: float
    mean_ns: float
    p99_ns: int | None
    drift: float  # of the second measurement from the first: 0.1 is a tenth faster
    steady: bool
    iops_half: float | None = None  # of the 95% interval, of several seeds

    @classmethod
    def of(cls, state: str, parameter: Parameter, depth: int, pair: Sequence[JobResult]) -> Point:
        """Bring two measurements to a point: the second counts."""
        before, now = (_rate(each, parameter) for each in pair)
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
        )


@dataclass(frozen=True)
class Setting:
    """What is measured."""

    hot_bytes: int
    block_bytes: int
    sequential_bytes: int
    depths: list[int]
    requests: int  # of each measurement
    warm_up: int  # requests
    randseed: int | None = None  # of random requests; None: fio's own


@dataclass(frozen=True)
class Bench:
    """All points, and on what machine."""

    machine: str
    scenario: dict[str, Any]
    setting: Setting
    points: list[Point]
    notes: list[str] = field(default_factory=list)

    def at(self, state: str, parameter: str, depth: int) -> Point | None:
        """Return a point."""
        wanted = (state, parameter, depth)
        return next(
            (one for one in self.points if (one.state, one.parameter, one.depth) == wanted), None
        )

    def best(self, state: str, parameter: str) -> Point | None:
        """Return the point of the most, the shallowest of equals."""
        known = [one for one in self.points if (one.state, one.parameter) == (state, parameter)]
        return max(known, key=lambda one: one.iops, default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it for JSON."""
        return {
            "schema": SCHEMA,
            "tool": {"version": __version__},
            "machine": self.machine,
            "scenario": self.scenario,
            "setting": vars(self.setting),
            "points": [vars(one) for one in self.points],
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

    The default hot spot is half of the cache; a cache whose size is a share (of what a trace
    would touch) is twice the hot spot.  Raises UsageError for what cannot be measured, and
    ScenarioError for a hot spot that the array does not hold.
    """
    scenario = scenario or Scenario.default()
    notes: list[str] = []
    has_cache = scenario.cache.kind != "none"
    _check(scenario, hot_bytes or 0, block_bytes, sequential_bytes)
    if has_cache and "%" in str(scenario.cache.size):
        hot_bytes = hot_bytes or HOT_BYTES
        scenario = scenario.with_options(cache_size=format_size(2 * hot_bytes))
        notes.append(f"the cache is twice the hot spot, {scenario.cache.size}: the scenario "
                     "specifies a share, and there is no trace to take it of")  # fmt: skip
    cache_bytes = scenario.cache.pages(0) * scenario.cache.page_bytes if has_cache else 0
    hot_bytes = hot_bytes or cache_bytes // 2 or HOT_BYTES
    setting = replace(
        _setting(scenario, hot_bytes, block_bytes, sequential_bytes, sorted(set(depths)), requests),
        randseed=randseed,
    )
    if 0 < cache_bytes < hot_bytes:
        notes.append(f"the hot spot ({human_size(hot_bytes)}) is larger than the cache "
                     f"({human_size(cache_bytes)}): no cache can serve it all")  # fmt: skip
    points: list[Point] = []
    status("the array without its cache")
    words, result = _row(scenario, setting, "without", progress)
    points += result
    if has_cache:
        for parameter in PARAMETERS:
            status(f"an empty cache: {parameter.name}")
            points += _cold(scenario, setting, parameter, progress)
        status(f"the cache is warmed with {setting.warm_up:,} reads, then measured")
        words, result = _row(scenario, setting, "warm", progress)
        points += result
    about = {"file": scenario.origin.name or None, "toml": scenario.to_toml()}
    return Bench(words, about, setting, points, notes)


def _setting(
    scenario: Scenario,
    hot_bytes: int,
    block_bytes: int,
    sequential_bytes: int,
    depths: list[int],
    requests: int,
) -> Setting:
    if not depths or depths[0] < 1 or requests < SEQUENTIAL_SHARE:
        raise UsageError(f"depths are from 1 on, and requests from {SEQUENTIAL_SHARE} on")
    _check(scenario, hot_bytes, block_bytes, sequential_bytes)
    hot_bytes -= hot_bytes % block_bytes
    pages = -(-hot_bytes // max(scenario.cache.page_bytes, block_bytes))
    reads = min(max(WARM_UP_TOUCHES * pages, WARM_UP_LEAST), WARM_UP_MOST)
    return Setting(hot_bytes, block_bytes, sequential_bytes, depths, requests, reads)


def _check(scenario: Scenario, hot_bytes: int, block_bytes: int, sequential_bytes: int) -> None:
    """Raise for sizes that do not go together; a hot spot of 0 is not known yet."""
    least = max(block_bytes, scenario.cache.page_bytes)
    if block_bytes < 512 or sequential_bytes < 512:
        raise UsageError("a request is of 512 bytes or more")
    if 0 < hot_bytes < least:
        raise UsageError(
            f"a hot spot of {human_size(hot_bytes)} is too small: it holds at least a request and "
            f"a page of the cache, {human_size(least)}"
        )
    held = scenario.backing.held_bytes
    if held < hot_bytes + 2 * max(block_bytes, sequential_bytes):
        raise ScenarioError(
            f"a hot spot of {human_size(hot_bytes)} and data outside of it do not fit the array, "
            f"which holds {human_size(held)}"
        )


def _row(
    scenario: Scenario, setting: Setting, state: str, progress: Progress
) -> tuple[str, list[Point]]:
    """Measure all parameters at all depths one after the other, on one machine."""
    wanted = [(one, depth) for one in PARAMETERS for depth in setting.depths]
    twice = [each for each in wanted for _ in range(2)]
    jobs = [job(scenario, setting, *each, turn) for turn, each in enumerate(twice)]
    if state == "warm":
        jobs.insert(0, warm_up(setting))
    result = fio(written(jobs), scenario, progress=progress, cached=state == "warm")
    measured = result.of_jobs[len(jobs) - len(twice) :]
    pairs = zip(measured[::2], measured[1::2])
    return result.machine, [Point.of(state, *one, pair) for one, pair in zip(wanted, pairs)]


def _cold(
    scenario: Scenario, setting: Setting, parameter: Parameter, progress: Progress
) -> list[Point]:
    """Measure a parameter at all depths, each on a machine whose cache is empty."""
    points = []
    for depth in setting.depths:
        jobs = [job(scenario, setting, parameter, depth, turn) for turn in range(2)]
        result = fio(written(jobs), scenario, progress=progress)
        points.append(Point.of("cold", parameter, depth, result.of_jobs))
    return points


def job(
    scenario: Scenario, setting: Setting, parameter: Parameter, depth: int, turn: int
) -> list[str]:
    """Return the options of fio that measure a parameter once.

    What is sequential goes on in each turn where the one before ended: nothing is read twice.
    """
    size, number = setting.block_bytes, setting.requests
    held = scenario.backing.held_bytes
    if parameter.is_hot:
        begin, end = 0, setting.hot_bytes
    elif parameter.is_sequential:
        size, number = setting.sequential_bytes, number // SEQUENTIAL_SHARE
        begin, end = -(-setting.hot_bytes // size) * size, held
        turns = max((end - begin) // (number * size), 1)
        begin += turn % turns * number * size
    else:
        begin, end = setting.hot_bytes, held
    span = (end - begin) // size * size
    return [
        *_options(parameter.rw, size, begin, span, depth, number, f"{RUN_S}s"),
        *_seed(setting),
    ]


def warm_up(setting: Setting) -> list[str]:
    """Return the options of fio that read the hot spot until a cache has it."""
    number = setting.warm_up
    size, hot_bytes = setting.block_bytes, setting.hot_bytes
    options = _options("randread", size, 0, hot_bytes, WARM_UP_DEPTH, number, "30d")
    return [*options, *_seed(setting)]


def _seed(setting: Setting) -> list[str]:
    return [] if setting.randseed is None else [f"--randseed={setting.randseed}"]


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


def _measured(result: JobResult, parameter: Parameter) -> Measured:
    return result.directions[parameter.direction]


def _rate(result: JobResult, parameter: Parameter) -> float:
    """Return requests a second."""
    return _measured(result, parameter).count * SECOND / result.span_ns


def _doubt(pair: Sequence[JobResult], parameter: Parameter) -> float:
    """Return the standard error of the relative difference of two rates.

    At a fixed depth a rate is the depth over the mean latency (Little's law); latencies are taken
    to be independent.
    """
    squares = 0.0
    for result in pair:
        measured = _measured(result, parameter)
        if measured.count and measured.mean_ns:
            relative = measured.deviation_ns / measured.mean_ns
            squares += relative**2 / measured.count
    return float(squares**0.5)
