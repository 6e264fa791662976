"""Ranges of sizes, times, shares, rates and numbers with units."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

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
