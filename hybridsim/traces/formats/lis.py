"""Block access lists of the ARC paper: `start count ignored number`, in 512-byte blocks.

N. Megiddo, D. S. Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003: OLTP, P1
to P14 and others.  They contain no times and no directions: all are reads, at time 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Findings, Requests, requests_with
from hybridsim.traces.formats.columns import SECTOR_BYTES
from hybridsim.traces.formats.text import OneDevice, batched, lines

FIELDS = 4
DIGITS_MAX = 15
LINES_SEEN = 20


def detect(head: bytes) -> bool:
    """Return whether the first lines are four numbers, the last counting the lines, or two zeros.

    Other tables have four numbers too, such as a time, an offset, a length and a direction.
    """
    first = head.split(b"\n")[: LINES_SEEN + 1]
    whole = [line for line in first[:-1] if line.strip()]
    if not whole or any(parse(line) is None for line in whole):
        return False
    ignored, numbers = zip(*(map(int, line.split()[2:]) for line in whole))
    counted = all(after == before + 1 for before, after in pairwise(numbers))
    return counted or not any(ignored + numbers)


def parse(line: bytes) -> tuple[int, int] | None:
    """Return start and count in blocks, or None if the line is malformed."""
    fields = line.split()
    if len(fields) != FIELDS or not all(f.isdigit() and len(f) <= DIGITS_MAX for f in fields):
        return None
    start, count = int(fields[0]), int(fields[1])
    return (start, count) if count > 0 else None


class Reader(OneDevice):
    """A list."""

    format, what = "lis", "a list"

    def _parts(self, findings: Findings) -> Iterator[Requests]:
        for batch in batched(self._rows(findings)):
            start, count = np.array(batch).T
            yield requests_with(
                len(batch),
                offset_bytes=start * SECTOR_BYTES,
                length_bytes=count * SECTOR_BYTES,
                op=Op.READ,
            )

    def _rows(self, findings: Findings) -> Iterator[tuple[int, int]]:
        for number, line in lines(self._source, findings):
            row = parse(line)
            if row is not None:
                yield row
            elif line.strip():
                self._malformed.add(number, line)

    def _report(self, findings: Findings) -> None:
        findings.add(
            "no-times",
            "the list has no times and no directions: all requests are reads and arrive at time 0",
            fix="replay with --mode closed; hits and mrc need no times",
        )
