"""Caches: state machines between the source and the two tiers.

A cache has `submit(now, slot, requests, below)`, `complete(now, tag, requests, below)` (which
returns the slot of a request that is complete, or -1), `finished(now, slot, requests, below)`
(after that request's fact is recorded), `wake(now, number, requests, below)` (for an event that it
scheduled; returns the same as `complete`), `room()`, and for Python `demand(longest_bytes)` (room
needed in one step), `size()` and `grown(size)`, and `totals()` for the counters.
A new cache is a file or package of its own, one line here, and the places named in DESIGN.md (33).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hybridsim.foundation.registry import Registry

if TYPE_CHECKING:
    from hybridsim.caches.bcache import Bcache
    from hybridsim.caches.dmcache import DmCache
    from hybridsim.caches.opencas import OpenCas
    from hybridsim.caches.page import PageCache
    from hybridsim.caches.writecache import DmWritecache

CACHES = Registry(
    {
        "page": "hybridsim.caches.page:PageCache",
        "bcache": "hybridsim.caches.bcache:Bcache",
        "dm-cache": "hybridsim.caches.dmcache:DmCache",
        "dm-writecache": "hybridsim.caches.writecache:DmWritecache",
        "open-cas": "hybridsim.caches.opencas:OpenCas",
    }
)

# How a cache treats writes, in words common to all kinds; each kind has some of them.
CACHE_MODES = ("read-only", "write-around", "write-through", "write-back")
CACHE_METHODS = ("submit", "complete", "finished", "wake", "room")

__all__ = [
    "CACHES",
    "CACHE_METHODS",
    "CACHE_MODES",
    "Bcache",
    "DmCache",
    "DmWritecache",
    "OpenCas",
    "PageCache",
]


def __getattr__(name: str) -> Any:
    return CACHES.by_class(name)
