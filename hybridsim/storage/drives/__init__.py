"""The datasheet of a drive: the quantities from which its timing is derived.

Fields are integers of bytes, nanoseconds and bytes per second; their TOML names and units are those
of a datasheet (`seek_average = "8.5ms"`).  A new kind of drive is one file, with `bank` which
builds its device, and one line in DRIVES: scenarios, their errors and the machine follow it.
"""

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING

from hybridsim.storage.drives.datasheet import Datasheet, Placement
from hybridsim.storage.drives.hdd import HardDisk
from hybridsim.storage.drives.ssd import SolidState
from hybridsim.storage.drives.volume import CloudVolume

# `kind` in the table of a drive: its class
DRIVES: dict[str, type[Datasheet]] = {
    "hdd": HardDisk,
    "ssd": SolidState,
    "volume": CloudVolume,
}

if TYPE_CHECKING:
    Drive = Datasheet
else:
    Drive = reduce(or_, DRIVES.values())  # the union, for pydantic

__all__ = ["DRIVES", "CloudVolume", "Datasheet", "Drive", "HardDisk", "Placement", "SolidState"]
