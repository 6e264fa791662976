"""What a capture tells of the device below it: when each request went in and when it came back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.codes import Op
from hybridsim.foundation.units import human_time
from hybridsim.requests.rows import UNKNOWN, Requests, joined

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]

STRETCH = 4096  # consecutive requests that are kept or left out together
STRETCHES_MAX = 16


@dataclass(frozen=True)
class Observed:
    """Reads and writes with both times, in order of dispatch; stretches of a long capture."""

    dispatch_ns: Ints
    complete_ns: Ints
    offset_bytes: Ints
    length_bytes: Ints
    is_write: Marks
    stretch: Ints  # which stretch a request belongs to; between two, requests are left out
    end_bytes: int  # highest byte touched in the whole capture, + 1

    @property
    def rows(self) -> int:
        """How many requests there are."""
        return len(self.dispatch_ns)

    @property
    def latency_ns(self) -> Ints:
        """Time from dispatch to completion."""
        return self.complete_ns - self.dispatch_ns

    def of(self, chosen: Marks | slice) -> Observed:
        """Return some of the requests."""
        return Observed(
            self.dispatch_ns[chosen],
            self.complete_ns[chosen],
            self.offset_bytes[chosen],
            self.length_bytes[chosen],
            self.is_write[chosen],
            self.stretch[chosen],
            self.end_bytes,
        )

    def outstanding(self) -> Ints:
        """Return how many requests were below when each was dispatched, itself included."""
        after = np.zeros(self.rows, np.int64)
        for rows in self.stretches():
            done = np.sort(self.complete_ns[rows])
            here = self.dispatch_ns[rows]
            after[rows] = np.arange(1, len(here) + 1) - np.searchsorted(done, here, "right")
        return after

    def stretches(self) -> Iterator[slice]:
        """Yield the rows of each stretch."""
        cuts = np.flatnonzero(np.diff(self.stretch)) + 1
        edges = [0, *cuts.tolist(), self.rows]
        for first, last in pairwise(edges):
            yield slice(first, last)

    def entered_ns(self, depth: int) -> Ints:
        """Return when each request reached the device if the path to it carries `depth` at a time.

        They enter in order of dispatch, and the others wait; 0: all enter when dispatched.
        """
        if not depth:
            return self.dispatch_ns
        entered = self.dispatch_ns.copy()
        for rows in self.stretches():
            inside: list[int] = []
            latest = 0
            pairs = zip(self.dispatch_ns[rows].tolist(), self.complete_ns[rows].tolist())
            for row, (dispatch, complete) in enumerate(pairs, rows.start):
                latest = max(latest, dispatch)
                if len(inside) >= depth:
                    latest = max(latest, heappop(inside))
                entered[row] = latest
                heappush(inside, complete)
        return entered


@dataclass
class Seen:
    """What passed by while a capture was observed."""

    requests: int = 0
    used: int = 0
    incomplete: int = 0
    by_arrival: bool = False  # no dispatch is told: times are from the queue to completion


def observe(chunks: Iterator[Requests], by_arrival: bool = False) -> tuple[Observed, Seen]:
    """Keep evenly spaced stretches of the requests to a device, in bounded memory."""
    seen = Seen(by_arrival=by_arrival)
    kept: list[Requests] = []
    every, end = 1, 0
    for number, stretch in enumerate(_cut(chunks, seen)):
        end = max(end, int((stretch.offset_bytes + stretch.length_bytes).max()))
        if number % every == 0:
            kept.append(stretch)
        if len(kept) > STRETCHES_MAX:
            kept, every = kept[::2], every * 2
    return _columns(kept, end, every > 1, seen), seen


def _cut(chunks: Iterator[Requests], seen: Seen) -> Iterator[Requests]:
    """Yield reads and writes with both times, STRETCH at a time."""
    waiting: list[Requests] = []
    held = 0
    for chunk in chunks:
        seen.requests += chunk.rows
        begun = chunk.arrival_ns if seen.by_arrival else chunk.dispatch_ns
        moves = (chunk.op <= Op.WRITE) & (chunk.length_bytes > 0)
        whole = moves & (chunk.complete_ns != UNKNOWN) & (begun != UNKNOWN)
        seen.incomplete += int((moves & ~whole).sum())
        waiting.append(Requests._make(column[whole] for column in chunk))
        held += waiting[-1].rows
        while held >= STRETCH:
            together = joined(waiting)
            yield together.between(0, STRETCH)
            waiting = [together.between(STRETCH, held)]
            held -= STRETCH
    if held:
        yield joined(waiting)


def _columns(kept: list[Requests], end_bytes: int, with_gaps: bool, seen: Seen) -> Observed:
    rows = joined(kept)
    stretch = np.repeat(np.arange(len(kept)) * with_gaps, [one.rows for one in kept])
    begun = rows.arrival_ns if seen.by_arrival else rows.dispatch_ns
    order = np.lexsort((begun, stretch))
    seen.used = rows.rows
    return Observed(
        begun[order].astype(np.int64),
        rows.complete_ns[order].astype(np.int64),
        rows.offset_bytes[order].astype(np.int64),
        rows.length_bytes[order].astype(np.int64),
        rows.op[order] == Op.WRITE,
        stretch[order],
        end_bytes,
    )


FEWEST_RANDOM = 50
NEIGHBOURS = 32  # requests before, that one may continue
SMALL = 64 * 1024


def random_reads(observed: Observed) -> tuple[float | None, str]:
    """Return the median latency of small requests that continue none, with little else under way.

    Reads if there are some, else writes.  The second value says what it rests on, or why there
    is none.
    """
    ends = observed.offset_bytes + observed.length_bytes
    continues = np.zeros(observed.rows, np.bool_)
    for back in range(1, min(NEIGHBOURS, observed.rows - 1)):
        continues[back:] |= observed.offset_bytes[back:] == ends[:-back]
    fitting = ~continues & (observed.length_bytes <= SMALL)
    reads = fitting & ~observed.is_write
    kind = "reads" if reads.sum() >= FEWEST_RANDOM else "writes"
    chosen = reads if kind == "reads" else fitting & observed.is_write
    result = int(chosen.sum())
    if result < FEWEST_RANDOM:
        return None, (
            f"only {result} of its requests are small and not sequential, and sequential ones "
            "show neither an arm nor a latency"
        )
    under_way = observed.outstanding()[chosen]
    calm = under_way <= max(2, np.percentile(under_way, 10))
    median = float(np.median(observed.latency_ns[chosen][calm]))
    return (
        median,
        f"the median latency of random {kind} with few requests outstanding is "
        f"{human_time(median)}",
    )
