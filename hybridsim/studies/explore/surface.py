"""Interpolation of one figure between replays, with an error measured by leaving replays out.

A Gaussian process over the axes (Rasmussen and Williams, 2006, chapters 2 and 5): what two
machines have in common falls with their distance in cache size, in what LRU serves at that size,
in load and number of disks (Matern 3/2), and by a factor where kind, mode, policy or SSD differ.
The distances are fitted by maximum likelihood.

The band: leaving each replay out gives its error in units of the standard deviation that the model
expects there.  Where those errors are large nearby, as at a cliff, the band widens; its factor is
chosen so that COVERED of the replays that were left out are inside: one factor for each mode, as
surfaces of write-back have cliffs (the limits of dirty data) that others lack.  Where that is
likelier, each mode has a process of its own: writes that wait for the disks follow other rules
than writes that do not.

The HTML page computes the same in JavaScript (show/html/templates/explorer.js): change both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridsim.studies.explore.axes import AT_CACHE, Axis, Place

Floats = npt.NDArray[np.float64]

# The band holds so many of the replays of a mode that are left out, which is some 95 of 100 others,
# as replays are dense where the surface was in doubt.  Chosen on four captures (RESULTS.md).
COVERED = 0.97
FEWEST = 8  # replays that a surface needs, and a factor of a mode
FITTED_MOST = 360  # replays that parameters are fitted to, spread over all: a fit takes n^3
FEWEST_APART = 24  # replays of each mode that a process of each mode needs
ERROR_MOST = 8.0  # standard deviations: a larger error counts no more
NEARBY = 1.0  # weight of the expected error among those found nearby
SHARPER = 4  # power of what machines have in common, that makes a replay "nearby"
ROOT3 = math.sqrt(3.0)
# Ends of the fitted parameters, as logarithms: distances relative to the whole axis, the factors of
# words as -ln, and the scatter relative to the variance.
ENDS = {"ordered": (math.log(0.05), math.log(30)), "word": (math.log(1e-4), math.log(4)),
        "scatter": (math.log(1e-7), math.log(3))}  # fmt: skip
FIRST = {"ordered": math.log(1.0), "word": math.log(0.2), "scatter": math.log(1e-3)}
LINEAR, LOG = "linear", "log"
CONSTANT = -1e10  # minus the logarithm of the likelihood of equal values


class Coordinates:
    """Places as numbers: one column for each ordered axis that varies, one for each word.

    Sizes have a second one where LRU's curve is known: what it serves.
    """

    def __init__(self, axes: Sequence[Axis]) -> None:
        self.ordered: list[tuple[int, Floats]] = []  # axis, positions of its choices in 0 .. 1
        self.words: list[tuple[int, npt.NDArray[np.int64]]] = []  # axis, code of each choice
        # Code of the mode of each cache.
        self.modes = _codes([each.words[1] for each in axes[AT_CACHE].choices])
        for number, axis in enumerate(axes):
            if not axis.varies:
                continue
            if axis.is_ordered:
                at = np.array([each.at for each in axis.choices])
                self.ordered.append((number, (at - at[0]) / (at[-1] - at[0])))
                served = np.array(axis.served)
                if len(served) and served[-1] > served[0]:
                    self.ordered.append((number, (served - served[0]) / (served[-1] - served[0])))
            elif number == AT_CACHE:
                for word in zip(*(each.words for each in axis.choices)):
                    if len(set(word)) > 1:
                        self.words.append((number, _codes(word)))
            else:
                self.words.append((number, _codes([each.name for each in axis.choices])))

    @property
    def kinds(self) -> list[str]:
        """The kind of each parameter: of the ordered axes, of the words, the scatter."""
        return ["ordered"] * len(self.ordered) + ["word"] * len(self.words) + ["scatter"]

    def mode_of(self, places: npt.ArrayLike) -> npt.NDArray[np.int64]:
        """Return the code of the mode of each place."""
        return self.modes[np.atleast_2d(np.asarray(places, np.int64))[:, AT_CACHE]]

    def apart(self, some: npt.ArrayLike, others: npt.ArrayLike) -> list[Floats]:
        """Return how far places are apart: a matrix per parameter; 0 or 1 for words."""
        one, two = (np.atleast_2d(np.asarray(each, np.int64)) for each in (some, others))
        result = [
            np.abs(at[one[:, axis]][:, None] - at[two[:, axis]][None, :])
            for axis, at in self.ordered
        ]
        result += [
            (code[one[:, axis]][:, None] != code[two[:, axis]][None, :]).astype(np.float64)
            for axis, code in self.words
        ]
        return result

    def alike(self, apart: Sequence[Floats], parameters: Floats) -> Floats:
        """Return what places have in common, 0 to 1."""
        scales = np.exp(parameters)
        ordered = len(self.ordered)
        exponent = np.zeros(apart[0].shape) if apart else np.ones((1, 1))
        factor = np.ones(exponent.shape)
        for number, each in enumerate(apart):
            if number < ordered:
                far = ROOT3 * each / scales[number]
                factor *= 1 + far
                exponent += far
            else:
                exponent += each * scales[number]
        result: Floats = factor * np.exp(-exponent)
        return result


def _codes(words: Sequence[str]) -> npt.NDArray[np.int64]:
    known = list(dict.fromkeys(words))
    return np.array([known.index(each) for each in words], np.int64)


def fitted(where: Coordinates, places: npt.ArrayLike, values: Floats) -> tuple[Floats, float]:
    """Return the parameters of maximum likelihood for values at places, and minus its logarithm."""
    from scipy.linalg.lapack import dpotrf, dpotri
    from scipy.optimize import minimize

    y = values - values.mean()
    spread = float(y.std())
    if spread < 1e-12 * (1 + abs(float(values.mean()))):  # a constant
        return np.array([FIRST[each] for each in where.kinds]), CONSTANT
    y = y / spread
    apart = where.apart(places, places)
    n = len(y)
    eye = np.eye(n)
    ordered = len(where.ordered)

    def cost(parameters: Floats) -> tuple[float, Floats]:
        scales = np.exp(parameters)
        alike = where.alike(apart, parameters)
        whole = alike + (scales[-1] + 1e-10) * eye
        lower, failed = dpotrf(whole, lower=1, clean=1, overwrite_a=1)
        if failed:
            return 1e10, np.zeros(len(parameters))
        diagonal = np.diag(lower).copy()
        inverse, _ = dpotri(lower, lower=1, overwrite_c=1)
        inverse = inverse + np.tril(inverse, -1).T
        weights = inverse @ y
        variance = float(y @ weights) / n
        value = 0.5 * n * math.log(variance) + float(np.log(diagonal).sum())
        slope = inverse - np.outer(weights, weights) / variance
        gradient = np.empty(len(parameters))
        for number, each in enumerate(apart):
            if number < ordered:  # of (1 + f) exp(-f) with f = far / scale, by ln(scale)
                far = ROOT3 * each / scales[number]
                changes = alike * far * far / (1 + far)
            else:
                changes = -alike * each * scales[number]
            gradient[number] = 0.5 * float((slope * changes).sum())
        gradient[-1] = 0.5 * scales[-1] * float(np.trace(slope))
        return value, gradient

    kinds = where.kinds
    found = minimize(
        cost, np.array([FIRST[each] for each in kinds]), jac=True, method="L-BFGS-B",
        bounds=[ENDS[each] for each in kinds], options={"maxiter": 60},
    )  # fmt: skip
    result: Floats = np.round(found.x, 4)
    return result, float(found.fun) + n * math.log(spread)


@dataclass(frozen=True)
class Part:
    """The process of some replays: those of one mode, or all."""

    parameters: Floats
    places: npt.NDArray[np.int64]  # of the replays whose figure is known
    mean: float
    variance: float
    alike: Floats
    inverse: Floats
    weights: Floats
    errors: Floats  # of each replay left out, in standard deviations

    @classmethod
    def of(
        cls, where: Coordinates, places: npt.NDArray[np.int64], y: Floats, parameters: Floats
    ) -> Part:
        """Return the process of values `y` at places."""
        n = len(y)
        mean = float(y.mean())
        alike = where.alike(where.apart(places, places), parameters)
        scatter = math.exp(parameters[-1]) + 1e-10
        inverse = np.asarray(np.linalg.inv(alike + scatter * np.eye(n)), np.float64)
        weights: Floats = inverse @ (y - mean)
        variance = max(float((y - mean) @ weights) / n, 1e-18)
        own = np.diag(inverse)
        errors: Floats = weights / own / np.sqrt(variance / own)
        return cls(parameters, places, mean, variance, alike, inverse, weights, errors)

    def ratios(self) -> Floats:
        """Return the errors of the replays left out, relative to those found nearby."""
        near = self.alike**SHARPER * (1 - np.eye(len(self.errors)))
        result: Floats = np.abs(self.errors) / _unrest(near, self.errors)
        return result

    def at(self, where: Coordinates, places: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Return estimate and expected error at places, in the scale of the interpolation."""
        alike = where.alike(where.apart(places, self.places), self.parameters)
        middle = self.mean + alike @ self.weights
        scatter = math.exp(self.parameters[-1])
        left = 1 + scatter - np.einsum("ij,jk,ik->i", alike, self.inverse, alike)
        spread = np.sqrt(self.variance * np.maximum(left, scatter))
        return middle, spread * _unrest(alike**SHARPER, self.errors)


@dataclass(frozen=True)
class Surface:
    """The surface of one figure: estimates with a band, at any place."""

    name: str
    scale: str  # LINEAR or LOG: in which the figure is interpolated
    floor: float  # added before the logarithm
    where: Coordinates
    parameters: Floats  # of all replays together
    parts: tuple[Part, ...]  # of all replays, or one of each mode
    factors: Floats  # half of the band, in expected errors, by the code of the mode

    @classmethod
    def of(
        cls,
        name: str,
        scale: str,
        where: Coordinates,
        places: Sequence[Place],
        values: Sequence[float | None],
        like: Surface | None = None,
    ) -> Surface | None:
        """Return the surface of values, None where unknown; None for too few known values.

        Its parameters are those of `like`, a similar figure; without, they are fitted: to all
        replays, and to each mode alone, of which the likelier is taken.
        """
        rows = np.array([n for n, each in enumerate(values) if each is not None], np.int64)
        if len(rows) < FEWEST:
            return None
        known = np.array([float(values[n] or 0.0) for n in rows])
        least = known[known > 0].min() if (known > 0).any() else 1.0
        low = least / 10 if (known <= 0).any() else 0.0
        y = known if scale == LINEAR else np.log(np.maximum(known, 0.0) + low)
        at = np.asarray(places, np.int64)[rows]
        modes = where.mode_of(at)
        of_each = [modes == mode for mode in range(int(where.modes.max()) + 1)]
        can_split = len(of_each) > 1 and all(each.sum() >= FEWEST_APART for each in of_each)
        if like is not None:
            together = like.parameters
            apart = [each.parameters for each in like.parts]
            can_split = can_split and len(apart) > 1
        else:
            some = np.linspace(0, len(y) - 1, min(len(y), FITTED_MOST)).astype(np.int64)
            together, cost = fitted(where, at[some], y[some])
            if can_split and cost > CONSTANT:
                each_some = [some[own[some]] for own in of_each]
                each_fit = [fitted(where, at[own], y[own]) for own in each_some]
                apart = [parameters for parameters, _ in each_fit]
                more = (len(of_each) - 1) * (len(together) + 2)  # parameters, mean, variance
                price = 0.5 * more * math.log(len(some))
                can_split = sum(one for _, one in each_fit) + price < cost
            else:
                can_split = False
        chosen = zip(of_each, apart) if can_split else [(np.ones(len(y), bool), together)]
        parts = tuple(Part.of(where, at[own], y[own], parameters) for own, parameters in chosen)
        ratios = np.concatenate([each.ratios() for each in parts])
        places_of = np.concatenate([each.places for each in parts])
        factors = _factors(ratios, where.mode_of(places_of), len(of_each))
        return cls(name, scale, low, where, together, parts, factors)

    def at(self, places: Sequence[Place] | npt.NDArray[np.int64]) -> tuple[Floats, Floats, Floats]:
        """Return estimate, lower and upper end of the band at places."""
        middle, half = self.raw(places)
        return self._out(middle), self._out(middle - half), self._out(middle + half)

    def raw(self, places: Sequence[Place] | npt.NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return estimate and half of the band, in the scale of the interpolation."""
        at = np.atleast_2d(np.asarray(places, np.int64))
        modes = self.where.mode_of(at)
        middle, expected = np.empty(len(at)), np.empty(len(at))
        for mode, part in enumerate(self.parts):
            own = modes == mode if len(self.parts) > 1 else np.ones(len(at), bool)
            if own.any():
                middle[own], expected[own] = part.at(self.where, at[own])
        return middle, self.factors[modes] * expected

    def _out(self, values: Floats) -> Floats:
        if self.scale == LINEAR:
            return values
        result: Floats = np.maximum(np.exp(np.minimum(values, 690.0)) - self.floor, 0.0)
        return result

    def to_dict(self) -> dict[str, Any]:
        """Return what JavaScript needs, beside the replays: parameters, factors, scale."""
        apart = len(self.parts) > 1
        return {
            "scale": self.scale,
            "floor": self.floor,
            "parameters": self.parameters.tolist(),
            "parts": [each.parameters.tolist() for each in self.parts],
            "part_of": [int(each) * apart for each in self.where.modes],
            "factor": float(self.factors.max()),
            "factors": self.factors[self.where.modes].tolist(),
        }


def _factors(ratios: Floats, modes: npt.NDArray[np.int64], number: int) -> Floats:
    """Return the factor of each mode: of all replays where a mode has too few."""
    of_each = [ratios[modes == mode] for mode in range(number)]
    return np.array([_factor(own if len(own) >= FEWEST else ratios) for own in of_each])


def _factor(ratios: Floats) -> float:
    ordered = np.sort(ratios)
    n = len(ordered)
    return float(ordered[min(math.ceil(COVERED * (n + 1)), n) - 1])


def _unrest(near: Floats, errors: Floats) -> Floats:
    """Return by how much errors nearby exceed those expected, as a factor."""
    squares = np.minimum(np.abs(errors), ERROR_MOST) ** 2
    result: Floats = np.sqrt((NEARBY + near @ squares) / (NEARBY + near.sum(axis=1)))
    return result
