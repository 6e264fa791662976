"""The datasheet of a drive: the quantities from which its timing is derived.

Fields are integers of bytes, nanoseconds and bytes per second; their TOML names and units are those
of a datasheet (`seek_average = "8.5ms"`).  A new kind of drive is one file and one name in `Drive`.
"""

from hybridsim.foundation.toml.table import ContradictionError, Part, Rate, Size, Time
from hybridsim.storage.drives.hdd import HardDisk
from hybridsim.storage.drives.ssd import SolidState
from hybridsim.storage.drives.volume import CloudVolume

Drive = HardDisk | SolidState | CloudVolume

__all__ = [
    "CloudVolume",
    "ContradictionError",
    "Drive",
    "HardDisk",
    "Part",
    "Rate",
    "Size",
    "SolidState",
    "Time",
]
