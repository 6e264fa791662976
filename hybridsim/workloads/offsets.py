"""Loads by their offsets: uniform, with a hot spot, by Zipf's law, in zones, sequential streams."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from hybridsim.foundation.arrays import hashed
from hybridsim.foundation.toml.table import Size, Time
from hybridsim.foundation.units import format_size
from hybridsim.workloads.draws import Draws, Ints, PowerLaw, Scattered, Weighted
from hybridsim.workloads.load import (
    KIB,
    MIB,
    Align,
    Count,
    Load,
    Places,
    Rate,
    Share,
    SizeOrShare,
    Sizes,
    bytes_of,
    parse_number,
    weighted,
)

UNITS_MAX = 1 << 31
EXAMPLE = "50/5:30/15:20/80"  # of zones
Where = Literal["scattered", "start", "middle", "end"]


class Random(Load):
    """Uniformly random offsets: the hit ratio of a cache is its share of the span."""

    kind: Literal["random"] = "random"

    def places(self, seed: int) -> Places:
        """Return uniform offsets."""
        return lambda draws, _, length: self.within_units(length * 0, self.span, draws, length)


class HotSpot(Load):
    """`share` of the requests go to the hot spot, the others anywhere in the span.

    A scattered hot spot consists of separate units; otherwise it is contiguous.  At each `every`,
    the share `moved` of it becomes cold, and as many cold units become hot: those after it if it is
    contiguous, as with appended data of which the newest are hot.
    """

    kind: Literal["hot-spot"] = "hot-spot"
    hot: SizeOrShare = 0.1  # size of the hot spot: bytes or a share of the span
    share: Share = 0.9  # share of requests to the hot spot
    where: Where = "scattered"  # place of the hot spot: scattered, start, middle or end
    unit: Align = MIB  # block size of the popularity distribution
    # Within the hot spot, by heat; without it popularity is uniform.
    theta: Rate | None = None  # unit i is requested in proportion to i^-theta
    every: Time | None = Field(None, gt=0)  # interval at which the hot spot moves
    moved: Share = 0.1  # share of the hot spot that is replaced at each move

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject impossible sizes of the hot spot."""
        yield from super().contradictions()
        yield from _too_many_units(self.span, self.unit)
        if self.hot_units < 1 or self.hot_units > self.span // self.unit:
            yield (
                "hot",
                f"the hot spot must be from one unit ({format_size(self.unit)}) up to the span",
            )

    @property
    def hot_units(self) -> int:
        """Return the number of hot units."""
        return bytes_of(self.hot, self.span) // self.unit

    def places(self, seed: int) -> Places:
        """Return the offsets in the hot spot, by time, and elsewhere."""
        units, hot_units = max(self.span // self.unit, 1), self.hot_units
        at = _ordered(self.where, units, hot_units, seed)
        ranks = PowerLaw(hot_units, self.theta) if self.theta else None

        def offsets(draws: Draws, arrival_ns: Ints, length: Ints) -> Ints:
            rows = len(length)
            is_hot = draws.happens(self.share, rows)
            rank = draws.below(hot_units, rows) if ranks is None else ranks.choose(draws, rows)
            hot = at(rank + self._replaced(rank, arrival_ns) * hot_units)
            unit = np.where(is_hot, hot, draws.below(units, rows))
            return self.within_units(unit, self.unit, draws, length)

        return offsets

    def _replaced(self, rank: Ints, arrival_ns: Ints) -> Ints:
        """Return how often the unit of a rank was replaced; ranks are replaced in turn."""
        if self.every is None:
            return rank * 0
        each_time = max(round(self.moved * self.hot_units), 1)
        moves = (arrival_ns - self.begin) // self.every
        return (moves * each_time + self.hot_units - 1 - rank) // self.hot_units


class Zipf(Load):
    """Popularity by Zipf's law; popular units are scattered or adjacent."""

    kind: Literal["zipf"] = "zipf"
    theta: Rate = 0.9  # unit i is requested in proportion to i^-theta
    unit: Align = 64 * KIB  # block size of the popularity distribution
    where: Where = "scattered"  # place of the hot spot: scattered, start, middle or end

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject too many units."""
        yield from super().contradictions()
        yield from _too_many_units(self.span, self.unit)

    def places(self, seed: int) -> Places:
        """Return the offsets by popularity."""
        units = max(self.span // self.unit, 1)
        ranks, at = PowerLaw(units, self.theta), _ordered(self.where, units, 0, seed)
        return lambda draws, _, length: self.within_units(
            at(ranks.choose(draws, len(length))), self.unit, draws, length
        )


def _ordered(where: Where, units: int, hot_units: int, seed: int) -> Callable[[Ints], Ints]:
    """Return a function that returns the indices of units by their number in the order of heat.

    The order is of contiguous units at the specified place, or of scattered ones; numbers wrap
    around.
    """
    if where == "scattered":
        scattered = Scattered(units, seed)
        return lambda number: scattered[number % units]
    first = {"start": 0, "middle": (units - hot_units) // 2, "end": units - hot_units}[where]
    return lambda number: (number + first) % units


def _too_many_units(span: int, unit: int) -> Iterator[tuple[str, str]]:
    """Yield a problem if there are more than UNITS_MAX units, or a unit exceeds the span."""
    if span // unit > UNITS_MAX:
        yield "unit", f"too many units: unit must be at least {format_size(-(-span // UNITS_MAX))}"
    if unit > span:
        yield "unit", f"a unit of {format_size(unit)} does not fit into the span"


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
    # percent of requests / percent of the span, in order of address
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

    def places(self, seed: int) -> Places:
        """Return the offsets by zone, uniform in each, as fio's random_distribution=zoned."""
        choice = Weighted([accesses for accesses, _ in self.zones])
        ends = np.cumsum([0.0, *(size for _, size in self.zones)]) / 100 * self.span
        begins = np.ceil(ends / self.align).astype(np.int64)

        def offsets(draws: Draws, arrival_ns: Ints, length: Ints) -> Ints:
            zone = choice.choose(draws, len(length))
            low = begins[zone]
            last = np.minimum(begins[zone + 1] * self.align, self.span) - length
            slots = np.maximum(last // self.align + 1 - low, 1)
            offset = (low + draws.below(slots, len(length))) * self.align
            limited: Ints = np.minimum(offset, self.span - length)
            return limited

        return offsets


class Sequential(Load):
    """Sequential streams, served round-robin; after `run` bytes a stream jumps elsewhere."""

    kind: Literal["sequential"] = "sequential"
    size: Sizes = ((128 * KIB, 100.0),)
    read: Share = 1.0
    streams: Count = 1  # number of streams, served round-robin
    # Without it, the whole span again and again.
    run: Size | None = None  # bytes until a stream jumps to another offset

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject impossible runs and streams."""
        yield from super().contradictions()
        if self.run is not None and not self.size[0][0] <= self.run <= self.span:
            yield "run", "a run must be at least one request, and at most the span"
        if self.streams > self.span // max(size for size, _ in self.size):
            yield "streams", "there are more streams than requests in the span"

    def places(self, seed: int) -> Places:
        """Return the offsets of the streams; they go on where each was."""
        done = np.zeros(self.streams, np.int64)  # bytes of each
        turn = 0

        def offsets(draws: Draws, arrival_ns: Ints, length: Ints) -> Ints:
            nonlocal turn
            offsets = np.empty(len(length), np.int64)
            for first in range(min(self.streams, len(length))):
                stream = (turn + first) % self.streams
                mine = slice(first, None, self.streams)
                ends = done[stream] + np.cumsum(length[mine])
                offsets[mine] = self._placed(stream, ends - length[mine], length[mine], seed)
                done[stream] = ends[-1]
            turn = (turn + len(length)) % self.streams
            return offsets

        return offsets

    def _placed(self, stream: int, done: Ints, length: Ints, seed: int) -> Ints:
        longest = max(size for size, _ in self.size)
        room = self.span - self.span % longest
        run = self.run or room
        if self.run is None:
            begin = done * 0 + room // longest * stream // self.streams * longest
        else:
            slots = (self.span - run) // self.align + 1
            numbers = hashed(done // run + (stream << 32), seed)
            begin = (numbers % np.uint64(slots)).astype(np.int64) * self.align
        within = done % run
        at: Ints = (begin + within) % room if self.run is None else begin + within
        return np.minimum(at, self.span - length)
