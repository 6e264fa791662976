"""Open CAS (OCF): the cache of Open CAS Linux (DESIGN.md 2.13).

bits, lists           sectors of lines, marks of core lines, lists with a hot half
jobs                  requests under way, and their locks on lines
dirt, lines           what lines hold, which are evicted, which are cleaned
policies              sequential cutoff, promotion
transfers, cleaner    what the tiers are told to do, cleaning
paths, cache          the way of each request; the cache as the machine sees it
"""

from hybridsim.caches.opencas.cache import OpenCas, metadata_bytes

__all__ = ["OpenCas", "metadata_bytes"]
