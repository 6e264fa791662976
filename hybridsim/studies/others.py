"""What other caches would gain, where the verdict on a machine is no, or unsure.

A "no" is about one machine.  Before it is printed, the machine is tried with the size at the knee
of the curve of LRU, where `mrc` and `advise` begin, and in write-back, there with room for all
written data at least; each on the same requests.  Where the verdict is unsure, only write-back is
tried, and only if much of the time goes to writes, which the cache as it is does not keep: a longer
capture would answer a question that write-back makes idle.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from hybridsim.answers.forecast import NO, UNSURE
from hybridsim.answers.result import Result
from hybridsim.answers.verdict import Other, beside
from hybridsim.foundation.errors import ScenarioError
from hybridsim.foundation.units import format_size
from hybridsim.scenario import Scenario
from hybridsim.scenario.options import Options
from hybridsim.studies.candidates import Candidate
from hybridsim.studies.disks_alone import Alone
from hybridsim.studies.mrc import miss_ratio_curve
from hybridsim.studies.replay import replay
from hybridsim.studies.runs import Report
from hybridsim.traces.trace import Trace

MIB = 1 << 20
WRITE_BACK = "write-back"
LONG = 0.25  # of the time that the disks alone need: with as much for writes, write-back is tried
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
    knee = -(-int(curve.pages[curve.knee]) * curve.page_bytes // MIB) * MIB
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
