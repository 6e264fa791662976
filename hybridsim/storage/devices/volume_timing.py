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

from hybridsim.foundation.arrays import Ints
from hybridsim.jit.limits import READS, S_NS, WHOLE_REQUEST, WRITES, Limit
from hybridsim.storage.devices.volume import QUANTILES

if TYPE_CHECKING:
    from hybridsim.storage.drives import CloudVolume
    from hybridsim.storage.drives.datasheet import Placement

BOTH = READS | WRITES
ENDLESS_BYTES_PER_S = 1 << 62


def parameters(drive: CloudVolume) -> dict[str, Any]:
    """Return the parameters of a bank of this volume, except capacity and seed."""
    return {
        "limits": list(limits(drive)),
        "latency_ns": np.array([quantiles(drive.read_latency), quantiles(drive.write_latency)]),
        "stream_bytes_per_s": drive.stream_rate or ENDLESS_BYTES_PER_S,
        "random_unit_bytes": max(drive.random_unit_bytes, 1),
        "stall_ns": drive.stall_ns,
        "stall_every_ns": max(drive.stall_every_ns, 1),
    }


def limits(drive: CloudVolume) -> Iterator[Limit]:
    """Yield the volume's buckets."""
    unit_bytes = drive.io_unit_bytes or WHOLE_REQUEST
    counted = (
        (unit_bytes, drive.sustained_iops, drive.iops_peak, drive.iops_credits),
        (1, drive.sustained_bandwidth, drive.peak_bandwidth, drive.credits_bytes),
    )
    for unit, rate, peak, credits in counted:
        if rate and peak and peak > rate:
            yield Limit(BOTH, unit, rate, credits * S_NS // rate)
            yield Limit(BOTH, unit, peak, drive.burst_ns)
        elif rate:
            yield Limit(BOTH, unit, rate, drive.burst_ns)
    directions = (
        (READS, drive.read_iops_max, drive.read_bandwidth_max),
        (WRITES, drive.write_iops_max, drive.write_bandwidth_max),
    )
    for what, iops, bandwidth in directions:
        if iops:
            yield Limit(what, unit_bytes, iops, drive.burst_ns)
        if bandwidth:
            yield Limit(what, 1, bandwidth, drive.burst_ns)


def quantiles(points: tuple[tuple[float, int], ...]) -> Ints:
    """Return the latencies in ns at the middles of QUANTILES equal shares of all requests.

    Between two specified percentiles the logarithm of the time is linear in the normal score of the
    share, so that two percentiles give a piece of a log-normal distribution; below the first and
    above the last the latency is constant.
    """
    score = NormalDist().inv_cdf
    known = [score(percent / 100) for percent, _ in points]
    times = [math.log(time_ns) for _, time_ns in points]
    shares = [score((index + 0.5) / QUANTILES) for index in range(QUANTILES)]
    table: Ints = np.rint(np.exp(np.interp(shares, known, times))).astype(np.int64)
    return table


def bank(drive: CloudVolume, members: int, use: Placement) -> Any:
    """Return `members` idle volumes."""
    from hybridsim.storage.devices.volume import Volume

    return Volume.new(
        members, **parameters(drive), capacity_bytes=use.capacity_bytes, seed=use.seed
    )
