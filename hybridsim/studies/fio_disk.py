"""What fio's rates at higher depths and of writes determine about a disk, by simulating it.

The percentiles of reads one at a time give the arm (`answers.fitting.fio`).  Here the order of
service and the number of commands that the disk chooses from are those whose simulated rates are
nearest to the measured ones, and the writes that a disk destages at a time likewise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from hybridsim.answers.fitting.answer import DRIVE, Estimate, Fit
from hybridsim.answers.fitting.fio import usable
from hybridsim.answers.fitting.fio_results import Point
from hybridsim.engine.machine import Run
from hybridsim.foundation.arrays import Ints
from hybridsim.requests.inflight import Batch
from hybridsim.requests.rows import no_requests
from hybridsim.requests.source import NEVER
from hybridsim.scenario import Scenario, building
from hybridsim.studies.batches import Sent, batches

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
UNKNOWN_ORDER = Estimate(
    DRIVE,
    "order",
    "sptf",
    determined=False,
    how="by position, as server disks; others gain less from a queue: give fio at depth 32",
)
DESTAGES = (1, 2, 4, 8, 16, 32, 64, 128, 256)  # ranges
WRITE_CACHE_BYTES = 32 * 2**20
CACHED = 1.15  # random writes that are so many times the reads at depth 1 are not the arm's alone
FLAT = 0.8  # a write cache makes the rate at depth 1 at least this share of that at any other
NEAR = 0.1  # relative error of a simulated rate that explains the measured one


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


def latencies(run: Run, requests: Iterator[Batch]) -> Ints:
    """Return the latencies of all requests in ns."""
    times = []
    for batch in requests:
        run.feed(batch)
        while (facts := run.advance(NEVER)[1]) is not None:
            times.append(facts.done_ns - facts.issue_ns)
    left = run.facts.drained()
    return np.concatenate([*times, left.done_ns - left.issue_ns])


def simulated_iops(scenario: Scenario, point: Point, count: int = REQUESTS) -> float:
    """Return the simulated rate at a point's depth in requests a second, without its beginning."""
    return simulated(scenario, point, count)[0]


def simulated(scenario: Scenario, point: Point, count: int = REQUESTS) -> tuple[float, float]:
    """Return the rate, without its beginning, and the 99th percentile of the latencies in ns."""
    alone = scenario.with_options(mode="closed", depth=point.depth)
    capacity = alone.backing.drive.capacity_bytes
    run = Run(building.machine(alone, "closed", capacity, 0))
    done, took = [], []
    for batch in batches(random_requests(point, capacity, count)):
        run.feed(batch)
        while (facts := run.advance(NEVER)[1]) is not None:
            done.append(facts.done_ns)
            took.append(facts.done_ns - facts.issue_ns)
    left = run.facts.drained()
    took.append(left.done_ns - left.issue_ns)
    times = np.sort(np.concatenate([*done, left.done_ns]))
    first = len(times) // 3  # a write cache fills in the beginning
    iops = float((len(times) - 1 - first) / (times[-1] - times[first]) * 1e9)
    return iops, float(np.percentile(np.concatenate(took), 99))


def fitted(found: Fit, points: list[Point]) -> Fit:
    """Return the fit of a disk with what its other random reads and writes determine."""
    chosen, _ = usable(points)
    alone = [one for one in chosen if one.depth == 1 and one.direction == "read"]
    if not alone or not any(one.key == "rpm" for one in found.estimates):
        return found
    point = max(alone, key=lambda one: one.requests)
    same = [one for one in chosen if one.block_bytes == point.block_bytes and one.iops > 0]
    reads = [one for one in same if one.direction == "read" and one.depth >= CHOICES]
    writes = [one for one in same if one.direction == "write"]
    found = _with(found, _order(found, reads) if reads else [UNKNOWN_ORDER])
    if writes and _is_cached(point, writes):
        found = _cached(found, max(writes, key=lambda one: one.depth))
    return found


def _with(found: Fit, more: list[Estimate]) -> Fit:
    return replace(found, estimates=[*found.estimates, *more])


def _error(found: Fit, more: list[Estimate], points: list[Point]) -> float:
    """Return the mean error of the simulated rates, and of several tails, as logarithms."""
    scenario = _with(found, more).scenario()
    rates, tails = [], []
    for one in points:
        iops, p99_ns = simulated(scenario, one)
        rates.append(np.log(iops / one.iops))
        tails.append(np.log(p99_ns / one.percentiles_ns.get(99.0, p99_ns)))
    tail = TAIL if len(points) > 1 else 0.0
    return float(np.sqrt(np.mean(np.square(rates))) + tail * np.sqrt(np.mean(np.square(tails))))


def _order(found: Fit, reads: list[Point]) -> list[Estimate]:
    """Return the order of service, the number of commands, and the longest wait."""
    depths = ", ".join(str(one.depth) for one in sorted(reads, key=lambda one: one.depth))
    sure = len(reads) > 1

    def keys(order: str, window: int, error: float) -> list[Estimate]:
        what = "rates and tails" if sure else "rate"
        how = f"nearest to the {what} at depth {depths}: {error:.0%} off"
        why = how if sure else "as most disks measured at several depths; give fio at more depths"
        return [
            Estimate(DRIVE, "order", order, determined=sure, how=f"{ORDERS[order]}; {why}"),
            Estimate(DRIVE, "window", window, how=how),
            Estimate(DRIVE, "age_limit", AGE_LIMIT_NS, "ns", determined=False,
                     how="no limit was seen in 60 s of any disk"),
        ]  # fmt: skip

    def best(order: str) -> tuple[float, int]:
        windows = [each for each in WINDOWS if each <= max(one.depth for one in reads)]
        return nearest(windows, lambda each: _error(found, keys(order, each, 0.0), reads))

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
            Estimate(DRIVE, "write_cache", WRITE_CACHE_BYTES, "bytes", determined=False,
                     how="its presence is measured, not its size"),
            Estimate(DRIVE, "destage_window", window, how=how),
        ]  # fmt: skip

    error, window = nearest(list(DESTAGES), lambda each: _error(found, keys(each, 0), [point]))
    if error > NEAR:
        return found
    notes = [note for note in found.notes if not note.startswith("The random writes of ")]
    return replace(_with(found, keys(window, error)), notes=notes)


__all__ = ["fitted", "latencies", "nearest", "random_requests", "simulated", "simulated_iops"]
