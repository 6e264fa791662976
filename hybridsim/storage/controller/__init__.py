"""A RAID controller's DRAM: read-ahead and write-back between the SSD cache and the array.

    slots, ordered  containers of fixed size
    slots, ordered  containers of fixed size
    jobs            requests in progress, and the link to the host
    windows, reads  read-ahead: its data, and its control
    lines, writes   write-back: its data, and its control
    dram            all of these assembled, in front of an array

It has the methods of `raid.Tier`, and replaces it as the slow tier (DESIGN.md 2.11).
"""

from hybridsim.storage.controller.dram import Controller

__all__ = ["Controller"]
