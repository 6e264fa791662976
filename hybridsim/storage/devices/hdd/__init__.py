"""Hard disks: an arm over turning platters, a queue, read-ahead segments and a write cache.

platters     where a byte lies, and how long moves and transfers take
queue        commands that wait
window       those of them that the disk has, to choose from
read_ahead   what the disk has read, and what it goes on reading
write_cache  what it has acknowledged and not yet written
bank         the disks: what is served next, and when it is done
"""

from hybridsim.storage.devices.hdd.bank import HDD

__all__ = ["HDD"]
