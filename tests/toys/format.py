"""Lines of `nanoseconds/R or W/offset/length`, in order of time; offset and length in bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Findings, Requests, requests_with
from hybridsim.traces.formats.text import OneDevice, batched, lines

LINE = re.compile(rb"(\d{1,15})/([RW])/(\d{1,15})/([1-9]\d{0,9})")


def detect(head: bytes) -> bool:
    """Return whether the first line is such a line."""
    return bool(LINE.fullmatch(head.split(b"\n")[0].rstrip(b"\r")))


class Reader(OneDevice):
    """Such a file."""

    format, what = "slashes", "this format"

    def _parts(self, findings: Findings) -> Iterator[Requests]:
        for batch in batched(self._rows(findings)):
            arrival, op, offset, length = np.array(batch).T
            yield requests_with(
                len(batch), arrival_ns=arrival, op=op, offset_bytes=offset, length_bytes=length
            )

    def _rows(self, findings: Findings) -> Iterator[tuple[int, int, int, int]]:
        last_ns = 0
        for number, line in lines(self._source, findings):
            result = LINE.fullmatch(line)
            if result is None or int(result[1]) < last_ns:
                self._malformed.add(number, line)
                continue
            op = Op.READ if result[2] == b"R" else Op.WRITE
            last_ns = int(result[1])
            yield last_ns, int(op), int(result[3]), int(result[4])
