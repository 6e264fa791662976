"""Fit of hard disks: the parameters of one member, given which layout the volume has."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from hybridsim.answers.fitting.likeliest import (
    Density,
    Likeliest,
    Number,
    likeliest,
    with_intervals,
)
from hybridsim.answers.fitting.observed import Marks
from hybridsim.answers.fitting.order import CHOOSES, choice_share
from hybridsim.answers.fitting.pieces import Pieces
from hybridsim.answers.fitting.service import Service, log_likelihood

FEWEST = 300  # services that a fit of an arm and a platter needs
FEWEST_OF_A_KIND = 100  # writes beside reads, requests that found their disk idle
SIZES_APART = 8 * 1024  # bytes by which sizes differ, to look for a transfer rate
USUAL_RPM = (4200, 5400, 5900, 7200, 10_000, 15_000)
MINUTE_MS = 60e3
VAGUE = 6.0  # times that the ends of an interval lie apart, for a value to be given up

NUMBERS = {
    "overhead_ms": Number(0.2, 0.005, 50.0),
    "track_ms": Number(0.8, 0.005, 8.0),
    "reach_ms": Number(8.0, 0.02, 60.0),  # from the shortest seek to the longest
    "linear": Number(0.1, -0.95, 0.95, is_log=False),
    "bend": Number(0.0, -0.6, 0.6, is_log=False),
    "rotation_ms": Number(MINUTE_MS / 7200, MINUTE_MS / 20_000, MINUTE_MS / 3500),
    "per_mib_ms": Number(6.0, 0.2, 200.0),
    "inner": Number(0.5, 0.0, 1.2, is_log=False),
    "settle_ms": Number(0.5, 0.005, 10.0),
    "noise_ms": Number(0.4, 0.08, 8.0),  # with less, the edges of a revolution make it rugged
    "stray": Number(0.05, 0.001, 0.5),
}
# Where requests cannot tell them, these are of little consequence too.
UNTIL_KNOWN = {"overhead_ms": 0.2, "per_mib_ms": 6.0, "inner": 0.5, "bend": 0.0,
               "settle_ms": 0.0}  # fmt: skip
FINE = ("bend", "inner")  # too little to tell layouts from each other
# Disks of the three classes, to compare layouts by before anything is fitted.
GUESSES = tuple(
    {
        "overhead_ms": 0.5,
        "track_ms": 0.6,
        "reach_ms": reach,
        "linear": 0.1,
        "bend": 0.0,
        "noise_ms": 0.8,
    }
    | {
        "rotation_ms": MINUTE_MS / rpm,
        "per_mib_ms": 7.0,
        "inner": 0.5,
        "settle_ms": 0.3,
        "stray": 0.1,
    }
    for rpm, reach in ((7200, 8.0), (10_000, 5.0), (15_000, 3.5))
)


@dataclass(frozen=True)
class DiskFit:
    """What was found, and what could not be."""

    likeliest: Likeliest
    untold: Mapping[str, str]  # parameter: why the capture does not tell it
    chooses: float | None  # share of services in which an older waiting request was passed over
    used: int  # requests that the figures rest on
    free_rotation: tuple[float, float, float]  # estimate and interval before a usual speed is taken

    @property
    def service(self) -> Service:
        """The parameters as the model takes them."""
        return service(self.likeliest.values)

    @property
    def explains(self) -> bool:
        """Whether the model is one of what was seen at all."""
        result = self.likeliest.values
        ends = NUMBERS["rotation_ms"]
        turns = 1.01 * ends.low < result["rotation_ms"] < 0.99 * ends.high
        return turns and result["stray"] < 0.3 and result["noise_ms"] < 0.6 * result["rotation_ms"]


def service(values: Mapping[str, float]) -> Service:
    """Return the parameters of the model from free numbers."""
    all_of_them = {**UNTIL_KNOWN, **values}
    full_ms = all_of_them["track_ms"] + all_of_them.pop("reach_ms")
    return Service(full_ms=full_ms, **all_of_them)


def guessed(seen: Pieces) -> float:
    """Return the likelihood under the best of the guesses."""
    return max(float(log_likelihood(service(guess), seen).sum()) for guess in GUESSES)


def quick_fit(seen: Pieces, turns: int) -> Likeliest:
    """Search for so many turns only, to compare layouts."""
    everything = np.ones(len(seen.is_timed), np.bool_)
    missing = _untold(seen, everything)
    numbers = {name: one for name, one in NUMBERS.items() if name not in {*missing, *FINE}}
    return likeliest(numbers, _density(seen, {}, everything[: len(seen.first)]), turns)


def fit(seen: Pieces, assumed_of: Callable[[float], Mapping[str, float]]) -> DiskFit:
    """Fit a disk to all services, or where it chooses among requests, to those without a choice.

    A disk that chooses takes what is near in time, so that its rotations are no longer even.
    `assumed_of` gives the values of what cannot be told, for a disk of this revolution in ms.
    """
    share = choice_share(seen)
    only = seen.is_timed[seen.first]  # of split requests only the last piece's time is known
    if share is not None and share > CHOOSES:
        only = only & _without_choice(seen)
    used = int(only.sum())
    missing = _untold(seen, seen.is_timed)
    fixed = {name: UNTIL_KNOWN[name] for name in missing}
    left_out = {*missing, "inner"} if "per_mib_ms" in missing else {*missing}
    numbers = {name: one for name, one in NUMBERS.items() if name not in left_out}
    result = _best(numbers, seen, fixed, only)
    raw = _rotation(result)
    usual = _usual(raw[1], raw[2])
    assumed = assumed_of(usual or raw[0])
    fixed = {name: assumed[name] for name in missing}
    if usual:
        fixed["rotation_ms"] = usual
    result = _again(numbers, seen, fixed, only, result)
    for name in ("track_ms", "overhead_ms", "per_mib_ms", "settle_ms"):
        if name not in fixed and result.high[name] > VAGUE * result.low[name]:
            low, high = result.low[name], result.high[name]
            missing[name] = f"anything from {low:.3g} to {high:.3g} ms fits as well"
            fixed[name] = assumed[name]
    if missing.keys() & numbers.keys():
        result = _again(numbers, seen, fixed, only, result)
        if "rotation_ms" not in fixed:
            raw = _rotation(result)
            usual = _usual(raw[1], raw[2])
            if usual:
                fixed["rotation_ms"] = usual
                result = _again(numbers, seen, fixed, only, result)
    values = {**result.values, **fixed}
    return DiskFit(replace(result, values=values), missing, share, used, raw)


def _best(
    numbers: dict[str, Number], seen: Pieces, fixed: dict[str, float], only: Marks
) -> Likeliest:
    """Search from disks of several speeds."""
    density = _density(seen, fixed, only)
    starts = (
        {**numbers, "rotation_ms": replace(numbers["rotation_ms"], start=MINUTE_MS / rpm)}
        for rpm in (7200, 12_000)
    )
    result = max((likeliest(one, density) for one in starts), key=lambda one: one.log_likelihood)
    return with_intervals(result, numbers, density)


def _again(
    numbers: dict[str, Number],
    seen: Pieces,
    fixed: dict[str, float],
    only: Marks,
    result: Likeliest,
) -> Likeliest:
    """Search from what was found, with some values fixed."""
    free = {
        name: replace(one, start=result.values[name])
        for name, one in numbers.items()
        if name not in fixed
    }
    density = _density(seen, fixed, only)
    return with_intervals(likeliest(free, density), free, density)


def _density(seen: Pieces, fixed: Mapping[str, float], only: Marks) -> Density:
    """Return the likelihood of each request chosen in `only`."""
    return lambda values: log_likelihood(service({**values, **fixed}), seen)[only]


def _without_choice(seen: Pieces) -> Marks:
    """Tell of each request whether its disks had nothing else to do when they began it."""
    return np.asarray(np.add.reduceat((seen.waiting > 0).astype(np.int64), seen.first) == 0)


def _untold(seen: Pieces, chosen: Marks) -> dict[str, str]:
    """Return the parameters that requests like these cannot tell, and why."""
    result = {}
    if not chosen.any():
        chosen = np.ones_like(chosen)
    idle = int((seen.entered_ns > seen.before_ns)[chosen].sum())
    if idle < FEWEST_OF_A_KIND:
        result["overhead_ms"] = f"only {idle} requests found their disk idle"
    low, high = np.percentile(seen.length_bytes[chosen], (2, 98)) / 1024
    if (high - low) * 1024 < SIZES_APART:
        sizes = f"{low:.0f} KiB" if low == high else f"{low:.0f} to {high:.0f} KiB"
        result["per_mib_ms"] = f"nearly all requests are of {sizes}"
    writes = int(seen.is_write[chosen].sum())
    if min(writes, int(chosen.sum()) - writes) < FEWEST_OF_A_KIND:
        kind = "writes" if writes < FEWEST_OF_A_KIND else "reads"
        result["settle_ms"] = f"too few {kind} to hold reads and writes against each other"
    return result


def _rotation(result: Likeliest) -> tuple[float, float, float]:
    """Return the estimate of a revolution and its interval."""
    name = "rotation_ms"
    return result.values[name], result.low[name], result.high[name]


def _usual(low_ms: float, high_ms: float) -> float | None:
    """Return the revolution of the one usual speed in an interval."""
    inside = [MINUTE_MS / rpm for rpm in USUAL_RPM if low_ms <= MINUTE_MS / rpm <= high_ms]
    return inside[0] if len(inside) == 1 else None
