"""The queue in front of an array with a limited queue depth."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.jit import method, state_machine


@state_machine
class Line(NamedTuple):
    """A FIFO in a ring; at most `depth` requests may be inside the array, 0: no limit."""

    depth: int
    tag: Ints
    op: Bytes
    offset: Ints
    length: Ints
    state: Ints  # [first entry, number of entries, requests inside]

    @classmethod
    def new(cls, depth: int, capacity: int = 64) -> Line:
        """Return an empty queue; without a depth it is never used."""
        size = capacity if depth else 0
        longs = (np.zeros(size, np.int64) for _ in range(3))
        tag, offset, length = longs
        return cls(depth, tag, np.zeros(size, np.uint8), offset, length, np.zeros(3, np.int64))

    def grown(self, capacity: int) -> Line:
        """Return the same queue with room for `capacity` requests."""
        first, count, inside = self.state.tolist()
        longer = Line.new(self.depth, capacity)
        entries = (first + np.arange(count)) % max(len(self.tag), 1)
        longer.tag[:count] = self.tag[entries]
        longer.op[:count] = self.op[entries]
        longer.offset[:count] = self.offset[entries]
        longer.length[:count] = self.length[entries]
        longer.state[:] = (0, count, inside)
        return longer

    @method
    def has_room(self, demand):
        """Return whether `demand` more requests could wait."""
        return self.depth == 0 or len(self.tag) - self.state[1] >= demand

    @method
    def lets_in(self):
        """Return whether a request may enter, and count it as inside if so."""
        if self.state[2] >= self.depth:
            return False
        self.state[2] += 1
        return True

    @method
    def push(self, tag, op, offset, length):
        """Queue a request."""
        entry = (self.state[0] + self.state[1]) % len(self.tag)
        self.state[1] += 1
        self.tag[entry] = tag
        self.op[entry] = op
        self.offset[entry] = offset
        self.length[entry] = length

    @method
    def left(self):
        """Count a request that leaves; return the entry that replaces it, or -1."""
        if self.state[1] == 0:
            self.state[2] -= 1
            return -1
        entry = self.state[0]
        self.state[0] = (entry + 1) % len(self.tag)
        self.state[1] -= 1
        return entry
