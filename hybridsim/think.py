"""Who waited for whom: the recorded think times of a trace, for replay at another speed of disk."""

from __future__ import annotations

import numpy as np

from hybridsim.arrays import Int32s, Ints, longer
from hybridsim.jit import kernel, loop
from hybridsim.source import LOOKBACK

USED, LAST_NUMBER, LAST_DONE_NS = range(3)
NOTHING = -1


class Waits:
    """Finds each request's parent and gap, chunk by chunk (DESIGN.md 2.2, think)."""

    def __init__(self) -> None:
        """Start before the first request."""
        self._streams: dict[int, int] = {}
        self._number = np.full(16, NOTHING, np.int64)  # by stream: last request completed
        self._done_ns = np.zeros(16, np.int64)
        self._heap = np.zeros((2, 16), np.int64)  # (completion, number) of requests under way
        self._heap_stream = np.zeros(16, np.int64)
        self._state = np.array([0, NOTHING, 0])
        self._first = 0

    def parents(
        self, arrival_ns: Ints, complete_ns: Ints, stream: Int32s | Ints
    ) -> tuple[Ints, Ints]:
        """Return parent numbers (-1: none) and gaps in ns for the next requests in order."""
        rows = len(arrival_ns)
        streams = self._dense(stream)
        if self._state[USED] + rows > len(self._heap_stream):
            size = 2 * (int(self._state[USED]) + rows)
            self._heap = np.stack([longer(column, size) for column in self._heap])
            self._heap_stream = longer(self._heap_stream, size)
        parent = np.full(rows, NOTHING, np.int64)
        gap_ns = np.zeros(rows, np.int64)
        _find_parents(
            np.ascontiguousarray(arrival_ns), np.ascontiguousarray(complete_ns), streams,
            self._first, self._number, self._done_ns, self._heap, self._heap_stream, self._state,
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
    arrival_ns, complete_ns, stream, first, last_number, last_done_ns, heap, heap_stream, state,
    parent, gap_ns,
):  # fmt: skip
    for row in range(len(arrival_ns)):
        now = arrival_ns[row]
        while state[USED] > 0 and heap[0, 0] <= now:
            done = heap[0, 0]
            number = heap[1, 0]
            owner = heap_stream[0]
            _pop(heap, heap_stream, state)
            last_number[owner] = state[LAST_NUMBER] = number
            last_done_ns[owner] = state[LAST_DONE_NS] = done
        own = stream[row]
        number = first + row
        if last_number[own] != NOTHING and number - last_number[own] <= LOOKBACK:
            parent[row] = last_number[own]
            gap_ns[row] = now - last_done_ns[own]
        elif state[LAST_NUMBER] != NOTHING and number - state[LAST_NUMBER] <= LOOKBACK:
            parent[row] = state[LAST_NUMBER]
            gap_ns[row] = now - state[LAST_DONE_NS]
        if complete_ns[row] >= 0:
            _push(heap, heap_stream, state, max(complete_ns[row], now), number, own)


@kernel
def _push(heap, heap_stream, state, done, number, owner):
    i = state[USED]
    state[USED] += 1
    while i > 0:
        above = (i - 1) >> 1
        if heap[0, above] < done or (heap[0, above] == done and heap[1, above] < number):
            break
        _move(heap, heap_stream, above, i)
        i = above
    heap[0, i] = done
    heap[1, i] = number
    heap_stream[i] = owner


@kernel
def _pop(heap, heap_stream, state):
    n = state[USED] - 1
    state[USED] = n
    done, number, owner = heap[0, n], heap[1, n], heap_stream[n]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= n:
            break
        other = child + 1
        if other < n and (
            heap[0, other] < heap[0, child]
            or (heap[0, other] == heap[0, child] and heap[1, other] < heap[1, child])
        ):
            child = other
        if heap[0, child] > done or (heap[0, child] == done and heap[1, child] > number):
            break
        _move(heap, heap_stream, child, i)
        i = child
    heap[0, i] = done
    heap[1, i] = number
    heap_stream[i] = owner


@kernel
def _move(heap, heap_stream, source, target):
    heap[0, target] = heap[0, source]
    heap[1, target] = heap[1, source]
    heap_stream[target] = heap_stream[source]
