"""Requests while they come: of a disk, or of block events as text."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from hybridsim.foundation.errors import UsageError
from hybridsim.requests.rows import Findings, Requests
from hybridsim.traces.formats import ftrace
from hybridsim.traces.formats.events import EVENT
from hybridsim.traces.recording.disk import Disk, Host
from hybridsim.traces.recording.live import Live, Paired

BLOCK_BYTES = 1 << 16
AT_ONCE = 1 << 14  # events of a stream
SECOND_NS = 10**9
MARK = re.compile(rb"(?<=\s)(\d{1,9})\.(\d{6,9}): tracing_mark_write: (.*)")


class Piece(NamedTuple):
    """Requests that settled since the last piece."""

    rows: Requests
    now_ns: int
    lost: int = 0  # events
    state: str = ""  # of a real cache at this time; "": not read


def of_disk(
    disk: Disk, host: Host, buffer_bytes: int, pause_s: float,
    every_s: float = 0, counters: Callable[[], str] | None = None,
) -> Iterator[Piece]:  # fmt: skip
    """Yield the requests of a disk while they happen, until the caller stops.

    Every `every_s` the state that `counters` returns comes with them, and once at the start.
    """
    live = Live(disk, host, buffer_bytes)
    due_ns = 0
    try:
        while True:
            now_ns, state = time.monotonic_ns(), ""
            if counters is not None and now_ns >= due_ns:
                state, due_ns = counters(), now_ns + round(every_s * SECOND_NS)
            rows, _ = live.requests()
            yield Piece(rows, now_ns, live.lost(), state)
            time.sleep(pause_s)
    finally:
        live.close()


class _Stream:
    """A pipe whose bytes are read as soon as they arrive; it is never stored."""

    name = "standard input"

    def __init__(self, handle: int) -> None:
        self._handle = handle

    def open(self, findings: Findings) -> _Stream:
        return self

    def read(self, size: int) -> bytes:
        return os.read(self._handle, BLOCK_BYTES)

    def __enter__(self) -> _Stream:
        return self

    def __exit__(self, *_: object) -> None:
        return


class _Lines(ftrace.Lines):
    """Block events, and the last text that was written to `trace_marker`."""

    def __init__(self, stream: _Stream, device: str | None) -> None:
        self.mark: tuple[int, str] | None = None
        super().__init__(stream, device, Findings())  # type: ignore[arg-type]
        self._lines = self._marked(self._lines)

    def _marked(self, lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
        for number, line in lines:
            if b"tracing_mark_write: " in line and (match := MARK.search(line)):
                time_ns = self.see(match[1], match[2])
                self.mark = time_ns, match[3].decode(errors="replace")
            yield number, line


def of_stream(handle: int, device: str | None = None) -> Iterator[Piece]:
    """Yield the requests of block events as text (`cat trace_pipe`, `perf script`), as they come.

    Without `device` the first device of the stream is watched.  What was written to `trace_marker`
    comes as a state, with the requests before it.  Raises UsageError for a stream without block
    events.
    """
    text = _Lines(_Stream(handle), device)
    held: list[tuple[int, ...]] = []
    paired, last_ns = Paired(), 0

    def settled(now_ns: int, state: str = "") -> Piece:
        events = np.array(held, EVENT)
        events = events[np.argsort(events["time_ns"], kind="stable")].view(np.recarray)
        held.clear()
        return Piece(paired.take(events, now_ns), now_ns, 0, state)

    seen = False
    for event in text.events():
        if not seen:
            seen = True
            device = device or next(iter(text.first_seen), None)
            text._wanted = device
        if text.mark is not None:
            (mark_ns, state), text.mark = text.mark, None
            last_ns = max(last_ns, mark_ns)
            yield settled(last_ns, state)
        held.append(event)
        if len(held) >= AT_ONCE or event[0] >= last_ns + SECOND_NS:
            last_ns = max(last_ns, event[0])
            yield settled(last_ns)
    if not seen:
        raise UsageError(
            "standard input has no block events: pipe in the text of trace_pipe or `perf script`"
        )
    yield settled(last_ns)
    last_ns, state = text.mark or (last_ns, "")
    yield Piece(paired.rest(), last_ns, 0, state)
