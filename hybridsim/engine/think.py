"""Recorded think times: the request that each request of a trace waited for, and how long."""

from __future__ import annotations

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, longer
from hybridsim.jit import loop
from hybridsim.jit.events import Heap
from hybridsim.requests.source import LOOKBACK

LAST_NUMBER, LAST_DONE_NS = range(2)
NOTHING = -1


class Waits:
    """Finds each request's parent and gap, chunk by chunk (DESIGN.md 2.2, think)."""

    def __init__(self) -> None:
        """Start before the first request."""
        self._streams: dict[int, int] = {}
        self._number = np.full(16, NOTHING, np.int64)  # by stream: last request completed
        self._done_ns = np.zeros(16, np.int64)
        self._under_way = Heap.new(16)  # by completion and number
        self._last = np.array([NOTHING, 0])  # [LAST_NUMBER, LAST_DONE_NS] of all streams
        self._first = 0

    def parents(
        self, arrival_ns: Ints, complete_ns: Ints, stream: Int32s | Ints
    ) -> tuple[Ints, Ints]:
        """Return parent numbers (-1: none) and gaps in ns for the next requests in order."""
        rows = len(arrival_ns)
        streams = self._dense(stream)
        if self._under_way.room() < rows:
            self._under_way = self._under_way.grown(2 * (len(self._under_way.time_ns) + rows))
        parent = np.full(rows, NOTHING, np.int64)
        gap_ns = np.zeros(rows, np.int64)
        _find_parents(
            np.ascontiguousarray(arrival_ns), np.ascontiguousarray(complete_ns), streams,
            self._first, self._number, self._done_ns, self._under_way, self._last,
            parent, gap_ns,
        )  # fmt: skip
        self._first += rows
        return parent, gap_ns

    def _dense(self, stream: Int32s | Ints) -> Ints:
        names, inverse = np.unique(stream, return_inverse=True)
        ids = [self._streams.setdefault(int(name), len(self._streams)) for name in names]
        if len(self._streams) > len(self._number):
            self._number = longer(self._number, 2 * len(self._streams), NOTHING)
            self._done_ns = longer(self._done_ns, 2 * len(self._streams))
        return np.array(ids, np.int64)[inverse]


@loop
def _find_parents(
    arrival_ns, complete_ns, stream, first, last_number, last_done_ns, under_way, last,
    parent, gap_ns,
):  # fmt: skip
    for row in range(len(arrival_ns)):
        now = arrival_ns[row]
        while not under_way.is_empty() and under_way.time_ns[0] <= now:
            done = under_way.time_ns[0]
            number = under_way.rank[0]
            owner = under_way.what[0]
            under_way.pop()
            last_number[owner] = last[LAST_NUMBER] = number
            last_done_ns[owner] = last[LAST_DONE_NS] = done
        own = stream[row]
        number = first + row
        if last_number[own] != NOTHING and number - last_number[own] <= LOOKBACK:
            parent[row] = last_number[own]
            gap_ns[row] = now - last_done_ns[own]
        elif last[LAST_NUMBER] != NOTHING and number - last[LAST_NUMBER] <= LOOKBACK:
            parent[row] = last[LAST_NUMBER]
            gap_ns[row] = now - last[LAST_DONE_NS]
        if complete_ns[row] >= 0:
            under_way.push(max(complete_ns[row], now), number, own)
