"""Scheduled events, each with the part of the machine that it concerns, in a heap."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints, doubled, filled, longer
from hybridsim.jit import method, state_machine


@state_machine
class Heap(NamedTuple):
    """A binary heap in arrays: entries in order of time, then of rank; the root comes first."""

    time_ns: Ints
    rank: Ints
    what: Ints
    used: Ints  # [number of entries]

    @classmethod
    def new(cls, capacity: int) -> Heap:
        """Return an empty heap with room for `capacity` entries."""
        return filled(cls, capacity, used=np.zeros(1, np.int64))

    def grown(self, capacity: int) -> Heap:
        """Return the same heap with room for `capacity` entries."""
        return Heap._make((*(longer(column, capacity) for column in self[:3]), self.used))

    @method
    def is_empty(self):
        """Return whether there is no entry."""
        return self.used[0] == 0

    @method
    def room(self):
        """Return how many entries can still be pushed."""
        return len(self.time_ns) - self.used[0]

    @method
    def push(self, time_ns, rank, what):
        """Add an entry."""
        i = self.used[0]
        self.used[0] += 1
        while i > 0:
            parent = (i - 1) >> 1
            if self.before(parent, time_ns, rank):
                break
            self.move(parent, i)
            i = parent
        self.put(i, time_ns, rank, what)

    @method
    def pop(self):
        """Remove the root; the caller has read its time and what."""
        n = self.used[0] - 1
        self.used[0] = n
        time_ns = self.time_ns[n]
        rank = self.rank[n]
        i = 0
        while True:
            child = 2 * i + 1
            if child >= n:
                break
            if child + 1 < n and self.before(child + 1, self.time_ns[child], self.rank[child]):
                child += 1
            if not self.before(child, time_ns, rank):
                break
            self.move(child, i)
            i = child
        self.put(i, time_ns, rank, self.what[n])

    @method
    def before(self, i, time_ns, rank):
        """Return whether entry `i` comes before an entry of that time and rank."""
        return self.time_ns[i] < time_ns or (self.time_ns[i] == time_ns and self.rank[i] < rank)

    @method
    def move(self, source, target):
        """Copy one entry over another."""
        self.put(target, self.time_ns[source], self.rank[source], self.what[source])

    @method
    def put(self, i, time_ns, rank, what):
        """Write entry `i`."""
        self.time_ns[i] = time_ns
        self.rank[i] = rank
        self.what[i] = what


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

    def with_room(self, wanted: int) -> Events:
        """Return the same events with room for so many more."""
        heap, room = self.heap, int(self.heap.room())
        if room >= wanted:
            return self
        return self._replace(heap=heap.grown(doubled(len(heap.time_ns), room, wanted)))

    @method
    def push(self, time_ns, kind, number):
        """Schedule an event."""
        self.heap.push(time_ns, self.scheduled[0], (number << KIND_BITS) | kind)
        self.scheduled[0] += 1

    @method
    def push_once(self, flags, which, time_ns, kind, number):
        """Schedule an event unless flags[which] says that it is; what it runs clears the flag."""
        if flags[which] == 0:
            flags[which] = 1
            self.push(time_ns, kind, number)
