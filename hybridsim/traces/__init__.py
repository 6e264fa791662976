"""Traces: read captures as requests.

trace        an open trace: its requests in chunks, its devices, its warnings
formats      readers and writers, one file per format
recording    record a disk of this machine
summary      counts, bytes, times and rates of a trace
address_map  the addresses of requests over time
example      the capture that ships with hybridsim
"""
