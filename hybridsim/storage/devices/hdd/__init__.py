"""Hard disks: an arm over turning platters, a queue, read-ahead segments and a write cache.

platters     the place of each byte, the arms, and the times of moves and transfers
buffer       read-ahead, and acknowledged writes that are not yet on the platters
media_cache  writes in a log on the platters, on the way to shingled bands
bank         the disks: which command is served next, and when it completes
"""

from hybridsim.storage.devices.hdd.bank import HDD

__all__ = ["HDD"]
