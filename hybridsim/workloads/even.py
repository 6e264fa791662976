"""Requests spread evenly at random over the span."""

from __future__ import annotations

from typing import Literal, NamedTuple

from hybridsim.workloads.draws import Draws, Ints
from hybridsim.workloads.load import Load, within_units


class Random(Load):
    """All places alike: a cache is worth what its share of the span is."""

    kind: Literal["random"] = "random"

    def places(self, seed: int) -> Evenly:
        """Return places anywhere."""
        return Evenly(self)


class Evenly(NamedTuple):
    """Places anywhere in the span."""

    load: Load

    def offsets(self, draws: Draws, arrival_ns: Ints, length: Ints) -> Ints:
        """Return offsets."""
        return within_units(length * 0, self.load.span, self.load, draws, length)
