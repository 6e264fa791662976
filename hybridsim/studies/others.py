"""Replays beside that of a machine: with other caches, and with other seeds.

A "no" is about one machine.  Before it is printed, the machine is tried with the size at the knee
of the curve of LRU, where `mrc` and `advise` begin, and in write-back, there with room for all
written data at least; each on the same requests.  Where the verdict is unsure, only write-back is
tried, and only if much of the time goes to writes, which the cache as it is does not keep: a longer
capture would answer a question that write-back makes idle.

Seeds show how much the results depend on chance.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from hybridsim.answers.forecast import NO, UNSURE
from hybridsim.answers.intervals import of_seeds
from hybridsim.answers.requirements import Seen, parse_measure
from hybridsim.answers.result import Result
from hybridsim.answers.verdict import Other, beside
from hybridsim.foundation.errors import ScenarioError, UsageError
from hybridsim.foundation.units import format_size
from hybridsim.foundation.wording import percent
from hybridsim.scenario import Scenario
from hybridsim.scenario.options import Options
from hybridsim.studies.candidates import Candidate
from hybridsim.studies.mrc import miss_ratio_curve
from hybridsim.studies.replay import replay
from hybridsim.studies.runs import Alone, Report
from hybridsim.studies.sweep import seeds as chance
from hybridsim.studies.sweep.seeds import LEVEL, Estimate, estimate
from hybridsim.traces.trace import Trace

MIB = 1 << 20
WRITE_BACK = "write-back"
LONG = 0.25  # of the time that the disks alone need: with as much for writes, write-back is tried
MEASURES = ("mean", "p99", "hit")  # that are averaged over seeds
SEEDS_MAX = 1000
SAME = 0.1  # of the size: a knee that is nearer is not tried


def with_others(
    result: Result, trace: Trace, scenario: Scenario, alone: Alone, report: Report | None = None
) -> Result:
    """Return the result with what other caches would gain, if its verdict asks for them.

    `alone` has the results of the disks alone.  A machine with events, or whose cache did not start
    empty, is not tried otherwise; nor is a cache that cannot have the size.  Raises TraceError as
    `replay` does.
    """
    if not _is_open(result) or scenario.events or result.beginning is not None:
        return result
    if not result.scenario.get("cache_pages") or not result.judgement.judged.plain.both.count:
        return result
    others = []
    for options in _changes(result, trace, scenario):
        try:
            site = scenario.with_options(**options)
            one = replay(trace, site, report, alone=alone, goal=result.judgement.goal)
        except ScenarioError:
            continue  # a cache of this kind or its drives cannot have this size
        judgement, cache = one.judgement, one.scenario
        others.append(
            Other(
                str(cache["cache_kind"]), str(cache["cache_mode"]), int(cache["cache_bytes"]),
                one.verdict.answer, judgement.expected, judgement.low, judgement.high,
                tuple(site.options), Candidate(site).installable,
            )
        )  # fmt: skip
    return dataclasses.replace(
        result,
        others=others,
        verdict=beside(
            result.verdict, others, result.scenario, result.trace, result.judgement.goal
        ),
    )


def _is_open(result: Result) -> bool:
    """Return whether another cache may be the better answer."""
    if result.verdict.answer != UNSURE:
        return result.verdict.answer == NO
    if result.scenario.get("cache_mode") == WRITE_BACK or result.judgement.too_short:
        return False
    plain = result.judgement.judged.plain
    return plain.writes.total_ns >= LONG * plain.both.total_ns


def _changes(result: Result, trace: Trace, scenario: Scenario) -> Iterator[Options]:
    """Yield the options by which the machines to try differ."""
    size = int(result.scenario["cache_bytes"])
    curve = miss_ratio_curve(trace, "lru", None, scenario.cache.page_bytes)
    knee = -(-curve.knee_bytes // MIB) * MIB
    machine = Candidate(scenario)
    written = machine.times * machine.room_for_writes(
        *(int(result.trace[each]) for each in ("writes", "bytes_written", "footprint_bytes"))
    )
    own = str(result.scenario["cache_mode"])
    modes = [WRITE_BACK]
    if result.verdict.answer == NO and own != WRITE_BACK:
        modes.insert(0, own)
    with_room = {WRITE_BACK: max(knee, -(-written // MIB) * MIB)}
    tried = [(size, mode) for mode in modes if mode != own]
    tried += [
        (other, mode)
        for mode in modes
        if abs((other := with_room.get(mode, knee)) - size) >= SAME * size
    ]
    for one, mode in tried:
        yield {
            "mode": result.scenario["mode"],  # the same requests
            "cache_size": None if one == size else format_size(one),
            "cache_mode": None if mode == own else mode,
        }


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
    answers = Counter(each.verdict.answer for each in results)
    about = {"n": seeds, "drawn": drawn, "answers": answers, "level": LEVEL, **figures}
    by_requirement = zip(*(each.required for each in results))
    required = [next((each for each in some if not each.met), some[0]) for some in by_requirement]
    judgement = dataclasses.replace(first.judgement, chance=_chance(results))
    first = dataclasses.replace(first, required=required, judgement=judgement)
    return _with_note(first, _words(answers, estimates), about)


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


def _words(answers: Counter[str], estimates: dict[str, Estimate | None]) -> str:
    parts = [
        f"{name} {one.worded(parse_measure(name).worded)}" for name, one in estimates.items() if one
    ]
    agreed = (
        f"the answer is {next(iter(answers))} with each"
        if len(answers) == 1
        else "the answers are " + ", ".join(f"{n} x {answer}" for answer, n in answers.items())
    )
    figures = f": {', '.join(parts)} (± {percent(LEVEL)} interval)" if parts else ""
    return (
        f"Over {answers.total()} seeds{figures}; {agreed}. All other figures are those of the "
        "first."
    )


def _with_note(result: Result, words: str, about: dict[str, Any]) -> Result:
    verdict = result.verdict
    extended = dataclasses.replace(
        verdict,
        reasons=[*verdict.reasons, words],
        confidence={**verdict.confidence, "seeds": about},
    )
    return dataclasses.replace(result, verdict=extended)
