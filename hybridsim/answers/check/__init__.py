"""Whether a cache that was built keeps what its simulation promised.

`promise` reads the saved simulation, `observed` the counters of the running cache, and `judging`
holds one against the other.
"""
