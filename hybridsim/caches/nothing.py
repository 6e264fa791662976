"""No cache: all requests go to the disks.

A page cache of no pages does the same, and is what stands beside a page cache, as both share their
machine code.  This is for where a page cache's code would be compiled for it alone.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op, Reason, Restart
from hybridsim.jit import method, state_machine

NOTHING, ENDLESS = -1, 1 << 62


@state_machine
class NoCache(NamedTuple):
    """What passes requests on to the slow tier; the tag of a part is its request's slot."""

    page_bytes: int  # of the cache that it stands beside

    def demand(self, longest_bytes: int) -> int:
        """Return the number of parts of a request: one, whatever its length."""
        return 1

    def size(self) -> int:
        """Return the number of pages that there is room for."""
        return 0

    def grown(self, size: int) -> NoCache:
        """Return the same: it has no room to grow."""
        return self

    def totals(self) -> dict[str, int]:
        """Return the counters: none."""
        return {}

    def dirty_bytes(self) -> int:
        """Return how much is dirty: nothing."""
        return 0

    def dirty_ranges(self) -> Ints:
        """Return the offset and the length of what is dirty: no rows."""
        return np.zeros((0, 2), np.int64)

    def restarted(self, now_ns: int, how: Restart) -> NoCache:
        """Return the same: there is nothing that a restart could change."""
        return self

    def resume(self, now_ns: int, below: Any) -> None:
        """Do nothing when the load goes on."""

    @method
    def room(self):
        """Return how many pages may be added: as many as may be asked for."""
        return ENDLESS

    @method
    def submit(self, now, slot, requests, below):
        """Start a request of the host."""
        op = requests.op[slot]
        requests.pending[slot] += 1
        if op == Op.FLUSH or requests.length[slot] == 0:
            below.slow.submit(now, slot, Op.FLUSH, 0, 0, below.events)
        else:
            if op != Op.DISCARD:
                requests.reason[slot] = Reason.NO_CACHE
            offset, length = requests.offset[slot], requests.length[slot]
            below.slow.submit(now, slot, op | requests.flags[slot], offset, length, below.events)

    @method
    def complete(self, now, tag, requests, below):
        """Return the slot of a request whose part has completed."""
        requests.pending[tag] -= 1
        return tag

    @method
    def finished(self, now, slot, requests, below):
        """Do nothing: nothing is filled."""

    @method
    def wake(self, now, number, requests, below):
        """Do nothing: it schedules no events."""
        return NOTHING
