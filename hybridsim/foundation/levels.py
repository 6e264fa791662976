"""What kind of number a counter is: a count, which only grows, or a level, which goes up and down.

The engine, the reference and measurements of real caches give counters by name; the name tells the
kind, and a name means the same in every cache.  Of a stretch of time a count tells by how much it
grew, and a level what it was at the end.  What is not listed here is a count.
"""

from __future__ import annotations

LEVELS = frozenset(
    {
        # In the words of all caches, and of the page cache:
        "pages_present", "dirty_pages", "pages_kept",
        # dm-cache, dm-writecache:
        "used_blocks", "dirty_blocks", "free_blocks", "blocks_under_writeback",
        # bcache:
        "dirty_data", "cached_data", "keys", "index_entries", "cache_available_percent",
        "available_buckets", "writeback_rate",
        # Open CAS:
        "occupancy", "free", "clean", "dirty",
    }
)  # fmt: skip
