"""Which settings of a sweep can be distinguished: their intervals, and paired comparisons.

Means and gains of two settings are compared on the same requests, block by block (the second half
of the trace); other figures by their own intervals; figures without one by their values.  The
intervals are those of answers/intervals.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hybridsim.answers.intervals import SEEDS, TRACE, Blocks, Interval, combined, gains
from hybridsim.answers.sampling import student_reach
from hybridsim.studies.sweep.confidence import LEVEL, Estimate
from hybridsim.studies.sweep.figures import BLOCKS, FORECAST, GAIN, INTERVALS, name_of
from hybridsim.studies.sweep.objectives import Objective

if TYPE_CHECKING:
    from hybridsim.studies.sweep.answer import Setting

NOMINAL = 0.9  # of the intervals; those over the seeds are of LEVEL


def interval_of(setting: Setting, number: int, objective: Objective) -> Interval | None:
    """Return the interval of an objective of a setting, over its seeds too; None if it has none."""
    name = objective.text if objective.measure is None else name_of(objective.measure)
    values = [
        objective.value(one, point.scenario) for one, point in zip(setting.figures, setting.points)
    ]
    return interval_over_seeds(name, setting.figures, values, setting.estimates[number])


def interval_over_seeds(
    name: str,
    figures: Sequence[dict[str, Any]],
    values: Sequence[float | None],
    estimate: Estimate | None,
) -> Interval | None:
    """Return the interval of a figure from its value for each seed; None if it has none."""
    if estimate is None or not 0 < estimate.mean < math.inf:
        return None
    known = [one.get(INTERVALS, {}).get(name) for one in figures]
    ends = None
    if known and all(known) and all(values):
        shares = [(low / value, high / value) for (low, high), value in zip(known, values) if value]
        low, high = (sum(each) / len(shares) for each in zip(*shares))
        ends = estimate.mean * min(low, 1.0), estimate.mean * max(high, 1.0)
    half = None
    if estimate.half and estimate.n > 1:
        degrees = estimate.n - 1
        narrower = student_reach(degrees, NOMINAL) / student_reach(degrees, LEVEL)
        half = estimate.half * narrower / estimate.mean
    return combined(estimate.mean, {TRACE: ends, SEEDS: half})


def is_alike(one: Setting, best: Setting, number: int, objective: Objective) -> bool:
    """Whether a setting cannot be distinguished from a better one by an objective."""
    values = one.score[number], best.score[number]
    if one.trace != best.trace or None in values:
        return False
    if values[0] == values[1]:
        return True
    ratio = _paired(one, best, objective)
    if ratio is not None:
        return ratio.low <= 1 <= ratio.high
    mine, its = (interval_of(each, number, objective) for each in (one, best))
    if mine is None or its is None:
        return False
    apart = abs(math.log(mine.value / its.value))
    below, above = (mine, its) if mine.value < its.value else (its, mine)
    reach = math.hypot(math.log(below.high / below.value), math.log(above.value / above.low))
    return apart <= reach


def is_no_worse(one: Setting, best: Setting, number: int, objective: Objective) -> bool:
    """Whether a setting is better than another by an objective, or cannot be distinguished."""
    mine, its = one.score[number], best.score[number]
    if mine is None or its is None or one.trace != best.trace:
        return False
    sign = 1 if objective.wants_less else -1
    return sign * mine <= sign * its or is_alike(one, best, number, objective)


def _paired(one: Setting, best: Setting, objective: Objective) -> Interval | None:
    """Return how many times less the same requests cost the better of two settings."""
    if len(one.figures) > 1 or len(best.figures) > 1:
        return None
    name = ""
    if objective.text in (GAIN, FORECAST):
        name = "all"
    elif objective.measure is not None and objective.measure.measure == "mean":
        name = {"reads": "read", "writes": "write"}[objective.measure.direction]
    blocks = [each.figures[0].get(BLOCKS) for each in (one, best)]
    if not name or None in blocks:
        return None
    mine, its = (Blocks.from_dict(each) for each in blocks if each is not None)
    found = gains(mine, its)
    if objective.text in (GAIN, FORECAST) and "took" in found:
        name = "took"
    return found.get(name)


def alike(settings: Sequence[Setting], objective: Objective) -> list[int]:
    """Return the settings that cannot be distinguished from the first of them."""
    best = settings[0]
    return [at for at, each in enumerate(settings) if at and is_alike(each, best, 0, objective)]
