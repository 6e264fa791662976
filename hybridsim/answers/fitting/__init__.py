"""Parameters of real devices from what was measured on them.

A capture tells when each request was dispatched to the device and when it completed; fio tells the
distribution of latencies and the rate at each depth.  Both go the same way: a model of the device,
the likelihood (or distance) of what was measured under it, and the parameters that fit best, each
with an interval.  What was measured cannot tell everything: such parameters keep a catalog's value.
"""
