"""Traces: from bytes of a capture to requests.

trace        an open trace: its requests in chunks, its devices, its warnings
formats      readers and writers, one file a format
recording    ways to record a disk of this machine
summary      what is in a trace: requests, bytes, times, rates
address_map  where on the volume requests go over time
example      the capture that ships with hybridsim
"""
