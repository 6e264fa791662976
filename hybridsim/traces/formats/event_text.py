"""The common part of the readers of events: one device of several, requests paired of events."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, ClassVar

import numpy as np

from hybridsim.foundation.codes import Flag
from hybridsim.foundation.errors import TraceError
from hybridsim.foundation.wording import counted, span
from hybridsim.requests.rows import Device, Findings, Requests
from hybridsim.traces.formats.files import Source
from hybridsim.traces.formats.pairing import EVENT, WINDOW, Action, At, Events, InOrder, Pairer
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


OTHER_FILES = "add the files of the other CPUs (NAME.blktrace.*), or capture"
PAIRING = (
    (
        At.INCOMPLETE,
        "incomplete",
        "requests have no completion in the trace; they are replayed, their latency is unknown",
        f"none needed for a few at the end; otherwise {OTHER_FILES} `-a complete` too",
    ),
    (
        At.UNMATCHED,
        "unmatched",
        "completions match no request in the trace",
        f"none needed for a few at the beginning; otherwise {OTHER_FILES} `-a queue` too",
    ),
    (
        At.DISORDER,
        "disorder",
        "events are earlier than a preceding one and were moved to its time",
        "none needed for a few; many mean that the CPUs' clocks differ",
    ),
    (
        At.EMPTY,
        "empty",
        "requests of length 0 that are not flushes were skipped",
        "none needed",
    ),
)  # counts of the pairing: code, text, fix
LONG_NS = 60 * 10**9  # before the first request


class Seen:
    """What a pass has seen of each device."""

    first_seen: dict[str, Any]  # all devices
    queued: dict[str, tuple[int, int]]  # requests, bytes
    issued: dict[str, tuple[int, int]]


class EventReader:
    """A capture of events; each pass reads it again and yields the requests of one device."""

    by_issue: bool  # requests arrive at their issue, after merging
    issued_only: bool  # as there are no other events
    origin_unix_ns: int | None = None

    def _choose(self, name: str, device: str | None, chosen: str, seen: Seen) -> None:
        """Set the device; raise TraceError if the capture does not have it."""
        self._chosen, self._asked = chosen, device is not None
        self._names = list(seen.first_seen)
        if chosen not in self._names:
            raise TraceError(
                f"{name}: contains no device {device!r}, only {', '.join(self._names)}"
            )
        self._count(seen)

    def _count(self, seen: Seen) -> None:
        """Set the devices with their counts, in the order of the first pass, later ones last."""
        self._names += [name for name in seen.first_seen if name not in self._names]
        loads = seen.issued if self.by_issue else seen.queued
        self.devices = [
            Device(name, *loads.get(name, (0, 0)), chosen=name == self._chosen)
            for name in self._names
        ]

    def _report(self, findings: Findings, pairer: Pairer, first_ns: int = 0) -> None:
        """Add the findings of a pass, whose first request arrives at `first_ns`."""
        for what, code, text, fix in PAIRING:
            findings.count(pairer.count(what), code, text, fix)
        used = [device.name for device in self.devices if device.requests]
        if len(used) > 1 and not self._asked:
            findings.add(
                "several-devices",
                f"only {self._chosen} is replayed; devices are not combined, as one may be stacked "
                "on another",
                count=len(used),
                place=f"also in the trace: {', '.join(n for n in used if n != self._chosen)}",
                fix="choose another with --device",
            )
        if first_ns >= LONG_NS:  # as in two captures that were mixed up
            findings.add(
                "late-start",
                f"the first request comes {span(first_ns)} after the first event of the capture, "
                "and the time before it counts as idle",
                fix="if the folder holds several captures, specify one: FOLDER/PREFIX",
            )
        if self.issued_only:
            findings.add(
                "issued-only",
                "the trace has no queue events: requests arrive at their issue to the device, "
                "after merging and scheduling",
                fix="capture queue events too if the cache is above the scheduler (blktrace `-a "
                "queue`, ftrace block_bio_queue)",
            )


class TextReader(EventReader):
    """The text of one capture, with one event per line."""

    def __init__(
        self, of: type[EventLines], sources: list[Source], device: str | None, use_dispatch: bool
    ) -> None:
        self.lines = of
        self._source = only(sources, of.format)
        name = self._source.name
        survey = of(self._source, None, Findings())
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
                    f"{name}: has {counted(survey.completed, 'completion')}, but neither queue nor "
                    "issue events, so no request: capture these too"
                )
            raise survey.malformed.refuse(of.format)
        self.by_issue = use_dispatch or not survey.queued
        self.issued_only = not survey.queued and not use_dispatch
        weights = survey.issued if self.by_issue else survey.queued
        if not weights:
            raise TraceError(
                f"{name}: --use-dispatch needs issue events; there are none: remove it"
            )
        chosen = device or max(weights, key=lambda name: weights[name][1])
        self._choose(name, device, chosen, survey)

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Read the text and yield its requests in order of arrival."""
        text = self.lines(self._source, self._chosen, findings)
        pairer = Pairer([InOrder(text.fill, BATCH).fill], WINDOW // 2, by_issue=self.by_issue)
        yield from pairer.requests(self._names.index(self._chosen), lambda: text.first_ns)
        self._count(text)
        text.report(findings)
        self._report(findings, pairer)


class EventLines(Seen, ABC):
    """One pass over the lines: events of the wanted device, and counts of all devices."""

    format: ClassVar[str]

    def __init__(self, source: Source, wanted: str | None, findings: Findings) -> None:
        self.name = source.name
        self.malformed = Malformed(source)
        self.lost = 0  # events that the text says are missing
        self.first_ns = 1 << 62
        self.passthrough = 0
        self.completed = 0  # completions
        self.first_seen = {}
        self.queued, self.issued = defaultdict(lambda: (0, 0)), defaultdict(lambda: (0, 0))
        self._wanted = wanted
        self._lines = lines(source, findings)
        self._all = self.events()

    def events(self) -> Iterator[tuple[int, ...]]:
        """Yield the fields of EVENT for each event of relevant lines."""
        for number, line in self._lines:
            events = self._events_of(line)
            if events is None:
                self.malformed.add(number, line)
            else:
                yield from events

    @abstractmethod
    def _events_of(self, line: bytes) -> Sequence[tuple[int, ...]] | None:
        """Return the events of a line, none of an irrelevant one; None for a malformed one."""

    def fill(self, events: Events) -> int:
        """Fill `events` from the next lines; return their number, 0 at the end."""
        batch = list(islice(self._all, BATCH))
        events[: len(batch)] = np.array(batch, EVENT)
        return len(batch)

    def report(self, findings: Findings) -> None:
        """Add the skipped lines and the lost events to the findings."""
        self.malformed.report(findings)
        findings.count(
            self.lost,
            "dropped",
            "events were overwritten or dropped by the kernel; requests without their queue "
            "event are absent, others have no completion",
            "capture again with a larger buffer (buffer_size_kb), or read trace_pipe",
            self.name,
        )
        findings.count(
            self.passthrough,
            "passthrough",
            "passthrough commands (SG_IO and similar) are not replayed",
            "none needed",
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
