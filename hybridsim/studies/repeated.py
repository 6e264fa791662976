"""A replay repeated over seeds, to estimate how much its results depend on chance."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from hybridsim.answers.intervals import of_seeds
from hybridsim.answers.requirements import Seen, parse_measure
from hybridsim.answers.result import Result
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.wording import percent
from hybridsim.scenario import Scenario
from hybridsim.studies.replay import replay
from hybridsim.studies.runs import Report
from hybridsim.studies.sweep import seeds as chance
from hybridsim.studies.sweep.seeds import LEVEL, Estimate, estimate
from hybridsim.traces.trace import Trace

MEASURES = ("mean", "p99", "hit")
SEEDS_MAX = 1000


def repeated(
    trace: Trace, scenario: Scenario, seeds: int, report: Report | None = None, **how: Any
) -> Result:
    """Replay with `seeds` seeds, starting with the scenario's; return the first result.

    Its verdict has the means over all seeds with 95% intervals.  Without randomness the trace is
    replayed once, and the verdict reports this.  A requirement is met if it is met with every seed.
    Raises the errors of `replay`, and UsageError for an invalid number of seeds.
    """
    if not 1 <= seeds <= SEEDS_MAX:
        raise UsageError(f"--seeds must be from 1 to {SEEDS_MAX:,}")
    drawn = chance.drawn(scenario, trace.is_generated)
    chosen = range(scenario.seed, scenario.seed + (seeds if drawn else 1))
    results = []
    for seed in chosen:
        site = scenario.with_options(seed=seed)
        results.append(replay(trace.seeded(seed), site, report, **how))
        how["save_cache"] = None  # only the first run saves its cache
    first = results[0]
    if not drawn:
        return _with_note(first, chance.NONE, {"n": 1, "drawn": []})
    estimates = _estimates(results)
    figures = {name: each and vars(each) for name, each in estimates.items()}
    about = {"n": seeds, "drawn": drawn, "answers": _answers(results), "level": LEVEL, **figures}
    by_requirement = zip(*(each.required for each in results))
    required = [next((each for each in some if not each.met), some[0]) for some in by_requirement]
    judgement = dataclasses.replace(first.judgement, chance=_chance(results))
    first = dataclasses.replace(first, required=required, judgement=judgement)
    return _with_note(first, _words(results, estimates), about)


def _estimates(results: Sequence[Result]) -> dict[str, Estimate | None]:
    """Return the means over seeds of MEASURES, for the machine with the cache once warm."""
    seen = [Seen.cached(each) for each in results]
    return {
        name: estimate([parse_measure(name).value(each)[0] for each in seen]) for name in MEASURES
    }


def _chance(results: Sequence[Result]) -> dict[str, dict[str, float]]:
    """Return half the width of the scatter of each mean of the judged half, by machine."""
    known = [each.judgement.means for each in results]
    result: dict[str, dict[str, float]] = {side: {} for side in known[0]}
    for side, halves in result.items():
        for name in known[0][side]:
            half = of_seeds([each[side][name].value for each in known if name in each[side]])
            if half is not None:
                halves[name] = half
    return result


def _answers(results: Sequence[Result]) -> dict[str, int]:
    answers = [each.verdict.answer for each in results]
    return {answer: answers.count(answer) for answer in dict.fromkeys(answers)}


def _words(results: Sequence[Result], estimates: dict[str, Estimate | None]) -> str:
    parts = [
        f"{name} {one.worded(parse_measure(name).worded)}" for name, one in estimates.items() if one
    ]
    answers = _answers(results)
    agreed = (
        f"the answer is {next(iter(answers))} with each"
        if len(answers) == 1
        else "the answers are " + ", ".join(f"{n} x {answer}" for answer, n in answers.items())
    )
    figures = f": {', '.join(parts)} (± {percent(LEVEL)} interval)" if parts else ""
    return (
        f"Over {len(results)} seeds{figures}; {agreed}. All other figures are those of the first."
    )


def _with_note(result: Result, words: str, about: dict[str, Any]) -> Result:
    verdict = result.verdict
    extended = dataclasses.replace(
        verdict,
        reasons=[*verdict.reasons, words],
        confidence={**verdict.confidence, "seeds": about},
    )
    return dataclasses.replace(result, verdict=extended)
