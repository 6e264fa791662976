"""dm-writecache, the Linux kernel's write cache (DESIGN.md 2.15).

`target` serves requests, `commits` writes metadata, `write_back` copies data to the slow tier, and
`slots` maps blocks to slots.
"""

from hybridsim.caches.writecache.commits import metadata_bytes
from hybridsim.caches.writecache.target import DmWritecache

__all__ = ["DmWritecache", "metadata_bytes"]
