"""Lines of `nanoseconds/R or W/offset/length`, in order of time; offset and length in bytes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import UNKNOWN, Device, Findings, Requests, no_requests
from hybridsim.traces.formats.text import Malformed, OneDevice, lines

LINE = re.compile(rb"(\d{1,15})/([RW])/(\d{1,15})/([1-9]\d{0,9})")


def detect(head: bytes) -> bool:
    """Return whether the first line is such a line."""
    return bool(LINE.fullmatch(head.split(b"\n")[0].rstrip(b"\r")))


class Reader(OneDevice):
    """Each pass reads the file anew, all at once."""

    format, what = "slashes", "this format"

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Read the file and yield its requests."""
        malformed, rows, last_ns = Malformed(self._source), [], 0
        for number, line in lines(self._source, findings):
            result = LINE.fullmatch(line)
            if result is None or int(result[1]) < last_ns:
                malformed.add(number, line)
                continue
            op = Op.READ if result[2] == b"R" else Op.WRITE
            rows.append((int(result[1]), int(op), int(result[3]), int(result[4])))
            last_ns = rows[-1][0]
        if not rows:
            raise malformed.refuse("slashes")
        requests, columns = no_requests(len(rows)), np.array(rows).T
        for name, column in zip(("arrival_ns", "op", "offset_bytes", "length_bytes"), columns):
            getattr(requests, name)[:] = column
        for column in (requests.stream, requests.dispatch_ns, requests.complete_ns):
            column[:] = UNKNOWN
        self.devices = [Device("0", len(rows), int(requests.length_bytes.sum()), chosen=True)]
        malformed.report(findings)
        yield requests
