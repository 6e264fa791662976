"""Lines of text traces: read in blocks and numbered; malformed lines are counted and shown."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import TraceError
from hybridsim.requests.rows import Device, Findings, Requests
from hybridsim.traces.formats.columns import BOM
from hybridsim.traces.formats.files import Source

BLOCK_BYTES = 1 << 20
LINE_BYTES_MAX = 1 << 16
SHOWN = 3
BATCH = 1 << 14  # rows that are converted to columns at a time

Parsed = TypeVar("Parsed")


def lines(source: Source, findings: Findings) -> Iterator[tuple[int, bytes]]:
    """Yield (number, line without its end); lines beyond LINE_BYTES_MAX come in pieces.

    The byte order mark at the start of a file is removed.
    """
    number = 0
    with source.open(findings) as stream:
        rest = b""
        while block := stream.read(BLOCK_BYTES):
            *whole, rest = (rest + block).split(b"\n")
            for line in whole:
                number += 1
                line = line.removeprefix(BOM) if number == 1 else line
                yield number, line.rstrip(b"\r")
            if len(rest) > LINE_BYTES_MAX:
                yield number + 1, rest
                rest = b""
        if rest:
            rest = rest if number else rest.removeprefix(BOM)
            yield number + 1, rest.rstrip(b"\r")


class Malformed:
    """Counts malformed lines, and keeps the first three."""

    def __init__(self, source: Source, mend: str = "try another --format") -> None:
        self._source = source
        self._mend = mend
        self._count = 0
        self._shown: list[str] = []

    def add(self, number: int, line: bytes) -> None:
        """Note one line."""
        self._count += 1
        if len(self._shown) < SHOWN:
            text = line[:60].decode("ascii", "backslashreplace")
            self._shown.append(f"line {number:,}: {text!r}")

    def add_unseen(self, count: int) -> None:
        """Note lines that are not shown."""
        self._count += count

    def report(self, findings: Findings) -> None:
        """Add the malformed lines to the findings."""
        findings.count(
            self._count,
            "malformed",
            "malformed lines were skipped",
            f"none needed for a few; otherwise {self._mend}",
            f"{self._source.name} " + "; ".join(self._shown),
        )

    def refuse(self, format: str) -> TraceError:
        """Return the error for a file without a valid line."""
        seen = f", for example {self._shown[0]}" if self._shown else ""
        return TraceError(
            f"{self._source.name}: contains no request in the format {format}{seen}; {self._mend}"
        )

    def too_many(self, lines: int, format: str) -> TraceError:
        """Return the error for a file in which most lines are malformed."""
        return TraceError(
            f"{self._source.name}: {self._count:,} of {lines:,} lines are malformed as {format}, "
            f"for example {self._shown[0]}; {self._mend}"
        )


def only(sources: list[Source], format: str) -> Source:
    """Return the one source of a text format."""
    if len(sources) != 1:
        raise TraceError(
            f"{sources[1].name}: the format {format} is read from one file at a time: specify one"
        )
    return sources[0]


def no_dispatch(name: str, use_dispatch: bool) -> None:
    """Raise TraceError for --use-dispatch with a format that has no issue events."""
    if use_dispatch:
        raise TraceError(f"{name}: --use-dispatch needs a capture with issue events: remove it")


def write_lines(
    chunks: Iterable[Requests],
    put: Callable[[str], object],
    template: str,
    words: Mapping[Op, str],
    columns: Callable[[Requests, NDArray[Any]], Sequence[NDArray[Any]]],
) -> int:
    """Write a line by a template for each request whose operation has a word; return their number.

    `columns` makes its fields of requests and the words of their operations.
    """
    rows = 0
    table = np.array([words.get(op) for op in Op], object)
    for chunk in chunks:
        known = chunk if len(words) == len(Op) else chunk.where(np.isin(chunk.op, list(words)))
        values = [column.tolist() for column in columns(known, table[known.op])]
        put("".join(map(template.__mod__, zip(*values))))
        rows += known.rows
    return rows


def batched(rows: Iterable[Parsed]) -> Iterator[list[Parsed]]:
    """Yield BATCH rows at a time."""
    rows = iter(rows)
    while batch := list(islice(rows, BATCH)):
        yield batch


def report_limits(findings: Findings, has_times: bool, has_ops: bool, is_spread: bool) -> None:
    """Add the findings of data that a table does not contain."""
    if not has_times:
        findings.add(
            "no-times",
            "there is no column of times: all requests arrive at time 0",
            fix="replay with --mode closed; hits and mrc need no times",
        )
    if not has_ops:
        findings.add(
            "all-reads",
            "there is no column of directions: all requests are reads",
            fix="none needed",
        )
    if is_spread:
        findings.add(
            "whole-seconds",
            "times have a resolution of 1 s: the requests of each second are spread evenly over it",
            fix="replay with --mode closed; hits and mrc need no times",
        )


def report_disorder(findings: Findings, count: int, fix: str) -> None:
    """Add the requests that were earlier than one before them."""
    text = "requests are earlier than a preceding one and were moved to its time"
    findings.count(count, "disorder", text, fix)


class OneDevice(ABC):
    """A reader of a file that has one device and no issue events; each pass reads it again."""

    format: ClassVar[str]
    what: ClassVar[str]  # the kind of trace, in words
    may_be_empty: ClassVar[bool] = False
    origin_unix_ns: int | None = None

    def __init__(self, sources: list[Source], device: str | None, use_dispatch: bool) -> None:
        self._source = only(sources, self.format)
        self.devices = [Device("0", 0, 0, chosen=True)]
        if device not in (None, "0"):
            raise TraceError(
                f"{self._source.name}: {self.what} has one device, named 0: remove --device"
            )
        no_dispatch(self._source.name, use_dispatch)

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Read the file and yield its requests."""
        self._malformed = Malformed(self._source)
        rows = size = 0
        for part in self._parts(findings):
            rows += part.rows
            size += int(part.length_bytes.sum())
            yield part
        if not rows and not self.may_be_empty:
            raise self._malformed.refuse(self.format)
        self.devices = [Device("0", rows, size, chosen=True)]
        self._malformed.report(findings)
        self._report(findings)

    @abstractmethod
    def _parts(self, findings: Findings) -> Iterator[Requests]:
        """Yield the requests, and note malformed lines."""

    def _report(self, findings: Findings) -> None:  # noqa: B027 - most formats have none
        """Add findings of a pass, other than malformed lines."""
