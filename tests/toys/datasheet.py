"""The data of a drive of memory."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from hybridsim.foundation.toml.table import Size, Time
from hybridsim.storage.drives.datasheet import Datasheet


class MemoryDrive(Datasheet):
    """A drive of memory, which has one latency."""

    device: ClassVar[str] = "hybridsim.storage.devices.ram:bank"

    kind: Literal["ram"]
    capacity_bytes: Size = Field(alias="capacity", ge=2**20)
    latency_ns: Time = Field(alias="latency", gt=0)  # of any request
