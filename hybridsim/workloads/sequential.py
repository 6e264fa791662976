"""Sequential streams through the span."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from hybridsim.workloads.draws import Draws, Ints, hashed
from hybridsim.workloads.load import KIB, Load
from hybridsim.workloads.quantities import Count, Share, Size, Sizes


class Sequential(Load):
    """Sequential streams, served round-robin; after `run` bytes a stream jumps elsewhere."""

    kind: Literal["sequential"] = "sequential"
    size: Sizes = ((128 * KIB, 100.0),)
    read: Share = 1.0
    streams: Count = 1
    run: Size | None = None  # bytes; default: the whole span, repeatedly

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject impossible runs and streams."""
        yield from super().contradictions()
        if self.run is not None and not self.size[0][0] <= self.run <= self.span:
            yield "run", "a run must be at least one request, and at most the span"
        if self.streams > self.span // max(size for size, _ in self.size):
            yield "streams", "there are more streams than requests in the span"

    def places(self, seed: int) -> Streams:
        """Return the offsets of the streams."""
        return Streams(self, seed)


class Streams:
    """The offsets of streams; holds the position of each."""

    def __init__(self, load: Sequential, seed: int) -> None:
        self._load = load
        self._seed = seed
        self._done = np.zeros(load.streams, np.int64)  # bytes
        self._turn = 0

    def offsets(self, draws: Draws, arrival_ns: Ints, length: Ints) -> Ints:
        """Return offsets."""
        offsets = np.empty(len(length), np.int64)
        streams = self._load.streams
        for first in range(min(streams, len(length))):
            stream = (self._turn + first) % streams
            mine = slice(first, None, streams)
            ends = self._done[stream] + np.cumsum(length[mine])
            offsets[mine] = self._placed(stream, ends - length[mine], length[mine])
            self._done[stream] = ends[-1]
        self._turn = (self._turn + len(length)) % streams
        return offsets

    def _placed(self, stream: int, done: Ints, length: Ints) -> Ints:
        load = self._load
        longest = max(size for size, _ in load.size)
        room = load.span - load.span % longest
        run = load.run or room
        if load.run is None:
            begin = done * 0 + room // longest * stream // load.streams * longest
        else:
            slots = (load.span - run) // load.align + 1
            numbers = hashed(done // run + (stream << 32), self._seed)
            begin = (numbers % np.uint64(slots)).astype(np.int64) * load.align
        within = done % run
        at: Ints = (begin + within) % room if load.run is None else begin + within
        return np.minimum(at, load.span - length)
