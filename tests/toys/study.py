"""How many requests a trace has."""

from __future__ import annotations

from hybridsim.traces.trace import Trace


def requests(trace: Trace) -> int:
    """Return the number of requests of a trace."""
    return sum(chunk.rows for chunk in trace.chunks())
