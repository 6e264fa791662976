"""Open CAS (OCF): the cache of Open CAS Linux (DESIGN.md 2.13).

bits, lists           bits of sectors and core lines, lists with a hot half
jobs                  requests in progress, and their locks on lines
dirt, lines           the content of lines, the choice of victims and of lines to clean
policies              sequential cutoff, promotion
transfers, cleaner    requests to the tiers, cleaning
paths, cache          the processing of each request; the cache as the machine uses it
"""

from hybridsim.caches.opencas.cache import OpenCas, metadata_bytes

__all__ = ["OpenCas", "metadata_bytes"]
