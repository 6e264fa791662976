"""The plan of a sweep: the keys of a scenario, traces and seeds it varies; ranges of values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import (
    format_rate,
    format_size,
    format_time,
    parse_percent,
    parse_rate,
    parse_size,
    parse_time,
)
from hybridsim.scenario import Scenario
from hybridsim.scenario.overrides import value_of, values_of
from hybridsim.studies.sweep.figures import Objective
from hybridsim.studies.sweep.named_trace import NamedTrace

EXAMPLE = "1GiB..64GiB:7:log"
STEPS_MAX = 10_000
ROUND_BYTES = 4096  # sizes inside of a range are rounded to blocks


class Quantity(NamedTuple):
    """Parser and formatter of values of one kind."""

    read: Callable[[Any], float]
    written: Callable[[float], Any]


def _percent(number: float) -> str:
    return f"{number * 100:.6g}%"


def _size(number: float) -> str:
    size = round(number)
    return format_size(size - size % ROUND_BYTES if size > ROUND_BYTES else size)


QUANTITIES = (
    Quantity(lambda text: float(parse_percent(text)), _percent),
    Quantity(parse_size, _size),
    Quantity(parse_time, lambda number: format_time(round(number))),
    Quantity(parse_rate, lambda number: format_rate(round(number))),
)
WHOLE = Quantity(float, round)
REAL = Quantity(float, lambda number: float(f"{number:.6g}"))


@dataclass(frozen=True)
class Range:
    """A range of values, spaced evenly or (log) by equal factors."""

    low: Any
    high: Any
    steps: int = 0  # of a grid; 0: unspecified
    log: bool = False

    def __post_init__(self) -> None:
        quantity = self.quantity
        low, high = quantity.read(self.low), quantity.read(self.high)
        if not low < high or (self.log and low <= 0):
            raise UsageError(f"{self}: the lower end must come first{', above 0' * self.log}")
        if self.steps == 1 or not 0 <= self.steps <= STEPS_MAX:
            raise UsageError(f"{self}: steps must be 2 to {STEPS_MAX:,}")

    def __str__(self) -> str:
        return f"{self.low}..{self.high}" + f":{self.steps}" * (self.steps > 0) + ":log" * self.log

    @property
    def quantity(self) -> Quantity:
        """The kind of its ends; raises UsageError if they have none or differ."""
        ends = (self.low, self.high)
        if all(isinstance(end, int | float) and not isinstance(end, bool) for end in ends):
            return WHOLE if all(isinstance(end, int) for end in ends) else REAL
        for quantity in QUANTITIES:
            try:
                for end in ends:
                    quantity.read(end)
            except (ValueError, TypeError, AttributeError):
                continue
            return quantity
        raise UsageError(f"{self.low}..{self.high} is not a range; expected for example {EXAMPLE}")

    def at(self, share: float) -> Any:
        """Return the value at `share` (0 to 1) of the way from the lower to the upper end."""
        quantity = self.quantity
        low, high = quantity.read(self.low), quantity.read(self.high)
        if share in (0.0, 1.0):
            return self.low if share == 0 else self.high
        if self.log:
            return quantity.written(math.exp(math.log(low) + share * math.log(high / low)))
        return quantity.written(low + share * (high - low))

    @property
    def values(self) -> list[Any]:
        """Return the values of a grid, without duplicates."""
        if not self.steps:
            raise UsageError(f"{self}: a grid needs a number of steps: {self.low}..{self.high}:5")
        every = [self.at(step / (self.steps - 1)) for step in range(self.steps)]
        return list(dict.fromkeys(every))


def number_of(value: Any) -> float | None:
    """Return a value of any kind as a number; None if it is a word."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    for quantity in QUANTITIES:
        try:
            return float(quantity.read(value))
        except (ValueError, TypeError, AttributeError):
            continue
    return None


Kind = Literal["grid", "random", "pareto"]
KINDS = ("grid", "random", "pareto")
OBJECTIVES = ("mean", "hit", "dwpd")
TRIALS = 100  # default, for kinds other than grid
POINTS_MAX = 1_000_000


@dataclass(frozen=True)
class Axis:
    """A key of the scenario and its values."""

    key: str
    choices: tuple[Any, ...] | Range

    @property
    def values(self) -> list[Any]:
        """The values of the key in a grid."""
        return self.choices.values if isinstance(self.choices, Range) else list(self.choices)

    def at(self, share: float) -> Any:
        """Return the value at `share` of the choices or the range, in [0, 1)."""
        if isinstance(self.choices, Range):
            return self.choices.at(share)
        return self.choices[int(share * len(self.choices))]


@dataclass(frozen=True)
class Plan:
    """What a sweep tries, and its objectives."""

    traces: tuple[NamedTrace, ...]
    scenario: Scenario
    axes: tuple[Axis, ...] = ()
    kind: Kind = "grid"
    seeds: int = 0  # of each setting that depends on the seed; 0: the scenario's seed
    trials: int = TRIALS  # settings, except in a grid
    seed: int = 1  # of a random or Pareto search
    objectives: tuple[Objective, ...] = field(
        default_factory=lambda: tuple(map(Objective.parse, OBJECTIVES))
    )
    fleet: int | None = None  # number of volumes of each trace, the largest first; 0: all

    def __post_init__(self) -> None:
        keys = [axis.key for axis in self.axes]
        twice = next((key for key in keys if keys.count(key) > 1), None)
        if twice:
            raise UsageError(f"{twice} is varied twice: list all its values once")
        if self.kind not in KINDS:
            raise UsageError(f"unknown kind of sweep {self.kind!r}: choose from {', '.join(KINDS)}")
        if self.kind != "grid" and not self.axes:
            raise UsageError(f"{self.kind}: specify what to vary: --vary cache.size={EXAMPLE}")
        if self.kind == "pareto" and len(self.objectives) < 2:
            raise UsageError("a Pareto search needs at least two objectives: --objective mean,dwpd")
        if self.seeds < 0 or self.trials < 1:
            raise UsageError("the numbers of seeds and points must be at least 1")
        if self.settings > POINTS_MAX:
            raise UsageError(f"{self.settings:,} settings exceed the limit of a sweep: "
                             f"at most {POINTS_MAX:,}")  # fmt: skip

    @property
    def settings(self) -> int:
        """Number of settings of all keys, for each trace."""
        if self.kind != "grid":
            return self.trials
        number = 1
        for axis in self.axes:
            number *= len(axis.values)
        return number


def axes_of(texts: Iterable[str]) -> tuple[Axis, ...]:
    """Return the axes of texts like `cache.size=16GiB,32GiB` or `cache.size=1GiB..64GiB:7:log`."""
    return tuple(map(axis_of, texts))


def axis_of(text: str) -> Axis:
    """Return the axis of one such text."""
    key, equals, choices = text.partition("=")
    if not equals or not choices.strip() or not key.strip():
        raise UsageError(f"--vary {text}: expected for example --vary cache.size=16GiB,32GiB "
                         f"or --vary cache.size={EXAMPLE}")  # fmt: skip
    if ".." in choices:
        return Axis(key.strip(), range_of(choices))
    return Axis(key.strip(), tuple(dict.fromkeys(values_of(choices))))


def range_of(text: str) -> Range:
    """Return the range of a text `LOW..HIGH[:STEPS][:log]`."""
    low, _, rest = text.partition("..")
    high, *more = rest.split(":")
    log = "log" in more
    numbers = [each for each in more if each != "log"]
    if len(numbers) > 1 or any(not each.isdigit() for each in numbers):
        raise UsageError(f"{text} is not a range; expected for example {EXAMPLE}")
    return Range(value_of(low), value_of(high), int(numbers[0]) if numbers else 0, log)
