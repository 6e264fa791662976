"""Lines of biosnoop, of bcc and of libbpf-tools: `TIME(s) COMM PID DISK T SECTOR BYTES LAT(ms)`.

A line is printed when a request completes: TIME is the time of its completion, LAT the time since
it was issued to the device, and QUE (option -Q) the time in the queue before.  A command may
contain blanks; a flush of the kernel has neither a disk nor bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hybridsim.traces.formats.event_text import SECTOR_BYTES, SECTOR_MAX, EventLines
from hybridsim.traces.formats.ftrace import parse_rwbs
from hybridsim.traces.formats.pairing import Action

HEAD = re.compile(
    rb"\s*TIME\(s\)\s+COMM\s+PID\s+DISK\s+T\s+SECTOR\s+BYTES\s+(QUE\(ms\)\s+)?LAT\(ms\)\s*"
)
HEAD_LINES = 10  # before it a tool may warn
LINE_BYTES_MAX = 1000
FIELDS = (
    rb"\s*+(?P<s>\d{1,9})\.(?P<us>\d{1,9})\s++(?P<command>\S.*?)\s+(?P<pid>\d{1,10})\s++"
    rb"(?:(?P<disk>[^\s\d]\S*+)\s++)?(?P<rwbs>[A-Z]{1,8})\s++(?P<sector>\d{1,20})\s++"
    rb"(?P<bytes>\d{1,15})\s++"
)
PLAIN = re.compile(FIELDS + rb"(?P<lat>\d{1,9}\.\d{1,6})\s*+")
QUEUED = re.compile(FIELDS + rb"(?P<que>\d{1,9}\.\d{1,6})\s++(?P<lat>\d{1,9}\.\d{1,6})\s*+")
MS = 10**6
START_NS = 3600 * 10**9  # the first completion is at 0: its request arrived before


def detect(head: bytes) -> bool:
    """Return whether one of the first lines has the names of biosnoop's columns."""
    return any(HEAD.fullmatch(line) for line in head.split(b"\n")[:HEAD_LINES])


class Lines(EventLines):
    """One pass over the lines; each is the events of one request."""

    format = "biosnoop text"

    _like: re.Pattern[bytes] | None = None  # once its head was there

    def _events_of(self, line: bytes) -> Sequence[tuple[int, ...]] | None:
        """Return the events of a line's request: queued (with -Q), issued and completed."""
        if self._like is None:
            if head := HEAD.fullmatch(line):
                self._like = QUEUED if head[1] else PLAIN
            return ()
        match = self._like.fullmatch(line) if len(line) < LINE_BYTES_MAX else None
        if match is None:
            return None if line.strip() else ()
        length, sector, pid = int(match["bytes"]), int(match["sector"]), int(match["pid"])
        if not length:
            return ()
        rwbs = parse_rwbs(match["rwbs"], length // SECTOR_BYTES)
        if rwbs is None or not match["disk"] or sector > SECTOR_MAX or length >> 40 or pid >> 31:
            return None
        device = match["disk"].decode("ascii", "backslashreplace")
        times = self._times_ns(match)
        self.first_ns = min(self.first_ns, *times.values())
        return [
            (time_ns, sector * SECTOR_BYTES, length, pid, 0, 0, int(action), *rwbs)
            for action, time_ns in times.items()
            if self.is_wanted(device, action, length)
        ]

    def _times_ns(self, match: re.Match[bytes]) -> dict[Action, int]:
        """Return the times of a line's events."""
        completed_ns = START_NS + int(match["s"]) * 10**9 + int(match["us"].ljust(9, b"0"))
        issued_ns = completed_ns - round(float(match["lat"]) * MS)
        times = {Action.ISSUE: issued_ns, Action.COMPLETE: completed_ns}
        if match.re is not QUEUED:
            return times
        return {Action.QUEUE: issued_ns - round(float(match["que"]) * MS)} | times
