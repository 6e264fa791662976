"""fio's I/O logs, versions 2 (no times) and 3 (microseconds from the start of the run)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import TraceError
from hybridsim.requests.rows import UNKNOWN, Device, Findings, Requests
from hybridsim.traces.formats.columns import BOM
from hybridsim.traces.formats.files import Source
from hybridsim.traces.formats.requests_csv import in_columns
from hybridsim.traces.formats.text import Malformed, batched, lines, no_dispatch, only

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
    int(Op.READ): "read",
    int(Op.WRITE): "write",
    int(Op.DISCARD): "trim",
    int(Op.FLUSH): "sync",
    int(Op.WRITE_ZEROES): "write",
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
    rows = last_us = 0
    for chunk in chunks:
        last_us = int(chunk.arrival_ns[-1]) // 1000
        columns = (chunk.arrival_ns // 1000, chunk.op, chunk.offset_bytes, chunk.length_bytes)
        put(
            "".join(
                f"{time_us} {FILE} {WORDS[op]} {offset} {length}\n"
                for time_us, op, offset, length in zip(*(column.tolist() for column in columns))
            )
        )
        rows += chunk.rows
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
        rows = (
            (time_ns, offset, length, op, 0, index, UNKNOWN, UNKNOWN, UNKNOWN)
            for name, time_ns, op, offset, length in log.requests()
            if name == self._chosen
        )
        yield from map(in_columns, batched(rows))
        self._report(log, findings)

    def _report(self, log: Lines, findings: Findings) -> None:
        log.malformed.report(findings)
        if self._version == 2:
            findings.add(
                "no-times",
                "version 2 logs record waits, not times; requests between waits arrive together",
                fix="replay with --mode closed, or log with fio 3.30 or later (version 3)",
            )
        findings.count(
            log.disorder,
            "disorder",
            "requests are earlier than a preceding one and were moved to its time",
            "none needed for a few: several threads wrote the log",
        )
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
        self._version = version
        self._lines = lines(source, findings)
        self._now_ns = 0
        self._stamp_ns = 0  # of the line, version 3
        self._first_ns: int | None = None

    def requests(self) -> Iterator[tuple[str, int, int, int, int]]:
        """Yield (file, time, op, offset, length)."""
        for number, line in self._lines:
            fields = line.split()
            if not fields or (number == 1 and FIRST_LINE.match(line)):
                continue
            if not self._advance(fields):
                self.malformed.add(number, line)
                continue
            name, action, *numbers = fields
            if action in FILE_ACTIONS and not numbers:
                continue
            if action == b"wait" or OPS.get(action) == Op.FLUSH:  # some tools write fewer numbers
                numbers += [b"0"] * (2 - len(numbers))
            values = [int(n) for n in numbers if n.isdigit() and len(n) < 19]
            if len(values) != 2 or (action not in OPS and action != b"wait"):
                self.malformed.add(number, line)
                continue
            if action == b"wait":
                self._wait(values[0])
                continue
            yield self._request(name, OPS[action], *values)

    def _advance(self, fields: list[bytes]) -> bool:
        """Remove the time from a version 3 line; return whether enough fields remain."""
        if self._version == 3:
            stamp = fields.pop(0)
            if not stamp.isdigit() or len(stamp) > 15:
                return False
            self._stamp_ns = int(stamp) * 1000
        return len(fields) >= 2

    def _wait(self, wait_us: int) -> None:
        if self._version == 2:
            self._now_ns = min(self._now_ns + wait_us * 1000, NUMBER_MAX)

    def _request(
        self, name: bytes, op: int, offset: int, length: int
    ) -> tuple[str, int, int, int, int]:
        if self._version == 3:
            if self._first_ns is None:
                self._first_ns = self._stamp_ns
            self.disorder += self._stamp_ns - self._first_ns < self._now_ns
            self._now_ns = max(self._now_ns, self._stamp_ns - self._first_ns)
        text = name.decode("utf-8", "backslashreplace")
        if op == Op.FLUSH:
            offset = length = 0
        count, size = self.seen.get(text, (0, 0))
        self.seen[text] = (count + 1, size + length)
        return text, self._now_ns, int(op), offset, length
