"""Iometer access specification, from lines as in its .icf files, or from such a file.

A line is size, % of size, % reads, % random, delay, burst, align, reply.  As in Iometer, a request
that is not random starts where the preceding one ended, and each worker pauses for `delay` ms after
`burst` requests.  Replies (of networks) are not supported.  `rate` is the rate of requests; `ramp`
and `run` set the time per depth, and `depth = "1-512"` doubles it step by step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from pydantic import BeforeValidator

from hybridsim.foundation.codes import Op
from hybridsim.foundation.toml.table import Time
from hybridsim.requests.rows import Requests
from hybridsim.workloads.draws import Draws, Ints, Weighted
from hybridsim.workloads.load import Load
from hybridsim.workloads.quantities import SHOWN, Depths

EXAMPLE = "4096,100,100,100,0,1,4096,0"
MILLISECOND = 10**6
SECTOR = 512
DIGITS = 15  # maximum digits of a number: enough for 30 years in us, a PB in bytes


class Line(NamedTuple):
    """One line of an access specification, as whole numbers."""

    size: int  # bytes
    of_size: int  # percent of the requests
    reads: int  # percent
    random: int  # percent
    delay: int = 0  # ms
    burst: int = 1
    align: int = 0  # bytes; 0: sectors
    reply: int = 0


def is_number(word: str) -> bool:
    """Return whether a word is an integer of at most DIGITS digits."""
    return word.isascii() and word.isdigit() and len(word) <= DIGITS


def _lines(value: Any) -> tuple[Line, ...]:
    texts = value.split(":") if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts:
        raise ValueError(
            f"access must be a list of lines, as '{EXAMPLE}' ({', '.join(Line._fields)})"
        )
    lines = []
    for text in texts:
        fields = [each.strip() for each in str(text).replace("/", ",").split(",")]
        if not 4 <= len(fields) <= 8 or not all(map(is_number, fields)):
            shown = repr(str(text)[:SHOWN])
            raise ValueError(f"{shown} is not a line of an access specification, as '{EXAMPLE}'")
        lines.append(Line(*map(int, fields)))
    for line in lines:
        if line.size < 1 or max(line.of_size, line.reads, line.random) > 100:
            raise ValueError(f"{line.size}: a size must be at least 1 byte, and shares at most 100")
        if line.reply or line.burst < 1:
            raise ValueError("reply must be 0 (networks are not supported), and burst at least 1")
    if len({(line.delay, line.burst) for line in lines if line.delay}) > 1 or (
        any(line.delay for line in lines) and not all(line.delay for line in lines)
    ):
        raise ValueError("delays are only supported if all lines have the same delay and burst")
    if sum(line.of_size for line in lines) != 100:
        raise ValueError("the % of size of all lines must add up to 100")
    return tuple(lines)


class Iometer(Load):
    """Access specifications of Iometer; span is Iometer's maximum disk size."""

    kind: Literal["iometer"] = "iometer"
    access: Annotated[tuple[Line, ...], BeforeValidator(_lines)] = (Line(4096, 100, 100, 100),)
    depth: Depths | None = (1,)
    ramp: Time = 0
    run: Time = 60 * 10**9
    icf: str = ""  # a file with all these values
    spec: str = ""  # one access specification of the file; else all its tests

    def contradictions(self) -> Iterator[tuple[str, str]]:
        """Reject keys that contradict the access specification."""
        yield from super().contradictions()
        for key in {"size", "read", "align", "step"} & self.model_fields_set:
            instead = "ramp and run" if key == "step" else "the access lines"
            yield key, f"{key} is set by {instead}"
        if max(line.size for line in self.access) > self.span:
            yield "access", "a request does not fit into the span"
        if self.ramp + self.run == 0:
            yield "run", "ramp + run must be greater than 0"
        if self.spec:
            yield "spec", "spec requires icf=FILE, the file of the access specification"
        if self.access[0].delay and (self.flush_every or self.depth is None or len(self.depth) > 1):
            yield "access", "delays require a single depth, and no flushes"

    @property
    def step_ns(self) -> int:
        """Return the time per depth in ns."""
        return self.ramp + self.run

    def paused_ns(self, number: Ints) -> Ints:
        """Return the total pause in ns of the worker before each request."""
        line, depth = self.access[0], self.depth or (1,)
        done: Ints = number // depth[0] // line.burst
        return done * line.delay * MILLISECOND

    def places(self, seed: int) -> Callable[[Draws, Ints, Ints, Any], Ints]:
        """Return a function that returns offsets of requests, with their lengths and alignments.

        They are random where `jumps`, else the end of the preceding request.
        """
        span, last_end = self.span, 0

        def offsets(draws: Draws, length: Ints, align: Ints, jumps: Any) -> Ints:
            nonlocal last_end
            anywhere = draws.below((span - length) // align + 1, len(length)) * align
            ends = np.cumsum(length)
            begins = ends - length
            last = np.maximum.accumulate(np.where(jumps, np.arange(len(length)), -1))
            on = np.where(last < 0, last_end, anywhere[last] - begins[last]) + begins
            beyond = (on % span) + length > span
            offset = np.where(jumps, anywhere, np.where(beyond, span - length, on % span))
            last_end = int(offset[-1] + length[-1]) % span
            return offset

        return offsets

    def fill(self, rows: Requests, places: Any, draws: Draws) -> None:
        """Draw an access line for each request."""
        lines = np.array(self.access, np.int64)
        line = Weighted([each.of_size for each in self.access]).choose(draws, rows.rows)
        size, _, reads, random, _, _, align, _ = lines[line].T
        rows.length_bytes[:] = size
        rows.op[:] = np.where(draws.happens(reads / 100, rows.rows), Op.READ, Op.WRITE)
        jumps = draws.happens(random / 100, rows.rows)
        rows.offset_bytes[:] = places(draws, size, np.maximum(align, SECTOR), jumps)
