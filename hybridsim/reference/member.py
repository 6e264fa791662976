"""The members of an array (2.5): devices and their health."""

from dataclasses import dataclass, field
from enum import Enum

from hybridsim.reference.device import Device


class Health(Enum):
    """The health of a member."""

    WHOLE = "whole"
    FAILED = "failed"
    REBUILDING = "rebuilding"


@dataclass
class Range:
    """Bytes of one member."""

    member: int
    start: int
    end: int


@dataclass
class Member:
    """A place in the array, with the device in it."""

    device: Device
    health: Health = Health.WHOLE
    began: list[int] = field(default_factory=list)  # start times of requests under way
    idle_until: int = 0  # start of the current or last busy period
    head: int = 0  # end of the last request
    next_read: int = -1  # end of the last READ

    @property
    def under_way(self) -> int:
        """The number of device requests under way."""
        return len(self.began)
