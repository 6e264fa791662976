"""dm-writecache, the Linux kernel's cache of writes (DESIGN.md 2.15).

`target` serves requests, `commits` brings the metadata to the medium, `write_back` brings data to
the slow tier, and `slots` is where the blocks are.
"""

from hybridsim.caches.writecache.commits import metadata_bytes
from hybridsim.caches.writecache.target import DmWritecache

__all__ = ["DmWritecache", "metadata_bytes"]
