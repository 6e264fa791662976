"""From a provider's rules for a volume to the limits and tables that `DESIGN.md` 2.9 computes with.

A rate that scales with size is min(max(base + per GiB * size, minimum), maximum).  A volume with
bursts has two buckets: one that fills at this rate and holds its credits, and one for the peak
rate; if the volume is so large that the peak does not exceed its own rate, it needs no credits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import (
    READ_OR_WRITE,
    WHOLE_REQUEST,
    LimitParameters,
    VolumeParameters,
)
from hybridsim.jit.limits import S_NS
from hybridsim.storage.devices.volume import QUANTILES

if TYPE_CHECKING:
    from hybridsim.storage.drives import CloudVolume
    from hybridsim.storage.drives.datasheet import Placement

ENDLESS_BYTES_PER_S = 1 << 62


def parameters(drive: CloudVolume, capacity_bytes: int, seed: int) -> VolumeParameters:
    """Return the parameters of a volume that is simulated with this capacity."""
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
    counted = (
        (unit_bytes, drive.sustained_iops, drive.iops_peak, drive.iops_credits),
        (1, drive.sustained_bandwidth, drive.peak_bandwidth, drive.credits_bytes),
    )
    for unit, rate, peak, credits in counted:
        if rate and peak and peak > rate:
            yield LimitParameters(READ_OR_WRITE, unit, rate, credits * S_NS // rate)
            yield LimitParameters(READ_OR_WRITE, unit, peak, drive.burst_ns)
        elif rate:
            yield LimitParameters(READ_OR_WRITE, unit, rate, drive.burst_ns)
    directions = (
        ((Op.READ,), drive.read_iops_max, drive.read_bandwidth_max),
        ((Op.WRITE,), drive.write_iops_max, drive.write_bandwidth_max),
    )
    for ops, iops, bandwidth in directions:
        if iops:
            yield LimitParameters(ops, unit_bytes, iops, drive.burst_ns)
        if bandwidth:
            yield LimitParameters(ops, 1, bandwidth, drive.burst_ns)


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
    from hybridsim.storage.devices.volume import Volume

    return Volume.new(members, parameters(drive, use.capacity_bytes, use.seed))
