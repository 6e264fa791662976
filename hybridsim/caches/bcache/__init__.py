"""bcache, the Linux kernel's cache of extents in a log of buckets (DESIGN.md 2.12).

One file per part: `target` takes requests, `bypass` says which of them pass, `inserts` puts data
into the open buckets that `space` chooses, `allocator` frees buckets, collects garbage and pays for
the index, `buckets` knows their age, `keys` is the index with its `tree`, `journal`, `writeback`,
`statistics`; `pieces` is what is under way, `tags` what it is known by.
"""

from hybridsim.caches.bcache.target import Bcache

__all__ = ["Bcache"]
