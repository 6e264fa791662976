"""The settings to try: a grid, random ones, or generations that approach the Pareto front.

A search is a generator: it yields settings, receives the scores of each (one value per objective,
None where a setting failed), and may yield more.  The same scores lead to the same settings: a
sweep that is restarted after a crash requests the points that are on disk, and continues there.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from hybridsim.foundation.errors import UsageError
from hybridsim.studies.sweep.plan import Axis, Plan

Values = dict[str, Any]
Score = Sequence[float | None] | None
Search = Generator[list[Values], list[Score], None]
GENERATION = 20  # settings per generation


def search(plan: Plan) -> Search:
    """Return the search of a plan."""
    return {"grid": grid, "random": at_random, "pareto": pareto}[plan.kind](plan)


def grid(plan: Plan) -> Search:
    """Try every setting; the last key changes fastest."""
    keys = [axis.key for axis in plan.axes]
    every = itertools.product(*(axis.values for axis in plan.axes))
    yield [dict(zip(keys, values)) for values in every]


def at_random(plan: Plan) -> Search:
    """Try uniformly random settings by the seed of the search, without duplicates."""
    draw = np.random.default_rng(plan.seed)
    settings: dict[str, Values] = {}
    for _ in range(10 * plan.trials):  # there may be fewer distinct settings than trials
        if len(settings) == plan.trials:
            break
        values = {axis.key: axis.at(float(draw.random())) for axis in plan.axes}
        settings.setdefault(repr(values), values)
    yield list(settings.values())


def pareto(plan: Plan) -> Search:
    """Try generations of settings by NSGA-II (Deb et al., 2002), as implemented by optuna."""
    try:
        import optuna
    except ImportError:
        raise UsageError(
            "a Pareto search needs optuna: pip install 'hybridsim[opt]'; "
            "the kinds random and grid need no extra package"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    directions = ["minimize" if each.wants_less else "maximize" for each in plan.objectives]
    sampler = optuna.samplers.NSGAIISampler(population_size=GENERATION, seed=plan.seed)
    study = optuna.create_study(directions=directions, sampler=sampler)
    remaining = plan.trials
    while remaining > 0:
        trials = [study.ask() for _ in range(min(GENERATION, remaining))]
        scores = yield [_suggested(trial, plan.axes) for trial in trials]
        for trial, score in zip(trials, scores):
            if score is None or None in score:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, list(score))
        remaining -= len(trials)


def _suggested(trial: Any, axes: Sequence[Axis]) -> Values:
    """Return the setting of a trial: for a range a share of it, for choices an index."""
    return {
        axis.key: axis.at(trial.suggest_float(axis.key, 0.0, 1.0))
        if not isinstance(axis.choices, tuple)
        else axis.choices[trial.suggest_categorical(axis.key, range(len(axis.choices)))]
        for axis in axes
    }
