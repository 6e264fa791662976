"""The datasheet of an SSD."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field

from hybridsim.foundation.toml.table import Part, Rate, Size, Time
from hybridsim.foundation.units import parse_percent
from hybridsim.storage.drives.datasheet import Datasheet

UNIT_BYTES = 4096  # unit of a drive's map
UNITS_MAX = 2**31  # numbers of units are 32 bits wide


def _share(text: Any) -> str:
    if not 0 < parse_percent(text) <= 4:
        raise ValueError(f"{text!r} is not an over-provisioning: above 0% and at most 400%")
    return str(text)


class Flash(Part):
    """The flash behind the controller, if it is simulated in detail."""

    gc: Literal["closed-form", "simulated"] = "simulated"
    over_provisioning: Annotated[str, BeforeValidator(_share)] = "7%"  # of the visible capacity
    # with gc = "closed-form": writes go to the dies in turn, as in a log, or by their address
    placement: Literal["in-turn", "by-address"] = "in-turn"
    filled: bool = True  # true: every unit has been written once, in order; false: none has
    channels: int = Field(8, ge=1, le=1024)
    channel_rate: Rate = 800_000_000
    channel_command_ns: Time = Field(400, alias="channel_command")  # of each transfer
    read_ns: Time | None = Field(None, alias="read")  # of the fastest page; or from read_latency
    program_ns: Time | None = Field(None, alias="program")  # default: from sequential_write
    erase_ns: Time = Field(5_000_000, alias="erase")
    block_bytes: Size | None = Field(None, alias="block")  # erased at once; default: 1/4096

    @property
    def spare(self) -> float:
        """Flash that is not visible to the host, as a share of the visible capacity."""
        return float(parse_percent(self.over_provisioning))


class SolidState(Datasheet):
    """A drive of flash or similar memory: dies behind a controller and a link."""

    device: ClassVar[str] = "hybridsim.storage.devices.flash_timing:bank"
    kind: Literal["ssd"]
    capacity_bytes: Size = Field(alias="capacity", ge=2**20)
    read_latency_ns: Time = Field(alias="read_latency", gt=0)  # 4 KiB random, queue depth 1
    write_latency_ns: Time = Field(alias="write_latency", gt=0)
    random_read_iops: int = Field(ge=1, le=10**9)  # 4 KiB, deep queue
    random_write_iops: int = Field(ge=1, le=10**9)  # 4 KiB, steady state
    sequential_read: Rate  # 128 KiB, bytes per second
    sequential_write: Rate
    dies: int = Field(32, ge=1, le=65_536)  # that work in parallel
    program_bytes: Size = Field(UNIT_BYTES, alias="program_size", ge=UNIT_BYTES)  # by a die at once
    read_step_ns: Time = Field(0, alias="read_step")  # TLC: a third of the pages 1, a third 3 more
    write_buffer_bytes: Size = Field(16 * 2**20, alias="write_buffer", gt=0)
    suspend_ns: Time = Field(20_000, alias="suspend")  # wait of a read until a busy die pauses
    power_loss_protection: bool = True  # the buffer survives power loss: a flush need not drain it
    flush_ns: Time = Field(0, alias="flush")  # of a flush, besides draining the buffer
    blocking_flush: bool = False  # as SATA drives: nothing else is served meanwhile
    fua: bool = True  # false: a flush follows a FUA write, as Linux does for SATA
    endurance_bytes: Size | None = Field(None, alias="endurance")  # rated total of host writes
    flash: Flash | None = None

    @property
    def has_fua(self) -> bool:
        """Return whether the drive honours FUA, as its datasheet says."""
        return self.fua

    @property
    def wire_ns(self) -> int:
        """Time of 4 KiB on the link, in ns; sequential reads use all of the link."""
        return 4096 * 10**9 // self.sequential_read

    @property
    def command_ns(self) -> int:
        """Time of a command in the controller, in ns: assumed a quarter of the shorter latency."""
        return min(self.read_latency_ns, self.write_latency_ns) // 4

    @property
    def mean_read_ns(self) -> int:
        """Mean time of a read on its die, in ns: the latency less controller and link."""
        return self.read_latency_ns - self.command_ns - self.wire_ns

    @property
    def read_ns(self) -> int:
        """Time of reading the fastest pages, in ns; the others need 1 and 3 steps more."""
        return self.mean_read_ns - self.read_step_ns * 4 // 3

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, problem) for latencies shorter than the link, and too few dies."""
        for key in ("read_latency", "write_latency"):
            if getattr(self, f"{key}_ns") <= self.command_ns + self.wire_ns:
                minimum_ns = 2 * self.wire_ns
                yield key, f"{key} must be {minimum_ns}ns or more: it includes 4 KiB on the link"
        if self.read_ns < 0:
            yield "read_step", "with this read_step the mean read takes longer than read_latency"
        if self.program_bytes % UNIT_BYTES:
            yield "program_size", "program_size must be a multiple of 4096 bytes"
        yield from self._contradictions_of_flash()
        if self.sequential_write // 131_072 > self.random_write_iops:
            yield (
                "random_write_iops",
                f"{self.random_write_iops} writes per second of 4 KiB are fewer than the "
                f"{self.sequential_write // 131_072} of 128 KiB that sequential_write means",
            )
        busiest = max(self.random_read_iops, self.sequential_read // 4096)
        minimum = busiest * max(self.mean_read_ns, 0) // 10**9 + 1
        if self.dies < minimum:
            yield (
                "dies",
                f"{self.dies} dies of this latency cannot reach these read rates: "
                f"the minimum is {minimum}",
            )

    def _contradictions_of_flash(self) -> Iterator[tuple[str, str]]:
        if self.flash is None:
            return
        if self.flash.channels > self.dies:
            yield "dies", f"{self.dies} dies cannot use {self.flash.channels} channels"
        if self.flash.placement == "by-address" and self.flash.gc == "simulated":
            yield (
                "flash",
                'placement "by-address" needs gc = "closed-form": a simulated map is a log',
            )
        if (self.flash.block_bytes or 0) % self.program_bytes:
            yield "flash", f"block must be a multiple of program_size, {self.program_bytes} bytes"
        if self.flash.gc == "simulated":
            units = round(self.capacity_bytes * (1 + self.flash.spare) / UNIT_BYTES)
            if units >= UNITS_MAX:
                yield (
                    "capacity",
                    "the map is too large to simulate: the flash must be below 8 TiB",
                )
