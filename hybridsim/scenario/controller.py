"""The table `backing.controller`: the DRAM of a RAID controller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field

from hybridsim.foundation.machine_parameters import ControllerParameters
from hybridsim.foundation.units import format_size, parse_percent
from hybridsim.storage.drives import Part, Rate, Size, Time

SECTOR_BYTES = 512


def _share(text: object) -> str:
    if not isinstance(text, str) or not 0 <= parse_percent(text) <= 1:
        raise ValueError(f"{text!r} is not a share: '0%' to '100%'")
    return text


Share = Annotated[str, BeforeValidator(_share)]


class ControllerDram(Part):
    """DRAM between the SSD cache and the array, for read-ahead and write-back.

    The default sizes are those of a controller with 512 MiB, three quarters of it for writes.
    Latency and rate are assumed, within the range of hits in the DRAM of such controllers.
    """

    read_memory_bytes: Size = 128 * 2**20  # 0: never reads ahead
    window_bytes: Size = Field(2**20, ge=SECTOR_BYTES)  # size of one read-ahead
    read_ahead_bytes: Size = 4 * 2**20  # distance ahead of the reader
    sequential_after: int = Field(3, ge=1, le=65_536)  # consecutive requests that make a stream
    streams: int = Field(32, ge=1, le=1024)
    write_memory_bytes: Size = 384 * 2**20  # 0: write-through
    line_bytes: Size = Field(4096, ge=SECTOR_BYTES, le=32 * SECTOR_BYTES)
    protected: bool = True  # battery or flash: DRAM survives a power failure
    high_water: Share = "80%"  # of the memory: destaging begins
    low_water: Share = "70%"  # and ends
    oldest_first_above: Share = "100%"  # destage by age instead of address
    idle_ns: Time = 100_000_000  # after this idle time: destage all
    max_destages: int = Field(64, ge=1, le=4096)
    latency_ns: Time = 50_000
    rate: Rate = 1_500_000_000  # bytes per second, to and from DRAM

    @property
    def memory_bytes(self) -> int:
        """Total size of the DRAM in bytes."""
        return self.read_memory_bytes + self.write_memory_bytes

    @property
    def lines(self) -> int:
        """Number of lines in the write memory."""
        return self.write_memory_bytes // self.line_bytes

    def parameters(self, stripe_bytes: int) -> ControllerParameters:
        """Return the parameters of the model, in front of an array with such stripes."""
        return ControllerParameters(
            protected=int(self.protected),
            high_lines=self.share_of_lines(self.high_water),
            low_lines=self.share_of_lines(self.low_water),
            oldest_above_lines=self.share_of_lines(self.oldest_first_above),
            idle_ns=self.idle_ns,
            destages_max=self.max_destages,
            window_bytes=self.window_bytes,
            windows=self.read_memory_bytes // self.window_bytes,
            ahead_bytes=self.read_ahead_bytes,
            after=self.sequential_after,
            streams=self.streams,
            line_bytes=self.line_bytes,
            lines=self.lines,
            stripe_bytes=stripe_bytes,
            latency_ns=self.latency_ns,
            bytes_per_s=self.rate,
        )

    def share_of_lines(self, share: str) -> int:
        """Return a share of the write memory in lines."""
        return int(parse_percent(share) * self.lines)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, message) for each invalid combination of values."""
        if self.line_bytes & (self.line_bytes - 1):
            yield "line", "a line must be a power of two"
        if self.window_bytes % SECTOR_BYTES:
            yield "window", f"a window must be a multiple of {SECTOR_BYTES} bytes"
        if 0 < self.read_memory_bytes < 2 * self.window_bytes:
            minimum = format_size(2 * self.window_bytes)
            yield "read_memory", f"the minimum is two windows ({minimum}); 0 turns read-ahead off"
        if 0 < self.write_memory_bytes < self.line_bytes:
            yield "write_memory", f"less than one line ({format_size(self.line_bytes)})"
        elif parse_percent(self.low_water) >= parse_percent(self.high_water):
            yield "low_water", f"low_water must be below high_water ({self.high_water})"
