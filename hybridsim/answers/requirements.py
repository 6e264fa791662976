"""Requirements on a machine: 'p99.warm<8ms', 'hit>80%', 'dwpd<1', 'warmup<1h'.

A requirement is MEASURE[.reads|.writes][.PHASE], one of < <= > >=, and a value with its unit.
By default latencies (mean, max, p50, p99.9 ...) are those of reads, and phases are warm.  A
requirement on an unknown value, such as a latency in an endless queue, is not met.

A measure of the machine with its cache has an interval.  The requests of the phase are cut into
blocks of equal recorded time, as those of the judge are; the sources are those of intervals.py.
The busy share and the maximum have none.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridsim.answers.intervals import (
    MODEL,
    OF_DIRECTION,
    RATE,
    TRACE,
    Ends,
    Interval,
    combined,
    of_model,
    of_percentile,
    of_share,
    of_trace,
    scaled,
)
from hybridsim.answers.judge import BLOCKS, Both, by_block, histograms
from hybridsim.answers.metrics import READ, WRITE
from hybridsim.answers.outcome import DAY, WRITTEN, Outcome, Phase
from hybridsim.answers.sampling import interval
from hybridsim.answers.warmup import WarmUp
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import parse_percent, parse_time
from hybridsim.foundation.wording import NONE, latency, percent, ranged, span

if TYPE_CHECKING:
    from hybridsim.answers.result import Result

EXAMPLE = "'p99.warm<8ms', 'hit>80%', 'dwpd<1' or 'warmup<1h'"
PHASES = ("warm", "cold", "whole")
DIRECTIONS = ("reads", "writes")
COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_PERCENTILE = re.compile(r"p\d+(?:\.\d+)?")
_NAME = re.compile(rf"(?:{_PERCENTILE.pattern}(?!\w)|[^\W\d]\w*)(?:\.\w+)*")
_GRAMMAR = re.compile(rf"\s*({_NAME.pattern})\s*(<=|>=|<|>)(.*)", re.DOTALL)
OF_REQUESTS = ("mean", "max")  # and percentiles: they have a direction
OF_RUNS = ("dwpd", "years", "warmup")  # they have no phase
HIT = "hit_ratio"  # figures of real runs
WARM = "t90"
FILLED = "promotions"  # whose error those bytes are taken to have that are written to the SSDs
TAILS = ("read_p99", "write_p99")  # by direction
TAIL = 95.0  # percentiles from this one on have the error of p99, the others that of the mean


class Unit(NamedTuple):
    """How the values of a measure are read and written."""

    parse: Callable[[str], float]
    format: Callable[[float], str]


def _number(text: str) -> float:
    try:
        result = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not 0 <= result < float("inf"):
        raise ValueError(f"{text} is out of range")
    return result


def _share(text: str) -> float:
    share = float(parse_percent(text))
    if not 0 <= share <= 1:
        raise ValueError(f"{text} is not a share: from 0% to 100%")
    return share


TIME = Unit(parse_time, latency)
LONG_TIME = Unit(parse_time, lambda time_ns: span(time_ns) if time_ns else "at once")
SHARE = Unit(_share, percent)
NUMBER = Unit(_number, "{:.3g}".format)
UNITS = {
    "mean": TIME, "max": TIME, "hit": SHARE, "busy": SHARE, "iops": NUMBER,
    "dwpd": NUMBER, "years": NUMBER, "warmup": LONG_TIME,
}  # fmt: skip


class Seen(NamedTuple):
    """The figures of a machine that requirements are checked against."""

    phases: Mapping[str, Phase]  # keys: PHASES
    warm_ns: int | None  # None: the cache was not steady at the end
    why_not: str  # why it was not steady
    dwpd: float | None
    years: float | None

    @classmethod
    def cached(cls, result: Result) -> Seen:
        """Return the figures of the machine with its cache."""
        warm_up, worn = result.warm_up, result.wear
        why = warm_up.why
        warm_ns = warm_up.warm_ns if warm_up.steady else None
        if warm_up.needed_ns:
            why += f"; a capture of {span(warm_up.needed_ns)} may show it"
        if worn is None:
            return cls(result.phases, warm_ns, why, None, None)
        years = float("inf") if worn.years is None and not worn.bytes_written else worn.years
        return cls(result.phases, warm_ns, why, worn.drive_writes_per_day, years)

    @classmethod
    def alone(cls, result: Result) -> Seen:
        """Return those of the disks without the cache: nothing warms up, no SSD wears out."""
        names = {"warm": "none", "cold": "none_cold", "whole": "none_whole"}
        phases = {name: result.phases[other] for name, other in names.items()}
        return cls(phases, 0, "", 0.0, float("inf"))


@dataclass(frozen=True)
class Measure:
    """One figure of a machine: 'p99.warm', 'hit', 'dwpd'."""

    text: str
    measure: str
    direction: str  # one of DIRECTIONS
    phase: str  # one of PHASES

    @property
    def is_of(self) -> str:
        """The requests that are measured: "reads", "writes", or "requests" for all."""
        if self.measure in ("hit", "warmup"):
            return "reads"
        return self.direction if has_direction(self.measure) else "requests"

    @property
    def is_time(self) -> bool:
        """Whether its values are nanoseconds."""
        return _unit(self.measure) in (TIME, LONG_TIME)

    @property
    def is_share(self) -> bool:
        """Whether its values are shares, printed as percentages."""
        return _unit(self.measure) is SHARE

    def worded(self, value: float | None) -> str:
        """Return a value of this measure as text."""
        if value is None:
            return NONE
        return "endless" if value == float("inf") else _unit(self.measure).format(value)

    def value(self, seen: Seen) -> tuple[float | None, str]:
        """Return the value, or None and why there is none."""
        if self.measure == "warmup":
            return seen.warm_ns, f"not steady yet: {seen.why_not}"
        if self.measure in OF_RUNS:
            value = seen.dwpd if self.measure == "dwpd" else seen.years
            return value, "the SSD's capacity or rating is unknown"
        phase = seen.phases[self.phase]
        figures = phase.figures
        rates = {"hit": figures.hit_ratio, "busy": phase.utilisation, "iops": phase.iops}
        if self.measure in rates:
            return rates[self.measure], "there is nothing to count"
        requests = figures.reads if self.direction == "reads" else figures.writes
        if phase.saturated:
            return None, "an endless queue has no latency"
        why = f"there are no {self.direction} in that phase"
        if self.measure == "max":
            return (requests.max_ns if requests.count else None), why
        if self.measure == "mean":
            return requests.mean_ns, why
        return requests.percentile(float(self.measure[1:])), why


@dataclass(frozen=True)
class Requirement(Measure):
    """A limit on one figure of a machine."""

    compared: str  # a key of COMPARED
    bound: float  # nanoseconds, a share or a number

    @property
    def wants_less(self) -> bool:
        """Whether lower values are better."""
        return self.compared.startswith("<")

    def is_met_by(self, value: float | None) -> bool:
        """Whether a value is within the limit."""
        return value is not None and COMPARED[self.compared](value, self.bound)

    def check(self, seen: Seen) -> Checked:
        """Check a machine against this requirement."""
        value, why = self.value(seen)
        return Checked(self, value, self.is_met_by(value), why)


@dataclass(frozen=True)
class Checked:
    """A requirement, and the value that a machine reaches."""

    requirement: Requirement
    value: float | None  # None: unknown
    met: bool
    why: str  # why the value is unknown
    interval: Interval | None = None  # of the value; None: it has none

    @property
    def is_sure(self) -> bool:
        """Whether it is met at the worse end of the interval too."""
        if not self.met or self.interval is None:
            return self.met
        worst = self.interval.high if self.requirement.wants_less else self.interval.low
        return self.requirement.is_met_by(worst)

    @property
    def ranged(self) -> str:
        """The value with its interval: 2.60 ms (2.40 to 2.90)."""
        if self.value is None or self.interval is None:
            return self.words
        low, high = self.interval.low, self.interval.high
        if self.requirement.is_time and self.words == latency(self.value):
            return ranged(self.value, low, high)
        return f"{self.words} ({self.requirement.worded(low)} to {self.requirement.worded(high)})"

    @property
    def words(self) -> str:
        """The value as text, or why it is unknown."""
        if self.value is None:
            return f"unknown: {self.why}"
        required = self.requirement
        words = required.worded(self.value)
        is_near = self.value != required.bound and words == required.worded(required.bound)
        if is_near and not self.met:
            return f"a little {'above' if required.wants_less else 'below'} {words}"
        return words

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of the JSON."""
        return {
            "expr": self.requirement.text,
            "value": self.value,
            "words": self.words,
            "ok": self.met,
            "sure": self.is_sure,
            "interval": self.interval and self.interval.to_dict(),
            "ranged": self.ranged,
        }


def parse(text: str) -> Requirement:
    """Parse a requirement; raise UsageError for an invalid one."""
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        raise UsageError(f"{text!r} is not a requirement: write for example {EXAMPLE}")
    name, compared, value = match.groups()
    measure, direction, phase = _parts(text, name)
    try:
        bound = _unit(measure).parse(value.strip())
    except ValueError as error:
        raise UsageError(f"{text!r}: {error}") from None
    return Requirement(text.strip(), measure, direction, phase, compared, bound)


def parse_measure(text: str) -> Measure:
    """Parse a measure; raise UsageError for an invalid one."""
    if not _NAME.fullmatch(text):
        raise UsageError(f"{text!r} is not a measure: write for example mean, p99.warm or dwpd")
    return Measure(text, *_parts(text, text))


def parse_all(texts: Iterable[str]) -> list[Requirement]:
    """Parse requirements; raise UsageError for an invalid one."""
    return [parse(text) for text in texts]


def check_answerable(require: Iterable[Requirement], reads: int, writes: int) -> None:
    """Raise UsageError if the trace lacks the reads or writes that a requirement measures."""
    for each in require:
        if {"reads": reads, "writes": writes}.get(each.is_of) == 0:
            raise UsageError(f"{each.text!r} cannot be checked: the trace has no {each.is_of}")


def has_direction(measure: str) -> bool:
    """Return whether a measure applies to reads or writes separately."""
    return measure not in UNITS or measure in OF_REQUESTS


def _unit(measure: str) -> Unit:
    return UNITS.get(measure, TIME)


def _parts(text: str, name: str) -> tuple[str, str, str]:
    """Return measure, direction and phase of a name such as 'p99.writes.warm'."""
    measure, *words = re.split(r"\.(?!\d)", name)
    if measure not in UNITS and not _PERCENTILE.fullmatch(measure):
        known = [*UNITS, "p99"]
        raise UsageError(f"{text!r}: unknown measure {measure!r}: {hint(measure, known)}")
    if measure not in UNITS and float(measure[1:]) > 100:
        raise UsageError(f"{text!r}: {measure} is not a percentile: the highest is p100")
    direction, phase = "reads", "warm"
    for word in words:
        if word in DIRECTIONS and has_direction(measure):
            direction = word
        elif word in PHASES and measure not in OF_RUNS:
            phase = word
        else:
            known = [*PHASES * (measure not in OF_RUNS), *DIRECTIONS * has_direction(measure)]
            remedy = hint(word, known) if known else f"write {measure} alone"
            raise UsageError(f"{text!r}: {measure} has no {word!r}: {remedy}")
    return measure, direction, phase


def of_measure(measure: Measure, value: float | None, both: Both, warm: int) -> Interval | None:
    """Return the interval of a measure of the machine with the cache; None if it has none.

    `warm` is the group from which it is warm.
    """
    if value is None or not value > 0 or measure.measure in (*OF_RUNS, "busy", "max"):
        return None
    start, stop = {
        "warm": (warm, both.groups), "cold": (0, warm), "whole": (0, both.groups),
    }[measure.phase]  # fmt: skip
    if stop <= start:
        return None
    blocks = both.blocks(start, stop)
    ledger = both.cached.ledger
    count = both.plain.ledger.count[start:stop]
    writes = float(count[:, WRITE].sum() / max(count.sum(), 1))
    kind = both.cached.kind
    direction = (READ, WRITE)[DIRECTIONS.index(measure.direction)]
    if measure.measure == "hit":
        ends = _of_hits(both, blocks, start, stop)
        return of_share(value, ends, of_model(kind, writes, HIT))
    if measure.measure == "iops":  # from how long the requests of each block took
        edges = start + np.searchsorted(blocks, np.arange(BLOCKS + 1))
        took = np.diff(both.progress_ns[1][edges]).astype(np.float64)
        counts = by_block(blocks, count.sum(axis=1))
        held = int(np.count_nonzero(took))
        if not took.sum() > 0 or held < 2:
            return None
        ends = interval(BLOCKS, lambda often: (often @ counts) / (often @ took), held=held)
        middle = float(counts.sum() / took.sum())
        figure = RATE
    elif measure.measure == "mean":
        sums, counts = (
            by_block(blocks, column[start:stop, direction])
            for column in (ledger.total_ns, ledger.count)
        )
        ends = of_trace(sums, counts)
        middle = float(sums.sum() / max(counts.sum(), 1))
        figure = OF_DIRECTION[direction]
    else:
        percent = float(measure.measure[1:])
        ends = of_percentile(histograms(ledger, start, blocks, [direction]), percent)
        middle = float(ledger.distribution(start, stop, direction).percentile(percent) or 0)
        figure = (TAILS if percent >= TAIL else OF_DIRECTION)[direction]
    trace = scaled(value, ends, middle)
    return combined(value, {TRACE: trace, MODEL: of_model(kind, writes, figure)})


def of_warm_up(warm_up: WarmUp, kind: str, writes: float) -> Interval | None:
    """Return the interval of t90 in ns; None if the run has none.

    `kind` is the kind of cache, `writes` the share of the requests that are writes.
    """
    ends = warm_up.between_ns(90)
    if ends is None:
        return None
    return combined(warm_up.warm_ns, {TRACE: ends, MODEL: of_model(kind, writes, WARM)})


def of_wear(cached: Outcome, kind: str, writes: float) -> Interval | None:
    """Return the interval of the bytes written to the SSDs per day of the run; None if unknown.

    The run is cut into BLOCKS of equal time.
    """
    edges = np.linspace(0, cached.end_ns, BLOCKS + 1).astype(np.int64)
    level = cached.counters.at(WRITTEN, edges)
    per_day = cached.whole.per_day(WRITTEN)
    if level is None or not per_day:
        return None
    ends = of_trace(np.diff(level), np.full(BLOCKS, cached.end_ns / BLOCKS / DAY))
    trace = scaled(per_day, ends, float(level[-1] - level[0]) * DAY / cached.end_ns)
    return combined(per_day, {TRACE: trace, MODEL: of_model(kind, writes, FILLED)})


def _of_hits(both: Both, blocks: Ints, start: int, stop: int) -> Ends | None:
    """Return the interval of the share of hits among the reads that the ledger keeps."""
    ledger, each = both.cached.ledger, both.each
    first, end = (-(-group * each // ledger.stride) for group in (start, stop))
    end = min(end, -(-both.requests // ledger.stride))
    known = (ledger.sample_ns[first:end] >= 0) & ~ledger.is_write[first:end]
    group = (np.arange(first, end) * ledger.stride) // each - start
    block = blocks[np.minimum(group, len(blocks) - 1)]
    hits = known & ~ledger.from_disks[first:end]
    return of_trace(by_block(block, hits), by_block(block, known))
