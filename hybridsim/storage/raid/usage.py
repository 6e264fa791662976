"""The time that members of a tier are in use, and the sum of request times (DESIGN.md 2.5.5)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine

REQUESTS_NS, IN_USE_NS = range(2)


@state_machine
class Usage(NamedTuple):
    """Sums of times: the start of a request is subtracted, its end is added."""

    under_way: Ints  # by member: number of device requests in progress
    spent: Ints  # [REQUESTS_NS, IN_USE_NS], correct when no request is in progress

    @classmethod
    def new(cls, members: int) -> Usage:
        """Return idle members."""
        return cls(np.zeros(members, np.int64), np.zeros(2, np.int64))

    @method
    def begin(self, now, member):
        """Count the start of a device request."""
        if self.under_way[member] == 0:
            self.spent[IN_USE_NS] -= now
        self.under_way[member] += 1
        self.spent[REQUESTS_NS] -= now

    @method
    def end(self, now, member):
        """Count the end of a device request."""
        self.under_way[member] -= 1
        if self.under_way[member] == 0:
            self.spent[IN_USE_NS] += now
        self.spent[REQUESTS_NS] += now

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return both sums in ns by name; requests in progress count as if they ended now."""
        requests, in_use = self.spent.tolist()
        requests += int(self.under_way.sum()) * now_ns
        in_use += int((self.under_way > 0).sum()) * now_ns
        return {"requests_ns": requests, "in_use_ns": in_use}
