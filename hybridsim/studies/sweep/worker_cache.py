"""Data that a worker keeps for its next point: requests of a trace, results of the disks alone."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

from hybridsim.requests.rows import Requests
from hybridsim.studies.disks_alone import Alone, SharedAlone
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.traces.summary import Summary
from hybridsim.traces.trace import CHUNK_ROWS, Trace, Watch

TRACES_MAX = 2  # in memory: points are grouped by trace
SHARE_OF_MEMORY = 4  # a worker uses 1/4 of its core's share of the free memory


class Kept(Trace):
    """A trace whose requests stay in memory if they fit."""

    def __init__(self, trace: Trace, room_bytes: int) -> None:
        """Keep at most `room_bytes` of requests."""
        super().__init__(trace.name, trace.format, trace._reader)
        self.alone = Alone()
        self._room_bytes = room_bytes
        self._chunks: list[Requests] | None = None
        self._summary: Summary | None = None

    def chunks(self, rows: int = CHUNK_ROWS) -> Iterator[Requests]:
        """Yield the requests: from the file the first time, then from memory."""
        if rows != CHUNK_ROWS:
            yield from super().chunks(rows)
        elif self._chunks is not None:
            yield from self._chunks
        else:
            yield from self._first_pass()

    def _first_pass(self) -> Iterator[Requests]:
        chunks: list[Requests] = []
        held = 0
        for chunk in super().chunks():
            held += sum(column.nbytes for column in chunk)
            if held <= self._room_bytes:
                chunks.append(chunk)
            else:
                chunks.clear()
            yield chunk
        if held <= self._room_bytes:
            self._chunks = chunks

    def summary(self, watch: Watch = iter) -> Summary:
        """Return the summary of the trace, which is computed once."""
        if self._summary is None:
            self._summary = super().summary(watch)
        return self._summary


@functools.lru_cache(maxsize=TRACES_MAX)
def kept(trace: NamedTrace, digest: str, seed: int | None) -> Kept:
    """Return an open trace; the last TRACES_MAX ones are reused."""
    return Kept(trace.open(seed), free_bytes() // (SHARE_OF_MEMORY * (os.cpu_count() or 1)))


@functools.lru_cache(maxsize=1)
def shared_alone(folder: str) -> SharedAlone:
    """Return the results of the disks alone that the processes share in a folder."""
    return SharedAlone(folder)


def free_bytes() -> int:
    """Return the free memory in bytes."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
