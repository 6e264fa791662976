"""One load of a workload: quantities as users write them, the common part of all kinds of load.

Requests are generated in blocks of BLOCK_ROWS, each from its own random stream (seed, load, block),
so the requests do not depend on how they are divided later.
"""

from __future__ import annotations

import itertools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BeforeValidator, Field

from hybridsim.foundation.codes import Op
from hybridsim.foundation.toml.table import Part, Size, Time
from hybridsim.foundation.units import format_size, format_time, parse_percent, parse_size
from hybridsim.requests.rows import UNKNOWN, Requests, joined, no_requests, requests_with
from hybridsim.workloads.draws import Draws, Floats, Ints, Weighted

BLOCK_ROWS = 1 << 16
SECOND = 10**9
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
WORKER_BITS = 16  # low bits of `stream`; the upper ones are the number of the load
LATEST_NS = 1 << 61
DEPTH_MAX = 4096
COUNT_MAX = 2**63 - 1
SHOWN = 30  # characters of an invalid value in a message
COUNTS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}
Weight = TypeVar("Weight")


def parse_share(value: object) -> float:
    """Return the share of a text as '70%'."""
    if not isinstance(value, str):
        raise ValueError(f"a share needs a percent sign: '{value}%'")
    share = float(parse_percent(value))
    if share > 1:
        raise ValueError(f"{value} must be at most 100%")
    return share


def parse_count(value: object) -> int:
    """Return the integer of a text as '10M', or a number."""
    if isinstance(value, int) and not isinstance(value, bool):
        number: float = value
    else:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)([kMG]?)", str(value).replace("_", ""))
        number = float(match[1]) * COUNTS[match[2]] if match else 0.5
    if abs(number) > COUNT_MAX or number != int(number):
        raise ValueError(f"{_short(value)} is not a count, as 500, 100k or 10M")
    return int(number)


def parse_number(value: object) -> float:
    """Return a number, or the number of a text as '2k'."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        number = float(value) if abs(value) < COUNT_MAX else math.inf
    else:
        match = re.fullmatch(r"(-?\d+(?:\.\d+)?)([kMG]?)", str(value))
        number = float(match[1]) * COUNTS[match[2]] if match else math.nan
    if not math.isfinite(number):
        raise ValueError(f"{_short(value)} is not a number, as 0.9, 150 or 2k")
    return number


def _short(value: object) -> str:
    return repr(value if len(str(value)) <= SHOWN else str(value)[:SHOWN] + "...")


def parse_size_or_share(value: object) -> int | float:
    """Return bytes (an integer) or a share (a float)."""
    if isinstance(value, str) and value.endswith("%"):
        return parse_share(value)
    if isinstance(value, str | int):
        return parse_size(value)
    raise ValueError(f"{value!r} is neither a size nor a share, as '2GiB' or '10%'")


def weighted(
    text: object, first: Callable[[str], Weight], example: str
) -> tuple[tuple[Weight, float], ...]:
    """Return the pairs of 'a/70:b/30'; items without a weight share the rest up to 100 equally."""
    if not isinstance(text, str) or not text:
        raise ValueError(f"{text!r} is not a weighted list, as '{example}'")
    parts = [each.partition("/") for each in text.split(":")]
    specified = [parse_number(weight) if slash else None for _, slash, weight in parts]
    rest = max(100 - sum(each or 0 for each in specified), 0)
    default = rest / max(specified.count(None), 1)
    weights = [default if each is None else each for each in specified]
    pairs = [(first(name), weight) for (name, _, _), weight in zip(parts, weights)]
    if any(weight < 0 for _, weight in pairs) or not sum(weight for _, weight in pairs):
        raise ValueError(f"weights must be 0 or more, and not all 0, as in '{example}'")
    return tuple(pairs)


def _sizes(value: Any) -> tuple[tuple[int, float], ...]:
    if isinstance(value, int):
        value = str(value)
    sizes = weighted(value, parse_size, "4KiB/70:64KiB/30")
    if min(size for size, _ in sizes) < 1:
        raise ValueError("a request must have at least 1 byte")
    return sizes


def _depths(value: Any) -> tuple[int, ...]:
    """Return the depths of '8', of '1-512' (doubled from the first to the last), or of a list."""
    if isinstance(value, list) and value:
        depths = tuple(parse_count(each) for each in value)
        if not all(1 <= depth <= DEPTH_MAX for depth in depths):
            raise ValueError(f"{value!r}: a depth must be from 1 to {DEPTH_MAX}")
        return depths
    first, dash, last = str(value).partition("-")
    low = parse_count(first)
    high = parse_count(last) if dash else low
    if not 1 <= low <= high <= DEPTH_MAX:
        raise ValueError(f"{value!r} is not a depth, as 32 or '1-512'")
    return tuple(low << power for power in range(20) if low << power <= high)


Share = Annotated[float, BeforeValidator(parse_share)]
Count = Annotated[int, BeforeValidator(parse_count), Field(ge=1)]
Often = Annotated[int, BeforeValidator(parse_count), Field(ge=0)]
Seed = Annotated[int, BeforeValidator(parse_count), Field(ge=0, lt=2**63)]
Rate = Annotated[float, BeforeValidator(parse_number), Field(gt=0, le=1e9, allow_inf_nan=False)]
SizeOrShare = Annotated[int | float, BeforeValidator(parse_size_or_share)]
Sizes = Annotated[tuple[tuple[int, float], ...], BeforeValidator(_sizes)]
Depths = Annotated[tuple[int, ...], BeforeValidator(_depths)]
Align = Annotated[Size, Field(ge=1)]


def bytes_of(value: int | float, whole_bytes: int) -> int:
    """Return a size in bytes; a share (a float) is of `whole_bytes`."""
    return int(value * whole_bytes) if isinstance(value, float) else value


Places = Callable[[Draws, Ints, Ints], Ints]
"""Returns offsets from the start of the load's span, of requests that arrive at given times (ns)
and have given lengths (bytes); called once per block, in order."""


class Load(Part, ABC):
    """Times, sizes and directions of requests; a kind (subclass) adds their offsets.

    The comments are what `trace gen --keys` says of each key.
    """

    name: str = ""  # a comment
    at: Size = 0  # offset of the load's range on the volume
    span: Size = Field(16 * GIB, gt=0)  # size of the load's range
    size: Sizes = ((4 * KIB, 100.0),)  # request size: 4k, or weighted: 4k/70:64k/30
    read: Share = 0.7  # share of reads; the other requests are writes
    align: Align = 4 * KIB  # offsets are multiples of this
    rate: Rate = 100.0  # requests per second
    arrivals: Literal["poisson", "even"] = "poisson"  # arrival times: poisson or even
    burst_every: Time | None = None  # time from the start of one burst to the start of the next
    burst_lasts: Time = SECOND  # length of a burst
    burst_rate: Rate = 1000.0  # requests per second during a burst
    begin: Time = 0  # start time of the load
    end: Time | None = None  # end time of the load
    # queue depth: 32; or 1-512, doubled at each step; replay it with --mode think
    depth: Depths | None = None
    step: Time = 60 * SECOND  # duration of each queue depth of a range
    # a FLUSH after every N requests, if any of them is a write; 0: none
    flush_every: Often = 0

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject values that leave no space or no time for requests."""
        largest = max(size for size, _ in self.size)
        if largest > self.span:
            yield "size", f"a request of {format_size(largest)} does not fit into the span"
        if self.burst_every is not None and self.burst_every <= self.burst_lasts:
            yield (
                "burst_lasts",
                f"a burst of {format_time(self.burst_lasts)} must be shorter than burst_every",
            )
        if self.end is not None and self.end <= self.begin:
            yield "end", "the load ends before it begins"
        if self.depth is not None and self.burst_every is not None:
            yield "burst_every", "burst_every and depth exclude each other"

    @property
    def ends(self) -> bool:
        """Return whether the load has an end of its own."""
        return self.end is not None or (self.depth is not None and len(self.depth) > 1)

    @abstractmethod
    def places(self, seed: int) -> Any:
        """Return the source of offsets that `fill` needs, at its start; for this one Places."""

    def requests(self, seed: int, number: int) -> Iterator[Requests]:
        """Yield the requests in order of arrival; infinite if the load has no end."""
        blocks = with_flushes(self._blocks(seed, number), self.flush_every)
        yield from blocks if self.depth is None else in_workers(blocks, self, self._steps())

    def _blocks(self, seed: int, number: int) -> Iterator[Requests]:
        places = self.places(int(np.random.SeedSequence([seed, number]).generate_state(1)[0]))
        work = 0.0
        end_ns = min(LATEST_NS, self.end or LATEST_NS, int(self._steps()[-1]))
        for block in itertools.count():
            draws = Draws(seed, number, block)
            gaps = draws.exponential(BLOCK_ROWS) if self.arrivals == "poisson" else 1.0
            done = work + np.cumsum(np.broadcast_to(gaps, BLOCK_ROWS))
            work = float(done[-1])
            arrival_ns = self.begin + self._times(done)
            arrival_ns += self.paused_ns(block * BLOCK_ROWS + np.arange(BLOCK_ROWS))
            stream = number << WORKER_BITS
            rows = requests_with(BLOCK_ROWS, arrival_ns=arrival_ns, stream=stream)
            self.fill(rows, places, draws)
            rows.offset_bytes[:] += self.at
            left = int(np.searchsorted(rows.arrival_ns, end_ns))
            yield rows.between(0, left)
            if left < BLOCK_ROWS:
                return

    def fill(self, rows: Requests, places: Any, draws: Draws) -> None:
        """Fill in the sizes, operations and offsets of requests with given arrivals."""
        choice = Weighted([weight for _, weight in self.size])
        sizes = np.array([size for size, _ in self.size], np.int64)
        rows.length_bytes[:] = sizes[choice.choose(draws, rows.rows)]
        rows.op[:] = np.where(draws.happens(self.read, rows.rows), Op.READ, Op.WRITE)
        rows.offset_bytes[:] = places(draws, rows.arrival_ns, rows.length_bytes)

    def within_units(self, unit: Ints, unit_bytes: int, draws: Draws, length: Ints) -> Ints:
        """Return aligned random offsets in units of the span, inside a unit if the request fits."""
        slots = np.maximum((unit_bytes - length) // self.align + 1, 1)
        offset = unit * unit_bytes + draws.below(slots, len(unit)) * self.align
        limited: Ints = np.minimum(offset, self.span - length)
        return limited

    def load(self) -> Load:
        """Return the source of requests: itself."""
        return self

    def paused_ns(self, number: Ints) -> Ints:
        """Return the total of all pauses before each request, in ns; requests count from 0."""
        return np.zeros_like(number)

    def _times(self, done: Floats) -> Ints:
        """Return the times in ns at which cumulative numbers of requests are due."""
        if self.burst_every is None:
            return np.rint(done * (SECOND / self.rate)).astype(np.int64)
        calm_s = (self.burst_every - self.burst_lasts) / SECOND
        calm = calm_s * self.rate
        each = calm + self.burst_lasts / SECOND * self.burst_rate
        rounds = np.floor(done / each)
        rest = done - rounds * each
        within_s = np.where(rest < calm, rest / self.rate, calm_s + (rest - calm) / self.burst_rate)
        bursting: Ints = np.rint(rounds * self.burst_every + within_s * SECOND).astype(np.int64)
        return bursting

    def _steps(self) -> Ints:
        """Return the end times of all depths; a single depth has no end."""
        if self.depth is None or len(self.depth) == 1:
            return np.array([LATEST_NS])
        return self.begin + self.step_ns * np.arange(1, len(self.depth) + 1)

    @property
    def step_ns(self) -> int:
        """Return the time per depth in ns."""
        return self.step


def with_flushes(blocks: Iterator[Requests], every: int) -> Iterator[Requests]:
    """Insert a FLUSH after every `every` requests, if any of them is a write; 0: none."""
    before = written = 0  # requests since the last possible FLUSH, and writes among them
    for rows in blocks:
        if not every or not rows.rows:
            yield rows
            continue
        writes = np.concatenate([[0], np.cumsum(rows.op == Op.WRITE)]) + written
        ends = np.arange(every - before, rows.rows + 1, every)
        before = (before + rows.rows) % every
        counted = np.diff(writes[ends], prepend=0)
        written = int(writes[-1] - (writes[ends[-1]] if len(ends) else 0))
        after = ends[counted > 0]
        flushes = rows.where(after - 1)
        flushes.offset_bytes[:] = flushes.length_bytes[:] = 0
        flushes.op[:] = Op.FLUSH
        order = np.argsort(np.concatenate([np.arange(rows.rows), after - 0.5]), kind="stable")
        yield joined([rows, flushes]).where(order)


def in_workers(blocks: Iterator[Requests], load: Load, ends_ns: Ints) -> Iterator[Requests]:
    """Distribute requests over as many workers as the depth; each has one request at a time.

    The recorded completion of a request is the worker's next arrival less its pause.  So a replay
    with think times issues the next request when the machine has completed this one and the pause
    is over.
    """
    depths = np.array(load.depth or (1,))
    held: Requests | None = None
    before = 0  # requests in the blocks before `held`
    seen = np.zeros(len(depths), np.int64)  # requests in each step
    step = np.zeros(0, np.int64)  # of each request in `held`
    for block in itertools.chain(blocks, [no_requests()]):
        if held is not None:
            arrival = joined([held, block]).arrival_ns
            successor = np.arange(held.rows) + depths[step]
            known = successor < len(arrival)
            paused_ns = load.paused_ns(before + np.arange(len(arrival)))
            successor = np.minimum(successor, len(arrival) - 1)
            pause_ns = paused_ns[successor] - paused_ns[: held.rows]
            following = np.where(known, arrival[successor] - pause_ns, LATEST_NS)
            complete = np.minimum(following, ends_ns[step])
            yield held._replace(complete_ns=np.where(complete == LATEST_NS, UNKNOWN, complete))
            before += held.rows
        held = block
        step = np.minimum(np.searchsorted(ends_ns, block.arrival_ns, "right"), len(depths) - 1)
        within = np.zeros(block.rows, np.int64)
        for each in np.unique(step):
            mine = step == each
            within[mine] = seen[each] + np.arange(int(mine.sum()))
            seen[each] += int(mine.sum())
        block.stream[:] += (within % depths[step]).astype(np.int32)
