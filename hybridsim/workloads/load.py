"""One load of a workload: what all kinds have in common, and how its requests come to be.

Requests are made in blocks of BLOCK_ROWS, each from draws of its own (seed, load, block), so that
the stream is the same however it is cut afterwards.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from hybridsim.foundation.codes import Op
from hybridsim.foundation.units import format_size, format_time
from hybridsim.requests.rows import UNKNOWN, Requests, joined, no_requests
from hybridsim.workloads.draws import Draws, Floats, Ints, Weighted
from hybridsim.workloads.quantities import (
    Align,
    Depths,
    Often,
    Part,
    Rate,
    Share,
    Size,
    Sizes,
    Time,
)

BLOCK_ROWS = 1 << 16
SECOND = 10**9
KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
WORKER_BITS = 16  # of a request's stream; the load's number is above
LATEST_NS = 1 << 61


class Places(Protocol):
    """Where requests go; asked once a block, in order."""

    def offsets(self, draws: Draws, arrival_ns: Ints, length: Ints) -> Ints:
        """Return offsets from the beginning of the load's span."""


class Load(Part, ABC):
    """When requests come, how large they are, how many of them read; a kind says where they go."""

    name: str = ""
    at: Size = 0  # where its part of the volume begins
    span: Size = Field(16 * GIB, gt=0)  # how large that part is
    size: Sizes = ((4 * KIB, 100.0),)
    read: Share = 0.7
    align: Align = 4 * KIB
    rate: Rate = 100.0  # requests a second
    arrivals: Literal["poisson", "even"] = "poisson"
    burst_every: Time | None = None  # from the beginning of one burst to that of the next
    burst_lasts: Time = SECOND
    burst_rate: Rate = 1000.0  # requests a second while it lasts
    begin: Time = 0
    end: Time | None = None
    depth: Depths | None = None  # requests outstanding, one worker each; '1-512' doubles
    step: Time = 60 * SECOND  # how long a depth lasts, at the load's rate
    flush_every: Often = 0  # requests, of which some write, before a FLUSH; 0: never

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse what leaves no room or no time."""
        largest = max(size for size, _ in self.size)
        if largest > self.span:
            yield "size", f"a request of {format_size(largest)} does not fit into the span"
        if self.burst_every is not None and self.burst_every <= self.burst_lasts:
            yield "burst_lasts", f"a burst of {format_time(self.burst_lasts)} never ends"
        if self.end is not None and self.end <= self.begin:
            yield "end", "the load ends before it begins"
        if self.depth is not None and self.burst_every is not None:
            yield "burst_every", "workers at a depth wait for their requests: they have no bursts"

    @property
    def ends(self) -> bool:
        """Tell whether the load ends by itself."""
        return self.end is not None or (self.depth is not None and len(self.depth) > 1)

    @abstractmethod
    def places(self, seed: int) -> Places:
        """Return where requests go, from the beginning."""

    def requests(self, seed: int, number: int) -> Iterator[Requests]:
        """Yield the load's requests in order of arrival, without end unless it has one."""
        blocks = self._blocks(seed, number)
        yield from blocks if self.depth is None else in_workers(blocks, self, self._steps())

    def _blocks(self, seed: int, number: int) -> Iterator[Requests]:
        places = self.places(int(np.random.SeedSequence([seed, number]).generate_state(1)[0]))
        flushes = Flushes(self.flush_every)
        work = 0.0
        end_ns = min(LATEST_NS, self.end or LATEST_NS, int(self._steps()[-1]))
        for block in itertools.count():
            draws = Draws(seed, number, block)
            gaps = draws.exponential(BLOCK_ROWS) if self.arrivals == "poisson" else 1.0
            done = work + np.cumsum(np.broadcast_to(gaps, BLOCK_ROWS))
            work = float(done[-1])
            arrival_ns = self.begin + self._times(done)
            arrival_ns += self.paused_ns(block * BLOCK_ROWS + np.arange(BLOCK_ROWS))
            rows = no_requests(BLOCK_ROWS)._replace(arrival_ns=arrival_ns)
            rows.stream[:] = number << WORKER_BITS
            rows.dispatch_ns[:] = rows.complete_ns[:] = UNKNOWN
            self.fill(rows, places, draws)
            rows.offset_bytes[:] += self.at
            left = int(np.searchsorted(rows.arrival_ns, end_ns))
            yield flushes.among(rows.between(0, left))
            if left < BLOCK_ROWS:
                return

    def fill(self, rows: Requests, places: Places, draws: Draws) -> None:
        """Say how large requests are, what they do and where; their arrivals are known."""
        choice = Weighted([weight for _, weight in self.size])
        sizes = np.array([size for size, _ in self.size], np.int64)
        rows.length_bytes[:] = sizes[choice.choose(draws, rows.rows)]
        rows.op[:] = np.where(draws.happens(self.read, rows.rows), Op.READ, Op.WRITE)
        rows.offset_bytes[:] = places.offsets(draws, rows.arrival_ns, rows.length_bytes)

    def paused_ns(self, number: Ints) -> Ints:
        """Return how long pauses before each request last, together; they are counted from 0."""
        return np.zeros_like(number)

    def _times(self, done: Floats) -> Ints:
        """Return when so many requests are due."""
        if self.burst_every is None:
            steady: Ints = np.rint(done * (SECOND / self.rate)).astype(np.int64)
            return steady
        calm_s = (self.burst_every - self.burst_lasts) / SECOND
        calm = calm_s * self.rate
        each = calm + self.burst_lasts / SECOND * self.burst_rate
        rounds = np.floor(done / each)
        rest = done - rounds * each
        within_s = np.where(rest < calm, rest / self.rate, calm_s + (rest - calm) / self.burst_rate)
        bursting: Ints = np.rint(rounds * self.burst_every + within_s * SECOND).astype(np.int64)
        return bursting

    def _steps(self) -> Ints:
        """Return when each depth ends; one that is alone does not."""
        if self.depth is None or len(self.depth) == 1:
            return np.array([LATEST_NS])
        ends: Ints = self.begin + self.step_ns * np.arange(1, len(self.depth) + 1)
        return ends

    @property
    def step_ns(self) -> int:
        """Return how long a depth lasts."""
        return self.step


class Flushes:
    """Adds a FLUSH after so many requests, if any of them writes."""

    def __init__(self, every: int) -> None:
        self._every = every
        self._before = 0  # requests since the last place for one
        self._written = 0  # writes among them

    def among(self, rows: Requests) -> Requests:
        """Return the requests with what follows them."""
        if not self._every or not rows.rows:
            return rows
        writes = np.concatenate([[0], np.cumsum(rows.op == Op.WRITE)]) + self._written
        ends = np.arange(self._every - self._before, rows.rows + 1, self._every)
        self._before = (self._before + rows.rows) % self._every
        counted = np.diff(writes[ends], prepend=0)
        self._written = int(writes[-1] - (writes[ends[-1]] if len(ends) else 0))
        after = ends[counted > 0]
        flushes = Requests._make(column[after - 1] for column in rows)
        flushes.offset_bytes[:] = flushes.length_bytes[:] = 0
        flushes.op[:] = Op.FLUSH
        order = np.argsort(np.concatenate([np.arange(rows.rows), after - 0.5]), kind="stable")
        return Requests._make(column[order] for column in joined([rows, flushes]))


def in_workers(blocks: Iterator[Requests], load: Load, ends_ns: Ints) -> Iterator[Requests]:
    """Deal requests to as many workers as are outstanding at a time, each with one at a time.

    A request's recorded completion is its worker's next arrival, or when it pauses before that: a
    replay after think times lets the worker issue it as soon as the machine has completed the one
    before, and the pause is over.
    """
    depths = load.depth or (1,)
    held: Requests | None = None
    before = 0  # requests in the blocks before `held`
    seen = np.zeros(len(depths), np.int64)  # requests in each step
    for block in itertools.chain(blocks, [no_requests()]):
        step = np.minimum(np.searchsorted(ends_ns, block.arrival_ns, "right"), len(depths) - 1)
        within = np.zeros(block.rows, np.int64)
        for each in np.unique(step):
            mine = step == each
            within[mine] = seen[each] + np.arange(int(mine.sum()))
            seen[each] += int(mine.sum())
        block.stream[:] += (within % np.array(depths)[step]).astype(np.int32)
        if held is not None:
            yield _completed(held, block, load, ends_ns, before)
            before += held.rows
        held = block


def _completed(held: Requests, after: Requests, load: Load, ends_ns: Ints, before: int) -> Requests:
    depths = load.depth or (1,)
    arrival = joined([held, after]).arrival_ns
    step = np.minimum(np.searchsorted(ends_ns, held.arrival_ns, "right"), len(depths) - 1)
    successor = np.arange(held.rows) + np.array(depths)[step]
    known = successor < len(arrival)
    paused_ns = load.paused_ns(before + np.arange(len(arrival)))
    successor = np.minimum(successor, len(arrival) - 1)
    pause_ns = paused_ns[successor] - paused_ns[: held.rows]
    following = np.where(known, arrival[successor] - pause_ns, LATEST_NS)
    complete = np.minimum(following, ends_ns[step])
    return held._replace(complete_ns=np.where(complete == LATEST_NS, UNKNOWN, complete))


def within_units(
    unit: Ints, unit_bytes: int, load: Load, draws: Draws, length: Ints
) -> NDArray[np.int64]:
    """Return aligned places in units of the span: inside one, if a request fits."""
    slots = np.maximum((unit_bytes - length) // load.align + 1, 1)
    offset = unit * unit_bytes + draws.below(slots, len(unit)) * load.align
    found: NDArray[np.int64] = np.minimum(offset, load.span - length)
    return found
