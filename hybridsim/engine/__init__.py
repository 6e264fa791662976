"""The engine: what brings source, cache and tiers together and lets their events happen.

source, jobs  requests as a trace gives them, or as fio's jobs make them
think         which request waited for which when they were captured
inflight      requests under way, and the facts of those that are done
host          what the host in front lets through
loops         the loop over events, until none is left or Python is needed
machine       all of these and the parts below as one, run step by step
live          an array in the caller's own time, without source and cache
residency     the cache without devices; stack: LRU at all sizes in one pass

Caches, policies, controller, raid and devices are families of their own; none knows the engine.
"""
