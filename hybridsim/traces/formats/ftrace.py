"""Block events as ftrace and `perf script` print them: `... SEC.USEC: block_rq_issue: 8,0 R ...`.

Events and fields are those of the kernel's trace/events/block.h in all versions, with or without an
I/O priority.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from hybridsim.foundation.codes import Flag, Op
from hybridsim.foundation.errors import TraceError
from hybridsim.traces.formats.event_text import (
    MARKS,
    SECTOR_BYTES,
    SECTOR_MAX,
    EventLines,
    error_of,
)
from hybridsim.traces.formats.pairing import Action

DETECT_LINES = 100  # ftrace writes a header first
LINE_BYTES_MAX = 1000
EVENT = b"block_"

# Possessive quantifiers: with backtracking, a line of blanks would take hours.
EVENT_LINE = re.compile(
    rb"(?<=\s)(?P<s>\d{1,9})\.(?P<us>\d{6,9}):\s++(?:block:)?block_(?P<event>\w++):\s++(?P<rest>.*)"
)
BEFORE_FLAGS = re.compile(rb"(?<!\s)\s++[^\s:]{4,8}\Z")
LOST = re.compile(
    rb"CPU:\d{1,5} \[(?:LOST )?(?:(?P<lost>\d{1,18}) )?EVENTS(?: DROPPED)?\]|"
    rb"# entries-in-buffer/entries-written: (?P<kept>\d{1,18})/(?P<written>\d{1,18})"
)
TICKS = re.compile(rb"(?<=\s)\d{1,20}:\s++(?:block:)?block_\w++:")
"""A time without decimals: the clock counts ticks of unknown length."""
CPU = re.compile(rb"\[(?P<cpu>\d{1,5})\]\Z")
TAIL = re.compile(
    rb"(?P<device>\d{1,4},\d{1,7})\s+(?P<rwbs>[A-Z]{1,9})\s+(?:\d{1,20}\s+)?(?:\((?P<command>[^)]*+)\)\s+)?"
    rb"(?P<sector>\d{1,20})\s+(?P<mark>[+/])\s+(?P<count>\d{1,20})"
    rb"(?:\s+\w+,\d+,\d+)?(?:\s+\[(?P<last>[^\]]*+)\].*+)?+\s*+"
)
PID = re.compile(rb"[-\s](\d{1,10})(?:/\d+)?$")
ACTIONS = {
    b"bio_queue": int(Action.QUEUE),
    b"rq_requeue": int(Action.REQUEUE),
    b"rq_issue": int(Action.ISSUE),
    b"rq_complete": int(Action.COMPLETE),
    b"bio_complete": int(Action.COMPLETE),
    b"split": int(Action.SPLIT),
}
RWBS = re.compile(rb"(?P<flush>F(?=[A-Z]))?(?P<op>WZ|DE|[DWRNF]|Z[A-Z])(?P<marks>[FASMU]*)")
OPS = {
    b"R": Op.READ,
    b"W": Op.WRITE,
    b"D": Op.DISCARD,
    b"DE": Op.DISCARD,
    b"WZ": Op.WRITE_ZEROES,
    b"ZA": Op.WRITE,
}


def detect(head: bytes) -> bool:
    """Return whether one of the first lines is a block event; no other format has them."""
    first = head.split(b"\n")[:DETECT_LINES]
    return any(event_of(line) or has_ticks(line) for line in first)


def event_of(line: bytes) -> re.Match[bytes] | None:
    """Return the match of a line with a block event, or None."""
    return EVENT_LINE.search(line) if EVENT in line and len(line) < LINE_BYTES_MAX else None


def has_ticks(line: bytes) -> bool:
    """Return whether a line is a block event whose time is not in seconds."""
    return EVENT in line and len(line) < LINE_BYTES_MAX and TICKS.search(line) is not None


def lost_of(match: re.Match[bytes]) -> int:
    """Return the number of lost events that a line of LOST states; 1 if it is unknown."""
    if match["written"]:
        return max(int(match["written"]) - int(match["kept"]), 0)
    return int(match["lost"] or 1)


def task_of(before: bytes) -> tuple[bytes, int]:
    """Return the task and the CPU (0 if absent) from the text before the time."""
    before = before.rstrip()
    cpu = CPU.search(before)
    if cpu is None and (flags := BEFORE_FLAGS.search(before)):
        before = before[: flags.start()]
        cpu = CPU.search(before)
    if cpu is None:
        return before.strip(), 0
    return before[: cpu.start()].strip(), int(cpu["cpu"])


def parse_rwbs(text: bytes, sectors: int) -> tuple[int, int] | None:
    """Return op and flags of a tracepoint's rwbs letters; None if it is not a request.

    FF is a flush sent by the block layer itself; N with sectors writes zeroes.
    """
    match = RWBS.fullmatch(text)
    if match is None:
        return None
    flags = sum({int(MARKS[mark]) for mark in match["marks"] if mark in MARKS})
    flags |= int(Flag.PREFLUSH) if match["flush"] or match["op"] == b"F" else 0
    if match["op"] in (b"N", b"F"):
        return int(Op.WRITE_ZEROES if sectors else Op.READ), flags
    return (int(OPS[match["op"]]), flags) if match["op"] in OPS else None


class Lines(EventLines):
    """One pass over the lines of block events; lines of other events are ignored."""

    format = "ftrace text"

    def _events_of(self, line: bytes) -> Sequence[tuple[int, ...]] | None:
        match = event_of(line)
        if match is None:
            if lost := LOST.match(line):
                self.lost += lost_of(lost)
            elif EVENT in line and not line.lstrip().startswith(b"#"):
                if has_ticks(line):
                    raise TraceError(
                        f"{self.name}: its times are not in seconds (trace_clock is counter, "
                        "uptime or x86-tsc): capture with trace_clock local, global, mono or boot"
                    )
                return None
            return ()
        action = ACTIONS.get(match["event"])
        if action is None:
            return ()
        tail = TAIL.fullmatch(match["rest"])
        if tail is None:
            return None
        if tail["command"]:
            self.passthrough += action == Action.ISSUE
            return ()
        sector, count = int(tail["sector"]), int(tail["count"])
        if sector == (1 << 64) - 1:  # a flush without an address
            sector = 0
        if tail["mark"] == b"/":
            count -= sector
        rwbs = parse_rwbs(tail["rwbs"], count)
        if rwbs is None or sector > SECTOR_MAX or not 0 <= count <= SECTOR_MAX:
            return None
        op, flags = rwbs
        device, length = tail["device"].decode(), count * SECTOR_BYTES
        time_ns = self.see(match["s"], match["us"])
        if not self.is_wanted(device, action, length):
            return ()
        task, cpu = task_of(match.string[: match.start()])
        pid = PID.search(task)
        number = int(pid[1]) if pid and not int(pid[1]) >> 31 else 0
        error = error_of(action, tail["last"])
        cpu &= 0xFFFF
        return [(time_ns, sector * SECTOR_BYTES, length, number, error, cpu, action, op, flags)]
