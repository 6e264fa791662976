"""What a worker keeps for its next point: requests of a trace, disks without their cache."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator

from hybridsim.requests.rows import Requests
from hybridsim.studies.disks_alone import Alone
from hybridsim.studies.sweep.named_trace import NamedTrace
from hybridsim.traces.summary import Summary
from hybridsim.traces.trace import CHUNK_ROWS, Trace, Watch

TRACES_MAX = 2  # at a time: points come grouped by trace
SHARE_OF_MEMORY = 4  # a worker keeps so small a part of what is free, shared by all cores


class Kept(Trace):
    """A trace whose requests stay in memory, if all of them fit."""

    def __init__(self, trace: Trace, room_bytes: int) -> None:
        """Keep no more than `room_bytes` of it."""
        super().__init__(trace.name, trace.format, trace._reader)
        self.alone = Alone()
        self._room_bytes = room_bytes
        self._chunks: list[Requests] | None = None
        self._summary: Summary | None = None

    def chunks(self, rows: int = CHUNK_ROWS) -> Iterator[Requests]:
        """Yield the requests: from the file for the first time, then from memory."""
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
        """Return the trace in numbers, which are counted once."""
        if self._summary is None:
            self._summary = super().summary(watch)
        return self._summary


@functools.lru_cache(maxsize=TRACES_MAX)
def kept(said: NamedTrace, digest: str, seed: int | None) -> Kept:
    """Return a trace, opened before if it is one of the last that were asked for."""
    return Kept(said.open(seed), free_bytes() // (SHARE_OF_MEMORY * (os.cpu_count() or 1)))


def free_bytes() -> int:
    """Return how much memory is free now."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
