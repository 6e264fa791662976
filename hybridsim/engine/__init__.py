"""The engine: assembles source, cache and tiers, and runs their events.

machine    a whole machine as one state machine, run step by step
loops      the event loop, until no event is left or Python is needed
think      recorded think times: for each captured request, the request it waited for
live       an array in the caller's own time, without source and cache
residency  the cache alone, without devices and time
stack      hits of LRU for all sizes in one pass
"""
