"""Fit hard disks: the parameters of one member, for a known layout of the volume.

Estimates are those of maximum likelihood, with confidence intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.optimize import minimize

from hybridsim.answers.fitting.observed import Marks
from hybridsim.answers.fitting.service import (
    CHOOSES,
    MS,
    Pieces,
    Service,
    choice_share,
    log_likelihood,
    with_slopes,
)
from hybridsim.foundation.arrays import Floats
from hybridsim.foundation.wording import percent

STEPS = (1e-6, 0.05)  # of a free number, at least and at most, for the curvature
Z95 = 1.96
AT_BOUND = 1e-9  # of a free number
FLAT = 0.1  # curvature of a direction in which the observations determine nothing
FLAT_SHARE = 1e-4  # squared component of a number in such directions
FEWEST = 300  # minimum services for a fit of seek and rotation
FEWEST_OF_A_KIND = 100  # minimum writes, reads, and requests to an idle disk
SIZES_APART = 8 * 1024  # minimum spread of the sizes in bytes for a transfer rate
SIZES_BETWEEN = (2, 98)  # percentiles that are this spread
USUAL_RPM = (4200, 5400, 5900, 7200, 10_000, 10_500, 15_000)
# What more requests do not tell of the speed: the rotation seems shorter where the curve of seeks
# is not that of the arm, about 1 % on the seeds 2000 to 2057 of benchmarks/generated_disks.py;
# usual speeds are farther apart.
RPM_OFF = 0.01
MINUTE_MS = 60e3
VAGUE = 6.0  # ratio of the ends of an interval from which on a value counts as undetermined
VAGUE_MS = 1.0  # the same of values that may be 0: the width of the interval
JITTER_MS = 0.05  # a request that is dispatched this much before a completion meets an idle disk
WAITED_MS = 4.0  # no overhead of a disk is longer: who waits this long does not show it
# The least noise in the search is 0.08: with less the likelihood is rugged.  Where the true noise
# is smaller, the model blurs both ends of the rotation, which then seems shorter by 1.1 times this;
# so the estimates are found from there with less.
FINE_NOISE_MS = 0.015
# Provisional values; if the requests do not determine these, they have little effect on the fit.
PROVISIONAL = {"overhead_ms": 0.2, "per_mib_ms": 6.0, "inner": 0.6, "bend": 0.0,
               "settle_ms": 0.0}  # fmt: skip
FINE = ("bend", "inner")  # effects too small to distinguish layouts
# Typical disks of three classes, for the first comparison of layouts.
GUESSES = tuple(
    PROVISIONAL | {
        "overhead_ms": 0.5, "track_ms": 0.6, "reach_ms": reach, "linear": 0.1, "noise_ms": 0.8,
        "rotation_ms": MINUTE_MS / rpm, "per_mib_ms": 7.0, "settle_ms": 0.3, "stray": 0.1,
    }
    for rpm, reach in ((7200, 8.0), (10_000, 5.0), (15_000, 3.5))
)  # fmt: skip


@dataclass(frozen=True)
class Number:
    """A free parameter of a model: the start of the search and its bounds."""

    start: float
    low: float
    high: float
    is_log: bool = True  # searched by its logarithm

    def free(self, value: float) -> float:
        """Return a value as a coordinate of the search."""
        return float(np.log(value)) if self.is_log else value

    def value(self, free: float) -> float:
        """Return the value of a coordinate of the search."""
        return float(np.exp(free)) if self.is_log else free


@dataclass(frozen=True)
class Likeliest:
    """Values with their 95% intervals, and the log-likelihood."""

    values: dict[str, float]
    low: dict[str, float]
    high: dict[str, float]
    log_likelihood: float


Rotation = tuple[float, float, float]  # estimate and interval of the time of a revolution, in ms
# The log-likelihood of each observation, and its slopes by the values.
Density = Callable[[dict[str, float]], tuple[Floats, Mapping[str, Floats]]]


def likeliest(numbers: dict[str, Number], density: Density, turns: int = 200) -> Likeliest:
    """Maximise the likelihood in at most `turns` iterations; the intervals are left empty."""
    at = _free(numbers, density)

    def cost(free: Floats) -> tuple[float, Floats]:
        each, scores = at(free)
        return -float(each.mean()), -scores.mean(axis=0)

    start = [one.free(float(np.clip(one.start, one.low, one.high))) for one in numbers.values()]
    bounds = [(one.free(one.low), one.free(one.high)) for one in numbers.values()]
    result = minimize(
        cost,
        np.array(start),
        jac=True,
        method="L-BFGS-B",
        bounds=bounds,
        options={"maxiter": turns, "ftol": 1e-7},
    )
    best = _values(numbers, result.x)
    total = float(density(best)[0].sum())
    return Likeliest(best, dict(best), dict(best), total)


def with_intervals(best: Likeliest, numbers: dict[str, Number], density: Density) -> Likeliest:
    """Return the same estimates with intervals that allow for an imprecise model.

    The sandwich estimator: H^-1 G H^-1, H the curvature of the likelihood and G the outer product
    of the observations' own gradients (White 1982, Econometrica 50: 1-25).  Where H is flat in some
    direction, as that of an overhead against a seek that is never without it, each number with a
    part in this direction has no interval: its ends are those of its range.  A number that
    its bound clearly keeps from where the likelihood is level does not move with the others.
    """
    names = list(numbers)
    free = np.array([numbers[name].free(best.values[name]) for name in names])
    scores, curvature = _derivatives(_free(numbers, density), free)
    ends = np.array([(one.free(one.low), one.free(one.high)) for one in numbers.values()])
    is_bound = (np.abs(free[:, None] - ends) < AT_BOUND).any(axis=1)
    is_bound &= np.abs(scores.sum(axis=0)) > Z95 * np.sqrt((scores**2).sum(axis=0))
    is_bound &= [not one.is_log for one in numbers.values()]  # 0 is possible, not the least noise
    alone = is_bound | is_bound[:, None]
    curvature[alone] *= np.eye(len(free))[alone]
    error = Z95 * _standard_errors(scores, curvature)
    low, high = {}, {}
    for name, centre, reach in zip(names, free, error):
        one = numbers[name]
        low[name] = one.value(max(centre - reach, one.free(one.low)))
        high[name] = one.value(min(centre + reach, one.free(one.high)))
    return Likeliest(best.values, low, high, best.log_likelihood)


def _standard_errors(scores: Floats, curvature: Floats) -> Floats:
    """Return the sandwich estimator's standard errors; infinite where the curvature is flat."""
    values, axes = np.linalg.eigh(curvature)
    is_flat = np.abs(values) < FLAT
    steep = axes[:, ~is_flat]
    inverse = steep / values[~is_flat] @ steep.T
    variance = np.diag(inverse @ (scores.T @ scores) @ inverse).clip(0.0)
    flat_share = (axes[:, is_flat] ** 2).sum(axis=1)
    return np.where(flat_share > FLAT_SHARE, np.inf, np.sqrt(variance))


def _values(numbers: Mapping[str, Number], free: Floats) -> dict[str, float]:
    """Return the values of a point of the search."""
    return {name: one.value(each) for (name, one), each in zip(numbers.items(), free)}


def _free(
    numbers: Mapping[str, Number], density: Density
) -> Callable[[Floats], tuple[Floats, Floats]]:
    """Return the log-likelihoods as a function of a point of the search, with their gradients."""

    def at(free: Floats) -> tuple[Floats, Floats]:
        values = _values(numbers, free)
        each, slopes = density(values)
        by_free = [
            slopes[name] * (values[name] if one.is_log else 1.0) for name, one in numbers.items()
        ]
        return each, np.stack(by_free, axis=1)

    return at


def _derivatives(
    at: Callable[[Floats], tuple[Floats, Floats]], free: Floats
) -> tuple[Floats, Floats]:
    """Return the gradient of each observation, and minus the Hessian of their sum."""
    scores = at(free)[1]
    # Steps that change the log-likelihood by about one.
    step = np.clip(1 / np.sqrt((scores**2).sum(axis=0) + 1e-12), *STEPS)
    curvature = np.array([
        -(at(free + push)[1] - at(free - push)[1]).sum(axis=0) / (2 * push.max())
        for push in np.diag(step)
    ])  # fmt: skip
    return scores, (curvature + curvature.T) / 2


NUMBERS = {
    "overhead_ms": Number(0.2, 0.0, 50.0, is_log=False),
    "track_ms": Number(0.8, 0.005, 8.0),
    "reach_ms": Number(8.0, 0.02, 60.0),  # from the shortest seek to the longest
    "linear": Number(0.1, -0.95, 0.95, is_log=False),
    "bend": Number(0.0, -0.6, 0.6, is_log=False),
    "rotation_ms": Number(MINUTE_MS / 7200, MINUTE_MS / 20_000, MINUTE_MS / 3500),
    "per_mib_ms": Number(6.0, 0.2, 1000.0),
    "inner": Number(0.6, 0.0, 1.2, is_log=False),
    "settle_ms": Number(0.5, 0.0, 10.0, is_log=False),
    "noise_ms": Number(0.4, 0.08, 8.0),
    "stray": Number(0.05, 0.001, 0.5),
}


@dataclass(frozen=True)
class DiskFit:
    """The fitted parameters, and those that the capture does not determine."""

    likeliest: Likeliest
    undetermined: Mapping[str, str]  # parameter: why the capture does not determine it
    chooses: float | None  # share of services for which an older waiting request was passed over
    used: int  # requests that the fit is based on
    free_rotation: Rotation  # before a usual speed
    idle_share: float = 1.0  # share of the services whose time includes the overhead
    # Requests that a parameter is known from: of the two kinds that it tells apart, the rarer.
    compared: Mapping[str, int] = field(default_factory=dict)
    sizes: tuple[float, float] = (0.0, 0.0)  # SIZES_BETWEEN of the used requests, bytes

    @property
    def service(self) -> Service:
        """The parameters as input of the model."""
        return service(self.likeliest.values)

    @property
    def why_not(self) -> str:
        """Return why the model is not one of what was seen at all; "" if it is."""
        result = self.likeliest.values
        ends = NUMBERS["rotation_ms"]
        if result["stray"] >= 0.3:
            share = percent(result["stray"])
            return f"{share} of the requests do not match a seek and a rotation under any layout"
        if not 1.01 * ends.low < result["rotation_ms"] < 0.99 * ends.high:
            return f"no rotation of {ends.low:g} to {ends.high:g} ms explains them"
        if result["noise_ms"] >= 0.6 * result["rotation_ms"]:
            return "they vary by most of a rotation, whatever the seek"
        return ""


def service(values: Mapping[str, float]) -> Service:
    """Return the parameters of the model from free numbers."""
    parameters = {**PROVISIONAL, **values}
    full_ms = parameters["track_ms"] + parameters.pop("reach_ms")
    return Service(full_ms=full_ms, **parameters)


def guessed(seen: Pieces) -> float:
    """Return the log-likelihood under the best of GUESSES."""
    return max(float(log_likelihood(service(guess), seen).sum()) for guess in GUESSES)


def quick_fit(seen: Pieces, turns: int) -> Likeliest:
    """Fit with at most `turns` iterations, to compare layouts."""
    everything = np.ones(len(seen.is_timed), np.bool_)
    missing = _undetermined(seen, everything)
    numbers = {name: one for name, one in NUMBERS.items() if name not in {*missing, *FINE}}
    return likeliest(numbers, _density(seen, {}, everything[: len(seen.first)]), turns)


def fit(seen: Pieces, assumed_of: Callable[[float], Mapping[str, float]]) -> DiskFit:
    """Fit a disk to all services; if it reorders requests, only to those without a choice.

    A disk that reorders serves the requests that it reaches soonest, so the rotation is no longer
    uniformly distributed.  `assumed_of` returns the values of undetermined parameters for a disk
    with this time of revolution in ms.
    """
    share = choice_share(seen)
    only = seen.is_timed[seen.first]  # completions of the pieces of split requests are unknown
    if share is not None and share > CHOOSES:
        # No other request waited at its disks when it began.
        only = only & (np.add.reduceat((seen.waiting > 0).astype(np.int64), seen.first) == 0)
    used = int(only.sum())
    missing = _undetermined(seen, seen.is_timed)
    fixed = {name: PROVISIONAL[name] for name in missing}
    numbers = {name: one for name, one in NUMBERS.items() if name not in missing}

    def again(result: Likeliest) -> Likeliest:
        """Fit again from the previous result, with the values that are fixed now."""
        free = {
            name: replace(one, start=result.values[name])
            for name, one in numbers.items() if name not in fixed
        }  # fmt: skip
        density = _density(seen, fixed, only)
        return with_intervals(likeliest(free, density), free, density)

    density = _density(seen, fixed, only)
    turns = (replace(numbers["rotation_ms"], start=MINUTE_MS / rpm) for rpm in (7200, 12_000))
    starts = (likeliest(numbers | {"rotation_ms": one}, density) for one in turns)
    result = max(starts, key=lambda one: one.log_likelihood)
    numbers["noise_ms"] = replace(numbers["noise_ms"], low=FINE_NOISE_MS)
    result = again(result)
    raw = _rotation(result)
    usual = _usual(raw)
    assumed = assumed_of(usual["rotation_ms"] if usual else raw[0])
    fixed = {name: assumed[name] for name in missing} | usual
    result = again(result)
    for name in ("overhead_ms", "track_ms", "per_mib_ms", "settle_ms"):  # the first explains others
        if name in fixed:
            continue
        low, high = result.low[name], result.high[name]
        if high > VAGUE * low if numbers[name].is_log else high - low > VAGUE_MS:
            missing[name] = f"all values from {low:.3g} to {high:.3g} ms fit equally well"
            fixed[name] = assumed[name]
            result = again(result)
    if missing.keys() & numbers.keys() and "rotation_ms" not in fixed:
        raw = _rotation(result)
        if usual := _usual(raw):
            fixed |= usual
            result = again(result)
    sizes = _sizes(seen, seen.is_timed)
    apart = {
        "overhead_ms": _is_idle(seen),
        "settle_ms": seen.is_write,
        "per_mib_ms": seen.length_bytes > sum(sizes) / 2,
    }
    numbers_of = {name: int(each[seen.first][only].sum()) for name, each in apart.items()}
    return DiskFit(
        replace(result, values={**result.values, **fixed}), missing, share, used, raw,
        numbers_of["overhead_ms"] / used if used else 1.0,
        {name: min(number, used - number) for name, number in numbers_of.items()}, sizes,
    )  # fmt: skip


def _is_idle(seen: Pieces) -> Marks:
    """Return for each piece whether it met an idle disk."""
    return np.asarray(seen.entered_ns + JITTER_MS * MS >= seen.before_ns)


def _density(seen: Pieces, fixed: Mapping[str, float], only: Marks) -> Density:
    """Return the log-likelihood, with slopes, of each request selected by `only`."""

    def density(values: Mapping[str, float]) -> tuple[Floats, Mapping[str, Floats]]:
        value, slopes = with_slopes(service({**values, **fixed}), seen)
        return value[only], {name: slopes[name][only] for name in values}

    return density


def _undetermined(seen: Pieces, chosen: Marks) -> dict[str, str]:
    """Return the parameters that these requests do not determine, and why."""
    result = {}
    if not chosen.any():
        chosen = np.ones_like(chosen)
    idle = int(_is_idle(seen)[chosen].sum())
    waited = int((seen.entered_ns + WAITED_MS * MS < seen.before_ns)[chosen].sum())
    if idle < FEWEST_OF_A_KIND:
        result["overhead_ms"] = f"only {idle} requests found their disk idle"
    elif waited < FEWEST_OF_A_KIND:
        result["overhead_ms"] = (
            f"only {waited} requests waited for another at their disk; the others show only the "
            "sum of overhead and seek"
        )
    short, long = _sizes(seen, chosen)
    if long - short < SIZES_APART:
        low, high = f"{short / 1024:.0f}", f"{long / 1024:.0f}"
        sizes = f"{low} KiB" if low == high else f"{low} to {high} KiB"
        result["per_mib_ms"] = f"nearly all requests are of {sizes}"
    writes = int(seen.is_write[chosen].sum())
    if min(writes, int(chosen.sum()) - writes) < FEWEST_OF_A_KIND:
        kind = "writes" if writes < FEWEST_OF_A_KIND else "reads"
        result["settle_ms"] = f"too few {kind} to compare reads and writes"
    return result


def _sizes(seen: Pieces, chosen: Marks) -> tuple[float, float]:
    """Return the sizes in bytes that nearly all chosen pieces are between."""
    short, long = (
        np.percentile(seen.length_bytes[chosen], SIZES_BETWEEN) if chosen.any() else (0, 0)
    )
    return float(short), float(long)


def _rotation(result: Likeliest) -> Rotation:
    name = "rotation_ms"
    return result.values[name], result.low[name], result.high[name]


def _usual(rotation: Rotation) -> dict[str, float]:
    """Return as a parameter the only usual speed in the interval; empty if there is none."""
    low, high = speeds(rotation)
    inside = [rpm for rpm in USUAL_RPM if low <= rpm <= high]
    return {"rotation_ms": MINUTE_MS / inside[0]} if len(inside) == 1 else {}


def speeds(rotation_ms: Rotation) -> tuple[float, float]:
    """Return the interval of the speed in rpm for an estimate of the rotation and its interval."""
    raw, high, low = (MINUTE_MS / each for each in rotation_ms)
    return raw - np.hypot(raw - low, RPM_OFF * raw), raw + np.hypot(high - raw, RPM_OFF * raw)
