"""Token buckets (2.9) of volumes and hosts, in exact rational numbers; the host (2.10)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import HostParameters, LimitParameters
from hybridsim.reference.clock import Clock, Done


class Bucket:
    """One limit; `due` is when the bucket is full again if no more requests pass."""

    def __init__(self, parameters: LimitParameters) -> None:
        self.parameters = parameters
        self.due = Fraction(0)

    @property
    def free(self) -> int:
        """The time from which the next request may pass, whatever its size."""
        return int(self.due) - self.parameters.burst_ns

    def charge(self, start: int, length: int) -> None:
        """Charge a request that passes at `start`, unless the rate is 0: no limit."""
        if not self.parameters.units_per_s:
            return
        units = max(1, -(-length // self.parameters.unit_bytes))
        if int(self.due) < start:
            self.due = Fraction(start)
        self.due += Fraction(units * 10**9, self.parameters.units_per_s)


def admit(buckets: Sequence[Bucket], now: int, op: Op, length: int) -> tuple[int, Bucket | None]:
    """Charge a request; return when it may pass, and the bucket that delays it (the first)."""
    start, binding = now, None
    concerned = [bucket for bucket in buckets if op in bucket.parameters.ops]
    for bucket in concerned:
        if bucket.free > start:
            start, binding = bucket.free, bucket
    for bucket in concerned:
        bucket.charge(start, length)
    return start, binding


class Host:
    """In front of the cache: passes requests in order, limited in IOPS and bytes per second."""

    def __init__(self, clock: Clock, parameters: HostParameters) -> None:
        self.clock = clock
        self.parameters = parameters
        self.buckets = [  # a rate of 0 is no limit
            Bucket(LimitParameters(list(Op), 2**62, parameters.max_iops)),
            Bucket(LimitParameters([Op.READ, Op.WRITE], 1, parameters.max_bandwidth)),
        ]
        self.is_holding = False
        self.counted: list[int] = []  # times of the completions of this period, while none is held
        self.interrupt_ns = 0  # the next one, or the last
        self.waiting = 0  # completions that it delivers

    def submit(self, op: Op, length: int, passed: Done) -> None:
        """Take an issued request; `passed` is called when it has passed, never from within."""
        if length == 0 or op not in (Op.READ, Op.WRITE):
            op, length = Op.FLUSH, 0  # it moves no data
        start, _ = admit(self.buckets, self.clock.now, op, length)
        self.clock.at(start + self.parameters.overhead_ns, passed)

    def complete(self, delivered: Done) -> None:
        """Take a completed request; `delivered` is called when the host learns of it."""
        p = self.parameters
        if not p.hold_ns:
            delivered()
            return
        now, within = self.clock.now, p.hold_within_ns
        if self.is_holding and now >= self.interrupt_ns:
            self.is_holding = 2 * self.waiting > p.hold_from
            self.waiting = 0
        elif not self.is_holding and self.counted and now >= self.counted[0] + within:
            is_recent = now < self.counted[0] + 2 * within
            self.is_holding = is_recent and len(self.counted) >= p.hold_from
            self.counted = []
        if not self.is_holding:
            self.counted.append(now)
            delivered()
            return
        if not self.waiting:
            self.interrupt_ns = now + p.hold_ns
        self.waiting += 1
        self.clock.at(self.interrupt_ns, delivered)
