"""Which settings to try: a grid, some at random, or generations that move to the Pareto front.

A search is a generator: it yields settings, is sent what came of each (one value an objective,
None where a setting failed), and may yield more.  The same answers lead to the same settings:
a sweep that goes on after a crash asks for what is on disk already, and takes it from there.
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
GENERATION = 20  # settings that are tried before the next are chosen


def search(plan: Plan) -> Search:
    """Return the search of a plan."""
    return {"grid": grid, "random": at_random, "pareto": pareto}[plan.kind](plan)


def grid(plan: Plan) -> Search:
    """Try every setting, the last key changing fastest."""
    keys = [axis.key for axis in plan.axes]
    every = itertools.product(*(axis.values for axis in plan.axes))
    yield [dict(zip(keys, values)) for values in every]


def at_random(plan: Plan) -> Search:
    """Try settings drawn evenly, by the seed of the search; none twice."""
    draw = np.random.default_rng(plan.seed)
    found: dict[str, Values] = {}
    for _ in range(10 * plan.trials):  # few choices may have been drawn long before that
        if len(found) == plan.trials:
            break
        values = {axis.key: axis.at(float(draw.random())) for axis in plan.axes}
        found.setdefault(repr(values), values)
    yield list(found.values())


def pareto(plan: Plan) -> Search:
    """Try generations of settings by NSGA-II (Deb et al., 2002), as optuna has it."""
    try:
        import optuna
    except ImportError:
        raise UsageError(
            "a Pareto search needs optuna: pip install 'hybridsim[opt]'; "
            "kind random or grid needs nothing more"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    directions = ["minimize" if each.wants_less else "maximize" for each in plan.objectives]
    sampler = optuna.samplers.NSGAIISampler(population_size=GENERATION, seed=plan.seed)
    study = optuna.create_study(directions=directions, sampler=sampler)
    left = plan.trials
    while left > 0:
        trials = [study.ask() for _ in range(min(GENERATION, left))]
        scores = yield [_suggested(trial, plan.axes) for trial in trials]
        for trial, score in zip(trials, scores):
            if score is None or None in score:
                study.tell(trial, state=optuna.trial.TrialState.FAIL)
            else:
                study.tell(trial, list(score))
        left -= len(trials)


def _suggested(trial: Any, axes: Sequence[Axis]) -> Values:
    """Return what a trial is to be: of a range its share, of choices their number."""
    return {
        axis.key: axis.at(trial.suggest_float(axis.key, 0.0, 1.0))
        if not isinstance(axis.choices, tuple)
        else axis.choices[trial.suggest_categorical(axis.key, range(len(axis.choices)))]
        for axis in axes
    }
