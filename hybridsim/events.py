"""What will happen next: a binary heap of (time, order of scheduling, what)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.arrays import Ints, longer
from hybridsim.jit import method, state_machine

# The low bits of `what` say whom an event concerns, the rest is that party's own number.
SLOW, FAST, CACHE = 0, 1, 2
KIND_BITS = 3
KIND_MASK = (1 << KIND_BITS) - 1


@state_machine
class Events(NamedTuple):
    """Scheduled events; the root is the earliest, of equal times the one scheduled first."""

    time_ns: Ints
    order: Ints
    what: Ints
    state: Ints  # [events in the heap, events scheduled so far]

    @classmethod
    def new(cls, capacity: int) -> Events:
        """Make a heap with room for `capacity` events."""
        columns = (np.zeros(capacity, np.int64) for _ in range(3))
        return cls._make([*columns, np.zeros(2, np.int64)])

    def grown(self, capacity: int) -> Events:
        """Return the same events with room for `capacity`."""
        time_ns, order, what = (longer(column, capacity) for column in self[:3])
        return self._replace(time_ns=time_ns, order=order, what=what)

    @method
    def room(self):
        """Return how many events may be scheduled before the heap is full."""
        return len(self.time_ns) - self.state[0]

    @method
    def push(self, time_ns, kind, number):
        """Schedule an event; one scheduled later comes after it at the same time."""
        order = self.state[1]
        self.state[1] += 1
        i = self.state[0]
        self.state[0] += 1
        while i > 0:
            parent = (i - 1) >> 1
            if self.time_ns[parent] <= time_ns:  # an equal time was scheduled earlier
                break
            self.move(parent, i)
            i = parent
        self.time_ns[i] = time_ns
        self.order[i] = order
        self.what[i] = (number << KIND_BITS) | kind

    @method
    def pop(self):
        """Drop the root; its time and what have been read."""
        n = self.state[0] - 1
        self.state[0] = n
        time_ns = self.time_ns[n]
        order = self.order[n]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= n:
                break
            if child + 1 < n and self.before(child + 1, self.time_ns[child], self.order[child]):
                child += 1
            if not self.before(child, time_ns, order):
                break
            self.move(child, i)
            i = child
        self.move(n, i)

    @method
    def before(self, i, time_ns, order):
        """Tell whether entry `i` comes before an event of that time and order."""
        return self.time_ns[i] < time_ns or (self.time_ns[i] == time_ns and self.order[i] < order)

    @method
    def move(self, source, target):
        """Copy one entry over another."""
        self.time_ns[target] = self.time_ns[source]
        self.order[target] = self.order[source]
        self.what[target] = self.what[source]
