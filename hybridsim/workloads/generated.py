"""Requests of several loads as one stream in order of arrival, in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hybridsim.requests.rows import Requests, joined, no_requests
from hybridsim.workloads.load import LATEST_NS
from hybridsim.workloads.workload import Workload


def generate(workload: Workload) -> Iterator[Requests]:
    """Yield the requests of a workload in order of arrival, in parts of any size."""
    streams = [load.requests(workload.seed, number) for number, load in enumerate(workload.loads)]
    remaining = workload.requests_max
    for part in merged(streams):
        rows = part
        if workload.duration is not None:
            rows = rows.between(0, int(np.searchsorted(rows.arrival_ns, workload.duration)))
        is_last = rows.rows < part.rows
        if remaining is not None:
            rows = rows.between(0, remaining)
            remaining -= rows.rows
        if rows.rows:
            yield rows
        if is_last or remaining == 0:
            return


def merged(streams: list[Iterator[Requests]]) -> Iterator[Requests]:
    """Merge streams by (arrival, number of the stream, order within it); each in its own order."""
    if len(streams) == 1:
        yield from streams[0]
        return
    held = [no_requests()] * len(streams)
    running = [True] * len(streams)
    while any(running) or any(rows.rows for rows in held):
        for number, stream in enumerate(streams):
            while running[number] and _is_flat(held[number]):
                more = next(stream, None)
                running[number] = more is not None
                held[number] = joined([held[number], more]) if more is not None else held[number]
        ends = [rows.arrival_ns[-1] for rows, more in zip(held, running) if more]
        until = min(ends) if ends else LATEST_NS
        cut = [int(np.searchsorted(rows.arrival_ns, until)) for rows in held]
        ready = joined([rows.between(0, at) for rows, at in zip(held, cut)])
        held = [rows.between(at, rows.rows) for rows, at in zip(held, cut)]
        order = np.argsort(ready.arrival_ns, kind="stable")
        yield Requests._make(column[order] for column in ready)


def _is_flat(rows: Requests) -> bool:
    """Return whether all rows arrive at the same time, so that further rows may do so too."""
    return rows.rows == 0 or rows.arrival_ns[0] == rows.arrival_ns[-1]
