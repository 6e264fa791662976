"""An access specification of Iometer, line by line as its .icf files have it, or from such a file.

A line is size, % of size, % reads, % random, delay, burst, align, reply.  As there, a request that
is not random goes on where the one before it ended, and each worker pauses for `delay` milliseconds
after `burst` requests.  Replies are of networks, and not made.  The rate says how fast requests
come; `ramp` and `run` give a depth its time, `depth = "1-512"` doubles it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BeforeValidator

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Requests
from hybridsim.workloads.draws import Draws, Ints, Weighted
from hybridsim.workloads.icf import COLUMNS, is_number
from hybridsim.workloads.load import Load, Places
from hybridsim.workloads.quantities import SHOWN, Depths, Time

EXAMPLE = "4096,100,100,100,0,1,4096,0"
MILLISECOND = 10**6
SECTOR = 512


class Line(NamedTuple):
    """One line of an access specification, as whole numbers."""

    size: int  # bytes
    of_size: int  # per cent of the requests
    reads: int  # per cent
    random: int  # per cent
    delay: int = 0  # ms
    burst: int = 1
    align: int = 0  # bytes; 0: sectors
    reply: int = 0


def _lines(said: Any) -> tuple[Line, ...]:
    texts = said.split(":") if isinstance(said, str) else said
    if not isinstance(texts, list) or not texts:
        raise ValueError(f"access is a list of lines as '{EXAMPLE}' ({', '.join(COLUMNS)})")
    found = []
    for text in texts:
        fields = [each.strip() for each in str(text).replace("/", ",").split(",")]
        if not 4 <= len(fields) <= 8 or not all(map(is_number, fields)):
            shown = repr(str(text)[:SHOWN])
            raise ValueError(f"{shown} is no line of an access specification: '{EXAMPLE}'")
        found.append(Line(*map(int, fields)))
    for line in found:
        if line.size < 1 or max(line.of_size, line.reads, line.random) > 100:
            raise ValueError(f"{line.size}: a size from 1 byte on, and shares up to 100")
        if line.reply or line.burst < 1:
            raise ValueError("replies are of networks: reply is 0; and a burst is 1 at least")
    if len({(line.delay, line.burst) for line in found if line.delay}) > 1 or (
        any(line.delay for line in found) and not all(line.delay for line in found)
    ):
        raise ValueError("delays are made where all lines have the same delay and burst")
    if sum(line.of_size for line in found) != 100:
        raise ValueError("the lines' % of size make 100 together")
    return tuple(found)


class Iometer(Load):
    """Accesses as specified; the span is what Iometer calls the maximum disk size."""

    kind: Literal["iometer"] = "iometer"
    access: Annotated[tuple[Line, ...], BeforeValidator(_lines)] = (Line(4096, 100, 100, 100),)
    depth: Depths | None = (1,)
    ramp: Time = 0
    run: Time = 60 * 10**9
    icf: str = ""  # a file that says all this
    spec: str = ""  # which of its access specifications; else all tests of the file

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Refuse what the access specification says otherwise."""
        yield from super().contradictions()
        for key in {"size", "read", "align", "step"} & self.model_fields_set:
            instead = "ramp and run say" if key == "step" else "the access lines say"
            yield key, f"{instead} this"
        if max(line.size for line in self.access) > self.span:
            yield "access", "a request does not fit into the span"
        if self.ramp + self.run == 0:
            yield "run", "a depth must last"
        if self.spec:
            yield "spec", "icf=FILE says where this access specification is"
        if self.access[0].delay and (self.flush_every or self.depth is None or len(self.depth) > 1):
            yield "access", "delays are made at one depth, without flushes"

    @property
    def step_ns(self) -> int:
        """Return how long a depth lasts."""
        return self.ramp + self.run

    def paused_ns(self, number: Ints) -> Ints:
        """Return how long the worker of each request has paused before it, in all."""
        line, depth = self.access[0], self.depth or (1,)
        done: Ints = number // depth[0] // line.burst
        return done * line.delay * MILLISECOND

    def places(self, seed: int) -> Places:
        """Return places, each by its line and the request before."""
        return Accesses(self)

    def fill(self, rows: Requests, places: Places, draws: Draws) -> None:
        """Choose a line for each request."""
        assert isinstance(places, Accesses)
        lines = np.array(self.access, np.int64)
        line = Weighted([each.of_size for each in self.access]).choose(draws, rows.rows)
        rows.length_bytes[:] = lines[line, COLUMNS.index("size")]
        reads = lines[line, COLUMNS.index("reads")] / 100
        rows.op[:] = np.where(draws.happens(reads, rows.rows), Op.READ, Op.WRITE)
        align = np.maximum(lines[line, COLUMNS.index("align")], SECTOR)
        jumps = draws.happens(lines[line, COLUMNS.index("random")] / 100, rows.rows)
        rows.offset_bytes[:] = places.next(draws, rows.length_bytes, align, jumps)


class Accesses:
    """Where the last request ended."""

    def __init__(self, load: Iometer) -> None:
        self._load = load
        self._end = 0

    def next(self, draws: Draws, length: Ints, align: Ints, jumps: Any) -> Ints:
        """Return offsets: anywhere for those that jump, else on from the request before."""
        span = self._load.span
        anywhere = draws.below((span - length) // align + 1, len(length)) * align
        ends = np.cumsum(length)
        begins = ends - length
        last = np.maximum.accumulate(np.where(jumps, np.arange(len(length)), -1))
        base = np.where(last < 0, self._end, anywhere[last] - begins[last])
        on = base + begins
        beyond = (on % span) + length > span
        found: Ints = np.where(jumps, anywhere, np.where(beyond, span - length, on % span))
        self._end = int(found[-1] + length[-1]) % span
        return found

    def offsets(self, draws: Draws, arrival_ns: Ints, length: Ints) -> Ints:
        """Return offsets of requests that all jump."""
        return self.next(draws, length, length * 0 + SECTOR, length >= 0)
