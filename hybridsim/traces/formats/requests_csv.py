"""The CSV format of `hybridsim trace convert`: one line per request."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import DTYPES, UNKNOWN, Findings, Requests
from hybridsim.traces.formats.text import OneDevice, batched, lines, report_disorder, write_lines

HEADER = "arrival_ns,op,offset,length,dispatch_ns,complete_ns"
LETTERS = {
    Op.READ: "R",
    Op.WRITE: "W",
    Op.DISCARD: "D",
    Op.FLUSH: "F",
    Op.WRITE_ZEROES: "Z",
}
OPS = {letter.encode(): int(op) for op, letter in LETTERS.items()}
NUMBER_MAX = 1 << 61


def detect(head: bytes) -> bool:
    """Return whether the file begins with the header line."""
    return head.split(b"\n", 1)[0].strip() == HEADER.encode()


def write(chunks: Iterator[Requests], put: Callable[[str], object]) -> int:
    """Write requests as CSV; return their number."""

    def columns(chunk: Requests, letter: NDArray[Any]) -> list[NDArray[Any]]:
        times = [column.astype(object) for column in (chunk.dispatch_ns, chunk.complete_ns)]
        for each in times:
            each[each == UNKNOWN] = ""
        return [chunk.arrival_ns, letter, chunk.offset_bytes, chunk.length_bytes, *times]

    put(HEADER + "\n")
    return write_lines(chunks, put, "%d,%s,%d,%d,%s,%s\n", LETTERS, columns)


class Reader(OneDevice):
    """A converted trace."""

    format, what = "csv", "a CSV file"

    def _parts(self, findings: Findings) -> Iterator[Requests]:
        self._disorder = 0
        yield from map(in_columns, batched(self._rows(findings)))

    def _rows(self, findings: Findings) -> Iterator[tuple[int, ...]]:
        last_ns = 0
        for number, line in lines(self._source, findings):
            row = parse(line)
            if row is None:
                if line.strip() and not (number == 1 and line.strip() == HEADER.encode()):
                    self._malformed.add(number, line)
                continue
            self._disorder += row[0] < last_ns
            last_ns = max(last_ns, row[0])
            times = (each if each == UNKNOWN else max(each, last_ns) for each in row[-2:])
            yield (last_ns, *row[1:-2], *times)

    def _report(self, findings: Findings) -> None:
        report_disorder(findings, self._disorder, "sort the file by its first column")


def parse(line: bytes) -> tuple[int, ...] | None:
    """Return the columns of Requests for a line, or None if it is malformed."""
    fields = [field.strip() for field in line.split(b",")]
    if len(fields) != 6 or fields[1].upper() not in OPS:
        return None
    numbers = [fields[0], fields[2], fields[3], fields[4] or b"-1", fields[5] or b"-1"]
    if not all(n.isdigit() or n == b"-1" for n in numbers) or any(len(n) > 19 for n in numbers):
        return None
    arrival, offset, length, dispatch, complete = map(int, numbers)
    if min(arrival, offset, length) < 0 or max(map(int, numbers)) > NUMBER_MAX:
        return None
    return (arrival, offset, length, OPS[fields[1].upper()], 0, 0, UNKNOWN, dispatch, complete)


def in_columns(batch: Sequence[tuple[int, ...]]) -> Requests:
    """Convert rows into columns."""
    return Requests._make(np.array(column, dtype) for column, dtype in zip(zip(*batch), DTYPES))
