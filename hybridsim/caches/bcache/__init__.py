"""bcache, the Linux kernel's cache of extents in a log of buckets (DESIGN.md 2.12).

One file per part: `target` takes requests, `inserts` decides which of them bypass the cache and
puts data into the open buckets, `buckets` has their age, frees them and collects garbage, `keys` is
the index, `journal` has the operations in progress too, `writeback`.
"""

from hybridsim.caches.bcache.target import Bcache

__all__ = ["Bcache"]
