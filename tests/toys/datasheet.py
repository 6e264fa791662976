"""The data of a drive of memory."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from hybridsim.foundation.toml.table import Size, Time
from hybridsim.storage.drives.datasheet import Datasheet, Placement


class MemoryDrive(Datasheet):
    """A drive of memory, which has one latency."""

    kind: Literal["ram"]
    capacity_bytes: Size = Field(alias="capacity", ge=2**20)
    latency_ns: Time = Field(alias="latency", gt=0)  # of any request

    def bank(self, members: int, use: Placement) -> Any:
        """Return `members` idle drives."""
        from hybridsim.storage.devices.ram import Ram

        return Ram.new(members, self.latency_ns, use.capacity_bytes)
