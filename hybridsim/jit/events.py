"""Scheduled events, each with the part of the machine that it concerns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine
from hybridsim.jit.heap import Heap

# The low bits of `what` are the part that an event concerns, the others a number of that part.
SLOW, FAST, CACHE, HOST, CONTROLLER, SLOW_TIMER, FAST_TIMER, INTERRUPT = range(8)
KIND_BITS = 3
KIND_MASK = (1 << KIND_BITS) - 1


@state_machine
class Events(NamedTuple):
    """Scheduled events; events of equal times run in the order of scheduling."""

    heap: Heap
    scheduled: Ints  # [number of events scheduled so far]

    @classmethod
    def new(cls, capacity: int) -> Events:
        """Return an empty schedule with room for `capacity` events."""
        return cls(Heap.new(capacity), np.zeros(1, np.int64))

    def grown(self, capacity: int) -> Events:
        """Return the same events with room for `capacity`."""
        return self._replace(heap=self.heap.grown(capacity))

    @method
    def push(self, time_ns, kind, number):
        """Schedule an event."""
        self.heap.push(time_ns, self.scheduled[0], (number << KIND_BITS) | kind)
        self.scheduled[0] += 1
