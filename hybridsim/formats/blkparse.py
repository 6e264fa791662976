"""The default text output of blkparse(1)."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from hybridsim.codes import Flag, Op
from hybridsim.errors import TraceError
from hybridsim.formats import findings_of_blktrace
from hybridsim.formats.events import EVENT, WINDOW, Action, Events, InOrder
from hybridsim.formats.files import Source
from hybridsim.formats.pairing import Pairer
from hybridsim.formats.rows import Device, Findings, Requests
from hybridsim.formats.text import Malformed, lines, only

BATCH = 4096  # events that are put into columns at a time
DETECT_LINES = 20
SURVEY_LINES = 1 << 14
SECTOR_MAX = 1 << 51

LINE = re.compile(
    rb"\s*(?P<device>\d{1,4},\d{1,7})\s+(?P<cpu>\d{1,5})\s+\d{1,20}\s+"
    rb"(?P<s>\d{1,9})\.(?P<ns>\d{9})\s+(?P<pid>\d{1,10})\s+(?P<action>[A-Za-z]{1,2})(?P<rest>.*)"
)
TAIL = re.compile(
    rb"\s+(?P<rwbs>[A-Z]{1,6})"
    rb"(?:\s+(?P<sector>\d{1,20})(?:\s+(?P<mark>[+/])\s+(?P<count>\d{1,20}))?)?"
    rb"(?:\s+\[(?P<last>.*)\].*)?\s*"
)
SUMMARY = re.compile(rb"(CPU\d+|Total) \(.*\):")
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
WITH_ERROR = (int(Action.COMPLETE), int(Action.REQUEUE))
RWBS = re.compile(rb"(?P<flush>F?)(?P<op>[DWRN]E?)(?P<marks>[FASM]*)")
OPS = {b"D": Op.DISCARD, b"DE": Op.DISCARD, b"W": Op.WRITE, b"R": Op.READ, b"N": Op.READ}
MARKS = {ord("F"): Flag.FUA, ord("A"): Flag.AHEAD, ord("S"): Flag.SYNC, ord("M"): Flag.META}


def detect(head: bytes) -> bool:
    """Tell whether one of the first lines is blkparse's; nothing else looks like them."""
    return any(LINE.match(line) for line in head.split(b"\n")[:DETECT_LINES])


def parse_rwbs(text: bytes) -> tuple[int, int] | None:
    """Return op and flags of blkparse's letters, such as FWFSM."""
    match = RWBS.fullmatch(text)
    if match is None or match["op"] not in OPS:
        return None
    flags = sum({int(MARKS[mark]) for mark in match["marks"]})
    return int(OPS[match["op"]]), flags | (int(Flag.PREFLUSH) if match["flush"] else 0)


class Reader:
    """The text of one capture; each pass reads it anew."""

    origin_unix_ns = None

    def __init__(self, sources: list[Source], device: str | None, use_dispatch: bool) -> None:
        self._source = only(sources, "blkparse text")
        survey = Lines(self._source, None, Findings())
        for number, _ in enumerate(survey.events()):
            if (
                number >= SURVEY_LINES
                and len(survey.queued) == 1
                and device in (None, *survey.queued)
            ):
                break
        if not survey.queued and not survey.issued:
            raise survey.malformed.refuse("blkparse text")
        self.by_issue = use_dispatch or not survey.queued
        self._issued_only = not survey.queued and not use_dispatch
        weights = survey.issued if self.by_issue else survey.queued
        if not weights:
            raise TraceError(
                f"{self._source.name}: --use-dispatch, but the trace has no issue events"
            )
        self._chosen = device or max(weights, key=lambda name: weights[name][1])
        self._asked = device is not None
        self._names = list(survey.first_seen)
        if self._chosen not in self._names:
            raise TraceError(
                f"{self._source.name}: no device {device!r} in it; there is "
                + ", ".join(self._names)
            )
        self.devices = self._devices(survey)

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Read the text and yield its requests in order of arrival."""
        text = Lines(self._source, self._chosen, findings)
        pairer = Pairer([InOrder(text.fill, BATCH).fill], WINDOW // 2, by_issue=self.by_issue)
        yield from pairer.requests(self._names.index(self._chosen), lambda: text.first_ns)
        self.devices = self._devices(text)
        text.malformed.report(findings)
        if text.passthrough:
            findings.add(
                "passthrough",
                "commands sent past the block layer (SG_IO and the like) are not replayed",
                count=text.passthrough,
                fix="none needed",
            )
        findings_of_blktrace.report_pairing(findings, pairer)
        findings_of_blktrace.report_devices(findings, self.devices, self._asked)
        if self._issued_only:
            findings_of_blktrace.report_issued_only(findings)

    def _devices(self, text: Lines) -> list[Device]:
        self._names += [name for name in text.first_seen if name not in self._names]
        seen = text.issued if self.by_issue else text.queued
        return [
            Device(name, *seen.get(name, (0, 0)), chosen=name == self._chosen)
            for name in self._names
        ]


class Lines:
    """One pass over the lines: events of the wanted device, and what was seen on the way."""

    def __init__(self, source: Source, wanted: str | None, findings: Findings) -> None:
        self.malformed = Malformed(source)
        self.first_ns = 1 << 62
        self.passthrough = 0
        self.first_seen: dict[str, None] = {}
        self.queued: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        self.issued: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        self._wanted = wanted
        self._lines = lines(source, findings)
        self._events = self.events()

    def fill(self, events: Events) -> int:
        """Fill `events` with those of the next lines; 0 at the end."""
        batch = []
        for event in self._events:
            batch.append(event)
            if len(batch) == BATCH:
                break
        events[: len(batch)] = np.array(batch, EVENT)
        return len(batch)

    def events(self) -> Iterator[tuple[int, ...]]:
        """Yield the fields of EVENT for each line that matters."""
        for number, line in self._lines:
            match = LINE.match(line)
            if match is None:
                if SUMMARY.match(line):
                    return
                if line.strip():
                    self.malformed.add(number, line)
                continue
            action = ACTIONS.get(match["action"])
            if action is None:
                if match["action"] not in OTHER_ACTIONS:
                    self.malformed.add(number, line)
                elif match["action"] != b"m":
                    self._see(match)
                continue
            event = self._event(match, action)
            if event is None:
                self.malformed.add(number, line)
            elif event:
                yield event

    def _see(self, match: re.Match[bytes]) -> int:
        time_ns = int(match["s"]) * 10**9 + int(match["ns"])
        self.first_ns = min(self.first_ns, time_ns)
        return time_ns

    def _event(self, match: re.Match[bytes], action: int) -> tuple[int, ...] | None:
        """Return the fields of EVENT, () for an event that does not count, None for nonsense."""
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
        device, length = match["device"].decode(), count * 512
        time_ns = self._see(match)
        if action in (Action.QUEUE, Action.ISSUE):
            self.first_seen.setdefault(device)
            seen = self.queued if action == Action.QUEUE else self.issued
            seen[device] = (seen[device][0] + 1, seen[device][1] + length)
        if self._wanted is not None and device != self._wanted:
            return ()
        error = 0
        if action in WITH_ERROR and (tail["last"] or b"0").strip(b"-").isdigit():
            error = -1 if int(tail["last"] or 0) else 0
        cpu = int(match["cpu"]) & 0xFFFF
        return (time_ns, sector * 512, length, pid, error, cpu, action, op, flags)
