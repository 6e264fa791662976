"""What a hard disk's datasheet says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from hybridsim.drives.part import Part, Rate, Size, Time
from hybridsim.units import format_time


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
