"""The default text output of blkparse(1), also with the durations that its option -t adds."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hybridsim.foundation.codes import Flag, Op
from hybridsim.traces.formats.columns import COMMENT
from hybridsim.traces.formats.event_text import (
    MARKS,
    SECTOR_BYTES,
    SECTOR_MAX,
    EventLines,
    error_of,
)
from hybridsim.traces.formats.pairing import Action

DETECT_LINES = 20

LINE = re.compile(
    rb"\s*(?P<device>\d{1,4},\d{1,7})\s+(?P<cpu>\d{1,5})\s+\d{1,20}\s+"
    rb"(?P<s>\d{1,9})\.(?P<ns>\d{9})\s+(?P<pid>\d{1,10})\s+(?P<action>[A-Za-z]{1,2})(?P<rest>.*)"
)
TAIL = re.compile(
    rb"\s+(?P<rwbs>[A-Z]{1,6})"
    rb"(?:\s+(?P<sector>\d{1,20})(?:\s+(?P<mark>[+/])\s+(?P<count>\d{1,20}))?)?"
    rb"(?:\s+\(\s*\d{1,20}\))?(?:\s+\[(?P<last>[^\]]*+)\].*+)?+\s*+"
)
SUMMARY = re.compile(rb"(CPU\d+|Total) \(.*\):|Input file .* added|.+ \(\d{1,10}\)$")
"""The first line of statistics of a CPU, of all, of a process (option -s); or a file's name."""
ACTIONS = {
    b"Q": int(Action.QUEUE),
    b"R": int(Action.REQUEUE),
    b"D": int(Action.ISSUE),
    b"C": int(Action.COMPLETE),
    b"X": int(Action.SPLIT),
}
OTHER_ACTIONS = frozenset(
    [b"A", b"B", b"F", b"G", b"I", b"M", b"P", b"S", b"U", b"UT", b"m", b"ZP", b"ZU"]
)
RWBS = re.compile(rb"(?P<flush>F?)(?P<op>[DWRN]E?)(?P<marks>[FASMB]*)")
OPS = {b"D": Op.DISCARD, b"DE": Op.DISCARD, b"W": Op.WRITE, b"R": Op.READ, b"N": Op.READ}


def detect(head: bytes) -> bool:
    """Return whether one of the first lines is from blkparse; no other format has such lines."""
    return any(LINE.match(line) for line in head.split(b"\n")[:DETECT_LINES])


def parse_rwbs(text: bytes) -> tuple[int, int] | None:
    """Return op and flags of blkparse's rwbs letters, such as FWFSM; None if invalid."""
    match = RWBS.fullmatch(text)
    if match is None or match["op"] not in OPS:
        return None
    flags = int(Flag.PREFLUSH) if match["flush"] else 0
    for mark in match["marks"]:
        flags |= int(MARKS[mark])
    return int(OPS[match["op"]]), flags


class Lines(EventLines):
    """One pass over the lines of blkparse."""

    format = "blkparse text"

    _in_summary = False

    def _events_of(self, line: bytes) -> Sequence[tuple[int, ...]] | None:
        match = LINE.match(line)
        if match is None:
            self._in_summary = self._in_summary or SUMMARY.match(line) is not None
            is_other = self._in_summary or not line.strip() or line.startswith(COMMENT)
            return () if is_other else None
        self._in_summary = False
        action = ACTIONS.get(match["action"])
        if action is None:
            if match["action"] not in OTHER_ACTIONS:
                return None
            if match["action"] != b"m":
                self.see(match["s"], match["ns"])
            return ()
        tail = TAIL.fullmatch(match["rest"])
        if tail is None:
            if b"(" in match["rest"]:  # bytes of a command in place of a sector
                self.passthrough += action == Action.ISSUE
                return ()
            return None
        rwbs = parse_rwbs(tail["rwbs"])
        sector = int(tail["sector"] or 0)
        count = int(tail["count"] or 0)
        if tail["mark"] == b"/":
            count -= sector
        pid = int(match["pid"])
        if rwbs is None or sector > SECTOR_MAX or not 0 <= count <= SECTOR_MAX or pid >> 31:
            return None
        op, flags = rwbs
        device, length = match["device"].decode(), count * SECTOR_BYTES
        time_ns = self.see(match["s"], match["ns"])
        if not self.is_wanted(device, action, length):
            return ()
        error = error_of(action, tail["last"])
        cpu = int(match["cpu"]) & 0xFFFF
        return [(time_ns, sector * SECTOR_BYTES, length, pid, error, cpu, action, op, flags)]
