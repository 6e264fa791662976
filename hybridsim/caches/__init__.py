"""Caches: state machines between the source and the two tiers.

A cache has `submit(now, slot, requests, below)`, `complete(now, tag, requests, below)` (which
returns the slot of a request that is complete, or -1), `finished(now, slot, requests, below)`
(after that request's fact is recorded), `wake(now, number, requests, below)` (for an event that it
scheduled; returns the same as `complete`), `room()`, and for Python `demand(longest_bytes)` (room
needed in one step), `size()` and `grown(size)`, and `totals()` for the counters.
A new cache is a file or package of its own, one line here, and the places named in DESIGN.md (33).
"""

from hybridsim.caches.bcache import Bcache
from hybridsim.caches.dmcache import DmCache
from hybridsim.caches.opencas import OpenCas
from hybridsim.caches.page import PageCache
from hybridsim.caches.writecache import DmWritecache

CACHES = {
    "bcache": Bcache,
    "dm-cache": DmCache,
    "dm-writecache": DmWritecache,
    "open-cas": OpenCas,
    "page": PageCache,
}

CACHE_METHODS = ("submit", "complete", "finished", "wake", "room")

__all__ = ["CACHES", "CACHE_METHODS", "Bcache", "DmCache", "DmWritecache", "OpenCas", "PageCache"]
