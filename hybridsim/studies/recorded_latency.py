"""The latencies recorded in a trace."""

from __future__ import annotations

from hybridsim.foundation.codes import Op
from hybridsim.foundation.histogram import Distribution
from hybridsim.requests.rows import UNKNOWN, Requests


class RecordedLatencies:
    """The distribution of the times from arrival to completion of reads and writes."""

    def __init__(self) -> None:
        self.latency = Distribution()

    def add(self, chunk: Requests) -> None:
        """Add a chunk of requests."""
        moves = (chunk.op <= Op.WRITE) | (chunk.op == Op.WRITE_ZEROES)
        moves &= (chunk.length_bytes > 0) & (chunk.complete_ns != UNKNOWN)
        latency_ns = chunk.complete_ns - chunk.arrival_ns
        self.latency += Distribution.of(latency_ns[moves & (latency_ns >= 0)])
