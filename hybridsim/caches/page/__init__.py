"""The page cache (DESIGN.md 2.3): requests, the pages they touch, fills, and dirty pages."""

from hybridsim.caches.page.cache import PageCache

__all__ = ["PageCache"]
