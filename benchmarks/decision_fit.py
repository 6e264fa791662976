"""Fit the constants of hybridsim/answers/forecast.py to the tuned families, and cross-validate.

    HYBRIDSIM_DATA=... python benchmarks/decision_fit.py FOLDER [--workers N]

FOLDER keeps the runs of decisions.py; what a capture shows of each machine is kept in courses.json
there.  Only families with is_tuned() are read.  RISES, FALLS and AFTER minimise a robust loss of
ln(truth / forecast), with a prior around START; ALLOWANCE minimises the interval score of Winkler
at 90 %, and is then stretched until intervals of families that it was not fitted to hold 90 % of
the truths.  Each trace is cut at several SHARES: the cut is the capture, the HORIZON after it the
truth.  A cut of a trace counts once, however many machines it has.  Where the load was
continued (hybridsim/studies/runs.py), SIMULATED says how much the simulation counts beside the
formula, and its allowance is fitted likewise; once more for those whose past was looked back at
(hybridsim/studies/runs.py).  The last lines of each of the three judge each family with
constants that were fitted to the others: what can be expected of new families.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from decision_runs import SHOWN, Runs, border, chosen, collected
from decision_traces import is_tuned
from scipy.optimize import minimize

from hybridsim.answers.forecast import (
    AFTER,
    ANY_AFTER,
    FALLS,
    FEW_WRITES,
    HORIZON,
    LATER,
    LEAST,
    LEAST_LEFT,
    LOSS,
    LOSS_BY_FORMULA,
    MOST_UNREST,
    MUCH,
    NOTHING,
    REACH,
    RISES,
    WORTH_IT,
    Course,
    factor_of,
)
from hybridsim.answers.judge import Both

KINDS = ("page", "bcache", "dm-cache", "open-cas", "dm-writecache")
N = len(KINDS)
NAMES = (
    *(f"RISES[{each}].full" for each in KINDS), *(f"RISES[{each}].filling" for each in KINDS),
    *(f"AFTER[{each}].kept" for each in KINDS), *(f"AFTER[{each}].adapts" for each in KINDS),
    "FALLS",
)  # fmt: skip
_AFTER = [AFTER.get(each, ANY_AFTER) for each in KINDS]
FORMULA = (  # in use
    *(RISES[each].full for each in KINDS), *(RISES[each].filling for each in KINDS),
    *(each.kept for each in _AFTER), *(each.adapts for each in _AFTER), FALLS,
)  # fmt: skip
START = np.array(
    [0.15] * N + [0.5] * N + [0.0, 0.03, 0.0, 0.1, -1.5] + [0.0, 0.05, 0.0, 0.35, 0.25] + [0.15]
)
TRUST = np.array([0.15] * N + [0.25] * N + [0.3, 0.3, 0.5, 0.3, 0.5] + [0.3] * N + [0.15])
PRIOR = 0.01  # weight of START, whose standard deviations TRUST has
SCALE = (0.02, 0.15)  # of an error: a constant, and times the logarithm of the truth
LARGEST = 2.0  # error that the allowance is fitted to
ALLOWANCE = ("always", "noise", "trend", "gain", "change", "unrest")
MISSED = 0.1  # share of the truths outside of the interval
SMOOTH = (0.05, 0.01)
SHARES = (SHOWN, 0.225, 0.15, 0.1, 0.05, 0.02, 0.008, 0.003)  # of a trace, that are the capture
FEWEST = 40  # requests of a capture
SURE = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
LOSSES = (0.0, LOSS, LOSS_BY_FORMULA, 1.0)
WEIGHTS = np.linspace(0, 1, 21)  # of the simulation, beside the formula
OWN = [ALLOWANCE.index(each) for each in ("noise", "trend", "change")]  # see own_error


@dataclass(frozen=True)
class Known:
    """A machine's course over a capture, and the logarithm of what came true."""

    case: str
    family: str
    course: Course
    truth: float
    share: float = SHOWN  # of the trace, that is the capture


def known(runs: Runs) -> list[Known]:
    """Return the machines of a trace, for each cut that is long enough to judge."""
    adapts = runs.mode != "open"
    result = []
    for share in SHARES:
        cut = border(runs.requests, share)
        if cut < FEWEST:
            continue
        end = min(round(cut * (1 + HORIZON)), runs.requests)
        shown = runs.plain.side(0, cut)
        before_ns, off = runs.plain.cost_ns(cut, end, adapts), runs.off(share)
        for each in runs.cached:
            both = Both(shown, each.side(0, cut)._replace(off=off))
            after_ns = each.cost_ns(cut, end, adapts)
            if before_ns and after_ns and not both.too_short(both.half):
                course, truth = both.course("time", adapts), float(np.log(before_ns / after_ns))
                result.append(Known(runs.case.name, runs.case.family, course, truth, share))
    return result


def all_known(folder: Path, workers: int) -> list[Known]:
    """Return all machines of the tuned families; those that were read before from a file."""
    path = folder / "courses.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    for case in chosen(quick=False):
        if is_tuned(case.family) and case.name not in kept:
            for rows in collected(folder, known, False, workers, case.name):
                for name in {each.case for each in rows}:
                    kept[name] = [asdict(each) for each in rows]
            path.write_text(json.dumps(kept))
    return [
        Known(each["case"], each["family"], Course(**each["course"]), each["truth"], each["share"])
        for rows in kept.values() for each in rows
    ]  # fmt: skip


class Columns:
    """The machines as arrays."""

    def __init__(self, rows: list[Known]) -> None:
        self.rows = rows
        courses = [each.course for each in rows]

        def column(name: str) -> np.ndarray:
            return np.array([getattr(each, name) for each in courses], float)

        self.gain, self.noise, self.unrest = column("gain"), column("noise"), column("unrest")
        self.hits, self.rising, self.filling = column("hits"), column("rising"), column("filling")
        self.per_hit, self.without_cheap = column("per_hit"), column("without_cheap")
        self.writes, self.adapts = column("writes"), column("adapts") > 0
        self.ahead = np.array([np.inf if x.ahead is None else x.ahead for x in courses])
        self.kind = np.array([KINDS.index(each.kind) for each in courses])
        self.later = np.array([np.nan if x.later is None else x.later for x in courses])
        self.factor = np.array([factor_of(each.off) for each in courses])
        self.truth = np.array([each.truth for each in rows])
        self.family = np.array([each.family for each in rows])
        self.is_first = np.array([each.share == SHARES[0] for each in rows])
        self.cut = np.array([f"{each.case} {each.share}" for each in rows])
        _, place, count = np.unique(self.cut, return_inverse=True, return_counts=True)
        self.weight = 1 / count[place] / len(count)

    def only(self, mine: np.ndarray) -> Columns:
        """Return some of the machines."""
        return type(self)([each for each, is_mine in zip(self.rows, mine) if is_mine])

    def centres(self, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithms of the forecasts, and of those as if writes stayed cheap."""
        full, filling, kept, adapts = (constants[i * N : (i + 1) * N][self.kind] for i in range(4))
        share = np.where(self.rising > 0, full + filling * self.filling, constants[-1])
        later = np.clip(self.hits + share * self.rising * LATER, 0, 1)
        more = self.per_hit * (later - self.hits)
        left = np.exp(-self.gain)
        before = -np.log(np.maximum(left - more, left * LEAST_LEFT))
        shift = np.where(self.adapts, adapts, kept) * np.minimum(self.writes / FEW_WRITES, 1)
        after = -np.log(np.maximum(1 - self.without_cheap - more, LEAST)) + shift
        soon = np.minimum(self.ahead / HORIZON, 1)
        mixed = -np.log(soon * np.exp(-before) + (1 - soon) * np.exp(-after))
        return np.where(np.isinf(self.ahead), before, mixed), before

    def by_formula(self, constants: np.ndarray) -> np.ndarray:
        """Return the logarithms of the formula's forecasts."""
        return self.centres(constants)[0]

    def parts(self, constants: np.ndarray) -> np.ndarray:
        """Return the squares that ALLOWANCE weighs, (machines, 6)."""
        centre, before = self.centres(constants)
        return self._squares(before - self.gain, centre - before)

    def _squares(self, trend: np.ndarray, change: np.ndarray) -> np.ndarray:
        unrest = np.minimum(self.unrest, MOST_UNREST) * np.minimum(np.abs(self.gain), 1)
        parts = (np.ones(len(trend)), self.noise, trend, self.gain, change, unrest)
        return np.stack(parts, 1) ** 2


class Simulated(Columns):
    """The machines for which the load went on."""

    def centres(self, constants: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the logarithms of the forecasts, and of the formula's."""
        formula = super().centres(np.array(FORMULA))[0]
        return constants[0] * self.later + (1 - constants[0]) * formula, formula

    def by_formula(self, constants: np.ndarray) -> np.ndarray:
        """Return the logarithms of the formula's forecasts."""
        return self.centres(constants)[1]

    def parts(self, constants: np.ndarray) -> np.ndarray:
        """Return the squares that its allowance weighs, (machines, 6)."""
        formula = self.centres(constants)[1]
        squares = self._squares(self.later - self.gain, self.later - formula)
        return squares * self.factor[:, None]


def weighed(of: Simulated) -> np.ndarray:
    """Return how much the simulation counts."""
    scale = SCALE[0] + SCALE[1] * np.abs(of.truth)

    def loss(weight: float) -> float:
        error = (of.truth - of.centres(np.array([weight]))[0]) / scale
        return float((of.weight * (np.sqrt(1 + error**2) - 1)).sum())

    return np.array([min(WEIGHTS, key=loss)])


def fitted(of: Columns) -> np.ndarray:
    """Return the constants of the forecast."""
    scale = SCALE[0] + SCALE[1] * np.abs(of.truth)

    def loss(constants: np.ndarray) -> float:
        error = (of.truth - of.centres(constants)[0]) / scale
        prior = (((constants - START) / TRUST) ** 2).sum()
        return float(20 * (of.weight * (np.sqrt(1 + error**2) - 1)).sum() + PRIOR * prior)

    return minimize(loss, START, method="L-BFGS-B").x


def fitted_allowance(of: Columns, constants: np.ndarray) -> np.ndarray:
    """Return the logarithms of the squares of ALLOWANCE."""
    parts = of.parts(constants)
    error = np.clip(np.abs(of.truth - of.centres(constants)[0]), 0, LARGEST)

    def score(logs: np.ndarray, smooth: float) -> tuple[float, np.ndarray]:
        half = np.sqrt(parts @ np.exp(logs))
        beyond = (error - half) / smooth
        missed = smooth * np.logaddexp(0, beyond)
        share = 1 / (1 + np.exp(-np.clip(beyond, -500, 500)))
        slope = of.weight * (2 - 2 / MISSED * share) / (2 * half)
        value = (of.weight * (2 * half + 2 / MISSED * missed)).sum() + 1e-4 * (
            (logs + 4) ** 2
        ).sum()
        return value, (parts * np.exp(logs)).T @ slope + 2e-4 * (logs + 4)

    results = []
    for begin in (-3.0, -4.5):
        logs = np.full(len(ALLOWANCE), begin)
        for smooth in SMOOTH:
            last = minimize(score, logs, args=(smooth,), jac=True, method="L-BFGS-B",
                            bounds=[(-12, 2)] * len(logs))  # fmt: skip
            logs = last.x
        results.append(last)
    return min(results, key=lambda each: each.fun).x


def stretched(of: Columns, centre: np.ndarray, half: np.ndarray) -> float:
    """Return the factor by which the allowance holds all but MISSED of the truths."""
    off = np.abs(of.truth - centre) / half
    order = off.argsort()
    reached = np.cumsum(of.weight[order]) / of.weight.sum()
    return float(off[order][np.searchsorted(reached, 1 - MISSED)])


def halves(of: Columns, constants: np.ndarray, logs: np.ndarray) -> np.ndarray:
    """Return halves of the intervals of 90 %: whole, and of each machine's own error."""
    squares = of.parts(constants) * np.exp(logs)
    return np.sqrt([squares.sum(axis=1), squares[:, OWN].sum(axis=1)])


def judged(of: Columns, centre: np.ndarray, both: np.ndarray, formula: np.ndarray) -> None:
    """Print what the answers are worth, by how sure a forecast must be, and the choices."""
    half, own = both
    truth = np.exp(of.truth)
    inside = np.abs(of.truth - centre) <= half
    by_trace = (of.weight * inside).sum() / of.weight.sum()
    error = np.median(np.abs(of.truth - centre))
    print(f"coverage {inside.mean():.1%}, by trace {by_trace:.1%}; median error {error:.3f}, "
          f"allowance {np.median(half):.3f}")  # fmt: skip
    for sure in SURE:
        worth = centre >= np.log(WORTH_IT)
        no = ~worth & (centre + sure * half < np.log(MUCH))
        for loss in LOSSES:
            yes = worth & (centre - sure * half >= np.log(NOTHING)) & (centre >= loss * half)
            yes &= formula >= np.log(NOTHING)
            right = (yes & (truth >= NOTHING)) | (no & (truth < MUCH))
            wrong = (yes | no) & ~right
            print(f"SURE {sure:.1f} LOSS {loss:.2f}: right {right.mean():.1%}, "
                  f"wrong {wrong.mean():.1%}, unsure {(~yes & ~no).mean():.1%}")  # fmt: skip
    for name, error in (("none", 0 * half), ("own", own), ("whole", half)):
        regrets = np.array(list(regret(of, centre - (error / REACH) ** 2 / 2)))
        print(f"chosen by the cost on average, errors: {name}: regret, median "
              f"{np.median(regrets):.1%}, 90 % {np.quantile(regrets, 0.9):.0%}, 95 % "
              f"{np.quantile(regrets, 0.95):.0%}, more than 10 %: {(regrets > 0.1).sum()}, "
              f"mean logarithm up to 2 {np.minimum(np.log1p(regrets), 2).mean():.3f}")  # fmt: skip


def regret(of: Columns, cautious: np.ndarray) -> Iterator[float]:
    """Yield how much more the best machine of each capture gains than the chosen one."""
    for cut in np.unique(of.cut):
        mine = np.flatnonzero(of.cut == cut)
        chosen = mine[cautious[mine].argmax()]
        gained = of.truth[chosen] if cautious[chosen] > 0 else 0.0
        yield float(np.exp(max(of.truth[mine].max(), 0.0) - gained) - 1)


def main() -> None:
    """Print the constants, and what they are worth on families that they were not fitted to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="keeps the runs")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    rows = all_known(options.folder, options.workers)
    report(Columns(rows), fitted, NAMES)
    simulated = [each for each in rows if each.course.later is not None]
    untried = [replace(each, course=replace(each.course, off=None)) for each in simulated]
    report(Simulated(untried), weighed, ("SIMULATED.weight",))
    tried = [each for each in simulated if each.course.off is not None]
    report(Simulated(tried), weighed, ("SIMULATED.weight, with hindsight",))


def report(all_of: Columns, fitted: Callable[[Any], np.ndarray], names: Sequence[str]) -> None:
    """Print the constants of one of the two forecasts, and what they are worth."""
    rows = all_of.rows
    print(f"{len(rows)} machines, {len({each.case for each in rows})} traces")
    constants = fitted(all_of)
    logs = fitted_allowance(all_of, constants)
    for name, value in zip(names, constants):
        print(f"{name:28} {value:6.2f}")
    for name, value in zip(ALLOWANCE, np.exp(logs / 2)):
        print(f"ALLOWANCE.{name:18} {value:6.2f}")
    half = halves(all_of, constants, logs)
    print("fitted to the same families, all cuts:")
    judged(all_of, all_of.centres(constants)[0], half, all_of.by_formula(constants))
    centre, formula = np.zeros((2, len(all_of.rows)))
    half = np.zeros((2, len(all_of.rows)))
    for family in sorted(set(all_of.family)):
        mine = all_of.family == family
        others, these = all_of.only(~mine), all_of.only(mine)
        of_others = fitted(others)
        centre[mine], formula[mine] = these.centres(of_others)[0], these.by_formula(of_others)
        half[:, mine] = halves(these, of_others, fitted_allowance(others, of_others))
    stretch = stretched(all_of, centre, half[0])
    print(f"ALLOWANCE, stretched by {stretch:.3f} to hold 90 % of the truths of other families:")
    for name, value in zip(ALLOWANCE, np.exp(logs / 2) * stretch):
        print(f"ALLOWANCE.{name:18} {value:6.2f}")
    half *= stretch
    for what, mine in (("all cuts", all_of.cut != ""), (f"{SHOWN:.0%}", all_of.is_first)):
        print(f"each family with constants fitted to the others, {what}:")
        judged(all_of.only(mine), centre[mine], half[:, mine], formula[mine])


if __name__ == "__main__":
    main()
