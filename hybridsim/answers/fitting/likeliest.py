"""Maximum-likelihood estimates of parameters, with confidence intervals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from hybridsim.answers.fitting.observed import Floats

STEPS = (1e-6, 0.05)  # of a free number, at least and at most, for the curvature
Z95 = 1.96
AT_BOUND = 1e-9  # of a free number
FLAT = 0.1  # curvature of a direction in which the observations determine nothing
FLAT_SHARE = 1e-4  # squared component of a number in such directions


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
