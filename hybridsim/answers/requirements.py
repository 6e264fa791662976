"""Requirements on a machine: 'p99.warm<8ms', 'hit>80%', 'dwpd<1', 'warmup<1h'.

A requirement is MEASURE[.reads|.writes][.PHASE], one of < <= > >=, and a value with its unit.
By default latencies (mean, max, p50, p99.9 ...) are those of reads, and phases are warm.  A
requirement on an unknown value, such as a latency in an endless queue, is not met.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from hybridsim.answers.intervals import Interval
from hybridsim.answers.outcome import Phase
from hybridsim.answers.warmup import WarmUp
from hybridsim.answers.wear import Wear
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.suggest import hint
from hybridsim.foundation.units import parse_percent, parse_time
from hybridsim.foundation.wording import NONE, latency, percent, ranged, span

EXAMPLE = "'p99.warm<8ms', 'hit>80%', 'dwpd<1' or 'warmup<1h'"
PHASES = ("warm", "cold", "whole")
DIRECTIONS = ("reads", "writes")
COMPARED: dict[str, Callable[[float, float], bool]] = {
    "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
}  # fmt: skip
_PERCENTILE = re.compile(r"p\d+(?:\.\d+)?")
_NAME = re.compile(rf"(?:{_PERCENTILE.pattern}(?!\w)|[^\W\d]\w*)(?:\.\w+)*")
_GRAMMAR = re.compile(rf"\s*({_NAME.pattern})\s*(<=|>=|<|>)(.*)", re.DOTALL)


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


def _time(text: str) -> float:
    return parse_time(text)


def _share(text: str) -> float:
    share = float(parse_percent(text))
    if not 0 <= share <= 1:
        raise ValueError(f"{text} is not a share: from 0% to 100%")
    return share


TIME = Unit(_time, latency)
LONG_TIME = Unit(_time, lambda time_ns: span(time_ns) if time_ns else "at once")
SHARE = Unit(_share, percent)
NUMBER = Unit(_number, "{:.3g}".format)
UNITS = {
    "mean": TIME, "max": TIME, "hit": SHARE, "busy": SHARE, "iops": NUMBER,
    "dwpd": NUMBER, "years": NUMBER, "warmup": LONG_TIME,
}  # fmt: skip
OF_REQUESTS = ("mean", "max")  # and percentiles: they have a direction
OF_RUNS = ("dwpd", "years", "warmup")  # they have no phase


class Replayed(Protocol):
    """The parts of a result that requirements use."""

    @property
    def phases(self) -> Mapping[str, Phase]: ...  # noqa: D102
    @property
    def warm_up(self) -> WarmUp: ...  # noqa: D102
    @property
    def wear(self) -> Wear | None: ...  # noqa: D102


class Seen(NamedTuple):
    """The figures of a machine that requirements are checked against."""

    phases: Mapping[str, Phase]  # keys: PHASES
    warm_ns: int | None  # None: the cache was not steady at the end
    why_not: str  # why it was not steady
    dwpd: float | None
    years: float | None

    @classmethod
    def cached(cls, result: Replayed) -> Seen:
        """Return the figures of the machine with its cache."""
        warm_up, worn = result.warm_up, result.wear
        warm_ns = warm_up.warm_ns if warm_up.steady else None
        why = warm_up.why
        if warm_up.needed_ns:
            why += f"; a capture of {span(warm_up.needed_ns)} may show it"
        if worn is None:
            return cls(result.phases, warm_ns, why, None, None)
        endless = float("inf") if worn.bytes_written == 0 else None
        years = worn.years if worn.years is not None else endless
        return cls(result.phases, warm_ns, why, worn.drive_writes_per_day, years)

    @classmethod
    def alone(cls, result: Replayed) -> Seen:
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
        if self.measure in ("hit", "busy", "iops"):
            value = {
                "hit": figures.hit_ratio, "busy": phase.utilisation, "iops": phase.iops,
            }[self.measure]  # fmt: skip
            return value, "there is nothing to count"
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

    def check(self, seen: Seen) -> Checked:
        """Check a machine against this requirement."""
        value, why = self.value(seen)
        met = value is not None and COMPARED[self.compared](value, self.bound)
        return Checked(self, value, met, why)


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
        return COMPARED[self.requirement.compared](worst, self.requirement.bound)

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
        if (
            not self.met
            and self.value != required.bound
            and words == required.worded(required.bound)
        ):
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
