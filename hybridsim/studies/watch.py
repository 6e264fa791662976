"""Caches that are simulated beside a running disk: their hit ratios now, in bounded memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.requests.pages import Accesses, PageReads, accesses
from hybridsim.requests.rows import Findings, Requests
from hybridsim.requests.sampling import SPAN, hashed
from hybridsim.studies.hits import Cache, Feed, check
from hybridsim.studies.page_sampling import NOT_SAMPLED, SMALL
from hybridsim.traces.formats import ftrace
from hybridsim.traces.formats.events import EVENT
from hybridsim.traces.recording.disk import Disk, Host
from hybridsim.traces.recording.live import Live, Paired
from hybridsim.traces.recording.stopping import on_signals
from hybridsim.traces.thinned.counts import Counter, Counts

PAGES_MAX = 1 << 16  # of the largest cache in its sample: bounds memory and time
BLOCK_BYTES = 1 << 16
AT_ONCE = 1 << 14  # events of a stream
SECOND_NS = 10**9


@dataclass(frozen=True)
class Shadow:
    """One simulated cache, over the last interval and since the start."""

    policy: str
    size_bytes: int
    accesses: int  # of pages, sampled, since the start
    hits: int
    recent: float | None  # hit ratio of the last interval; None: it had no access

    @property
    def ratio(self) -> float | None:
        """Hit ratio since the start; None: no access yet."""
        return self.hits / self.accesses if self.accesses else None


@dataclass(frozen=True)
class Snapshot:
    """The state after an interval."""

    device: str
    seconds: float  # since the start
    interval_s: float
    recent: Counts  # of the interval
    total: Counts
    lost: int  # events, since the start
    rate: float  # share of the pages simulated
    page_bytes: int
    shadows: list[Shadow]


class Shadows:
    """Caches of some sizes and policies, scaled down to a sample of the pages."""

    def __init__(self, sizes: list[int], policies: list[str], page_bytes: int) -> None:
        """Create empty caches; raise UsageError for sizes or policies that cannot be sampled."""
        check({}, "always", policies)
        self.page_bytes = page_bytes
        largest = max(sizes) // page_bytes
        self.threshold = min(SPAN, SPAN * PAGES_MAX // max(largest, 1))
        self.rate = self.threshold / SPAN
        smallest = min(sizes) // page_bytes
        if smallest * self.rate < SMALL:
            raise UsageError(
                f"--cache-size {human_size(min(sizes))} is too small beside "
                f"{human_size(max(sizes))}: a cache needs {SMALL} pages of the sample; watch them "
                "separately, or take smaller pages (--page)"
            )
        for each in policies:
            if self.rate < 1 and each in NOT_SAMPLED:
                raise UsageError(
                    f"policy {each} {NOT_SAMPLED[each]}: watch caches of at most "
                    f"{human_size(PAGES_MAX * page_bytes)}"
                )
        self._which = [(policy, size) for policy in policies for size in sizes]
        self._caches = [
            Cache("always", policy, max(round(size // page_bytes * self.rate), 1), page_bytes)
            for policy, size in self._which
        ]
        self._feed = Feed(self._caches)
        self._before = [(0, 0)] * len(self._caches)

    def take(self, rows: Requests) -> None:
        """Process requests."""
        for part in accesses(_Chunk(rows), self.page_bytes):
            assert isinstance(part, Accesses)
            numbers = part.numbers
            if self.rate < 1:
                numbers = numbers[hashed(numbers) < self.threshold]
            if len(numbers):
                self._feed.take(PageReads(numbers, self.page_bytes))

    def now(self) -> list[Shadow]:
        """Return the state of the caches; a new interval begins."""
        out = []
        for (policy, size), cache, (served, hits) in zip(self._which, self._caches, self._before):
            new_served, new_hits = cache.served()
            recent = None
            if new_served > served:
                recent = (new_hits - hits) / (new_served - served)
            out.append(Shadow(policy, size, new_served, new_hits, recent))
        self._before = [each.served() for each in self._caches]
        return out


class _Chunk:
    """Some requests, as a trace."""

    name = "the stream"

    def __init__(self, rows: Requests) -> None:
        self._rows = rows

    def chunks(self) -> Iterator[Requests]:
        if self._rows.rows:
            yield self._rows


Batch = tuple[Requests, int, int]  # settled requests, the time now in ns, events lost


def of_disk(disk: Disk, host: Host, buffer_bytes: int, pause_s: float) -> Iterator[Batch]:
    """Yield the requests of a disk while they happen, until the caller stops."""
    live = Live(disk, host, buffer_bytes)
    try:
        while True:
            time.sleep(pause_s)
            rows, _ = live.requests()
            yield rows, time.monotonic_ns(), live.lost()
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


def of_stream(handle: int, device: str | None = None) -> Iterator[Batch]:
    """Yield the requests of block events as text (`cat trace_pipe`, `perf script`), as they come.

    Without `device` the first device of the stream is watched.  Raises UsageError for a stream
    without block events.
    """
    text = ftrace.Lines(_Stream(handle), device, Findings())  # type: ignore[arg-type]
    held: list[tuple[int, ...]] = []
    paired, last_ns = Paired(), 0

    def settled() -> Batch:
        events = np.array(held, EVENT)
        events = events[np.argsort(events["time_ns"], kind="stable")].view(np.recarray)
        held.clear()
        return paired.take(events, last_ns), last_ns, 0

    seen = False
    for event in text.events():
        if not seen:
            seen = True
            device = device or next(iter(text.first_seen), None)
            text._wanted = device
        held.append(event)
        if len(held) >= AT_ONCE or event[0] >= last_ns + SECOND_NS:
            last_ns = max(last_ns, event[0])
            yield settled()
    if not seen:
        raise UsageError(
            "standard input has no block events: pipe in the text of trace_pipe or `perf script`"
        )
    yield settled()
    yield paired.rest(), last_ns, 0


def watch(
    batches: Iterable[Batch],
    device: str,
    shadows: Shadows,
    every_s: float,
    show: Callable[[Snapshot], None],
    seconds: float | None = None,
) -> Snapshot | None:
    """Feed requests to the caches, and call `show` after each interval; return the last state.

    Intervals are those of the requests' clock.  Ends with the stream, after `seconds`, or with a
    signal.  None: there was no request.
    """
    counter, recent, total = Counter(), Counts.none(0, 0), Counts.none(0, 0)
    begin_ns: int | None = None
    last_ns = lost = 0
    last: Snapshot | None = None

    def snapshot(now_ns: int) -> Snapshot:
        nonlocal recent, last_ns
        assert begin_ns is not None
        total.add(recent)
        state = Snapshot(
            device, (now_ns - begin_ns) / SECOND_NS, (now_ns - last_ns) / SECOND_NS, recent,
            Counts(0, 0, total.vector.copy()), lost, shadows.rate, shadows.page_bytes,
            shadows.now(),
        )  # fmt: skip
        recent, last_ns = Counts.none(0, 0), now_ns
        show(state)
        return state

    now_ns = 0
    with on_signals() as stop:
        for rows, now_ns, dropped in batches:
            if begin_ns is None:
                begin_ns = last_ns = int(rows.arrival_ns[0]) if rows.rows else now_ns
            lost += dropped
            counter.add(rows, recent)
            shadows.take(rows)
            if now_ns - last_ns >= every_s * SECOND_NS:
                last = snapshot(now_ns)
            if stop.is_set() or (seconds and now_ns - begin_ns >= seconds * SECOND_NS):
                break
    if begin_ns is not None and recent.requests:
        last = snapshot(max(now_ns, last_ns + 1))
    return last


def prometheus(state: Snapshot | None) -> str:
    """Return a state in Prometheus' text format; nothing before the first interval."""
    if state is None:
        return ""
    label = f'device="{_escaped(state.device)}"'
    of = state.total.of
    out: list[str] = []

    def put(name: str, kind: str, text: str, rows: list[tuple[str, Any]]) -> None:
        out.append(f"# HELP hybridsim_{name} {text}")
        out.append(f"# TYPE hybridsim_{name} {kind}")
        out.extend(
            f"hybridsim_{name}{{{label}{',' if labels else ''}{labels}}} {value}"
            for labels, value in rows
        )

    ops = ("read", "write", "discard", "flush", "write_zeroes")
    put("requests_total", "counter", "Requests queued to the device.",
        [(f'op="{op}"', int(count)) for op, count in zip(ops, of("requests"))])  # fmt: skip
    put("bytes_total", "counter", "Bytes of these requests.",
        [(f'op="{op}"', int(count)) for op, count in zip(ops, of("bytes"))])  # fmt: skip
    moves = ("read", "write")
    put("latency_seconds_sum", "counter", "Time from arrival to completion of all requests.",
        [(f'op="{op}"', int(ns) / 1e9) for op, ns in zip(moves, of("latency_sum_ns"))])  # fmt: skip
    put("latency_seconds_count", "counter", "Completed requests.",
        [(f'op="{op}"', int(count)) for op, count in zip(moves, of("completed"))])  # fmt: skip
    put("dropped_events_total", "counter", "Events that the kernel dropped.", [("", state.lost)])
    put("sampled_share", "gauge", "Share of the pages simulated.", [("", state.rate)])
    names = [
        f'policy="{_escaped(each.policy)}",size_bytes="{each.size_bytes}",'
        f'page_bytes="{state.page_bytes}"'
        for each in state.shadows
    ]
    put("shadow_accesses_total", "counter", "Sampled page accesses of a simulated cache.",
        [(name, each.accesses) for name, each in zip(names, state.shadows)])  # fmt: skip
    put("shadow_hits_total", "counter", "Hits of these accesses.",
        [(name, each.hits) for name, each in zip(names, state.shadows)])  # fmt: skip
    put("shadow_hit_ratio", "gauge", "Hit ratio over the last interval.",
        [(name, each.recent) for name, each in zip(names, state.shadows)
         if each.recent is not None])  # fmt: skip
    return "\n".join(out) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
