"""The requests of a trace as input of the engine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from hybridsim.engine.think import Waits
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import FUA, PREFLUSH, SYNC, Flag, Op
from hybridsim.requests.inflight import Batch
from hybridsim.requests.pages import check_real
from hybridsim.requests.rows import Requests
from hybridsim.traces.trace import Trace


@dataclass
class Sent:
    """Requests in memory with the interface of a trace; the first one is at time 0."""

    name: str
    rows: Requests
    at_once: int = sys.maxsize  # requests of a chunk

    def chunks(self) -> Iterator[Requests]:
        """Yield the requests in chunks."""
        for start in range(0, self.rows.rows, self.at_once):
            yield self.rows.between(start, start + self.at_once)

    from_first = chunks


def batches(trace: Trace | Sent, speed: float = 1.0, with_waits: bool = False) -> Iterator[Batch]:
    """Yield the requests of a trace as input of the engine; the last batch has a flag."""
    waits = Waits() if with_waits else None
    first = 0
    for chunk, following in pairwise(chain(trace.from_first(), [None])):
        assert chunk is not None
        yield batch_of(chunk, speed, waits, first, following is None, trace.name)
        first += chunk.rows


def batch_of(
    chunk: Requests, speed: float, waits: Waits | None, first: int, is_last: bool, name: str
) -> Batch:
    """Return requests as input of the engine; the first one has number `first`.

    Raises TraceError for one that no device can have, with the `name` of the trace.
    """
    check_real(chunk, name)
    parent, gap_ns = np.full(chunk.rows, -1, np.int64), np.zeros(chunk.rows, np.int64)
    if waits:
        parent, gap_ns = waits.parents(chunk.arrival_ns, chunk.complete_ns, chunk.stream)
    return Batch(
        _scaled(chunk.arrival_ns, speed),
        _ops(chunk),
        np.array(chunk.offset_bytes),
        np.array(chunk.length_bytes),
        parent,
        _scaled(gap_ns, speed),
        np.array([0, int(is_last), first]),
        chunk.stream.astype(np.int64),
    )


def _ops(chunk: Requests) -> npt.NDArray[np.uint8]:
    """Return the ops as input of the engine: a WRITE with the bits of its flags."""
    op = np.where(chunk.op == Op.WRITE_ZEROES, np.uint8(Op.WRITE), chunk.op)
    bits = np.where(chunk.flags & Flag.FUA, np.uint8(FUA), np.uint8(0))
    bits |= np.where(chunk.flags & Flag.PREFLUSH, np.uint8(PREFLUSH), np.uint8(0))
    bits |= np.where(chunk.flags & Flag.SYNC, np.uint8(SYNC), np.uint8(0))
    return np.where(op == Op.WRITE, op | bits, op)


def _scaled(times_ns: Ints, speed: float) -> Ints:
    return np.array(times_ns) if speed == 1 else np.rint(times_ns / speed).astype(np.int64)
