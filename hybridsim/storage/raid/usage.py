"""How long members of a tier have something to do, and requests take there (DESIGN.md 2.5.5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine

REQUESTS_NS, IN_USE_NS = range(2)


@state_machine
class Usage(NamedTuple):
    """Counts by sums of times: what has begun is taken off, what has ended is put on."""

    under_way: Ints  # by member: device requests
    spent: Ints  # [REQUESTS_NS, IN_USE_NS], right as soon as nothing is under way

    @classmethod
    def new(cls, members: int) -> Usage:
        """Begin with idle members."""
        return cls(np.zeros(members, np.int64), np.zeros(2, np.int64))

    @method
    def begin(self, now, member):
        """Count a device request that begins."""
        if self.under_way[member] == 0:
            self.spent[IN_USE_NS] -= now
        self.under_way[member] += 1
        self.spent[REQUESTS_NS] -= now

    @method
    def end(self, now, member):
        """Count a device request that is complete."""
        self.under_way[member] -= 1
        if self.under_way[member] == 0:
            self.spent[IN_USE_NS] += now
        self.spent[REQUESTS_NS] += now

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return both sums up to now, by name; what is under way counts as if it ended now."""
        requests, in_use = self.spent.tolist()
        requests += int(self.under_way.sum()) * now_ns
        in_use += int((self.under_way > 0).sum()) * now_ns
        return {"requests_ns": requests, "in_use_ns": in_use}
