"""Zones of the span, each with its share of the requests, as fio's random_distribution=zoned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator

from hybridsim.workloads.draws import Draws, Ints, Weighted
from hybridsim.workloads.load import Load
from hybridsim.workloads.quantities import parse_number, weighted

EXAMPLE = "50/5:30/15:20/80"


def _zones(value: Any) -> tuple[tuple[float, float], ...]:
    zones = weighted(value, parse_number, EXAMPLE)
    if sum(size for _, size in zones) > 100 + 1e-9:
        raise ValueError(f"the zones exceed 100 % of the span; an example: '{EXAMPLE}'")
    if min(accesses for accesses, _ in zones) < 0 or not sum(accesses for accesses, _ in zones):
        raise ValueError(f"shares must be 0 or more, and not all 0, as in '{EXAMPLE}'")
    return zones


class Zoned(Load):
    """Zones in order of address: percent of the requests / percent of the span."""

    kind: Literal["zoned"] = "zoned"
    zones: Annotated[tuple[tuple[float, float], ...], BeforeValidator(_zones)] = (
        (50.0, 5.0),
        (30.0, 15.0),
        (20.0, 80.0),
    )

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject zones smaller than a request."""
        yield from super().contradictions()
        smallest = min(size for accesses, size in self.zones if accesses) / 100 * self.span
        if smallest < max(size for size, _ in self.size):
            yield "zones", "a zone is smaller than a request"

    def places(self, seed: int) -> ZonedPlaces:
        """Return the offsets by zone."""
        return ZonedPlaces(self)


class ZonedPlaces:
    """Offsets by zone, uniform in each."""

    def __init__(self, load: Zoned) -> None:
        self._load = load
        self._choice = Weighted([accesses for accesses, _ in load.zones])
        ends = np.cumsum([0.0, *(size for _, size in load.zones)]) / 100 * load.span
        self._slots = np.ceil(ends / load.align).astype(np.int64)

    def offsets(self, draws: Draws, arrival_ns: Ints, length: Ints) -> Ints:
        """Return offsets."""
        load = self._load
        zone = self._choice.choose(draws, len(length))
        low = self._slots[zone]
        last = np.minimum(self._slots[zone + 1] * load.align, load.span) - length
        slots = np.maximum(last // load.align + 1 - low, 1)
        offset = (low + draws.below(slots, len(length))) * load.align
        limited: Ints = np.minimum(offset, load.span - length)
        return limited
