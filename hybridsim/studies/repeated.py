"""A replay repeated over seeds, where chance plays a part: what the answer is worth."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from hybridsim.answers.requirements import Checked, Seen, parse_measure
from hybridsim.answers.result import Result
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.wording import percent
from hybridsim.scenario import Scenario
from hybridsim.studies.replay import Report, replay
from hybridsim.studies.sweep import seeds as chance
from hybridsim.studies.sweep.confidence import LEVEL, Estimate, estimate
from hybridsim.traces.trace import Trace

TOLD = ("mean", "p99", "hit")
SEEDS_MAX = 1000


def repeated(
    trace: Trace, scenario: Scenario, seeds: int, report: Report | None = None, **how: Any
) -> Result:
    """Replay with `seeds` seeds, starting with the scenario's; return the first result, and in its
    verdict the means over all of them with 95% intervals.

    Without randomness it is replayed once, and the verdict reports this.  A requirement is
    met if it is with every seed.  Raises what `replay` raises, UsageError for no seeds.
    """
    if not 1 <= seeds <= SEEDS_MAX:
        raise UsageError(f"--seeds: from 1 to {SEEDS_MAX:,}")
    drawn = chance.drawn(scenario, trace.is_generated)
    chosen = range(scenario.seed, scenario.seed + (seeds if drawn else 1))
    results = []
    for seed in chosen:
        site = scenario.with_options(seed=seed)
        results.append(replay(trace.seeded(seed), site, report, **how))
        how["save_cache"] = None  # of the first is enough
    first = results[0]
    if not drawn:
        return _telling(first, chance.NONE, {"n": 1, "drawn": []})
    result = _estimates(results)
    known = {name: each and each.to_dict() for name, each in result.items()}
    about = {"n": seeds, "drawn": drawn, "answers": _answers(results), "level": LEVEL, **known}
    required = [_worst(checked) for checked in zip(*(each.required for each in results))]
    return _telling(dataclasses.replace(first, required=required), _words(results, result), about)


def _estimates(results: Sequence[Result]) -> dict[str, Estimate | None]:
    """Return the means over seeds of what the machine with the cache does once warm."""
    seen = [Seen.cached(each) for each in results]
    return {name: estimate([parse_measure(name).value(each)[0] for each in seen]) for name in TOLD}


def _answers(results: Sequence[Result]) -> dict[str, int]:
    answers = [each.verdict.answer for each in results]
    return {answer: answers.count(answer) for answer in dict.fromkeys(answers)}


def _words(results: Sequence[Result], result: dict[str, Estimate | None]) -> str:
    parts = [
        f"{name} {one.worded(parse_measure(name).worded)}" for name, one in result.items() if one
    ]
    answers = _answers(results)
    agreed = (
        f"the answer is {next(iter(answers))} with each"
        if len(answers) == 1
        else "the answers are " + ", ".join(f"{n} x {answer}" for answer, n in answers.items())
    )
    figures = f": {', '.join(parts)} (± {percent(LEVEL)} interval)" if parts else ""
    return f"Over {len(results)} seeds{figures}; {agreed}. What is above is the first of them."


def _worst(checked: Sequence[Checked]) -> Checked:
    return next((each for each in checked if not each.met), checked[0])


def _telling(result: Result, words: str, about: dict[str, Any]) -> Result:
    verdict = result.verdict
    extended = dataclasses.replace(
        verdict,
        reasons=[*verdict.reasons, words],
        confidence={**verdict.confidence, "seeds": about},
    )
    return dataclasses.replace(result, verdict=extended)
