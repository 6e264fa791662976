"""Requests with uniformly random offsets in the span."""

from __future__ import annotations

from typing import Literal, NamedTuple

from hybridsim.workloads.draws import Draws, Ints
from hybridsim.workloads.load import Load, within_units


class Random(Load):
    """Uniformly random offsets: the hit ratio of a cache is its share of the span."""

    kind: Literal["random"] = "random"

    def places(self, seed: int) -> Evenly:
        """Return uniform offsets."""
        return Evenly(self)


class Evenly(NamedTuple):
    """Uniform offsets in the span."""

    load: Load

    def offsets(self, draws: Draws, arrival_ns: Ints, length: Ints) -> Ints:
        """Return offsets."""
        return within_units(length * 0, self.load.span, self.load, draws, length)
