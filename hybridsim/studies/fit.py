"""Fit a model to a measurement, and compare the model with it."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hybridsim.answers.fidelity import Fidelity
from hybridsim.answers.fitting import capture, fio
from hybridsim.answers.fitting.answer import DRIVE, Estimate, Fit, assumed
from hybridsim.answers.fitting.array import Progress
from hybridsim.answers.fitting.fio import Point, looks_like_fio, usable
from hybridsim.answers.fitting.flash import KIB4
from hybridsim.answers.fitting.observed import Observed, observe
from hybridsim.engine.machine import Run
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import FitError, TraceError
from hybridsim.foundation.histogram import Distribution
from hybridsim.requests.rows import no_requests
from hybridsim.requests.source import NEVER
from hybridsim.scenario import Scenario, building
from hybridsim.storage.drives import SolidState
from hybridsim.studies.batches import Sent, batches
from hybridsim.traces.trace import PathLike, Trace

POOR = (
    "The model is not like the measurement: the device is of another kind than a disk or an SSD as "
    "modelled (shingled writes, two actuators, a cache above it), was changed meanwhile, or its "
    "latencies contain waiting elsewhere (a loop device, a file system, the host's scheduler). Do "
    "not rely on its figures."
)


def fit(
    path: PathLike | Sequence[PathLike],
    format: str | None = None,
    device: str | None = None,
    progress: Progress = lambda what, done, of: None,
    check: bool = True,
) -> Fit:
    """Fit a model of the device that a capture was taken on, or that fio measured.

    With `check` the model is simulated under the capture's own requests, and the result states how
    far its latencies are from the recorded ones.  Raises FitError if nothing can be fitted.

    >>> from hybridsim.traces.example import CAPTURE, demo_file
    >>> found = fit(demo_file(CAPTURE), check=False)
    >>> found.frame().set_index("key")["value"]["backing.drive.kind"]
    'ssd'
    """
    paths = [path] if isinstance(path, str | os.PathLike) else list(path)
    names = [os.fspath(each) for each in paths]
    if names and all(looks_like_fio(each) for each in names):
        points = fio.read(names)
        progress("simulating depths and writes", 0, 1)
        found = fitted_disk(fio.fit(", ".join(names), points), points)
        found = fitted_flash(found, points)
        point = fio.checked(points) if check else None
        if point is None:
            return found
        progress("simulating the measurement", 0, 1)
        return judged(found, fio_fidelity(point, found.scenario()))
    trace, by_arrival = _open(path, format, device)
    progress("reading the capture", 0, 1)
    observed = observe(trace.from_first(), by_arrival)
    _check_zones(trace)
    result = capture.fit(trace.name, observed, progress)
    if not check:
        return result
    progress("simulating the capture", 0, 1)
    return judged(result, fidelity(observed, result.scenario()))


def _check_zones(trace: Trace) -> None:
    """Refuse a device whose host opens and resets zones: host-managed SMR, or a zoned SSD."""
    if any(each.code == "zone-management" for each in trace.warnings):
        raise FitError(
            f"{trace.name}: cannot be fitted: it has zone management commands, so this is a device "
            "with zones of the host (host-managed or host-aware SMR, ZNS), which refuses or delays "
            "writes that do not continue a zone. No model here has zones: capture what lies above "
            "it (dm-zoned, a file system that writes in zones), or another device"
        )


def judged(found: Fit, likeness: Fidelity) -> Fit:
    """Return a fit with its likeness, and a note where the model is not one of this device."""
    notes = found.notes
    if likeness.is_known and likeness.likeness == "poor":
        notes = [*notes, POOR]
    return replace(found, fidelity=likeness, notes=notes)


def fio_fidelity(point: Point, scenario: Scenario) -> Fidelity:
    """Simulate random requests one at a time over the whole device, as fio sent them."""
    # fio's completion latency begins when the host has submitted the request
    alone = scenario.with_options(mode="closed", depth=1, host_overhead=0)
    simulated, _ = served(alone, random_requests(point, alone.backing.drive.capacity_bytes))
    percents = sorted(point.percentiles_ns)
    shares = 100 * (np.arange(len(simulated)) + 0.5) / len(simulated)
    measured = np.interp(shares, percents, [point.percentiles_ns[each] for each in percents])
    return Fidelity(Distribution.of(measured.astype(np.int64)), Distribution.of(simulated))


def _open(
    path: PathLike | Sequence[PathLike], format: str | None, device: str | None
) -> tuple[Trace, bool]:
    """Open a capture by its dispatch times, or by its arrivals if it has no dispatches.

    The second value is True if the times are arrivals.
    """
    try:
        trace = Trace.read(path, format, device, use_dispatch=True)
    except TraceError:
        trace = Trace.read(path, format, device)
    first = next(trace.chunks(), None)
    return trace, first is None or not (first.dispatch_ns >= 0).any()


def fidelity(observed: Observed, scenario: Scenario) -> Fidelity:
    """Simulate the first stretch of requests in mode think; compare latencies with the capture."""
    some = observed.of(observed.stretch == observed.stretch[0])
    begun = int(some.dispatch_ns[0])
    rows = no_requests(some.rows)._replace(
        arrival_ns=some.dispatch_ns - begun,
        offset_bytes=some.offset_bytes,
        length_bytes=some.length_bytes,
        op=some.is_write.astype(np.uint8),
        complete_ns=some.complete_ns - begun,
    )
    simulated, _ = served(scenario, Sent("the capture", rows), "think", observed.end_bytes)
    return Fidelity(Distribution.of(some.latency_ns), Distribution.of(simulated))


def served(
    scenario: Scenario, requests: Sent, mode: str = "closed", volume_bytes: int = 0
) -> tuple[Ints, Ints]:
    """Return the latencies of all requests, and when they were complete, in ns.

    They are over the whole drive, unless a size of the volume is given.
    """
    volume_bytes = volume_bytes or scenario.backing.drive.capacity_bytes
    run = Run(building.machine(scenario, mode, volume_bytes, 0))
    facts = []
    for batch in batches(requests, 1.0, mode == "think"):
        run.feed(batch)
        while (part := run.advance(NEVER)[1]) is not None:
            facts.append(part)
    facts.append(run.facts.drained())
    done_ns = np.concatenate([each.done_ns for each in facts])
    return done_ns - np.concatenate([each.issue_ns for each in facts]), done_ns


# What fio's rates at higher depths and of writes determine about a drive, by simulating it.
#
# Of a disk the percentiles of reads one at a time give the arm (`answers.fitting.fio`).  Here the
# order of service and the number of commands that the disk chooses from are those whose simulated
# rates are nearest to the measured ones, and the writes that a disk destages at a time likewise.
#
# Of an SSD requests that meet on a die wait for one another, and so do writes on a lane of the
# controller: the rate grows more slowly than the depth long before it reaches the drive's limit.
# The numbers of dies and of lanes are those whose simulated rates are nearest to the measured ones.

REQUESTS, SEED = 2000, 1
CHOICES = 3  # requests at a time from which on a disk has a choice: one is being served
WINDOWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # commands; SATA carries 32 at a time
ORDERS = {"clook": "in a sweep", "sstf": "the nearest first", "sptf": "by position"}
# Measured at depths 1 to 32, five SATA disks of 2004 to 2009 and a ST2000DM006 have rates nearer to
# those of a sweep; one deep result has to be clearly nearer to the other.
# As the rotation is known to some 10 %, nine of ten simulated sweeps are at most 7 % nearer to the
# other (all: 14 %), and two of these disks 4 and 5 %; of 46 simulated disks that choose by position
# each is at least 16 % nearer to it (seeds from 300000).
CLEARLY = 0.1  # difference of the mean relative error
TAIL = 0.1  # weight of the error of p99 beside that of the rate, where there are several results
# 60-second runs of those disks at depth 32 had longest waits of 0.8 to 2.9 s.
AGE_LIMIT_NS = 5e9
UNKNOWN_ORDER = assumed(
    "order",
    "sptf",
    "",
    "by position, as server disks; others gain less from a queue: give fio at depth 32",
)
DESTAGES = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # ranges
WRITE_CACHE_BYTES = 32 * 2**20
CACHED = 1.15  # random writes that are so many times the reads at depth 1 are not the arm's alone
FLAT = 0.8  # a write cache makes the rate at depth 1 at least this share of that at any other
NEAR = 0.1  # relative error of a simulated rate that explains the measured one
# Of SSDs:
FLASH_REQUESTS = 6000
LIMIT = 0.9  # a rate below this share of the highest is not held down by the drive's limit
BUSY = 0.5  # nor is the highest, where so large a share of the depth is served at once
# Dies per those that are busy at the highest rate, where only that is known: of 15 SSDs measured at
# several depths it gives the rates between best (1.2, 1.6 and 2.5 were compared).
USUAL = 1.5
# KiB of neighbouring data on a die: units of 4 KiB in turn, or as much as sequential reads need.
PAGES = (4, 8, 16, 32, 64, 128)
THIRDS = ((10, 20, 30), (70, 80, 90))  # percentiles of the fastest pages, and of the slowest
OF_LATENCY = 0.25  # at most what 4 KiB may take on a link that dies of 4 KiB each fill
UNEVEN = 0.05  # of the latency: pages that differ by less are alike
LATENCIES = ("read_latency", "write_latency")
# A part of the latency that is smaller differs between runs as much; a larger leaves no drive.
ASLEEP, MOST_ASLEEP = 0.05, 0.6
MOST_DIES, MOST_LANES = 4096, 64
STEP, SPREAD = 1.15, 32  # between numbers of dies that are tried; from so many more on none waits
NOT_REACHED = 1.5  # times the highest measured rate, where that is not the drive's limit


def random_requests(point: Point, capacity: int, count: int = REQUESTS) -> Sent:
    """Return requests of a point's size and direction at random over a device."""
    random = np.random.default_rng(SEED)
    places = random.integers(0, capacity // point.block_bytes, count) * point.block_bytes
    rows = no_requests(count)._replace(
        offset_bytes=places,
        length_bytes=np.full(count, point.block_bytes),
        op=np.full(count, int(point.direction == "write"), np.uint8),
    )
    return Sent("fio's requests", rows)


def simulated(scenario: Scenario, point: Point, count: int = REQUESTS) -> tuple[float, float]:
    """Return the simulated rate at a point's depth, without its beginning, and the p99 in ns."""
    alone = scenario.with_options(mode="closed", depth=point.depth)
    requests = random_requests(point, alone.backing.drive.capacity_bytes, count)
    took, done_ns = served(alone, requests)
    times = np.sort(done_ns)
    first = len(times) // 3  # a write cache fills in the beginning
    iops = float((len(times) - 1 - first) / (times[-1] - times[first]) * 1e9)
    return iops, float(np.percentile(took, 99))


def fitted_disk(found: Fit, points: list[Point]) -> Fit:
    """Return the fit of a disk with what its other random reads and writes determine."""
    chosen, _ = usable(points)
    alone = [one for one in chosen if one.depth == 1 and one.direction == "read"]
    if not alone or "rpm" not in found.by_key:
        return found
    point = max(alone, key=lambda one: one.requests)
    same = [one for one in chosen if one.block_bytes == point.block_bytes and one.iops > 0]
    reads = [one for one in same if one.direction == "read" and one.depth >= CHOICES]
    writes = [one for one in same if one.direction == "write"]
    found = found.having(_order(found, reads) if reads else [UNKNOWN_ORDER])
    if writes and _is_cached(point, writes):
        found = _cached(found, max(writes, key=lambda one: one.depth))
    return found


def _order(found: Fit, reads: list[Point]) -> list[Estimate]:
    """Return the order of service, the number of commands, and the longest wait."""
    sure = len(reads) > 1

    def keys(order: str, window: int, error: float) -> list[Estimate]:
        by_depth = sorted(reads, key=lambda one: one.depth)
        how = _how(by_depth, error, "rates and tails" if sure else "rate")
        why = how if sure else "as most disks measured at several depths; give fio at more depths"
        return [
            Estimate(DRIVE, "order", order, determined=sure, how=f"{ORDERS[order]}; {why}"),
            Estimate(DRIVE, "window", window, how=how),
            assumed("age_limit", AGE_LIMIT_NS, "ns", "no limit was seen in 60 s of any disk"),
        ]  # fmt: skip

    def off(some: list[Estimate]) -> float:
        return _error(found.having(some), reads, REQUESTS, TAIL if sure else 0.0)

    def best(order: str) -> tuple[float, int]:
        windows = [each for each in WINDOWS if each <= max(one.depth for one in reads)]
        return nearest(windows, lambda n: off(keys(order, n, 0.0)))

    if sure:
        (error, window), order = min((best(order), order) for order in ORDERS)
        return keys(order, window, error)
    error, window = best("clook")
    if error > CLEARLY:
        other, choice = best("sptf")
        if other < error - CLEARLY:
            return keys("sptf", choice, other)
    return keys("clook", window, error)


def nearest(values: list[int], error: Callable[[int], float]) -> tuple[float, int]:
    """Return the least error, and the value that has it; the error has one minimum."""
    known: dict[int, float] = {}

    def at(index: int) -> float:
        if index not in known:
            known[index] = error(values[index])
        return known[index]

    low, high = 0, len(values) - 1
    while high - low > 2:
        third = (high - low) // 3
        left, right = low + third, high - third
        if at(left) <= at(right):
            high = right
        else:
            low = left
    best = min(range(low, high + 1), key=at)
    return at(best), values[best]


def _is_cached(alone: Point, writes: list[Point]) -> bool:
    """Return whether random writes are faster than an arm's, and no faster in a longer queue."""
    deepest = max(writes, key=lambda one: one.depth)
    first = min(writes, key=lambda one: one.depth)
    is_fast = deepest.iops >= CACHED * alone.iops and first.iops >= FLAT * deepest.iops
    return first.depth < deepest.depth and is_fast


def _cached(found: Fit, point: Point) -> Fit:
    """Return the fit with a write cache that destages as fast as the disk wrote."""

    def keys(window: int, error: float) -> list[Estimate]:
        how = f"random writes at depth {point.depth}: {error:.0%} off"
        return [
            assumed(
                "write_cache", WRITE_CACHE_BYTES, "bytes", "its presence is measured, not its size"
            ),
            Estimate(DRIVE, "destage_window", window, how=how),
        ]  # fmt: skip

    error, window = nearest(
        list(DESTAGES), lambda each: _error(found.having(keys(each, 0)), [point], REQUESTS)
    )
    if error > NEAR:
        return found
    notes = [note for note in found.notes if not note.startswith("The random writes of ")]
    return replace(found.having(keys(window, error)), notes=notes)


def fitted_flash(found: Fit, points: list[Point]) -> Fit:
    """Return the fit of an SSD with what its other random reads and writes determine."""
    if "dies" not in found.by_key:
        return found
    chosen = [one for one in usable(points)[0] if one.block_bytes == KIB4 and one.iops > 0]
    reads = sorted((one for one in chosen if one.direction == "read"), key=lambda one: one.depth)
    writes = sorted((one for one in chosen if one.direction == "write"), key=lambda one: one.depth)
    return _lanes(_dies(_levels(_awake(found, reads, writes), reads), reads), writes)


def _awake(found: Fit, *directions: list[Point]) -> Fit:
    """Return the fit with the time that a request takes longer where it is alone.

    Of reads and writes the shorter one: what both have in common.
    """
    spared = [_spared_ns(points) for points in directions if points]
    latency_ns = min(float(found.by_key[key].value) for key in LATENCIES)
    if not spared or min(spared) < ASLEEP * latency_ns:
        return found
    how = "what a request at its best depth takes less than one at a time, of reads and of writes"
    value = min(*spared, MOST_ASLEEP * latency_ns)
    host = next((float(one.value) for one in found.estimates if one.table == "host"), 0.0)
    after = "while fio and the kernel take their time for one request, with no other under way"
    return found.having([
        Estimate(DRIVE, "wake_up", value, "ns", how=how),
        assumed("sleep_after", LIMIT * host, "ns", after),
    ])  # fmt: skip


def _spared_ns(points: list[Point]) -> float:
    """Return how much shorter a request is in its best company than alone, in ns."""
    each_ns = {one.depth: one.depth / one.iops * 1e9 for one in points}
    return each_ns[1] - min(each_ns.values()) if 1 in each_ns else 0.0


def _levels(found: Fit, reads: list[Point]) -> Fit:
    """Return the fit with what the pages of three bits of a cell differ by.

    A third of the reads, one at a time, is as fast as possible, and a third 3 steps slower.
    """
    drive = found.scenario().backing.drive
    needed = {*THIRDS[0], *THIRDS[1]}
    alone = [one for one in reads if one.depth == 1 and needed <= one.percentiles_ns.keys()]
    if not alone or not isinstance(drive, SolidState):
        return found
    at = alone[0].percentiles_ns
    fast_ns, slow_ns = (float(np.mean([at[each] for each in third])) for third in THIRDS)
    step_ns = min((slow_ns - fast_ns) / 3, drive.mean_read_ns / 2)
    if 3 * step_ns < UNEVEN * drive.read_latency_ns:
        return found
    how = "a third of the slowest and of the fastest tenths of reads one at a time, three steps"
    return found.having([Estimate(DRIVE, "read_step", step_ns, "ns", how=how)])


def _dies(found: Fit, reads: list[Point]) -> Fit:
    """Return the fit with the number of dies and what each reads at once."""
    drive = found.scenario().backing.drive
    if not isinstance(drive, SolidState):
        return found
    telling, is_limit = _telling(reads)
    found = found if is_limit else found.having([_not_reached("random_read_iops", reads)])
    most, link = (found.by_key[key] for key in ("random_read_iops", "sequential_read"))
    shortest_ns = min(drive.read_latency_ns, drive.write_latency_ns) - drive.wake_up_ns
    least = int(float(most.value) * drive.mean_read_ns / 1e9) + 2

    def keys(dies: int, how: str, is_sure: bool) -> list[Estimate]:
        streamed = drive.sequential_read * drive.mean_read_ns / 1e9  # bytes read at once
        rate = (dies - 2) * KIB4 * 1e9 / drive.mean_read_ns
        is_slow = OF_LATENCY * shortest_ns * rate < KIB4 * 1e9
        page, slower = 4, []
        if is_sure and not link.determined and rate < drive.sequential_read and not is_slow:
            slower = [replace(link, value=rate, how="as much as its dies read of 4 KiB each")]
        else:
            page = next((size for size in PAGES if streamed / (size * 1024) + 2 <= dies), PAGES[-1])
            dies = max(dies, int(streamed / (page * 1024)) + 2)
        why = "units of 4 KiB in turn, or as much as its sequential reads need"
        return [
            Estimate(DRIVE, "dies", dies, determined=is_sure, how=how),
            assumed("page_size", page * 1024, "bytes", why), *slower,
        ]  # fmt: skip

    if not telling:
        dies = max(least, round(USUAL * float(most.value) * drive.read_latency_ns / 1e9))
        how = f"{USUAL} times those busy at the highest rate; give fio at depths between"
        return found.having(keys(dies, how, False))
    counts = _spaced(least, min(SPREAD * least, MOST_DIES))
    error, dies = min((_error(found.having(keys(n, "", True)), telling), n) for n in counts)
    return found.having(keys(dies, _how(telling, error), True))


def _lanes(found: Fit, writes: list[Point]) -> Fit:
    """Return the fit with the number of writes that the controller takes at once."""
    telling, is_limit = _telling(writes)
    if not telling:
        return found

    def keys(lanes: int, how: str) -> list[Estimate]:
        return [Estimate(DRIVE, "write_lanes", lanes, how=how)]

    free = found if is_limit else found.having([_not_reached("random_write_iops", writes)])
    counts = list(range(1, MOST_LANES + 1))
    error, lanes = nearest(counts, lambda n: _error(free.having(keys(n, "")), telling))
    if error < _error(free, telling):
        return free.having(keys(lanes, _how(telling, error)))
    return found


def _not_reached(key: str, points: list[Point]) -> Estimate:
    """Return a limit above all rates, where the rate still grows with the depth."""
    value = NOT_REACHED * max(one.iops for one in points)
    how = "not reached at the depths measured: half as many again, assumed"
    return assumed(key, value, "/s", how)


def _telling(points: list[Point]) -> tuple[list[Point], bool]:
    """Return the points if their rates show what waits, and whether the highest is the limit."""
    alone = next((one for one in points if one.depth == 1), None)
    others = [one for one in points if one.depth > 1]
    if alone is None or not others:
        return [], True
    top = max(one.iops for one in others)
    deepest = others[-1]
    is_limit = deepest.iops < BUSY * deepest.depth * alone.iops
    is_shown = not is_limit or any(one.iops < LIMIT * top for one in others)
    return (others if is_shown else []), is_limit


def _spaced(least: int, most: int) -> list[int]:
    """Return whole numbers from `least` on, about a sixth apart."""
    steps = range(int(np.log(max(most / least, 1)) / np.log(STEP)) + 1)
    return sorted({round(least * STEP**step) for step in steps})


def _error(
    found: Fit, points: list[Point], count: int = FLASH_REQUESTS, tail: float = 0.0
) -> float:
    """Return the RMS error of the simulated rates, and `tail` times that of p99, as logarithms."""
    scenario = found.scenario()
    pairs = [(one, *simulated(scenario, one, count)) for one in points]
    error = _rms([iops / one.iops for one, iops, _ in pairs])
    if tail:
        late = [p99_ns / one.percentiles_ns.get(99.0, p99_ns) for one, _, p99_ns in pairs]
        error += tail * _rms(late)
    return error


def _rms(ratios: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(np.log(ratios)))))


def _how(points: list[Point], error: float, what: str = "rate") -> str:
    depths = ", ".join(str(one.depth) for one in points)
    return f"nearest to the {what} at depth {depths}: {error:.0%} off"
