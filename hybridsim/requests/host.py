"""The host in front of the cache: its limits of requests and bytes per second."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import (
    READ_OR_WRITE,
    WHOLE_REQUEST,
    HostParameters,
    LimitParameters,
)
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import HOST
from hybridsim.jit.limits import OTHERS, READS, WRITES, Limits

READ, WRITE = int(Op.READ), int(Op.WRITE)
# Of `held`: the beginning of a period and the completions in it, while none is held; the next
# interrupt, or the last one, and the completions that it delivers.
BEGIN_NS, COUNT, IS_HOLDING, INTERRUPT_NS, WAITING = range(5)


@state_machine
class Host(NamedTuple):
    """Passes requests on one after the other, at a limited rate (DESIGN.md 2.10)."""

    is_on: int  # 0: requests reach the cache when they are issued
    overhead_ns: int
    limits: Limits
    hold_ns: int  # 0: completions are delivered at once
    hold_from: int
    hold_within_ns: int
    held: Ints  # [BEGIN_NS, COUNT, IS_HOLDING, INTERRUPT_NS, WAITING]

    @classmethod
    def new(cls, parameters: HostParameters) -> Host:
        """Return an idle host."""
        p, limits = parameters, []
        if p.max_iops:
            limits.append(LimitParameters(list(Op), WHOLE_REQUEST, p.max_iops))
        if p.max_bandwidth:
            limits.append(LimitParameters(READ_OR_WRITE, 1, p.max_bandwidth))
        return cls(
            int(bool(limits) or p.overhead_ns > 0),
            p.overhead_ns,
            Limits.new(1, limits),
            p.hold_ns,
            p.hold_from,
            p.hold_within_ns,
            np.zeros(5, np.int64),
        )

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

    @method
    def delivered_ns(self, now):
        """Return when the host learns of a request that completes now."""
        held, within_ns = self.held, self.hold_within_ns
        if held[IS_HOLDING]:
            if now >= held[INTERRUPT_NS]:
                held[IS_HOLDING] = int(2 * held[WAITING] > self.hold_from)
                held[WAITING] = 0
                held[COUNT] = 0
        elif held[COUNT] > 0 and now >= held[BEGIN_NS] + within_ns:
            is_recent = now < held[BEGIN_NS] + 2 * within_ns
            held[IS_HOLDING] = int(is_recent and held[COUNT] >= self.hold_from)
            held[COUNT] = 0
        if not held[IS_HOLDING]:
            if held[COUNT] == 0:
                held[BEGIN_NS] = now
            held[COUNT] += 1
            return now
        if held[WAITING] == 0:
            held[INTERRUPT_NS] = now + self.hold_ns
        held[WAITING] += 1
        return held[INTERRUPT_NS]
