"""A hot spot: a small part of the span gets most of the requests; it may move, as new mail does."""

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
    """`share` of the requests go to `hot` of the span, the others anywhere.

    A hot spot that is scattered is made of units, far from each other; else it is in one piece.
    After each `every`, `moved` of it grows cold and as much that was cold becomes hot: of one
    piece, what lies behind it, as where new data are appended and the newest are hot.
    """

    kind: Literal["hot-spot"] = "hot-spot"
    hot: SizeOrShare = 0.1
    share: Share = 0.9
    where: Where = "scattered"
    unit: Align = MIB
    theta: Rate | None = None  # within: the i-th hottest unit in proportion to i^-theta; else even
    every: Time | None = Field(None, gt=0)
    moved: Share = 0.1

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse a hot spot that is none."""
        yield from super().contradictions()
        yield from too_many_units(self.span, self.unit)
        if self.hot_units < 1 or self.hot_units > self.span // self.unit:
            yield "hot", f"a hot spot has from one unit ({format_size(self.unit)}) up to the span"

    @property
    def hot_units(self) -> int:
        """Return how many units are hot."""
        return bytes_of(self.hot, self.span) // self.unit

    def places(self, seed: int) -> HotPlaces:
        """Return places in the hot spot and elsewhere."""
        return HotPlaces(self, seed)


class HotPlaces:
    """Where the hot spot is, by time."""

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
        """Return how often the unit of a rank has been replaced: one rank after the other is."""
        load = self._load
        if load.every is None:
            return rank * 0
        each_time = max(round(load.moved * load.hot_units), 1)
        moves = (arrival_ns - load.begin) // load.every
        found: Ints = (moves * each_time + load.hot_units - 1 - rank) // load.hot_units
        return found


class Ordered:
    """Which unit is which in the order of heat."""

    def __init__(self, count: int, first: int, scattered: Scattered | None) -> None:
        self._count = count
        self._first = first
        self._scattered = scattered

    def units(self, number: Ints) -> Ints:
        """Return the places of units by number; numbers beyond the last begin anew."""
        at: Ints = (number + self._first) % self._count
        return at if self._scattered is None else self._scattered[at]


def ordered(where: Where, units: int, hot_units: int, seed: int) -> Ordered:
    """Return units in one piece that begins where it is said, or scattered."""
    if where == "scattered":
        return Ordered(units, 0, Scattered(units, seed))
    first = {"start": 0, "middle": (units - hot_units) // 2, "end": units - hot_units}[where]
    return Ordered(units, first, None)


def too_many_units(span: int, unit: int) -> Iterator[tuple[str, str]]:
    """Refuse units that are too small to be counted, or larger than the span."""
    if span // unit > UNITS_MAX:
        yield "unit", f"too many units: at least {format_size(-(-span // UNITS_MAX))} each"
    if unit > span:
        yield "unit", f"a unit of {format_size(unit)} does not fit into the span"
