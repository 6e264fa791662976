"""Sequential runs: the stream that each request continues."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints, filled
from hybridsim.jit import method, state_machine

STREAMS = 32


@state_machine
class Streams(NamedTuple):
    """The most recent sequential streams."""

    end: Ints
    run_bytes: Ints
    run_requests: Ints
    used: Ints  # by stream: number of the last request in it
    clock: Ints  # [number of requests seen]

    @classmethod
    def new(cls, count: int = STREAMS) -> Streams:
        """Return an empty table of streams."""
        return filled(cls, count, end=np.full(count, -1, np.int64), clock=np.zeros(1, np.int64))

    @method
    def extend(self, offset, length):
        """Add a request to the stream it continues, or to a new one; return that stream."""
        self.clock[0] += 1
        best = -1
        oldest = 0
        for i in range(len(self.end)):
            if self.end[i] == offset and (best < 0 or self.used[i] > self.used[best]):
                best = i
            if self.used[i] < self.used[oldest]:
                oldest = i
        if best < 0:
            best = oldest
            self.run_bytes[best] = self.run_requests[best] = 0
        self.run_bytes[best] += length
        self.run_requests[best] += 1
        self.end[best] = offset + length
        self.used[best] = self.clock[0]
        return best

    @method
    def is_long(self, offset, length, cutoff_bytes):
        """Add a request; return whether its run has reached a cutoff; 0: none ever has."""
        return cutoff_bytes > 0 and self.run_bytes[self.extend(offset, length)] >= cutoff_bytes
