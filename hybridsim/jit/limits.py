"""Token buckets: limits of requests and bytes per second, with bursts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import LimitParameters
from hybridsim.jit import method, state_machine

NOTHING = -1
READS, WRITES, OTHERS = 1, 2, 4  # the requests that a limit counts, as bits
S_NS = 10**9


def counted(ops: Iterable[Op]) -> int:
    """Return the bits of the requests that a limit applies to."""
    bits = {Op.READ: READS, Op.WRITE: WRITES}
    return sum({bits.get(op, OTHERS) for op in ops})


@state_machine
class Limits(NamedTuple):
    """The same buckets for each of several members (DESIGN.md 2.9).

    `due_ns` is when a bucket will be full again, that is, when all past requests are paid for.
    """

    counts: Ints  # by limit
    unit_bytes: Ints
    units_per_s: Ints
    burst_ns: Ints
    due_ns: Ints  # [member, limit], rounded down
    rest: Ints  # [member, limit]: the remainder of that rounding, in 1 / units_per_s ns

    @classmethod
    def new(cls, members: int, limits: Sequence[LimitParameters]) -> Limits:
        """Return full buckets."""
        rows = [(counted(p.ops), p.unit_bytes, p.units_per_s, p.burst_ns) for p in limits]
        columns = np.array(rows, np.int64).reshape(len(limits), 4).T.copy()
        buckets = np.zeros((2, members, len(limits)), np.int64)
        return cls._make([*columns, *buckets])

    @method
    def admit(self, now, member, what, length):
        """Charge all limits that count such a request.

        Returns the time when it may pass, and the limit that delays it, or NOTHING.
        """
        start = now
        binding = NOTHING
        for limit in range(len(self.counts)):
            if self.counts[limit] & what:
                free = self.due_ns[member, limit] - self.burst_ns[limit]
                if free > start:
                    start = free
                    binding = limit
        for limit in range(len(self.counts)):
            if self.counts[limit] & what:
                self.charge(member, limit, start, length)
        return start, binding

    @method
    def free_ns(self, now, member, what):
        """Return the time when such a request may pass."""
        start = now
        for limit in range(len(self.counts)):
            if self.counts[limit] & what:
                start = max(start, self.due_ns[member, limit] - self.burst_ns[limit])
        return start

    @method
    def charge(self, member, limit, start, length):
        """Charge a bucket for a request that passes at `start`."""
        if self.due_ns[member, limit] < start:
            self.due_ns[member, limit] = start
            self.rest[member, limit] = 0
        units = max(-(-length // self.unit_bytes[limit]), 1)
        rate = self.units_per_s[limit]
        owed = units * S_NS + self.rest[member, limit]
        self.due_ns[member, limit] += owed // rate
        self.rest[member, limit] = owed % rate
