"""Caches that are simulated beside a running disk: what they would do now, in bounded memory.

pieces    reads the requests while they come
watching  the simulated caches, the counters of a cache that runs, and the loop over the requests
kept      saves their state
"""
