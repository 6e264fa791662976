"""Fit of what has no arm: short times that do not depend on where a request goes.

A controller starts one request after another, `interval` apart; a request is back a fixed time
after that, and its bytes over the link later.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from hybridsim.answers.fitting.observed import Floats, Observed

KIB4 = 4096
FEWEST = 50  # requests that found the device idle, of one kind
SIZES_APART = 32 * 1024
FEWEST_CROWDED = 100  # requests that found several others
RESAMPLES = 200
SEED = 1


@dataclass(frozen=True)
class Estimated:
    """A value with its interval, or why there is none."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class FlashFit:
    """What was found; None is what the capture does not tell."""

    latency_ns: dict[str, Estimated]  # of 4 KiB at an idle device, by "read" and "write"
    bytes_per_s: Estimated | None
    interval_ns: Estimated | None
    untold: dict[str, str]


def fit(observed: Observed) -> FlashFit:
    """Fit latency and rate to requests that found the device idle, the interval to crowds."""
    random = np.random.default_rng(SEED)
    alone = observed.outstanding() == 1
    latency, rate, untold = {}, None, {}
    for kind, is_write in (("read", False), ("write", True)):
        chosen = alone & (observed.is_write == is_write)
        result = int(chosen.sum())
        if result < FEWEST:
            untold[f"{kind}_latency"] = f"only {result} {kind}s arrived at the idle device"
            continue
        some = observed.of(chosen)
        latency[kind], slope = _line(some.latency_ns / 1.0, some.length_bytes / 1.0, random)
        rate = rate or slope
    if rate is None:
        untold["rate"] = (
            "too few requests arrived at the idle device, or all of nearly the same size"
        )
    interval = _interval(observed, latency, rate, random)
    if interval is None:
        untold["interval"] = "too few requests arrived while others were outstanding"
    return FlashFit(latency, rate, interval, untold)


def _line(
    latency_ns: Floats, length: Floats, random: np.random.Generator
) -> tuple[Estimated, Estimated | None]:
    """Return the median latency of 4 KiB and the rate, if sizes differ."""
    low, high = np.percentile(length, (5, 95))
    draws = random.integers(len(length), size=(RESAMPLES, len(length)))
    if high - low < SIZES_APART:
        medians = np.median(latency_ns[draws], axis=1)
        return _estimated(float(np.median(latency_ns)), medians), None
    slope, base = _medians_line(latency_ns, length, low, high)
    again = [_medians_line(latency_ns[rows], length[rows], low, high) for rows in draws]
    slopes = np.array([one for one, _ in again])
    bases = np.array([one for _, one in again])
    latency = _estimated(base + slope * KIB4, bases + slopes * KIB4)
    if np.percentile(slopes, 2.5) <= 0:
        return latency, None
    return latency, _estimated(1e9 / slope, 1e9 / np.maximum(slopes, 1e-9))


def _medians_line(
    latency_ns: Floats, length: Floats, low: float, high: float
) -> tuple[float, float]:
    """Return slope and base of the line through the medians of short and long requests."""
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
    """Return the time between starts that leaves the least unexplained (least absolute)."""
    if int((observed.outstanding() > 2).sum()) < FEWEST_CROWDED or not latency:
        return None
    own = np.where(
        observed.is_write,
        latency.get("write", next(iter(latency.values()))).value,
        latency.get("read", next(iter(latency.values()))).value,
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
    blocks = np.array_split(np.arange(observed.rows), min(50, observed.rows))
    sums = np.stack([table[:, rows].sum(axis=1) for rows in blocks], axis=1)
    picks = random.integers(len(blocks), size=(RESAMPLES, len(blocks)))
    resampled = [float(np.exp(grid[sums[:, rows].sum(axis=1).argmin()])) for rows in picks]
    return _estimated(float(np.exp(best.x)), np.array([*resampled, np.exp(best.x)]))


def _around(grid: Floats, place: int) -> tuple[float, float]:
    return float(grid[max(place - 1, 0)]), float(grid[min(place + 1, len(grid) - 1)])


def _started(observed: Observed, interval_ns: float) -> Floats:
    """Return when each was started: max(dispatch, start of the one before + interval)."""
    started = np.empty(observed.rows)
    for rows in observed.stretches():
        steps = np.arange(rows.stop - rows.start) * interval_ns
        started[rows] = np.maximum.accumulate(observed.dispatch_ns[rows] - steps) + steps
    return started


def _estimated(value: float, resampled: Floats) -> Estimated:
    low, high = np.percentile(resampled, (2.5, 97.5))
    return Estimated(value, min(float(low), value), max(float(high), value))
