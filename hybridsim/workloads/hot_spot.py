"""A hot spot: a small part of the span receives most of the requests; it may move."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np
from pydantic import Field

from hybridsim.foundation.units import format_size
from hybridsim.workloads.draws import Draws, Ints, PowerLaw, Scattered
from hybridsim.workloads.load import MIB, Load, within_units
from hybridsim.workloads.quantities import Align, Rate, Share, SizeOrShare, Time, bytes_of

UNITS_MAX = 1 << 31
Where = Literal["scattered", "start", "middle", "end"]


class HotSpot(Load):
    """`share` of the requests go to the hot spot, the others anywhere in the span.

    A scattered hot spot consists of separate units; otherwise it is contiguous.  At each `every`,
    the share `moved` of it becomes cold, and as many cold units become hot: those after it if it is
    contiguous, as with appended data of which the newest are hot.
    """

    kind: Literal["hot-spot"] = "hot-spot"
    hot: SizeOrShare = 0.1
    share: Share = 0.9
    where: Where = "scattered"
    unit: Align = MIB
    theta: Rate | None = (
        None  # popularity within: the i-th hottest unit in proportion to i^-theta; else uniform
    )
    every: Time | None = Field(None, gt=0)
    moved: Share = 0.1

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject impossible sizes of the hot spot."""
        yield from super().contradictions()
        yield from too_many_units(self.span, self.unit)
        if self.hot_units < 1 or self.hot_units > self.span // self.unit:
            yield (
                "hot",
                f"the hot spot must be from one unit ({format_size(self.unit)}) up to the span",
            )

    @property
    def hot_units(self) -> int:
        """Return the number of hot units."""
        return bytes_of(self.hot, self.span) // self.unit

    def places(self, seed: int) -> HotPlaces:
        """Return the offsets in the hot spot and elsewhere."""
        return HotPlaces(self, seed)


class HotPlaces:
    """Offsets in the hot spot, by time, and elsewhere."""

    def __init__(self, load: HotSpot, seed: int) -> None:
        self._load = load
        self._units = max(load.span // load.unit, 1)
        self._order = ordered(load.where, self._units, load.hot_units, seed)
        self._ranks = PowerLaw(load.hot_units, load.theta) if load.theta else None

    def offsets(self, draws: Draws, arrival_ns: Ints, length: Ints) -> Ints:
        """Return offsets."""
        load, rows = self._load, len(length)
        is_hot = draws.happens(load.share, rows)
        if self._ranks is None:
            rank = draws.below(load.hot_units, rows)
        else:
            rank = self._ranks.choose(draws, rows)
        hot = self._order.units(rank + self._replaced(rank, arrival_ns) * load.hot_units)
        unit = np.where(is_hot, hot, draws.below(self._units, rows))
        return within_units(unit, load.unit, load, draws, length)

    def _replaced(self, rank: Ints, arrival_ns: Ints) -> Ints:
        """Return how often the unit of a rank was replaced; ranks are replaced in turn."""
        load = self._load
        if load.every is None:
            return rank * 0
        each_time = max(round(load.moved * load.hot_units), 1)
        moves = (arrival_ns - load.begin) // load.every
        times: Ints = (moves * each_time + load.hot_units - 1 - rank) // load.hot_units
        return times


class Ordered:
    """The order of units by heat."""

    def __init__(self, count: int, first: int, scattered: Scattered | None) -> None:
        self._count = count
        self._first = first
        self._scattered = scattered

    def units(self, number: Ints) -> Ints:
        """Return the indices of units by their number in the order; numbers wrap around."""
        at: Ints = (number + self._first) % self._count
        return at if self._scattered is None else self._scattered[at]


def ordered(where: Where, units: int, hot_units: int, seed: int) -> Ordered:
    """Return an order of contiguous units at the specified place, or of scattered ones."""
    if where == "scattered":
        return Ordered(units, 0, Scattered(units, seed))
    first = {"start": 0, "middle": (units - hot_units) // 2, "end": units - hot_units}[where]
    return Ordered(units, first, None)


def too_many_units(span: int, unit: int) -> Iterator[tuple[str, str]]:
    """Yield a problem if there are more than UNITS_MAX units, or a unit exceeds the span."""
    if span // unit > UNITS_MAX:
        yield "unit", f"too many units: unit must be at least {format_size(-(-span // UNITS_MAX))}"
    if unit > span:
        yield "unit", f"a unit of {format_size(unit)} does not fit into the span"
