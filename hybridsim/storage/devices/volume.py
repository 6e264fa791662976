"""Cloud volumes: limits of requests and bytes per second, with bursts, and a varying latency."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints, filled
from hybridsim.foundation.codes import OP_MASK, Op
from hybridsim.foundation.machine_parameters import (
    READ_OR_WRITE,
    WHOLE_REQUEST,
    LimitParameters,
    VolumeParameters,
)
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.limits import NOTHING, READS, S_NS, WRITES, Limits

if TYPE_CHECKING:
    from hybridsim.storage.drives import CloudVolume
    from hybridsim.storage.drives.datasheet import Placement

OF_READS, OF_WRITES = range(2)
THROTTLED, IOPS_LIMIT, BANDWIDTH_LIMIT, LATENCY, BYTES_READ, BYTES_WRITTEN = range(6)
QUANTILES = 1024
QUANTILE_SHIFT = 22  # 32 random bits to 10
MASK = (1 << 32) - 1
ENDLESS_BYTES_PER_S = 1 << 62
GOLDEN = 0x9E3779B1  # 2^32 / golden ratio: spreads members over the random numbers


@kernel
def mixed(number):
    """Return 32 pseudo-random bits for a number (Th. Mueller's integer hash)."""
    number = ((number >> 16) ^ number) * 0x45D9F3B & MASK
    number = ((number >> 16) ^ number) * 0x45D9F3B & MASK
    return (number >> 16) ^ number


@state_machine
class Volume(NamedTuple):
    """A bank of equal volumes; rows of the arrays are the members (DESIGN.md 2.9)."""

    stream_bytes_per_s: int
    stall_ns: int
    stall_every_ns: int
    random_unit_bytes: int
    capacity_bytes: int
    limits: Limits
    latency_ns: Ints  # [OF_READS | OF_WRITES, quantile]
    first_draw: Ints  # by member: start of its sequence of random numbers
    requests: Ints  # by member: number of requests so far
    throttled_until_ns: Ints  # by member
    last_end: Ints  # by member: where its last request ended
    counts: Ints  # [member, THROTTLED ... BYTES_WRITTEN]

    @classmethod
    def new(cls, members: int, parameters: VolumeParameters) -> Volume:
        """Return `members` idle volumes with full buckets."""
        p = parameters
        first = [mixed((p.seed + GOLDEN * (member + 1)) & MASK) for member in range(members)]
        return filled(
            cls,
            members,
            p,
            limits=Limits.new(members, p.limits),
            latency_ns=np.array([p.read_latency_ns, p.write_latency_ns]),
            first_draw=np.array(first, np.int64),
            last_end=np.full(members, NOTHING, np.int64),
            counts=np.zeros((members, 6), np.int64),
        )

    @method
    def room(self):
        """Return a number larger than any demand: the bank stores no requests."""
        return 1 << 62

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return the counters of all members so far, by name.

        A volume is busy while a request waits for one of its limits.
        """
        names = ("busy_ns", "iops_limit_ns", "bandwidth_limit_ns", "latency_ns")
        totals = dict(
            zip((*names, "bytes_read", "bytes_written"), self.counts.sum(axis=0).tolist())
        )
        totals["busy_ns"] -= int(np.maximum(self.throttled_until_ns - now_ns, 0).sum())
        return totals

    @method
    def submit(self, now, member, tag, op, offset, length, kind, events):
        """Take a request; its completion is scheduled at once."""
        op = op & OP_MASK
        table = OF_READS if op == Op.READ else OF_WRITES
        start = now
        latency = self.latency_ns[table, self.draw(member)]
        if length > 0 and (op == Op.READ or op == Op.WRITE):
            counted = self.counted(member, offset, length)
            start = self.admit(now, member, READS if op == Op.READ else WRITES, counted)
            latency += length * S_NS // self.stream_bytes_per_s
            self.counts[member, BYTES_READ if op == Op.READ else BYTES_WRITTEN] += length
        done = self.stalled(member, start + latency)
        self.counts[member, LATENCY] += done - start
        events.push(done, kind, tag)

    @method
    def complete(self, now, tag, kind, events):
        """Return the tag of the completed request."""
        return tag

    @method
    def stalled(self, member, done):
        """Return when a request completes that would be done at a time: after a stall, if in one.

        In each stretch of stall_every_ns one begins at a time that is drawn.
        """
        if self.stall_ns == 0:
            return done
        stretch = done // self.stall_every_ns
        drawn = mixed((self.first_draw[member] + stretch) & MASK) >> 1
        rest_us = (self.stall_every_ns - self.stall_ns) // 1000
        begin = stretch * self.stall_every_ns + (drawn * rest_us >> 31) * 1000
        return begin + self.stall_ns if begin <= done < begin + self.stall_ns else done

    @method
    def counted(self, member, offset, length):
        """Return the bytes that the limits count: more of a request that continues none."""
        follows = offset == self.last_end[member]
        self.last_end[member] = offset + length
        if follows:
            return length
        return -(-length // self.random_unit_bytes) * self.random_unit_bytes

    @method
    def draw(self, member):
        """Return the next random number of a member, in 0..QUANTILES-1."""
        number = self.requests[member]
        self.requests[member] = number + 1
        return mixed((self.first_draw[member] + number) & MASK) >> QUANTILE_SHIFT

    @method
    def admit(self, now, member, what, length):
        """Return when the limits let a request pass; count the wait by its limit."""
        start, binding = self.limits.admit(now, member, what, length)
        if binding != NOTHING:
            until = self.throttled_until_ns[member]
            self.counts[member, THROTTLED] += max(start - max(now, until), 0)
            self.throttled_until_ns[member] = max(until, start)
            counts_bytes = self.limits.unit_bytes[binding] == 1
            self.counts[member, BANDWIDTH_LIMIT if counts_bytes else IOPS_LIMIT] += start - now
        return start


# From a provider's rules for a volume to the limits and tables that DESIGN.md 2.9 computes with.


def parameters(drive: CloudVolume, capacity_bytes: int, seed: int) -> VolumeParameters:
    """Return the parameters of a volume that is simulated with this capacity.

    A rate that scales with size is min(max(base + per GiB * size, minimum), maximum).  A volume
    with bursts has two buckets: one that fills at this rate and holds its credits, and one for the
    peak rate; if the volume is so large that the peak does not exceed its own rate, it needs no
    credits.
    """
    return VolumeParameters(
        limits=list(limits(drive)),
        read_latency_ns=quantiles(drive.read_latency),
        write_latency_ns=quantiles(drive.write_latency),
        stream_bytes_per_s=drive.stream_rate or ENDLESS_BYTES_PER_S,
        capacity_bytes=capacity_bytes,
        seed=seed,
        random_unit_bytes=max(drive.random_unit_bytes, 1),
        stall_ns=drive.stall_ns,
        stall_every_ns=max(drive.stall_every_ns, 1),
    )


def limits(drive: CloudVolume) -> Iterator[LimitParameters]:
    """Yield the volume's buckets."""
    unit_bytes = drive.io_unit_bytes or WHOLE_REQUEST
    both, reads, writes = READ_OR_WRITE, (Op.READ,), (Op.WRITE,)
    rows = (
        (both, unit_bytes, drive.sustained_iops, drive.iops_peak, drive.iops_credits),
        (both, 1, drive.sustained_bandwidth, drive.peak_bandwidth, drive.credits_bytes),
        (reads, unit_bytes, drive.read_iops_max, None, 0),
        (reads, 1, drive.read_bandwidth_max, None, 0),
        (writes, unit_bytes, drive.write_iops_max, None, 0),
        (writes, 1, drive.write_bandwidth_max, None, 0),
    )
    for ops, unit, rate, peak, credits in rows:
        if rate and peak and peak > rate:
            yield LimitParameters(ops, unit, rate, credits * S_NS // rate)
            rate = peak
        if rate:
            yield LimitParameters(ops, unit, rate, drive.burst_ns)


def quantiles(points: tuple[tuple[float, int], ...]) -> list[int]:
    """Return the latencies in ns at the middles of QUANTILES equal shares of all requests.

    Between two specified percentiles the logarithm of the time is linear in the normal score of the
    share, so that two percentiles give a piece of a log-normal distribution; below the first and
    above the last the latency is constant.
    """
    score = NormalDist().inv_cdf
    known = [score(percent / 100) for percent, _ in points]
    times = [math.log(time_ns) for _, time_ns in points]
    shares = [score((index + 0.5) / QUANTILES) for index in range(QUANTILES)]
    table: list[int] = np.rint(np.exp(np.interp(shares, known, times))).astype(np.int64).tolist()
    return table


def bank(drive: CloudVolume, members: int, use: Placement) -> Any:
    """Return `members` idle volumes."""
    return Volume.new(members, parameters(drive, use.capacity_bytes, use.seed))
