"""Devices: banks of equal members that take requests and schedule their completions.

A device has `submit(now, member, tag, op, offset, length, kind, events)`, `complete(now, number,
kind, events)` (which returns the tag of a completed request, or -1), `room()`, `with_room(demand)`
if it stores requests itself, `totals(now_ns)` and `capacity_bytes`.
A new device is one file here, which the datasheet of its drives builds (`bank` in storage/drives).
"""

from hybridsim.storage.devices.flash import Flash
from hybridsim.storage.devices.hdd import HDD
from hybridsim.storage.devices.ssd import SSD
from hybridsim.storage.devices.volume import Volume

DEVICE_METHODS = ("submit", "complete", "room")

__all__ = ["DEVICE_METHODS", "HDD", "SSD", "Flash", "Volume"]
