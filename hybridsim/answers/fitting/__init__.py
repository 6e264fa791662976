"""Estimate the parameters of real devices from measurements.

A capture has the times at which each request was dispatched to the device and completed; fio's
results have the distribution of latencies and the rate at each depth.  Both are used alike: a model
of the device, the likelihood (or distance) of the measurement under the model, and the parameters
that fit best, each with an interval.  Parameters that the measurement does not determine get the
values of a catalog entry.
"""
