"""The cloud volume (2.9): token buckets, then a latency drawn from a table."""

from collections import Counter

from hybridsim.foundation.codes import OP_MASK, Op
from hybridsim.foundation.machine_parameters import VolumeParameters
from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.device import Device
from hybridsim.reference.limits import Bucket, admit


class Volume(Device):
    """A volume that passes requests in order; each then takes its own latency."""

    def __init__(self, clock: Clock, parameters: VolumeParameters, member: int) -> None:
        super().__init__(clock)
        self.parameters = parameters
        self.buckets = [Bucket(each) for each in parameters.limits]
        self.first_draw = mixed((parameters.seed + 0x9E3779B1 * (member + 1)) % 2**32)
        self.requests = 0
        self.last_end: int | None = None
        self.throttled_until = 0

    def totals(self) -> Counter[str]:
        """Return the counters, without the future part of a wait."""
        still = max(0, self.throttled_until - self.clock.now)
        return self.counters - Counter(throttled_ns=still)

    def accept(self, op: int, offset: int, length: int, done: Done) -> None:
        """Complete a request after its limits, its latency and its transfer time."""
        what = Op(op & OP_MASK)
        latency = self.draw(what)
        start = self.clock.now
        if what in (Op.READ, Op.WRITE) and length > 0:
            counted, unit = length, self.parameters.random_unit_bytes
            if offset != self.last_end and length % unit:
                counted += unit - length % unit
            self.last_end = offset + length
            start = self.admit(what, counted)
            latency += length * 10**9 // self.parameters.stream_bytes_per_s
        end = self.after_stall(start + latency)
        self.counters["latency_ns"] += end - start
        self.clock.at(end, done)

    def after_stall(self, end: int) -> int:
        """Return when a request completes: at the end of a stall, if it would in one."""
        p = self.parameters
        stretch = end // p.stall_every_ns
        random = mixed((self.first_draw + stretch) % 2**32) // 2
        rest_us = (p.stall_every_ns - p.stall_ns) // 1000
        into = end - stretch * p.stall_every_ns - random * rest_us // 2**31 * 1000
        return end - into + p.stall_ns if 0 <= into < p.stall_ns else end

    def draw(self, op: Op) -> int:
        """Return the latency of the next request, in nanoseconds."""
        p = self.parameters
        table = p.read_latency_ns if op == Op.READ else p.write_latency_ns
        random = mixed((self.first_draw + self.requests) % 2**32)
        self.requests += 1
        return table[random >> 22]

    def admit(self, op: Op, length: int) -> int:
        """Return when a request may pass; count its wait by the limit that causes it."""
        now = self.clock.now
        start, binding = admit(self.buckets, now, op, length)
        if binding is not None:
            kind = "bandwidth" if binding.parameters.unit_bytes == 1 else "iops"
            self.counters[f"{kind}_limit_ns"] += start - now
            self.counters["throttled_ns"] += max(0, start - max(now, self.throttled_until))
            self.throttled_until = max(self.throttled_until, start)
        return start


def mixed(x: int) -> int:
    """Return the integer hash of 2.9, a permutation of 32-bit numbers."""
    for _ in range(2):
        x = (x ^ x >> 16) * 0x45D9F3B % 2**32
    return x ^ x >> 16
