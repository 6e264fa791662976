"""Which disks have the latency percentiles of random reads, one at a time.

A read takes base + reach ((1 - linear) sqrt(x) + linear x) + rotation u: base is the overhead and
the shortest seek, x the share of the stroke, of density 2 (1 - x), u uniform.  What tells the seek
from the rotation is the shape of the distribution alone, so that very different rotations can be
possible, on one side more of them than on the other.  For each of them the other values are known
nearly normally, and it has a weight: its likelihood, the linear share's prior included, times the
room that the others then have (H. Rue, S. Martino, N. Chopin, Approximate Bayesian inference for
latent Gaussian models by using integrated nested Laplace approximations, 2009).  Beforehand all
rotations of NUMBERS are as likely, by their logarithms.  So says the measurement alone; that disks
are built with few speeds is added to it by `with_usual`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares
from scipy.special import ndtr

from hybridsim.answers.fitting.array import MEAN_ROOT, MEAN_SHARE
from hybridsim.answers.fitting.disks import MINUTE_MS, NUMBERS, USUAL_RPM
from hybridsim.answers.fitting.service import MS
from hybridsim.foundation.arrays import Floats

# Share of a seek that grows with the distance itself, not its root: 0 to 0.45 for the disks of the
# catalog.  Percentiles hardly determine it, but without it the rotation takes its place.
LINEAR, LINEAR_SPREAD, LINEAR_ENDS = 0.2, 0.15, (-0.2, 0.8)
# A percentile of fio is the middle of a bin, of which each power of two has so many.
BINS = 64
PLACES = 200  # positions of the arm in the distribution of seeks
TIMES = 400  # of the distribution of latencies
FIRST_MS = MINUTE_MS / 7200  # the search begins there
ROTATIONS = np.geomspace(NUMBERS["rotation_ms"].low, NUMBERS["rotation_ms"].high, 49)  # fitted
FINE = 1201  # rotations whose values are found between these
NARROW_MS = 1e-4  # of a quantile
LEAST_WEIGHT, UNLIKELY = 1e-6, 16.0  # of the largest weight; its logarithm that ends the search
NO_SPREAD = -1e3  # logarithm of the determinant of a covariance
# Share of the disks, beforehand, that have one of the usual speeds, each as likely.  Nearly all
# disks have; but intervals are to hold for the others too.  With 0.5, 0.7 and 0.8 those of the
# seeks hold in 98, 98 and 97 % of simulated disks of the catalog, and in 96, 95 and 91 % of those
# at 0.85 to 1.18 times its speeds (seeds from 300000, the last also from 410000: it was chosen so).
USUAL = 0.75
# Bounds of base and reach in ms for all disks.
_BASE, _REACH = NUMBERS["overhead_ms"].high, NUMBERS["reach_ms"]
LOWEST = [np.log(NUMBERS["track_ms"].low), np.log(_REACH.low), LINEAR_ENDS[0]]
HIGHEST = [np.log(_BASE), np.log(_REACH.high), LINEAR_ENDS[1]]
_SHARE = 1 - np.sqrt(1 - (np.arange(PLACES) + 0.5) / PLACES)  # x at equally spaced quantiles
_ROOT = np.sqrt(_SHARE)


@dataclass(frozen=True)
class Rotations:
    """The rotations that are possible in ms, with what is known for each of them."""

    rotation_ms: Floats
    weight: Floats  # together 1
    free: Floats  # for each: logarithms of base and reach in ms, and the linear share
    spread: Floats  # their covariance, for each

    @property
    def middle_ms(self) -> float:
        """The rotation that as many possible ones are shorter as longer than."""
        return float(self.rotation_ms[self._middle])

    @property
    def _middle(self) -> int:
        return int(np.searchsorted(np.cumsum(self.weight), 0.5))

    def with_usual(self) -> Rotations:
        """Return what is known if disks of a usual speed are as frequent as USUAL."""
        ends, whole = self.rotation_ms[[0, -1]], NUMBERS["rotation_ms"]
        usual = np.array(sorted(MINUTE_MS / rpm for rpm in USUAL_RPM))
        usual = usual[(usual >= ends[0]) & (usual <= ends[1])]
        step = np.log(ends[1] / ends[0]) / max(len(self.weight) - 1, 1)
        any_speed = self.weight * (1 - USUAL) * step / np.log(whole.high / whole.low)
        of_usual = np.interp(usual, self.rotation_ms, self.weight) * USUAL / len(USUAL_RPM)
        at = np.searchsorted(self.rotation_ms, usual)
        near = np.argmin(np.abs(self.rotation_ms - usual[:, None]), axis=1)
        weight = np.insert(any_speed, at, of_usual)
        return Rotations(
            np.insert(self.rotation_ms, at, usual),
            weight / weight.sum(),
            np.insert(self.free, at, self.free[near], axis=0),
            np.insert(self.spread, at, self.spread[near], axis=0),
        )

    def values(self) -> tuple[float, float, float, float]:
        """Return base, reach and rotation in ms, and the linear share, for the middle rotation.

        They belong together: base, reach and share are the likeliest with this rotation.
        """
        base, reach, linear = self.free[self._middle]
        return float(np.exp(base)), float(np.exp(reach)), self.middle_ms, float(linear)

    def rotation(self, level: float) -> tuple[float, float]:
        """Return the ends of the rotation's interval in ms."""
        below = np.cumsum(self.weight) - self.weight / 2
        low, high = np.interp([(1 - level) / 2, (1 + level) / 2], below, self.rotation_ms)
        return float(low), float(high)

    def seek(
        self, share: float | None, level: float, overheads_ms: Floats | None = None
    ) -> tuple[float, float]:
        """Return the ends of the interval of a seek over a share of the reach (None: the mean).

        An overhead, each of `overheads_ms` as likely, is part of the base, but not of the seek.
        """
        base, reach, linear = np.exp(self.free[:, 0]), np.exp(self.free[:, 1]), self.free[:, 2]
        part = linear * MEAN_SHARE + (1 - linear) * MEAN_ROOT if share is None else share
        by_linear = reach * (MEAN_SHARE - MEAN_ROOT) if share is None else 0 * reach
        slope = np.stack([base, reach * part, by_linear], axis=1)
        spread = np.sqrt(np.einsum("ri,rij,rj->r", slope, self.spread, slope))
        overheads = np.minimum(np.zeros(1) if overheads_ms is None else overheads_ms, base[:, None])
        middle = (base + reach * part)[:, None] - overheads
        low, high = (self._quantile(middle, spread[:, None], each)
                     for each in ((1 - level) / 2, (1 + level) / 2))  # fmt: skip
        return low, high

    def _quantile(self, middle: Floats, spread: Floats, share: float) -> float:
        """Return a quantile of a value that is normal for each rotation and overhead."""
        low, high = float((middle - 9 * spread).min()), float((middle + 9 * spread).max())
        while high - low > NARROW_MS:
            at = (low + high) / 2
            below = float(self.weight @ ndtr((at - middle) / spread).mean(axis=1))
            low, high = (at, high) if below < share else (low, at)
        return high


def rotations(shares: Floats, took_ns: Floats, transfer_ms: float, requests: int) -> Rotations:
    """Return the disks that have these percentiles, the latencies at `shares` of the requests."""
    seen_ms = took_ns / MS - transfer_ms
    bin_ms = np.exp2(np.floor(np.log2(took_ns))) / BINS / MS
    whitening = _whitening(shares, seen_ms, bin_ms, requests)
    found = _fits(shares, seen_ms, whitening)
    # No model is exact: where the percentiles are further off than chance, they say less.  The
    # range of the linear share does not depend on that.
    misfit = min(found.values(), key=lambda one: one.cost).misfit / max(len(shares) - 3, 1)
    if misfit > 1:
        found = _fits(shares, seen_ms, whitening / np.sqrt(misfit))
    coarse = ROTATIONS[sorted(found)]
    known = [found[number] for number in sorted(found)]
    spread = np.array([one.spread for one in known])
    # A parameter at a bound has no spread: far less likely than any other, but still a number.
    extent = np.maximum(np.linalg.slogdet(spread)[1], NO_SPREAD)
    likely = extent / 2 - np.array([one.cost for one in known])
    fine = np.geomspace(coarse[0], coarse[-1], FINE)
    weight = np.exp(_between(fine, coarse, likely - likely.max()))
    keep = weight >= LEAST_WEIGHT
    return Rotations(
        fine[keep],
        weight[keep] / weight[keep].sum(),
        _between(fine[keep], coarse, np.array([one.free for one in known])),
        _between(fine[keep], coarse, spread),
    )


class _Fitted(NamedTuple):
    """Base, reach and the linear share for one rotation, their covariance, and how far off."""

    free: Floats
    spread: Floats
    cost: float  # minus the logarithm of the likelihood, the linear share's included
    misfit: float  # sum of the squares of the percentiles' errors


def _fits(shares: Floats, seen_ms: Floats, whitening: Floats) -> dict[int, _Fitted]:
    """Return the fits for all ROTATIONS that are not far less likely than the best, by number."""

    def fitted(rotation_ms: float, start: Floats) -> _Fitted:
        def off(free: Floats) -> Floats:
            base, reach, linear = free
            model = quantiles(np.exp(base), np.exp(reach), rotation_ms, linear, shares)
            return np.append(whitening @ (model / seen_ms - 1), (linear - LINEAR) / LINEAR_SPREAD)

        result = least_squares(off, np.clip(start, LOWEST, HIGHEST), x_scale=0.3,
                               bounds=(LOWEST, HIGHEST))  # fmt: skip
        spread = np.linalg.pinv(result.jac.T @ result.jac)
        return _Fitted(result.x, spread, float(result.cost), float((result.fun[:-1] ** 2).sum()))

    first = int(np.argmin(np.abs(ROTATIONS - FIRST_MS)))
    found: dict[int, _Fitted] = {}
    best = math.inf
    for way in (range(first, len(ROTATIONS)), range(first - 1, -1, -1)):
        start = found[first].free if found else np.array([np.log(0.8), np.log(8.0), LINEAR])
        for number in way:
            one = fitted(ROTATIONS[number], start)
            found[number], start, best = one, one.free, min(best, one.cost)
            if one.cost - best > UNLIKELY * max(1.0, best):
                break
    return found


def _between(fine: Floats, coarse: Floats, values: Floats) -> Floats:
    """Return values between those of `coarse`, linearly in the logarithm."""
    place = np.interp(np.log(fine), np.log(coarse), np.arange(len(coarse)))
    before = np.minimum(place.astype(int), len(coarse) - 2)
    part = (place - before).reshape(-1, *[1] * (values.ndim - 1))
    return np.asarray(values[before] * (1 - part) + values[before + 1] * part)


def quantiles(base: float, reach: float, rotation: float, linear: float, shares: Floats) -> Floats:
    """Return the latencies in ms that these shares of the requests are below."""
    seek = base + reach * ((1 - linear) * _ROOT + linear * _SHARE)
    times = np.linspace(seek[0], seek[-1] + rotation, TIMES)
    below = (_waited(times, seek) - _waited(times - rotation, seek)) / rotation
    return np.asarray(np.interp(shares, below, times))


def _waited(times: Floats, seek: Floats) -> Floats:
    """Return the mean of how long each seek is over at these times; 0 where it is not yet."""
    count = np.searchsorted(seek, times, side="right")
    total = np.concatenate([[0.0], np.cumsum(seek)])
    return np.asarray((count * times - total[count]) / len(seek))


def _whitening(shares: Floats, seen: Floats, bins: Floats, count: int) -> Floats:
    """Return the matrix that makes the errors of the percentiles independent with variance 1.

    The covariance of the percentiles p < q of n samples is p (1 - q) / (n f(p) f(q)), where f is
    the density.  Each is anywhere in its bin.
    """
    slope = np.gradient(seen, shares)
    together = np.minimum.outer(shares, shares) - np.outer(shares, shares)
    spread = together * np.outer(slope, slope) / count / np.outer(seen, seen)
    spread += np.diag((bins / seen) ** 2 / 12)
    return np.asarray(np.linalg.inv(np.linalg.cholesky(spread)))
