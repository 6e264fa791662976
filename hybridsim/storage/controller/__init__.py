"""A RAID controller's DRAM: read-ahead and write-back between the SSD cache and the array.

    memory  what is in DRAM: windows that are read ahead, lines that are written back
    dram    requests in progress, the link to the host; all assembled, in front of an array

It has the methods of `raid.Tier`, and replaces it as the slow tier (DESIGN.md 2.11).
"""

from hybridsim.storage.controller.dram import Controller

__all__ = ["Controller"]
