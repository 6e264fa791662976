"""Traces: read captures as requests.

trace        an open trace: its requests in chunks, its devices, its warnings
formats      readers and writers, one file per format
recording    record a disk of this machine
summary      counts, bytes, times, rates and addresses of a trace
example      the capture that ships with hybridsim
"""
