"""The requests of a minute that is kept in full, after earlier ones that fill the disks' buffers.

A disk's own buffers are not empty when a minute begins.  What passed before it is not in the
capture; instead, the last requests of the minutes in full before it run first and are not counted.
They are of the same load, at most GAP_NS apart.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybridsim.answers.metrics import BASE_NS
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import UNKNOWN, Requests, joined
from hybridsim.traces.formats.ordering import from_origin

LED_BY = 256  # requests before a minute: more than an array's disks have segments
GAP_NS = 10**9 // 4


class Minute:
    """Requests that are run, as a trace; the minute itself begins at `begin_ns` of the machine."""

    def __init__(self, rows: Requests, before: Requests, speed: float, name: str) -> None:
        """Put `before` in front of a minute; it may be empty."""
        self.name = name
        self.begin_ns, self.led_by = 0, before.rows
        first_ns = int(rows.arrival_ns[0])
        if before.rows:
            passed = np.cumsum(np.clip(np.diff(before.arrival_ns, prepend=0), 0, GAP_NS))
            passed -= passed[0]
            led_ns = int(passed[-1]) + GAP_NS
            # Figures start at a multiple of a bin, whose width is doubled as often as needed.
            self.begin_ns = BASE_NS
            while self.begin_ns * speed < led_ns:
                self.begin_ns *= 2
            lead_ns = round(self.begin_ns * speed)
            passed[1:] += lead_ns - led_ns
            before, rows = before._replace(arrival_ns=passed), from_origin(rows, first_ns - lead_ns)
            self.rows = joined([before, rows])
        else:
            self.rows = from_origin(rows, first_ns)

    def chunks(self) -> Iterator[Requests]:
        """Yield the requests."""
        yield self.rows

    def from_first(self) -> Iterator[Requests]:
        """Yield the requests, the first one at time 0."""
        yield self.rows


def latest(before: Requests, rows: Requests) -> Requests:
    """Return the last LED_BY reads and writes of both, without their latencies."""
    both = joined([before, rows.between(max(rows.rows - LED_BY, 0), rows.rows)])
    moves = ((both.op == Op.READ) | (both.op == Op.WRITE)) & (both.length_bytes > 0)
    kept = Requests._make(column[moves][-LED_BY:] for column in both)
    unknown = np.full(kept.rows, UNKNOWN)
    return kept._replace(dispatch_ns=unknown, complete_ns=unknown)


def apart(before: Requests, numbers: Ints, page_bytes: int) -> Requests:
    """Return the requests that access none of these pages, which are in order.

    Before a minute with a cache: they would change what it holds of the minute's pages.
    """
    first = before.offset_bytes // page_bytes
    last = (before.offset_bytes + before.length_bytes - 1) // page_bytes
    is_apart = np.searchsorted(numbers, first) == np.searchsorted(numbers, last, "right")
    return Requests._make(column[is_apart] for column in before)
