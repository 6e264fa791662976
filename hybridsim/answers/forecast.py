"""What a gain will be after the capture, and how wrong that may be.

A capture shows a cache while it fills.  Its hit ratio still rises, or its writes are cheap only
while there is room for dirty data; neither stays.  Where the machines were simulated as the load
goes on for HORIZON times as many requests (hybridsim/studies/runs.py), that says what will
become of it; SIMULATED times counts beside what follows from the Course, which is what the capture
shows, and is all there is where the load was not continued:

    trend      The hit ratio rises with the logarithm of the number of requests, the less the
               fuller the cache is.  More hits save what a hit saves today.
    change     Where the dirty data will reach the level from which on writes cease to be cheap,
               the gain is that of before until then, and afterwards that of a machine whose
               writes cost what they cost the disks alone, times a factor by kind of cache.
    allowance  Half of the width of the interval of 90 %: how far forecasts were off on captures
               whose later part is known, by what makes a forecast uncertain.  Of a load whose own
               past was forecast better or worse than that (hybridsim/studies/runs.py), it is
               narrower or wider.

The constants (RISES, FALLS, AFTER, SIMULATED, the allowances, SURE) are fitted to the traces of
the tuned families of benchmarks/decision_traces.py: the first 0.3 to 30 % are the
capture, the HORIZON after it is the truth.  Their values follow from benchmarks/decision_fit.py,
but for ALLOWANCE_TRIED: since the load goes on without overlaps (requests/continuation.py) it is
0.8 of what that found, so that its intervals hold 91 % at 30 % shown and not 95 %.
SURE and LOSS were chosen: with them an answer is seldom wrong on families that were not fitted to.
RESULTS.md has what they are worth on families that they were not fitted to.

Gains are natural logarithms of (cost of the disks alone) / (cost with the cache) in a Course and
factors in a Forecast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from hybridsim.foundation.documents import Document

HORIZON = 7 / 3  # times the capture: how far a forecast reaches
WORTH_IT = 1.15  # a gain for which a cache is bought
NOTHING, MUCH = 1.05, 1.25  # gains for which a yes, or a no, would be wrong
YES, NO, UNSURE = "yes", "no", "unsure"
# From the mean of ln(requests) over the second half of a capture to that over the HORIZON.
LATER = (1 + 1 / HORIZON) * math.log(1 + HORIZON) - math.log(2)
LEAST_LEFT = 0.3  # of the cost with the cache, that a rise of the hit ratio leaves at least
LEAST = 0.05  # of the cost of the disks alone, that is left after a change at least
FEW_WRITES = 0.1  # of the cost of the disks alone: with less a change changes less
MOST_UNREST = 1.0
MOST_GAIN = 5.0  # a logarithm: larger gains count as this one, so no upper end is known of them
MOST_MEASURED = 1e4  # times; larger gains are taken for this one


class Rise(NamedTuple):
    """How much of the rise of a hit ratio goes on, by how full the cache is."""

    full: float
    filling: float  # in addition, of a cache that fills as fast as at first

    def at(self, filling: float) -> float:
        """Return the share of the rise that goes on."""
        return self.full + self.filling * filling


class After(NamedTuple):
    """Logarithm of the gain after a change, beyond that of cheap reads alone."""

    kept: float  # where arrivals are kept
    adapts: float  # where the load adapts to the machine

    def at(self, course: Course) -> float:
        """Return it for a course."""
        shift = self.adapts if course.adapts else self.kept
        return shift * min(course.writes / FEW_WRITES, 1.0)


class Allowance(NamedTuple):
    """What adds, squared, to half of the width of the interval of 90 %."""

    always: float
    noise: float  # times the noise
    trend: float  # times the difference that the trend makes
    gain: float  # times the gain: large ones vary more
    change: float  # times the difference that the change makes; or simulation and formula
    # Times the unrest, up to MOST_UNREST, times the gain, up to a factor e: a load that varies
    # changes what a cache gains; where it gains nothing there is nothing to change.
    unrest: float


RISES = {
    "page": Rise(0.11, 0.36),
    "bcache": Rise(0.11, 0.19),
    "dm-cache": Rise(0.12, 0.57),
    "open-cas": Rise(0.03, 0.32),
    "dm-writecache": Rise(0.07, 0.29),
}
ANY_RISE = Rise(0.08, 0.35)
FALLS = 0.07  # how much of the fall of a hit ratio goes on
AFTER = {  # the other kinds have no such change
    "bcache": After(0.02, 0.40),
    "open-cas": After(-0.18, 0.34),
    "dm-writecache": After(-0.69, 0.20),
}
ANY_AFTER = After(0.0, 0.0)
REACH = 1.645  # standard deviations of normal errors in half of their interval of 90 %
USUAL_OFF = 0.608  # root mean square of normal errors, in halves of their intervals of 90 %
FACTORS = (0.5, 2.0)  # of the square of the allowance, by how far forecasts of the load were off
SIMULATED = 0.8  # weight of the simulated gain beside the formula's
ALLOWANCE_SIMULATED = Allowance(0.10, 1.47, 0.13, 0.20, 0.56, 2.97)
ALLOWANCE_TRIED = Allowance(0.10, 1.25, 0.13, 0.28, 0.54, 2.47)  # where `off` is known
ALLOWANCE = Allowance(0.16, 1.58, 0.70, 0.33, 0.75, 2.55)
SURE = 0.5  # of the allowance: an answer that a smaller error would make wrong is not given
SURE_TRIED = 0.3  # the same where `off` is known
LOSS = 0.6  # of the allowance: yes excludes a loss by such an error
LOSS_BY_FORMULA = 0.8  # the same where the load was not continued


@dataclass(frozen=True)
class Course(Document):
    """How the gain of a cache develops over a capture, as far as the capture shows it."""

    gain: float  # logarithm; of the second half, or since the cache changed its behaviour
    noise: float  # half of the width of its interval of 90 %, over blocks of as many requests
    hits: float  # share of the reads of the second half
    rising: float  # how much the hit ratio grows as the number of requests grows by a factor e
    per_hit: float  # share of the cost of the disks alone that is saved if all reads are hits
    filling: float  # 1: the cache fills as fast as at first; 0: it is full, or has all it wants
    kind: str  # of the cache, as scenarios name it
    puts_off: bool  # writes
    settled: bool  # writes are no cheaper than they will be
    ahead: float | None  # lengths of the capture until writes cease to be cheap; None: no such end
    without_cheap: float  # share saved if writes and missed reads cost what the disks alone take
    writes: float  # share of the cost of the disks alone that is of writes
    adapts: bool  # the load, to the machine
    unrest: float  # standard deviation of the load over the capture, see Both.unrest
    requests: int  # of the second half
    later: float | None = None  # logarithm of the simulated gain as the load goes on
    off: float | None = None  # how far forecasts of the load's past were off, in allowances


@dataclass(frozen=True)
class Forecast(Document):
    """The gain over the HORIZON after the capture, as a factor, with an interval of 90 %."""

    gain: float
    low: float
    high: float
    trend: float  # factor by which a cache that still fills will gain more
    change: float  # factor that the end of cheap writes makes; 1: none in sight
    ahead: float | None  # lengths of the capture until then
    answer: str
    cautious: float  # what machines are compared by, see `compared_by`


def rise(course: Course) -> float:
    """Return the share of the cost of the disks alone that more hits will save."""
    share = FALLS
    if course.rising > 0:
        share = RISES.get(course.kind, ANY_RISE).at(course.filling)
    later = min(max(course.hits + share * course.rising * LATER, 0.0), 1.0)
    return course.per_hit * (later - course.hits)


def before_change(course: Course) -> float:
    """Return the logarithm of the later gain as long as writes are what they are."""
    left = math.exp(-course.gain)
    return -math.log(max(left - rise(course), left * LEAST_LEFT))


def after_change(course: Course) -> float:
    """Return the logarithm of the later gain once writes have ceased to be cheap."""
    shift = AFTER.get(course.kind, ANY_AFTER).at(course)
    return -math.log(max(1 - course.without_cheap - rise(course), LEAST)) + shift


def centre(course: Course) -> float:
    """Return the logarithm of the gain that is expected over the HORIZON."""
    known = by_formula(course)
    return known if course.later is None else SIMULATED * course.later + (1 - SIMULATED) * known


def by_formula(course: Course) -> float:
    """Return the logarithm of the gain that the course alone lets expect."""
    before = before_change(course)
    if course.ahead is None:
        return before
    share = min(course.ahead / HORIZON, 1.0)  # of the requests that come before the change
    left = share * math.exp(-before) + (1 - share) * math.exp(-after_change(course))
    return -math.log(left)


def allowance(course: Course) -> float:
    """Return half of the width of the interval of 90 %, of the logarithm."""
    return math.sqrt(sum(_squares(course)))


def own_error(course: Course) -> float:
    """Return the standard error of the logarithm that other machines on this load do not share.

    What gains differ by from load to load (always, gain, unrest) moves all machines alike.
    """
    squares = _squares(course)
    return math.sqrt(squares.noise + squares.trend + squares.change) / REACH


def _squares(course: Course) -> Allowance:
    """Return what each part adds to the square of the allowance."""
    before, formula = before_change(course), by_formula(course)
    trend, change, weights, factor = before - course.gain, formula - before, ALLOWANCE, 1.0
    if course.later is not None:
        trend, change = course.later - course.gain, course.later - formula
        weights = ALLOWANCE_SIMULATED if course.off is None else ALLOWANCE_TRIED
        factor = factor_of(course.off)
    unrest = min(course.unrest, MOST_UNREST) * min(abs(course.gain), 1.0)
    parts = Allowance(1.0, course.noise, trend, course.gain, change, unrest)
    return Allowance(*(factor * (each * part) ** 2 for each, part in zip(weights, parts)))


def factor_of(off: float | None) -> float:
    """Return the factor of the square of the allowance; None: not known."""
    return 1.0 if off is None else min(max(off / USUAL_OFF, FACTORS[0]), FACTORS[1])


def deviation(course: Course, came: float) -> float:
    """Return how far a forecast was off, in allowances; `came` is the logarithm of what came."""
    return (came - centre(course)) / allowance(course)


def answer_of(expected: float, half: float, sure: float = SURE, loss: float = LOSS) -> str:
    """Return what a forecast means: the logarithm of the gain, and half of its interval.

    The answer is yes if the gain is WORTH_IT, and hardly NOTHING or a loss; no if the gain is less
    and hardly MUCH.
    """
    if expected >= math.log(WORTH_IT):
        is_sure = expected - sure * half >= math.log(NOTHING) and expected >= loss * half
        return YES if is_sure else UNSURE
    return NO if expected + sure * half < math.log(MUCH) else UNSURE


def compared_by(course: Course) -> float:
    """Return the logarithm of what machines are compared by: the gain of what is left on average.

    With an error of standard deviation e, a gain of exp(g) leaves exp(-g + e * e / 2) of the cost
    on average.  Only the machine's own error counts: what all machines on a load share moves their
    costs alike, and does not tell which is least.
    """
    return centre(course) - min(own_error(course) ** 2 / 2, allowance(course))


def is_certain(answer: str, low: float | None, high: float | None) -> bool:
    """Return whether an answer would be right at either end of an interval of the gain.

    A yes whose interval reaches to NOTHING, or a no whose interval reaches to MUCH, is probable.
    """
    if answer == YES:
        return low is None or low >= NOTHING
    return answer != NO or high is None or high < MUCH


def forecast(course: Course) -> Forecast:
    """Return the gain over the HORIZON, its interval, and what that means: see `answer_of`."""
    before, expected, half = before_change(course), centre(course), allowance(course)
    if course.later is not None:  # which of the two it was, the simulation does not say
        before = course.gain if course.ahead is not None and expected < course.gain else expected
    sure = SURE if course.later is None or course.off is None else SURE_TRIED
    loss = LOSS_BY_FORMULA if course.later is None else LOSS
    answer = answer_of(expected, half, sure, loss)
    if answer == YES and by_formula(course) < math.log(NOTHING):
        answer = UNSURE  # the capture itself shows nothing of it
    high = math.exp(expected + half)
    if max(course.gain, expected if course.later is None else course.later) >= MOST_GAIN:
        high = max(high, MOST_MEASURED)  # how much larger it is was not looked at
    return Forecast(
        math.exp(expected),
        math.exp(expected - half),
        high,
        math.exp(before - course.gain),
        math.exp(expected - before),
        course.ahead,
        answer,
        math.exp(compared_by(course)),
    )
