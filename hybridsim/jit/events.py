"""What will happen next, and whom it concerns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine
from hybridsim.jit.heap import Heap

# The low bits of `what` say whom an event concerns, the rest is that party's own number.
SLOW, FAST, CACHE, HOST, CONTROLLER, SLOW_TIMER, FAST_TIMER = range(7)
KIND_BITS = 3
KIND_MASK = (1 << KIND_BITS) - 1


@state_machine
class Events(NamedTuple):
    """Scheduled events; of equal times the one scheduled first comes first."""

    heap: Heap
    scheduled: Ints  # [events so far]

    @classmethod
    def new(cls, capacity: int) -> Events:
        """Make room for `capacity` events."""
        return cls(Heap.new(capacity), np.zeros(1, np.int64))

    def grown(self, capacity: int) -> Events:
        """Return the same events with room for `capacity`."""
        return self._replace(heap=self.heap.grown(capacity))

    @method
    def push(self, time_ns, kind, number):
        """Schedule an event."""
        self.heap.push(time_ns, self.scheduled[0], (number << KIND_BITS) | kind)
        self.scheduled[0] += 1
