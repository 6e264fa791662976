"""From facts to an answer: the figures of a replay, and what they mean.

metrics, counters  sums of facts and counters, in time bins
outcome            the figures of one machine by phase, and whether it kept up with the load
warmup             when a cache is warm
wear               bytes written to the SSDs, and how long the SSDs last
warm_start         what a warm start gained
fidelity           how closely the model reproduces recorded latencies
requirements       limits on the figures of a machine, and whether they are met
judge              the gain of a cache, with its interval
verdict            whether this load should get this cache, in words
result             all of these, as Python objects and as JSON

advice         the analyses of `advise` before it replays, and the alternatives it compares
comparison     a simulated run compared with a real one
measurements   formats of measured results, one file a format
fitting        models of drives and arrays, estimated from measurements
"""
