"""Requests of a capture as seen by the device: dispatch and completion of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import UNKNOWN, Requests, joined

Marks = npt.NDArray[np.bool_]

STRETCH = 4096  # consecutive requests that are kept or dropped together
STRETCHES_MAX = 16


@dataclass(frozen=True)
class Observed:
    """Reads and writes that have both times, in order of dispatch; a sample of a long capture."""

    dispatch_ns: Ints
    complete_ns: Ints
    offset_bytes: Ints
    length_bytes: Ints
    is_write: Marks
    stretch: Ints  # number of the stretch of each request; requests between stretches are dropped
    end_bytes: int  # the end of the highest extent in the whole capture
    requests: int = 0  # in the whole capture
    incomplete: int = 0  # of these, reads and writes without both times
    by_arrival: bool = False  # no dispatch times: latencies are from queueing to completion

    @property
    def rows(self) -> int:
        """Number of requests."""
        return len(self.dispatch_ns)

    @property
    def latency_ns(self) -> Ints:
        """Time from dispatch to completion of each request."""
        return self.complete_ns - self.dispatch_ns

    def of(self, chosen: Marks | slice) -> Observed:
        """Return the chosen requests."""
        columns: dict[str, Any] = {
            name: each[chosen] for name, each in vars(self).items() if isinstance(each, np.ndarray)
        }
        return replace(self, **columns)

    def outstanding(self) -> Ints:
        """Return the number of requests at the device when each was dispatched, with itself."""
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
        """Return when each request reached the device over a path of queue depth `depth`.

        Requests enter in order of dispatch; those beyond the depth wait.  0: no limit.
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


def observe(chunks: Iterator[Requests], by_arrival: bool = False) -> Observed:
    """Return a sample of the requests, evenly spaced stretches; in bounded memory."""
    counts: Counter[str] = Counter()
    kept: list[Requests] = []
    every, end = 1, 0
    for number, stretch in enumerate(_cut(chunks, by_arrival, counts)):
        end = max(end, int((stretch.offset_bytes + stretch.length_bytes).max()))
        if number % every == 0:
            kept.append(stretch)
        if len(kept) > STRETCHES_MAX:
            kept, every = kept[::2], every * 2
    rows = joined(kept)
    numbers = np.repeat(np.arange(len(kept)) * (every > 1), [one.rows for one in kept])
    begun = rows.arrival_ns if by_arrival else rows.dispatch_ns
    order = np.lexsort((begun, numbers))
    columns = begun, rows.complete_ns, rows.offset_bytes, rows.length_bytes
    dispatch, complete, offset, length = (column[order].astype(np.int64) for column in columns)
    return Observed(
        dispatch, complete, offset, length, rows.op[order] == Op.WRITE, numbers[order], end,
        counts["requests"], counts["incomplete"], by_arrival,
    )  # fmt: skip


def _cut(chunks: Iterator[Requests], by_arrival: bool, counts: Counter[str]) -> Iterator[Requests]:
    """Yield the reads and writes that have both times, STRETCH requests at a time; count others."""
    waiting: list[Requests] = []
    held = 0
    for chunk in chunks:
        counts["requests"] += chunk.rows
        begun = chunk.arrival_ns if by_arrival else chunk.dispatch_ns
        moves = (chunk.op <= Op.WRITE) & (chunk.length_bytes > 0)
        whole = moves & (chunk.complete_ns != UNKNOWN) & (begun != UNKNOWN)
        counts["incomplete"] += int((moves & ~whole).sum())
        waiting.append(Requests._make(column[whole] for column in chunk))
        held += waiting[-1].rows
        while held >= STRETCH:
            together = joined(waiting)
            yield together.between(0, STRETCH)
            waiting = [together.between(STRETCH, held)]
            held -= STRETCH
    if held:
        yield joined(waiting)
