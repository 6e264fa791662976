"""Which counters are levels.  A count only grows; a level, such as dirty pages, rises and falls.

A counter's name means the same in every cache, in the engine, the reference and in measurements of
real caches.  Over a phase, a count is reported as its growth and a level as its value at the end.
Counters that are not listed here are counts.
"""

from __future__ import annotations

LEVELS = frozenset(
    {
        # All caches, and the page cache:
        "pages_present", "dirty_pages", "dirty_bytes", "pages_kept",
        # dm-cache, dm-writecache:
        "used_blocks", "dirty_blocks", "free_blocks", "blocks_under_writeback",
        # bcache:
        "dirty_data", "cached_data", "keys", "index_entries", "cache_available_percent",
        "available_buckets", "writeback_rate",
        # Open CAS:
        "occupancy", "free", "clean", "dirty",
    }
)  # fmt: skip
