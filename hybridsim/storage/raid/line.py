"""Requests that wait outside an array because it takes no more at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.jit import method, state_machine


@state_machine
class Line(NamedTuple):
    """First in, first out, in a ring; `depth` requests may be inside, 0: any number."""

    depth: int
    tag: Ints
    op: Bytes
    offset: Ints
    length: Ints
    state: Ints  # [first entry, entries, requests inside]

    @classmethod
    def new(cls, depth: int, capacity: int = 64) -> Line:
        """Make an empty line; one without a depth is never used."""
        size = capacity if depth else 0
        longs = (np.zeros(size, np.int64) for _ in range(3))
        tag, offset, length = longs
        return cls(depth, tag, np.zeros(size, np.uint8), offset, length, np.zeros(3, np.int64))

    def grown(self, capacity: int) -> Line:
        """Return the same line with room for `capacity` requests."""
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
        """Tell whether `demand` more requests could wait."""
        return self.depth == 0 or len(self.tag) - self.state[1] >= demand

    @method
    def lets_in(self):
        """Tell whether a request may go on, and count it as inside if so."""
        if self.state[2] >= self.depth:
            return False
        self.state[2] += 1
        return True

    @method
    def push(self, tag, op, offset, length):
        """Let a request wait."""
        entry = (self.state[0] + self.state[1]) % len(self.tag)
        self.state[1] += 1
        self.tag[entry] = tag
        self.op[entry] = op
        self.offset[entry] = offset
        self.length[entry] = length

    @method
    def left(self):
        """Return the entry that takes the place of a request that has left, or -1."""
        if self.state[1] == 0:
            self.state[2] -= 1
            return -1
        entry = self.state[0]
        self.state[0] = (entry + 1) % len(self.tag)
        self.state[1] -= 1
        return entry
