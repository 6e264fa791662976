"""From facts to an answer: what a replay found, and what that means.

metrics, counters  facts and counters added up, in bins of time
outcome            what one machine did: its figures by phase, and whether it kept up
warmup             when a cache is warm
wear               what the SSDs are written, and how long they last
warm_start         what a warm start was worth
fidelity           how well the model gives recorded latencies back
requirements       what a machine must reach, and whether it does
verdict            should this load get this cache
result             all of it, as Python and as JSON

advice         what `advise` finds out before it replays, and what else it compares
comparison     a simulated run held against a real one
measurements   forms of measured results, one file a form
fitting        models of drives and arrays, estimated from measurements
"""
