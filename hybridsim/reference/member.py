"""The members of an array (2.5): devices, and what has become of them."""

from dataclasses import dataclass, field
from enum import Enum

from hybridsim.reference.device import Device


class Health(Enum):
    """What has become of a member."""

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
    began: list[int] = field(default_factory=list)  # device requests under way
    idle_until: int = 0  # when the first of these began, or of those before
    head: int = 0  # where the last one ends
    next_read: int = -1  # where the last READ will have ended

    @property
    def under_way(self) -> int:
        """How many device requests are under way."""
        return len(self.began)
