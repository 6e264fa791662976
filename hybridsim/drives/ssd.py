"""What an SSD's datasheet says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from hybridsim.drives.part import Part, Rate, Size, Time


class SolidState(Part):
    """A drive of flash or the like: dies behind a controller and a link."""

    kind: Literal["ssd"]
    like: str = ""
    name: str = ""
    capacity_bytes: Size = Field(alias="capacity", ge=2**20)
    read_latency_ns: Time = Field(alias="read_latency", gt=0)  # 4 KiB random, queue depth 1
    write_latency_ns: Time = Field(alias="write_latency", gt=0)
    random_read_iops: int = Field(ge=1, le=10**9)  # 4 KiB, deep queue
    random_write_iops: int = Field(ge=1, le=10**9)  # 4 KiB, steady state
    sequential_read: Rate  # 128 KiB, bytes a second
    sequential_write: Rate
    dies: int = Field(32, ge=1, le=65_536)  # that work at the same time
    write_buffer_bytes: Size = Field(16 * 2**20, alias="write_buffer", gt=0)
    suspend_ns: Time = Field(20_000, alias="suspend")  # wait of a read for a busy die to pause
    endurance_bytes: Size | None = Field(None, alias="endurance")  # rated total of host writes

    @property
    def wire_ns(self) -> int:
        """Time of 4 KiB on the link, which sequential reads fill."""
        return 4096 * 10**9 // self.sequential_read

    @property
    def command_ns(self) -> int:
        """Time of a command in the controller: assumed a quarter of the shorter latency."""
        return min(self.read_latency_ns, self.write_latency_ns) // 4

    @property
    def read_ns(self) -> int:
        """Time of a read on its die: what controller and link leave of the latency."""
        return self.read_latency_ns - self.command_ns - self.wire_ns

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse latencies shorter than the link alone, and dies too few for the rates."""
        for key in ("read_latency", "write_latency"):
            if getattr(self, f"{key}_ns") <= self.command_ns + self.wire_ns:
                least_ns = 2 * self.wire_ns
                yield key, f"{key} must be {least_ns}ns or more: its 4 KiB cross the link too"
        if self.sequential_write // 131_072 > self.random_write_iops:
            yield (
                "random_write_iops",
                f"{self.random_write_iops} writes a second of 4 KiB are fewer than the "
                f"{self.sequential_write // 131_072} of 128 KiB that sequential_write means",
            )
        busiest = max(self.random_read_iops, self.sequential_read // 4096)
        least = busiest * max(self.read_ns, 0) // 10**9 + 1
        if self.dies < least:
            yield "dies", f"{self.dies} dies of this latency cannot read that fast: {least} can"
