"""bcache, the Linux kernel's cache of extents in a log of buckets (DESIGN.md 2.12).

One file per part: `target` takes requests, `bypass` decides which of them bypass the cache,
`inserts` puts data into the open buckets that `space` chooses, `allocator` frees buckets, collects
garbage and accounts for the index, `buckets` has their age, `keys` is the index with its `tree`,
`journal`, `writeback`, `statistics`; `pieces` has the operations in progress, `tags` their kinds.
"""

from hybridsim.caches.bcache.target import Bcache

__all__ = ["Bcache"]
