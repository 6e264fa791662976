"""The counters of bcache, with the names of sysfs where it has them."""

from __future__ import annotations

from hybridsim.caches.bcache.allocator import ENTRIES, GCS
from hybridsim.caches.bcache.buckets import AVAIL, IN_USE, INVALIDATIONS
from hybridsim.caches.bcache.inserts import HUNG, PARTS, Inserts
from hybridsim.caches.bcache.journal import ENTRIES as JOURNAL_ENTRIES
from hybridsim.caches.bcache.keys import DIRTY_BYTES, LIVE_BYTES
from hybridsim.caches.bcache.statistics import Statistics
from hybridsim.caches.bcache.writeback import RATE_NOW, WRITTEN_BACK, WriteBack

PAGE_BYTES = 4096


def totals_of(statistics: Statistics, inserts: Inserts, write_back: WriteBack) -> dict[str, int]:
    """Return all counters; bytes and sectors unless the name has another unit."""
    allocator, buckets = inserts.allocator, inserts.allocator.buckets
    live, dirty = (int(buckets.keys.state[which]) for which in (LIVE_BYTES, DIRTY_BYTES))
    parts = int(inserts.state[PARTS])
    emptied = int(buckets.state[INVALIDATIONS])
    return statistics.totals() | {
        "cache_inserts": parts,
        "dirty_data": dirty,
        "cached_data": live,
        "keys": int(buckets.keys.number()),
        "index_entries": int(allocator.state[ENTRIES]),
        "cache_available_percent": 100 - int(buckets.state[IN_USE]),
        "available_buckets": int(buckets.state[AVAIL]),
        "writeback_rate": int(write_back.state[RATE_NOW]),
        "written_back": int(write_back.state[WRITTEN_BACK]),
        "journal_writes": int(allocator.journal.state[JOURNAL_ENTRIES]),
        "gc_runs": int(allocator.state[GCS]),
        "hung_writes": int(inserts.state[HUNG]),
        "invalidated_buckets": emptied,
        # Counters that all caches have:
        "fills_started": parts,
        "fills_done": parts,
        "fills_doomed": 0,
        "evictions": emptied,
        "pages_present": live // PAGE_BYTES,
    }
