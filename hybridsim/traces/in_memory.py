"""A trace of requests that are in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybridsim.requests.rows import UNKNOWN, Device, Findings, Requests
from hybridsim.traces.trace import WORKLOAD, Trace


class Rows:
    """Hands out requests as the reader of a file does."""

    origin_unix_ns: int | None = None

    def __init__(self, name: str, rows: Requests) -> None:
        """Keep the requests of the only device."""
        self.rows = rows
        self.devices = [Device(name, rows.rows, int(rows.length_bytes.sum()), True)]

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Yield all requests."""
        yield self.rows


def in_memory(name: str, rows: Requests, is_generated: bool = False) -> Trace:
    """Return requests as a trace that begins at 0."""
    first_ns = int(rows.arrival_ns[0])

    def since(time_ns: np.ndarray) -> np.ndarray:
        return np.where(time_ns == UNKNOWN, UNKNOWN, time_ns - first_ns)

    rows = rows._replace(
        arrival_ns=rows.arrival_ns - first_ns,
        dispatch_ns=since(rows.dispatch_ns),
        complete_ns=since(rows.complete_ns),
    )
    return Trace(name, WORKLOAD if is_generated else "captured", Rows(name, rows))
