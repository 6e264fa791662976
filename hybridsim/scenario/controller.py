"""What a scenario says of a RAID controller's DRAM."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from pydantic import BeforeValidator, Field

from hybridsim.foundation.units import format_size, parse_percent
from hybridsim.storage.drives import Part, Rate, Size, Time

SECTOR_BYTES = 512


def _share(text: object) -> str:
    if not isinstance(text, str) or not 0 <= parse_percent(text) <= 1:
        raise ValueError(f"{text!r} is no share: from '0%' to '100%'")
    return text


Share = Annotated[str, BeforeValidator(_share)]


class ControllerDram(Part):
    """DRAM between the SSD cache and the array, for reading ahead and for writing back.

    The defaults are those of a controller with 512 MiB, three quarters of it for writes; latency
    and rate are assumptions, within what such controllers show for hits in their DRAM.
    """

    read_memory_bytes: Size = Field(128 * 2**20, alias="read_memory")  # 0: never reads ahead
    window_bytes: Size = Field(2**20, alias="window", ge=SECTOR_BYTES)  # read ahead in one piece
    read_ahead_bytes: Size = Field(4 * 2**20, alias="read_ahead")  # how far before the reader
    sequential_after: int = Field(3, ge=1, le=65_536)  # requests that follow each other
    streams: int = Field(32, ge=1, le=1024)
    write_memory_bytes: Size = Field(384 * 2**20, alias="write_memory")  # 0: writes through
    line_bytes: Size = Field(4096, alias="line", ge=SECTOR_BYTES, le=32 * SECTOR_BYTES)
    protected: bool = True  # by battery or flash: what is in DRAM survives a power failure
    high_water: Share = "80%"  # of the memory: destaging begins
    low_water: Share = "70%"  # and ends
    oldest_first_above: Share = "100%"  # destaging in order of age, no longer of address
    idle_ns: Time = Field(100_000_000, alias="idle")  # with no request: destages all
    max_destages: int = Field(64, ge=1, le=4096)
    latency_ns: Time = Field(50_000, alias="latency")
    rate: Rate = 1_500_000_000  # to and from DRAM, bytes a second

    @property
    def memory_bytes(self) -> int:
        """How much memory there is in all."""
        return self.read_memory_bytes + self.write_memory_bytes

    @property
    def lines(self) -> int:
        """How many lines the memory for writes holds."""
        return self.write_memory_bytes // self.line_bytes

    def share_of_lines(self, share: str) -> int:
        """Return a share of the memory for writes in lines."""
        return int(parse_percent(share) * self.lines)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse memory that holds nothing, and marks that cannot be reached."""
        if self.line_bytes & (self.line_bytes - 1):
            yield "line", "a line is a power of two of bytes"
        if self.window_bytes % SECTOR_BYTES:
            yield "window", f"a window is whole sectors of {SECTOR_BYTES} bytes"
        if 0 < self.read_memory_bytes < 2 * self.window_bytes:
            least = format_size(2 * self.window_bytes)
            yield "read_memory", f"two windows need {least}: 0 reads nothing ahead"
        if 0 < self.write_memory_bytes < self.line_bytes:
            yield "write_memory", f"less than one line ({format_size(self.line_bytes)})"
        elif parse_percent(self.low_water) >= parse_percent(self.high_water):
            yield "low_water", f"low_water must be below high_water ({self.high_water})"
