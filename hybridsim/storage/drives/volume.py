"""The data of a cloud volume, as its provider specifies it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, PlainSerializer

from hybridsim.foundation.toml.table import Rate, Size, Time
from hybridsim.foundation.units import format_time, parse_time
from hybridsim.storage.drives.datasheet import Datasheet

GIB = 2**30
MEDIAN = 50  # percent
Percentiles = tuple[tuple[float, int], ...]  # (percent, ns), both ascending


def parse_percentiles(text: Any) -> Percentiles:
    """Return the points of 'p50 480us, p99 2ms', or of one constant time; raise ValueError."""
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is not a latency: write for example '500us' or {EXAMPLE}")
    words = [point.split() for point in text.split(",")]
    if len(words) == 1 and not text.lstrip().startswith("p"):
        words = [[f"p{MEDIAN}", text]]
    points = []
    for point in words:
        if len(point) != 2 or not point[0].startswith("p"):
            raise ValueError(
                f"{' '.join(point)!r} is not a percentile: write for example {EXAMPLE}"
            )
        points.append((_percent(point[0][1:]), parse_time(point[1])))
    if points[0][1] <= 0 or any(a[0] >= b[0] or a[1] > b[1] for a, b in pairwise(points)):
        raise ValueError(f"{text!r}: percentiles and their times must ascend, from above 0")
    return tuple(points)


EXAMPLE = "'p50 480us, p99 2ms'"


def _percent(text: str) -> float:
    try:
        percent = float(text)
    except ValueError:
        percent = -1.0
    if not 0 < percent < 100:
        raise ValueError(f"'p{text}' is not a percentile: write for example {EXAMPLE}")
    return percent


def format_percentiles(points: Percentiles) -> str:
    """Return the text that reads back as these points."""
    if [percent for percent, _ in points] == [MEDIAN]:
        return format_time(points[0][1])
    exact = [(repr(percent).removesuffix(".0"), time_ns) for percent, time_ns in points]
    return ", ".join(f"p{percent} {format_time(time_ns)}" for percent, time_ns in exact)


Latency = Annotated[
    Percentiles, BeforeValidator(parse_percentiles), PlainSerializer(format_percentiles)
]
Iops = Annotated[int, Field(ge=1, le=10**9)]


class CloudVolume(Datasheet):
    """A volume in a network that its provider throttles."""

    device: ClassVar[str] = "hybridsim.storage.devices.volume:bank"
    random: ClassVar[str] = "the latencies of {} cloud volumes"

    kind: Literal["volume"]
    capacity_bytes: Size = Field(ge=2**20)  # its rates scale with it
    iops: int | None = Field(None, ge=0, le=10**9)  # of reads and writes together
    iops_per_gib: int = Field(0, ge=0, le=10**6)
    iops_min: int = Field(0, ge=0, le=10**9)
    iops_max: Iops | None = None
    iops_peak: Iops | None = None  # while there are credits
    iops_credits: int = Field(0, ge=0, le=10**12)  # requests above the sustained rate
    bandwidth: Rate | None = None  # of reads and writes together
    bandwidth_per_gib: Rate | None = None
    bandwidth_max: Rate | None = None
    bandwidth_peak: Rate | None = None  # or the most that bandwidth_peak_per_gib gives
    bandwidth_peak_per_gib: Rate | None = None
    bandwidth_credits_bytes: Size = 0
    bandwidth_credits_per_gib_bytes: Size = 0
    read_iops_max: Iops | None = None  # of one direction
    write_iops_max: Iops | None = None
    read_bandwidth_max: Rate | None = None
    write_bandwidth_max: Rate | None = None
    io_unit_bytes: Size = 0  # a longer request counts as several; 0: never
    # a request that does not begin where the one before ended counts as a multiple of this many
    # bytes; 0: as its own
    random_unit_bytes: Size = 0
    burst_ns: Time = 0  # how far it may be ahead of a rate without credits
    # of the whole volume: nothing completes for so long, once in each stretch of stall_every, at a
    # time that is drawn
    stall_ns: Time = 0
    stall_every_ns: Time = Field(0, le=3600 * 10**9)
    read_latency: Latency
    write_latency: Latency
    stream_rate: Rate | None = None  # transfer rate of one request, in addition to the latency

    @property
    def sustained_iops(self) -> int | None:
        """Requests per second by size and bounds; None: no limit."""
        if self.iops is None:
            return None
        scaled = self.iops + self.iops_per_gib * self.capacity_bytes // GIB
        return min(max(scaled, self.iops_min), self.iops_max or scaled + self.iops_min)

    @property
    def sustained_bandwidth(self) -> int | None:
        """Bytes per second by size and bounds; None: no limit."""
        if self.bandwidth is None and self.bandwidth_per_gib is None:
            return None
        scaled = (self.bandwidth_per_gib or 0) * self.capacity_bytes // GIB + (self.bandwidth or 0)
        return min(scaled, self.bandwidth_max or scaled)

    @property
    def peak_bandwidth(self) -> int | None:
        """Bytes per second while there are credits; None: no more than without."""
        if self.bandwidth_peak_per_gib is None:
            return self.bandwidth_peak
        scaled = self.bandwidth_peak_per_gib * self.capacity_bytes // GIB
        return min(scaled, self.bandwidth_peak or scaled)

    @property
    def credits_bytes(self) -> int:
        """Bytes above the sustained bandwidth, by size."""
        scaled = self.bandwidth_credits_per_gib_bytes * self.capacity_bytes // GIB
        return self.bandwidth_credits_bytes + scaled

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, problem) for rates that contradict each other."""
        sustained = {"iops": self.sustained_iops, "bandwidth": self.sustained_bandwidth}
        credits = {"iops": self.iops_credits, "bandwidth": self.credits_bytes}
        peaks = {"iops": self.iops_peak, "bandwidth": self.peak_bandwidth}
        for name, rate in sustained.items():
            peak = peaks[name]
            if rate == 0:
                yield name, f"a volume of this size gets no {name} at all"
            if peak is not None and rate is None:
                yield f"{name}_peak", f"{name}_peak needs {name}, which is not specified"
            if (peak is None) != (credits[name] == 0):
                key = f"{name}_credits"
                yield key, f"{name}_peak and {key} must be specified together"
            limit = getattr(self, f"{name}_max")
            if rate is None and limit is not None:
                yield f"{name}_max", f"{name}_max limits {name}, which is not specified"
        if self.stall_ns and self.stall_every_ns <= self.stall_ns:
            yield "stall_every", "stall_every is the time from stall to stall: longer than one"
        if self.stall_every_ns and not self.stall_ns:
            yield "stall_every", "stall_every needs stall, the length of each"
        if self.iops is None and (self.iops_per_gib or self.iops_min):
            yield "iops", "iops_per_gib and iops_min are added to iops: set iops (it may be 0)"
