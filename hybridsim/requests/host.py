"""The host in front of the cache: its limits of requests and bytes per second."""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.foundation.codes import Op
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import HOST
from hybridsim.jit.limits import OTHERS, READS, WHOLE_REQUEST, WRITES, Limit, Limits

READ, WRITE = int(Op.READ), int(Op.WRITE)
EVERYTHING = READS | WRITES | OTHERS


@state_machine
class Host(NamedTuple):
    """Passes requests on one after the other, at a limited rate (DESIGN.md 2.10)."""

    is_on: int  # 0: requests reach the cache when they are issued
    overhead_ns: int
    limits: Limits

    @classmethod
    def new(cls, max_iops: int = 0, max_bytes_per_s: int = 0, overhead_ns: int = 0) -> Host:
        """Return an idle host; 0 means no limit."""
        limits = []
        if max_iops:
            limits.append(Limit(EVERYTHING, WHOLE_REQUEST, max_iops, 0))
        if max_bytes_per_s:
            limits.append(Limit(READS | WRITES, 1, max_bytes_per_s, 0))
        return cls(int(bool(limits) or overhead_ns > 0), overhead_ns, Limits.new(1, limits))

    @method
    def submit(self, now, slot, requests, events):
        """Take an issued request; a HOST event is scheduled for when it has passed."""
        op = requests.op[slot]
        length = requests.length[slot]
        what = OTHERS
        if length > 0 and (op == READ or op == WRITE):
            what = READS if op == READ else WRITES
        start, _ = self.limits.admit(now, 0, what, length)
        events.push(start + self.overhead_ns, HOST, slot)
