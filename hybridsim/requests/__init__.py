"""Requests: in a trace as columns, in the machine as slots.

rows      requests of a trace as equally long columns, and findings about the trace
pages     requests split into accesses to pages of a cache
source    when recorded requests are issued: at their times, at a queue depth, after think times
jobs      several closed loops with requests of their own, as fio's jobs, and their queue depths
host      limits of the host: requests and bytes per second
inflight  requests in flight, and the fact that each records on completion
"""
