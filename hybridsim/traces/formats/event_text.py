"""The common part of the readers of text captures with one event per line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from hybridsim.foundation.codes import Flag
from hybridsim.foundation.errors import TraceError
from hybridsim.foundation.wording import counted
from hybridsim.requests.rows import Device, Findings, Requests
from hybridsim.traces.formats import findings_of_blktrace
from hybridsim.traces.formats.events import EVENT, WINDOW, Action, Events, InOrder
from hybridsim.traces.formats.files import Source
from hybridsim.traces.formats.pairing import Pairer
from hybridsim.traces.formats.text import Malformed, lines, only

BATCH = 4096  # events converted to columns at a time
SURVEY_LINES = 1 << 14
SECTOR_BYTES = 512
SECTOR_MAX = 1 << 51
WITH_ERROR = (int(Action.COMPLETE), int(Action.REQUEUE))
MARKS = {
    ord("F"): Flag.FUA,
    ord("A"): Flag.AHEAD,
    ord("S"): Flag.SYNC,
    ord("M"): Flag.META,
    ord("B"): Flag.PREFLUSH,  # a barrier, before Linux 2.6.37: the bit that is the flush's now
}


def error_of(action: int, last: bytes | None) -> int:
    """Return -1 if the number in brackets at the end of a line is an error code, else 0."""
    number = (last or b"").strip(b"-")  # of any length, in a damaged file
    is_error = action in WITH_ERROR and number.isdigit() and number.strip(b"0")
    return -1 if is_error else 0


class TextReader:
    """The text of one capture; each pass reads it again."""

    origin_unix_ns = None
    format: str
    lines: type[EventLines]

    def __init__(self, sources: list[Source], device: str | None, use_dispatch: bool) -> None:
        self._source = only(sources, self.format)
        survey = self.lines(self._source, None, Findings())
        for number, _ in enumerate(survey.events()):
            if (
                number >= SURVEY_LINES
                and len(survey.queued) == 1
                and device in (None, *survey.queued)
            ):
                break
        if not survey.queued and not survey.issued:
            if survey.completed:
                raise TraceError(
                    f"{self._source.name}: has {counted(survey.completed, 'completion')}, but "
                    "neither queue nor issue events, so no request: capture these too"
                )
            raise survey.malformed.refuse(self.format)
        self.by_issue = use_dispatch or not survey.queued
        self._issued_only = not survey.queued and not use_dispatch
        weights = survey.issued if self.by_issue else survey.queued
        if not weights:
            raise TraceError(
                f"{self._source.name}: --use-dispatch needs issue events; there are none: remove it"
            )
        self._chosen = device or max(weights, key=lambda name: weights[name][1])
        self._asked = device is not None
        self._names = list(survey.first_seen)
        if self._chosen not in self._names:
            raise TraceError(
                f"{self._source.name}: contains no device {device!r}, only "
                + ", ".join(self._names)
            )
        self.devices = self._devices(survey)

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Read the text and yield its requests in order of arrival."""
        text = self.lines(self._source, self._chosen, findings)
        pairer = Pairer([InOrder(text.fill, BATCH).fill], WINDOW // 2, by_issue=self.by_issue)
        yield from pairer.requests(self._names.index(self._chosen), lambda: text.first_ns)
        self.devices = self._devices(text)
        text.report(findings)
        findings_of_blktrace.report_pairing(findings, pairer)
        findings_of_blktrace.report_devices(findings, self.devices, self._asked)
        if self._issued_only:
            findings_of_blktrace.report_issued_only(findings)

    def _devices(self, text: EventLines) -> list[Device]:
        self._names += [name for name in text.first_seen if name not in self._names]
        seen = text.issued if self.by_issue else text.queued
        return [
            Device(name, *seen.get(name, (0, 0)), chosen=name == self._chosen)
            for name in self._names
        ]


class EventLines(ABC):
    """One pass over the lines: events of the wanted device, and counts of all devices."""

    def __init__(self, source: Source, wanted: str | None, findings: Findings) -> None:
        self.name = source.name
        self.malformed = Malformed(source)
        self.lost = 0  # events that the text says are missing
        self.first_ns = 1 << 62
        self.passthrough = 0
        self.completed = 0  # completions
        self.first_seen: dict[str, None] = {}
        self.queued: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        self.issued: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
        self._wanted = wanted
        self._lines = lines(source, findings)
        self._events = self.events()

    @abstractmethod
    def events(self) -> Iterator[tuple[int, ...]]:
        """Yield the fields of EVENT for each relevant line."""

    def fill(self, events: Events) -> int:
        """Fill `events` from the next lines; return their number, 0 at the end."""
        batch = []
        for event in self._events:
            batch.append(event)
            if len(batch) == BATCH:
                break
        events[: len(batch)] = np.array(batch, EVENT)
        return len(batch)

    def report(self, findings: Findings) -> None:
        """Add the skipped lines and the lost events to the findings."""
        self.malformed.report(findings)
        if self.lost:
            findings.add(
                "dropped",
                "events were overwritten or dropped by the kernel; requests without their queue "
                "event are absent, others have no completion",
                count=self.lost,
                place=self.name,
                fix="capture again with a larger buffer (buffer_size_kb), or read trace_pipe",
            )
        if self.passthrough:
            findings.add(
                "passthrough",
                "passthrough commands (SG_IO and similar) are not replayed",
                count=self.passthrough,
                fix="none needed",
            )

    def see(self, seconds: bytes, decimals: bytes) -> int:
        """Return the time of a line in nanoseconds."""
        time_ns = int(seconds) * 10**9 + int(decimals.ljust(9, b"0"))
        self.first_ns = min(self.first_ns, time_ns)
        return time_ns

    def is_wanted(self, device: str, action: int, length: int) -> bool:
        """Count an event for its device; return whether the device is wanted."""
        if action in (Action.QUEUE, Action.ISSUE):
            self.first_seen.setdefault(device)
            seen = self.queued if action == Action.QUEUE else self.issued
            seen[device] = (seen[device][0] + 1, seen[device][1] + length)
        self.completed += action == Action.COMPLETE
        return self._wanted is None or device == self._wanted
