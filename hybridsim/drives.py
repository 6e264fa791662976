"""What a datasheet says of a drive: the quantities that its timing is derived from.

Fields are integers of bytes, nanoseconds and bytes a second; their TOML names and units are those
of a datasheet (`seek_average = "8.5ms"`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, model_validator

from hybridsim.units import (
    format_rate,
    format_size,
    format_time,
    parse_rate,
    parse_size,
    parse_time,
)

Size = Annotated[int, BeforeValidator(parse_size), PlainSerializer(format_size)]
Time = Annotated[int, BeforeValidator(parse_time), PlainSerializer(format_time)]
Rate = Annotated[int, BeforeValidator(parse_rate), PlainSerializer(format_rate), Field(gt=0)]


class ContradictionError(ValueError):
    """Values that are each possible but not together: (key to mend, what is wrong)."""

    def __init__(self, found: list[tuple[str, str]]) -> None:
        super().__init__("; ".join(message for _, message in found))
        self.found = found


class Part(BaseModel):
    """A table of a scenario: closed, immutable, and checked as a whole."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Yield (key, what is wrong) for values that do not go together."""
        yield from ()

    @model_validator(mode="after")
    def _agree(self) -> Part:
        found = list(self.contradictions())
        if found:
            raise ContradictionError(found)
        return self


class HardDisk(Part):
    """A disk with one arm: geometry, arm, electronics."""

    kind: Literal["hdd"]
    like: str = ""  # name in the catalog of the drive that it is, or was changed from
    name: str = ""
    rpm: int = Field(ge=1000, le=30_000)
    capacity_bytes: Size = Field(alias="capacity", ge=2**20)
    seek_track_ns: Time = Field(alias="seek_track_to_track")
    seek_average_ns: Time = Field(alias="seek_average")  # over random pairs of cylinders, read
    seek_full_ns: Time = Field(alias="seek_full")
    write_settle_ns: Time = Field(0, alias="write_settle")  # more for a write that moves the arm
    rate_outer: Rate  # sustained, sequential, bytes a second
    rate_inner: Rate
    surfaces: int = Field(4, ge=1, le=64)
    head_switch_ns: Time = Field(500_000, alias="head_switch")
    overhead_ns: Time = Field(200_000, alias="overhead")  # of each command, in the electronics
    window: int = Field(32, ge=1, le=1024)  # commands it chooses from
    age_limit_ns: Time = Field(500_000_000, alias="age_limit")  # a command never waits longer
    read_ahead_bytes: Size = Field(2**20, alias="read_ahead")

    @property
    def rev_ns(self) -> int:
        """Time of one revolution."""
        return round(60 * 10**9 / self.rpm)

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse rates and seek times that no disk has."""
        if self.rate_inner > self.rate_outer:
            yield "rate_inner", "rate_inner cannot exceed rate_outer: inner tracks are shorter"
        if max(self.seek_track_ns, self.head_switch_ns) >= self.rev_ns:
            late = "seek_track_to_track" if self.seek_track_ns >= self.rev_ns else "head_switch"
            yield late, f"{late} must be shorter than a revolution ({format_time(self.rev_ns)})"
        # a + b sqrt(x) + c x through the three points grows over the whole stroke within these
        reach = self.seek_full_ns - self.seek_track_ns
        low, high = self.seek_track_ns + reach // 3, self.seek_track_ns + reach * 11 // 15
        if not (reach > 0 and low <= self.seek_average_ns <= high):
            yield (
                "seek_average",
                "no arm has these seek times: with this track-to-track and full stroke the average "
                f"lies between {low / 1e6:.3g}ms and {high / 1e6:.3g}ms",
            )


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


Drive = HardDisk | SolidState
