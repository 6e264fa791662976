"""dm-writecache, the Linux kernel's write cache (DESIGN.md 2.15).

`target` serves requests, `write_back` has their blocks, writes metadata and copies data.
"""

from hybridsim.caches.writecache.target import DmWritecache
from hybridsim.caches.writecache.write_back import metadata_bytes

__all__ = ["DmWritecache", "metadata_bytes"]
