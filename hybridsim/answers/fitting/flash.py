"""Fit flash, and return the estimates of scenario keys.

Flash has short latencies that do not depend on the address of a request.

Model: a controller starts requests one after another, at least `interval` apart.  A request
completes a fixed latency after its start, plus the transfer of its bytes over the link.

Whether a drive maps flash in units larger than 4 KiB shows in random writes of several sizes.  A
drive of QLC saves memory by a coarse map: it programs whole units, so that any write of less than a
unit takes as long as a write of one.  A write of n units of 4 KiB takes s + p n (DESIGN.md 2.7), of
a map with larger units s + p u, u the 4 KiB in all units that it touches.  Where writes take
equally long whatever their size, nothing is known: s may be large.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize_scalar, nnls

from hybridsim.answers.fitting.answer import ALONE, DRIVE, NAME, Estimate, Fit, assumed, like
from hybridsim.answers.fitting.observed import Observed
from hybridsim.foundation.arrays import Floats, Ints
from hybridsim.foundation.units import human_time

KIB4 = 4096
FEWEST = 50  # minimum reads or writes to the idle device
SIZES_APART = 32 * 1024  # minimum spread of the sizes in bytes for a rate
FEWEST_CROWDED = 100  # minimum requests dispatched while several others were outstanding
RESAMPLES = 200
FINE = 60  # intervals that are tried around the best one
SEED = 1
LIKE = "samsung-pm883-960gb"  # provides the values that a capture does not determine
S_NS = 1e9
KINDS = ("read", "write")
STREAM_BYTES = 131_072  # request size of sequential rates in datasheets
UNITS_BYTES = tuple(KIB4 << power for power in range(5))  # 4 to 64 KiB
# A larger unit explains what 4 KiB does not: the error of 4 KiB is so many times that of the unit,
# and more than rates vary from run to run.
TIMES, LEAST = 3.0, 0.03
FLAT = 1.1  # longest time to shortest: sizes do not matter
CROWDED = 8  # writes outstanding, so that they keep the drive busy
SHOWN_BY = "fio's random writes of 4, 8, 16, ... 128 KiB at depth 32 show it"


@dataclass(frozen=True)
class Estimated:
    """A value with its 95% interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class FlashFit:
    """The fitted parameters; None if the capture does not determine them."""

    latency_ns: dict[str, Estimated]  # of 4 KiB at the idle device, by "read" and "write"
    bytes_per_s: Estimated | None
    interval_ns: Estimated | None
    undetermined: dict[str, str]  # parameter: why the capture does not determine it


def fit(observed: Observed) -> FlashFit:
    """Fit latency and rate to requests at the idle device, the interval to all requests."""
    random = np.random.default_rng(SEED)
    alone = observed.outstanding() == 1
    latency, rate, undetermined = {}, None, {}
    for kind, is_write in (("read", False), ("write", True)):
        chosen = alone & (observed.is_write == is_write)
        count = int(chosen.sum())
        if count < FEWEST:
            undetermined[f"{kind}_latency"] = f"only {count} {kind}s found the device idle"
            continue
        some = observed.of(chosen)
        latency[kind], slope = _line(some.latency_ns / 1.0, some.length_bytes / 1.0, random)
        rate = rate or slope
    if rate is None:
        undetermined["rate"] = "too few requests found the device idle, or sizes hardly differ"
    interval = _interval(observed, latency, rate, random)
    if interval is None:
        undetermined["interval"] = "too few requests arrived while others were outstanding"
    return FlashFit(latency, rate, interval, undetermined)


def _line(
    latency_ns: Floats, length: Floats, random: np.random.Generator
) -> tuple[Estimated, Estimated | None]:
    """Return the median latency of 4 KiB, and the rate if sizes differ enough."""
    low, high = np.percentile(length, (5, 95))
    draws = random.integers(len(length), size=(RESAMPLES, len(length)))
    if high - low < SIZES_APART:
        medians = np.median(latency_ns[draws], axis=1)
        return _estimated(float(np.median(latency_ns)), medians), None
    slope, base = _medians_line(latency_ns, length, low, high)
    slopes, bases = np.array(
        [_medians_line(latency_ns[rows], length[rows], low, high) for rows in draws]
    ).T
    latency = _estimated(base + slope * KIB4, bases + slopes * KIB4)
    if np.percentile(slopes, 2.5) <= 0:
        return latency, None
    return latency, _estimated(1e9 / slope, 1e9 / np.maximum(slopes, 1e-9))


def _medians_line(
    latency_ns: Floats, length: Floats, low: float, high: float
) -> tuple[float, float]:
    """Return slope and intercept of the line through the medians of short and long requests."""
    middle = (low + high) / 2
    short, long = length <= middle, length > middle
    if not (short.any() and long.any()):
        return 0.0, float(np.median(latency_ns))
    run = np.median(length[long]) - np.median(length[short])
    slope = (np.median(latency_ns[long]) - np.median(latency_ns[short])) / max(run, 1.0)
    return float(slope), float(np.median(latency_ns[short]) - slope * np.median(length[short]))


def _interval(
    observed: Observed,
    latency: dict[str, Estimated],
    rate: Estimated | None,
    random: np.random.Generator,
) -> Estimated | None:
    """Return the time between starts with the minimum mean absolute error of completions."""
    if int((observed.outstanding() > 2).sum()) < FEWEST_CROWDED or not latency:
        return None
    either = next(iter(latency.values()))
    own = np.where(
        observed.is_write, latency.get("write", either).value, latency.get("read", either).value
    )
    if rate is not None:
        own = own + (observed.length_bytes - KIB4) * 1e9 / rate.value

    def off(log_interval: float) -> Floats:
        return np.abs(observed.complete_ns - _started(observed, np.exp(log_interval)) - own)

    top = float(np.log(max(own.max(), 1e3)))
    grid = np.linspace(np.log(100.0), top, 25)
    table = np.stack([off(one) for one in grid])
    best = minimize_scalar(
        lambda one: float(off(one).mean()),
        bounds=_around(grid, int(table.mean(axis=1).argmin())),
        method="bounded",
    )
    # Between the points of the grid too: with these alone all samples can have the same best one.
    fine = np.linspace(*_around(grid, int(np.abs(grid - best.x).argmin())), FINE)
    grid, table = np.append(grid, fine), np.concatenate([table, [off(one) for one in fine]])
    blocks = np.array_split(np.arange(observed.rows), min(50, observed.rows))
    sums = np.stack([table[:, rows].sum(axis=1) for rows in blocks], axis=1)
    picks = random.integers(len(blocks), size=(RESAMPLES, len(blocks)))
    resampled = [float(np.exp(grid[sums[:, rows].sum(axis=1).argmin()])) for rows in picks]
    return _estimated(float(np.exp(best.x)), np.array([*resampled, np.exp(best.x)]))


def _around(grid: Floats, place: int) -> tuple[float, float]:
    return float(grid[max(place - 1, 0)]), float(grid[min(place + 1, len(grid) - 1)])


def _started(observed: Observed, interval_ns: float) -> Floats:
    """Return the start of each request: max(dispatch, previous start + interval)."""
    started = np.empty(observed.rows)
    for rows in observed.stretches():
        steps = np.arange(rows.stop - rows.start) * interval_ns
        started[rows] = np.maximum.accumulate(observed.dispatch_ns[rows] - steps) + steps
    return started


def _estimated(value: float, resampled: Floats) -> Estimated:
    low, high = np.percentile(resampled, (2.5, 97.5))
    return Estimated(value, min(float(low), value), max(float(high), value))


# Estimates of scenario keys.


def answer(name: str, observed: Observed, flash_fit: FlashFit, notes: list[str]) -> Fit:
    """Return a fit as the keys of a datasheet."""
    interval, latencies = flash_fit.interval_ns, flash_fit.latency_ns
    latency = latencies.get("read") or latencies.get("write")
    pace = f"{S_NS / interval.value:,.0f} requests a second" if interval else "unknown rate"
    each = human_time(latency.value) if latency else "unknown"
    keys = [
        *(_latency(flash_fit, kind) for kind in KINDS),
        *(_iops(flash_fit, kind) for kind in KINDS),
        _link(flash_fit),
    ]
    link, writes = float(keys[-1].value), float(keys[-2].value)
    streamed = min(link, 0.9 * writes * STREAM_BYTES)
    keys.append(assumed("sequential_write", streamed, "bytes/s", "as reads"))
    longest_ns = max((one.value for one in latencies.values()), default=1e3)
    whole = max(-(-observed.end_bytes // 2**20), 1) * 2**20
    capacity = assumed("capacity", whole, "bytes", "the addresses touched")
    estimates = [
        *of_ssd(capacity, {one.key: one for one in keys}, longest_ns),
        # how long writes of each size keep a drive busy is lost in the waits of its dies
        _unknown("a capture does not show it"),
    ]
    words = f"Flash: {each} for 4 KiB when idle, {pace}."
    return Fit(name, words, estimates, observed.rows, notes)


def of_ssd(capacity: Estimate, keys: Mapping[str, Estimate], longest_ns: float) -> list[Estimate]:
    """Return these keys of an SSD with its kind, its capacity and the dies that they need."""
    reads, streamed = (float(keys[key].value) for key in ("random_read_iops", "sequential_read"))
    dies = int(max(reads, streamed / KIB4) * longest_ns / S_NS) + 2
    return [
        ALONE,
        Estimate(DRIVE, "kind", "ssd"),
        Estimate(DRIVE, "name", NAME),
        capacity,
        *keys.values(),
        assumed("dies", dies, "", "the minimum for these rates"),
    ]


def _latency(flash_fit: FlashFit, kind: str) -> Estimate:
    key = f"{kind}_latency"
    one = flash_fit.latency_ns.get(kind)
    if one is None:
        why = f"{flash_fit.undetermined[key]}; "
        other = next(iter(flash_fit.latency_ns.values()), None)
        if other is None:
            return like(LIKE, key, "ns", why)
        return assumed(key, other.value, "ns", f"{why}as {'writes' if kind == 'read' else 'reads'}")
    how = "median of 4 KiB at the idle device"
    return Estimate(DRIVE, key, one.value, "ns", one.low, one.high, how=how)


def _iops(flash_fit: FlashFit, kind: str) -> Estimate:
    """Return the highest rate of requests, at least that of one request at a time."""
    key, interval = f"random_{kind}_iops", flash_fit.interval_ns
    if interval is None:
        return like(LIKE, key, "/s", f"{flash_fit.undetermined['interval']}; ")
    alone = flash_fit.latency_ns.get(kind)
    minimum = S_NS / alone.value if alone else 0.0
    ends = (interval.value, interval.high, interval.low)
    value, low, high = (max(S_NS / each, minimum) for each in ends)
    return Estimate(DRIVE, key, value, "/s", low, high, how="explains the waiting times best")


def _link(flash_fit: FlashFit) -> Estimate:
    rate = flash_fit.bytes_per_s
    shortest_ns = min((one.value for one in flash_fit.latency_ns.values()), default=S_NS)
    minimum = 2 * KIB4 * S_NS / shortest_ns  # 4 KiB cross the link in half their latency
    if rate is None or rate.value < minimum:
        why = flash_fit.undetermined.get("rate", "the fit contradicts the latency")
        usual = like(LIKE, "sequential_read", "bytes/s", f"{why}; ")
        return replace(usual, value=max(float(usual.value), minimum))
    how = "from the size of requests"
    return Estimate(DRIVE, "sequential_read", rate.value, "bytes/s", rate.low, rate.high, how=how)


def map_unit(length_bytes: Ints, busy_ns: Floats) -> Estimate:
    """Return the unit, from the mean time of the drive for random writes of each size."""
    if len(length_bytes) < 3:
        return _unknown(f"{len(length_bytes)} sizes of random writes at depth {CROWDED} or more")
    if busy_ns.max() < FLAT * busy_ns.min():
        sizes = f"{length_bytes.min() // 1024} to {length_bytes.max() // 1024} KiB"
        return _unknown(f"writes of {sizes} take equally long: a large unit or costly collection")
    errors = np.array([_unit_error(length_bytes, busy_ns, unit) for unit in UNITS_BYTES])
    good = np.flatnonzero((errors * TIMES <= errors[0]) & (errors[0] >= LEAST))
    if not len(good):
        how = "random writes take longer with each 4 KiB"
        return Estimate(DRIVE, "map_unit", KIB4, "bytes", how=how)
    low, high = (UNITS_BYTES[good[place]] for place in (0, -1))
    how = "random writes of less take as long as writes of one"
    return Estimate(DRIVE, "map_unit", low, "bytes", low, high, how=how)


def _unknown(why: str) -> Estimate:
    """Return the unit of most drives, assumed."""
    return assumed("map_unit", KIB4, "bytes", f"{why}; {SHOWN_BY}")


def _unit_error(length_bytes: Ints, busy_ns: Floats, unit: int) -> float:
    """Return the relative error of s + p u, at the best s and p."""
    touched = -(-length_bytes // unit) * (unit // KIB4)
    line = np.stack([np.ones(len(touched)), touched], axis=1)
    _, rest = nnls(line / busy_ns[:, None], np.ones(len(busy_ns)))
    return float(rest) / float(np.sqrt(len(busy_ns)))
