"""Zipf's law: the i-th most popular unit is requested in proportion to i^-theta."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from hybridsim.workloads.draws import Draws, Ints, PowerLaw
from hybridsim.workloads.hot_spot import Where, ordered, too_many_units
from hybridsim.workloads.load import KIB, Load, within_units
from hybridsim.workloads.quantities import Align, Rate


class Zipf(Load):
    """Popularity by Zipf's law; popular units are scattered or adjacent."""

    kind: Literal["zipf"] = "zipf"
    theta: Rate = 0.9
    unit: Align = 64 * KIB
    where: Where = "scattered"

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject too many units."""
        yield from super().contradictions()
        yield from too_many_units(self.span, self.unit)

    def places(self, seed: int) -> ZipfPlaces:
        """Return the offsets by popularity."""
        return ZipfPlaces(self, seed)


class ZipfPlaces:
    """Offsets in units by popularity."""

    def __init__(self, load: Zipf, seed: int) -> None:
        self._load = load
        units = max(load.span // load.unit, 1)
        self._ranks = PowerLaw(units, load.theta)
        self._order = ordered(load.where, units, 0, seed)

    def offsets(self, draws: Draws, arrival_ns: Ints, length: Ints) -> Ints:
        """Return offsets."""
        unit = self._order.units(self._ranks.choose(draws, len(length)))
        return within_units(unit, self._load.unit, self._load, draws, length)
