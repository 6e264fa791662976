"""A RAID controller's DRAM: read-ahead and write-back between the SSD cache and the array.

    slots, ordered  containers of fixed size
    jobs            requests under way, and the link to the host
    windows, reads  what is read ahead, and how
    lines, writes   what is written back, and how
    dram            all of it put together, in front of an array

It has the methods of `raid.Tier`, and takes its place as the slow tier (DESIGN.md 2.11).
"""

from hybridsim.storage.controller.dram import Controller

__all__ = ["Controller"]
