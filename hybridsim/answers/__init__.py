"""From facts to an answer: the figures of a replay, and what they mean.

metrics        sums of facts and counters, in time bins and by number of request
outcome        the figures of one machine by phase, whether it kept up with the load, and SSD wear
warmup         when a cache is warm
warm_start     what a warm start gained
fidelity       how closely the model reproduces recorded latencies
requirements   limits on the figures of a machine, and whether they are met
sampling       how sure a figure is: draws of blocks, slow waves, Student's t
judge          the gain of a cache, with its interval
verdict        whether this load should get this cache, in words
result         all of these, as Python objects and as JSON
comparison     a simulated run compared with a real one

advice         the analyses of `advise` before it replays, and the alternatives it compares
measurements   formats of measured results
fitting        models of drives and arrays, estimated from measurements
check          whether a cache that was built keeps what its simulation promised
setup          how a simulated cache is built
"""
