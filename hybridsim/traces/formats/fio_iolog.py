"""fio's I/O logs, versions 2 (no times) and 3 (microseconds from the start of the run)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import TraceError
from hybridsim.requests.rows import Device, Findings, Requests, requests_with
from hybridsim.traces.formats.columns import BOM
from hybridsim.traces.formats.files import Source
from hybridsim.traces.formats.text import (
    Malformed,
    batched,
    lines,
    no_dispatch,
    only,
    report_disorder,
    write_lines,
)

FIRST_LINE = re.compile(rb"fio version (\d{1,9}) iolog")
OPS = {
    b"read": Op.READ,
    b"write": Op.WRITE,
    b"trim": Op.DISCARD,
    b"sync": Op.FLUSH,
    b"datasync": Op.FLUSH,
    b"sync_file_range": Op.FLUSH,
    b"syncfs": Op.FLUSH,
}
WORDS = {
    Op.READ: "read",
    Op.WRITE: "write",
    Op.DISCARD: "trim",
    Op.FLUSH: "sync",
    Op.WRITE_ZEROES: "write",
}
FILE = "trace"
FILE_ACTIONS = (b"add", b"open", b"close")
NUMBER_MAX = 1 << 61


def detect(head: bytes) -> bool:
    """Return whether the file begins with the first line of a fio I/O log."""
    return FIRST_LINE.match(head) is not None


def write(chunks: Iterator[Requests], put: Callable[[str], object]) -> int:
    """Write requests as a log of version 3 for one file named FILE; return their number.

    With fio, replay_redirect selects the device to replay it on.
    """
    put(f"fio version 3 iolog\n0 {FILE} add\n0 {FILE} open\n")
    last_us = 0

    def columns(chunk: Requests, word: NDArray[Any]) -> list[NDArray[Any]]:
        nonlocal last_us
        last_us = int(chunk.arrival_ns[-1]) // 1000
        return [chunk.arrival_ns // 1000, word, chunk.offset_bytes, chunk.length_bytes]

    rows = write_lines(chunks, put, f"%d {FILE} %s %d %d\n", WORDS, columns)
    put(f"{last_us} {FILE} close\n")
    return rows


class Reader:
    """A log; each pass reads the file again.  Its files are the devices."""

    origin_unix_ns = None

    def __init__(self, sources: list[Source], device: str | None, use_dispatch: bool) -> None:
        self._source = only(sources, "fio iolog")
        no_dispatch(self._source.name, use_dispatch)
        match = FIRST_LINE.match(self._source.head().removeprefix(BOM))
        self._version = int(match[1]) if match else 0
        if self._version not in (2, 3):
            raise TraceError(
                f"{self._source.name}: fio I/O log of version {self._version or 'unknown'}; "
                "supported are 2 and 3, which fio 2.0 and later write (write_iolog=FILE)"
            )
        survey = Lines(self._source, self._version, Findings())
        for _ in survey.requests():
            pass
        if not survey.seen:
            raise survey.malformed.refuse("fio iolog")
        names = list(survey.seen)
        self._chosen = device or max(names, key=lambda name: survey.seen[name][1])
        if self._chosen not in names:
            raise TraceError(
                f"{self._source.name}: contains no file {device!r}, only {', '.join(names)}: "
                "specify one with --device"
            )
        self._asked = device is not None
        self.devices = [Device(name, *survey.seen[name], name == self._chosen) for name in names]

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Read the log and yield the requests of the chosen file."""
        log = Lines(self._source, self._version, findings)
        index = [device.name for device in self.devices].index(self._chosen)
        for batch in batched(row for name, *row in log.requests() if name == self._chosen):
            arrival_ns, offset_bytes, length_bytes, op = np.array(batch).T
            yield requests_with(
                len(batch),
                arrival_ns=arrival_ns,
                offset_bytes=offset_bytes,
                length_bytes=length_bytes,
                op=op,
                device=index,
            )
        self._report(log, findings)

    def _report(self, log: Lines, findings: Findings) -> None:
        log.malformed.report(findings)
        if self._version == 2:
            findings.add(
                "no-times",
                "version 2 logs record waits, not times; requests between waits arrive together",
                fix="replay with --mode closed, or log with fio 3.30 or later (version 3)",
            )
        fix = "none needed for a few: several threads wrote the log"
        report_disorder(findings, log.disorder, fix)
        others = [device.name for device in self.devices if not device.chosen]
        if others and not self._asked:
            findings.add(
                "several-devices",
                f"only {self._chosen} is replayed",
                count=len(self.devices),
                place=f"also in the log: {', '.join(others[:8])}",
                fix="choose another with --device",
            )


class Lines:
    """One pass over the lines of a log."""

    def __init__(self, source: Source, version: int, findings: Findings) -> None:
        self.malformed = Malformed(source)
        self.seen: dict[str, tuple[int, int]] = {}  # file: requests, bytes
        self.disorder = 0
        self._has_times = version == 3
        self._lines = lines(source, findings)

    def requests(self) -> Iterator[tuple[str, int, int, int, int]]:
        """Yield (file, time, offset, length, op)."""
        now_ns = 0
        first_us = -1  # of the first request
        for number, line in self._lines:
            fields = line.split()
            if not fields or (number == 1 and FIRST_LINE.match(line)):
                continue
            stamp = fields.pop(0) if self._has_times else b"0"
            numbers = numbers_of(fields) if stamp.isdigit() and len(stamp) <= 15 else None
            if numbers is None:
                self.malformed.add(number, line)
                continue
            action = fields[1]
            if not numbers:
                continue
            if action == b"wait":
                if not self._has_times:
                    now_ns = min(now_ns + numbers[0] * 1000, NUMBER_MAX)
                continue
            if self._has_times:
                first_us = int(stamp) if first_us < 0 else first_us
                time_ns = (int(stamp) - first_us) * 1000
                self.disorder += time_ns < now_ns
                now_ns = max(now_ns, time_ns)
            offset, length = (0, 0) if OPS[action] == Op.FLUSH else numbers
            name = fields[0].decode("utf-8", "backslashreplace")
            count, size = self.seen.get(name, (0, 0))
            self.seen[name] = (count + 1, size + length)
            yield name, now_ns, offset, length, int(OPS[action])


def numbers_of(fields: list[bytes]) -> list[int] | None:
    """Return the two numbers of a line, none of one that opens a file; None if it is malformed."""
    if len(fields) < 2:
        return None
    _, action, *numbers = fields
    if action in FILE_ACTIONS and not numbers:
        return []
    if action == b"wait" or OPS.get(action) == Op.FLUSH:  # some tools write fewer numbers
        numbers += [b"0"] * (2 - len(numbers))
    values = [int(n) for n in numbers if n.isdigit() and len(n) < 19]
    return values if len(values) == 2 and (action in OPS or action == b"wait") else None
