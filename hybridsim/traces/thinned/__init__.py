"""Thinned captures: weeks of a disk's requests in a file of limited size.

A thinned capture holds three things: all requests to a sample of the device's regions, counters
and histograms of all requests by time, and short stretches of all requests in full.

layout   blocks: compressed, checksummed, appended; columns of requests as bytes; counters and
         histograms of all requests of some seconds or a minute
thinner  takes requests, writes blocks, and lowers the rate of the sample where space runs out
"""
