"""Open CAS (OCF): the cache of Open CAS Linux (DESIGN.md 2.13).

ways       constants of jobs
jobs       requests in progress, their locks on lines, and the threads of queues
lines      the content of lines, the choice of victims and of lines to clean
policies   sequential cutoff, promotion
transfers  requests to the tiers, cleaning
cache      the processing of each request
"""

from hybridsim.caches.opencas.cache import OpenCas, metadata_bytes

__all__ = ["OpenCas", "metadata_bytes"]
