"""Requests while they come: of a disk, or of block events as text."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from io import FileIO
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.errors import UsageError
from hybridsim.requests.rows import Findings, Requests
from hybridsim.traces.formats import ftrace
from hybridsim.traces.formats.pairing import EVENT
from hybridsim.traces.recording import Disk, Host
from hybridsim.traces.recording.live import Live, Paired

AT_ONCE = 1 << 14  # events of a stream
SECOND_NS = 10**9
MARK = re.compile(rb"(?<=\s)(\d{1,9})\.(\d{6,9}): tracing_mark_write: (.*)")


class Piece(NamedTuple):
    """Requests that settled since the last piece."""

    rows: Requests
    now_ns: int
    lost: int = 0  # events
    state: str = ""  # of a real cache at this time; "": not read


class _Aligned:
    """Delivers the state of a real cache once all requests before it have settled.

    A request settles when it is complete, or given up, and those after it wait for it.
    """

    def __init__(self) -> None:
        self._states: deque[tuple[int, str]] = deque()

    def add(self, time_ns: int, state: str) -> None:
        """Take a state that was read at that time."""
        self._states.append((time_ns, state))

    def pieces(self, rows: Requests, now_ns: int, settled_ns: int, lost: int) -> Iterator[Piece]:
        """Yield pieces that end where a state was read; all before `settled_ns` have settled."""
        while self._states and self._states[0][0] <= settled_ns:
            time_ns, state = self._states.popleft()
            place = int(np.searchsorted(rows.arrival_ns, time_ns))
            yield Piece(rows.between(0, place), time_ns, lost, state)
            rows, lost = rows.between(place, rows.rows), 0
        yield Piece(rows, min(now_ns, settled_ns), lost)


def of_disk(
    disk: Disk, host: Host, buffer_bytes: int, pause_s: float,
    every_s: float = 0, counters: Callable[[], str] | None = None, goes_on: bool = False,
    once_set_up: Callable[[Live], None] = lambda live: None,
) -> Iterator[Piece]:  # fmt: skip
    """Yield the requests of a disk while they happen, until the caller stops.

    Every `every_s` the state that `counters` returns comes with them, and once at the start.
    `goes_on`: what the kernel has traced since another watch was killed comes first.
    `once_set_up` is called when root is no longer needed, but to end tracing and for `counters`.
    """
    live = Live(disk, host, buffer_bytes, goes_on)
    aligned, due_ns = _Aligned(), 0
    try:
        once_set_up(live)
        while True:
            now_ns = time.monotonic_ns()
            if counters is not None and now_ns >= due_ns:
                aligned.add(now_ns, counters())
                due_ns = now_ns + round(every_s * SECOND_NS)
            rows, settled_ns = live.requests()
            yield from aligned.pieces(rows, now_ns, settled_ns, live.lost())
            time.sleep(pause_s)
    finally:
        live.close()


class _Lines(ftrace.Lines):
    """Block events, the texts that were written to `trace_marker`, and the events lost."""

    def __init__(self, handle: int) -> None:
        """Read a pipe as soon as its bytes arrive; they are never stored."""
        self._marks: list[tuple[int, str]] = []
        pipe: Any = SimpleNamespace(
            name="standard input", open=lambda findings: FileIO(handle, closefd=False)
        )
        super().__init__(pipe, None, Findings())
        self._lines = self._marked(self._lines)

    def _marked(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        for number, line in lines:
            if b"tracing_mark_write: " in line and (match := MARK.search(line)):
                time_ns = self.see(match[1], match[2])
                self._marks.append((time_ns, match[3].decode(errors="replace")))
            yield number, line

    def taken(self) -> list[tuple[int, str]]:
        """Return the times and texts since the last call."""
        marks, self._marks = self._marks, []
        return marks

    def lost_since(self) -> int:
        """Return the number of events lost since the last call."""
        lost, self.lost = self.lost, 0
        return lost


def of_stream(handle: int) -> Iterator[Piece]:
    """Yield the requests of block events as text (`cat trace_pipe`, `perf script`), as they come.

    The first device of the stream is watched.  What was written to `trace_marker` comes as a state,
    with the requests before it.  Raises UsageError for a stream without block events.
    """
    text = _Lines(handle)
    held: list[tuple[int, ...]] = []
    paired, aligned, last_ns = Paired(), _Aligned(), 0

    def settled() -> Iterator[Piece]:
        events = np.array(held, EVENT)
        events = events[np.argsort(events["time_ns"], kind="stable")].view(np.recarray)
        held.clear()
        rows, oldest_ns = paired.take(events, last_ns), paired.oldest_ns
        return aligned.pieces(
            rows, last_ns, last_ns if oldest_ns is None else oldest_ns, text.lost_since()
        )

    seen = False
    for event in text.events():
        if not seen:
            seen = True
            text._wanted = next(iter(text.first_seen), None)
        for mark in text.taken():
            aligned.add(*mark)
        held.append(event)
        if len(held) >= AT_ONCE or event[0] >= last_ns + SECOND_NS:
            last_ns = max(last_ns, event[0])
            yield from settled()
    if not seen:
        raise UsageError(
            "standard input has no block events: pipe in the text of trace_pipe or `perf script`"
        )
    for mark in text.taken():
        aligned.add(*mark)
        last_ns = max(last_ns, mark[0])
    yield from settled()
    yield from aligned.pieces(paired.rest(), last_ns, last_ns, text.lost_since())
