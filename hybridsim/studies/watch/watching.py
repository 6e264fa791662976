"""The loop: pieces of requests to the simulated caches, and their state after each interval."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.printable import printable
from hybridsim.requests.rows import UNKNOWN, no_requests
from hybridsim.studies.watch.kept import Kept, leaves
from hybridsim.studies.watch.pieces import SECOND_NS, Piece
from hybridsim.studies.watch.real import Beside, Real
from hybridsim.studies.watch.shadow import Shadow, Simulated
from hybridsim.traces.recording.privileges import on_signals
from hybridsim.traces.thinned.layout import Counter, Counts

GAP_NS = 5 * SECOND_NS  # without requests at a restart: some may have been missed


@dataclass(frozen=True)
class Snapshot:
    """The state after an interval."""

    device: str
    seconds: float  # watched since the start, without the time between a kill and the next start
    interval_s: float
    recent: Counts  # of the interval
    total: Counts
    lost: int  # events, since the start
    rate: float  # share of the pages simulated in page caches
    shadows: list[Shadow]
    real: Real | None = None  # None: the device is no cache, or its counters are not known


class Watch:
    """Caches beside a device, and what was counted."""

    def __init__(self, device: str, caches: Sequence[Simulated], kept: Kept | None) -> None:
        """Start; go on from a saved state if there is one."""
        self.device, self.caches, self.kept = device, caches, kept
        self.recent, self.total = Counts.none(0, 0), Counts.none(0, 0)
        self.lost, self.watched_ns = 0, 0
        self.last_ns: int | None = None  # when the interval began
        self.seen_ns = 0  # until when pieces were taken
        self.real = Beside()
        self.status = kept.status() if kept else ""  # of the real cache, as last read
        self._counter = Counter()
        found = kept.load(self._setting()) if kept else None
        if found:
            self._go_on(*found)

    def take(self, piece: Piece) -> None:
        """Process a piece.

        The first counters of a real cache begin an interval, so that it covers the same requests.
        """
        if self.last_ns is None:
            self.last_ns = _begin_ns(piece)
        self.seen_ns = piece.now_ns
        self.lost += piece.lost
        self._counter.add(piece.rows, self.recent)
        for each in self.caches:
            each.take(piece.rows)
        if piece.state:
            is_first = not self.real.kind
            self.real.read(piece.state)
            self.status = piece.state
            if is_first:
                self.snapshot(piece.now_ns)

    def take_again(self, every_s: float) -> None:
        """Process what came after the saved state; its intervals were shown before."""
        assert self.kept is not None
        for piece in self.kept.pieces():
            self.take(piece)
            if self.is_due(piece, every_s):
                self.snapshot(piece.now_ns)

    def join(self, piece: Piece) -> None:
        """Begin a new interval before the first piece after a restart, unless it follows at once.

        Without it, requests that were missed would be in the real cache's counters only.
        """
        if self.last_ns is not None and not 0 <= _begin_ns(piece) - self.seen_ns <= GAP_NS:
            self.snapshot(self.seen_ns)
            self.last_ns = None
            self.real.pause()

    def is_due(self, piece: Piece, every_s: float) -> bool:
        """Return whether the interval is over; beside a real cache it ends with its counters."""
        assert self.last_ns is not None
        is_over = piece.now_ns - self.last_ns >= every_s * SECOND_NS
        return is_over and (not self.real.kind or bool(piece.state))

    def snapshot(self, now_ns: int) -> Snapshot:
        """Return the state; a new interval begins."""
        assert self.last_ns is not None
        self.total.add(self.recent)
        passed_ns = max(now_ns - self.last_ns, 0)
        self.watched_ns += passed_ns
        state = Snapshot(
            self.device, self.watched_ns / SECOND_NS, passed_ns / SECOND_NS, self.recent,
            Counts(0, 0, self.total.vector.copy()), self.lost,
            min((each.rate for each in self.caches), default=1.0),
            [shadow for each in self.caches for shadow in each.now()], self.real.now(),
        )  # fmt: skip
        self.recent, self.last_ns = Counts.none(0, 0), now_ns
        return state

    def save(self) -> None:
        """Save the state."""
        assert self.kept is not None
        about = {
            "lost": self.lost,
            "watched_ns": self.watched_ns,
            "last_ns": self.last_ns,
            "seen_ns": self.seen_ns,
            "real": self.real.state(),
            "status": self.status,
            "leaves": [sum(1 for _ in leaves(each.state())) for each in self.caches],
        }
        states = tuple(each.state() for each in self.caches)
        self.kept.save(self._setting(), about, (self.total.vector, self.recent.vector, states))

    def _setting(self) -> list[Any]:
        return [self.device, *(each.setting() for each in self.caches)]

    def _go_on(self, about: dict[str, Any], state: list[Any]) -> None:
        assert self.kept is not None
        try:
            self.lost, self.watched_ns = int(about["lost"]), int(about["watched_ns"])
            self.last_ns, self.seen_ns = int(about["last_ns"]), int(about["seen_ns"])
            self.real.go_on(about["real"])
            self.total.vector[:], self.recent.vector[:] = state[:2]
            first = 2
            for each, count in zip(self.caches, about["leaves"], strict=True):
                each.go_on(state[first : first + count])
                first += count
        except (KeyError, ValueError, TypeError, IndexError, StopIteration, AttributeError):
            raise UsageError(
                f"--state {printable(self.kept.path)}: damaged, or of another version: remove it"
            ) from None


def watch(
    pieces: Iterable[Piece],
    device: str,
    caches: Sequence[Simulated],
    every_s: float,
    show: Callable[[Snapshot], None],
    seconds: float | None = None,
    kept: Kept | None = None,
) -> Snapshot | None:
    """Feed requests to the caches, and call `show` after each interval; return the last state.

    Intervals are those of the requests' clock.  Ends with the stream, after `seconds`, or with a
    signal.  The state is saved in `kept` now and then, and at the end; in between, what came is
    noted there.  None: there was no request.
    """
    with contextlib.nullcontext() if kept is None else contextlib.closing(kept.journal):
        state = Watch(device, caches, kept)
        last: Snapshot | None = None
        begin_ns: int | None = None
        if kept is not None:
            state.take_again(every_s)
        piece: Piece | None = None
        with on_signals() as stop:
            for piece in pieces:
                if begin_ns is None:
                    state.join(piece)
                    begin_ns = _begin_ns(piece)
                if kept is not None:
                    kept.journal.add(piece)
                state.take(piece)
                if state.is_due(piece, every_s):
                    last = state.snapshot(piece.now_ns)
                    show(last)
                if kept is not None and kept.is_due():
                    state.save()
                if stop.is_set() or (seconds and piece.now_ns - begin_ns >= seconds * SECOND_NS):
                    break
        if piece is not None and state.recent.requests:
            assert state.last_ns is not None
            last = state.snapshot(max(piece.now_ns, state.last_ns + 1))
            show(last)
        if kept is not None and last is not None:
            state.save()
        return last


def unseen(state: str) -> Piece:
    """Return a piece without requests at time 0, with the state of a real cache."""
    return Piece(no_requests(), 0, 0, state)


def compile_for(caches: Sequence[Simulated]) -> None:
    """Compile what caches need, by one request: the kernel's buffer holds some seconds only."""
    one = no_requests(1)
    one.length_bytes[:] = 4096
    one.complete_ns[:] = one.dispatch_ns[:] = UNKNOWN
    Counter().add(one, Counts.none(0, 0))
    for each in caches:
        each.take(one)


def _begin_ns(piece: Piece) -> int:
    """Return when a piece begins: with its first request, or when it ends."""
    return int(piece.rows.arrival_ns[0]) if piece.rows.rows else piece.now_ns


OPS = ("read", "write", "discard", "flush", "write_zeroes")
OF_REQUESTS = (  # name, field of the counts, text
    ("requests_total", "requests", "Requests queued to the device."),
    ("bytes_total", "bytes", "Bytes of these requests."),
    ("latency_seconds_sum", "latency_sum_ns",
     "Time from arrival to completion of all requests."),
    ("latency_seconds_count", "completed", "Completed requests."),
)  # fmt: skip
OF_SHADOWS = (  # name, field, text
    ("shadow_accesses_total", "accesses", "Sampled page accesses of a simulated cache."),
    ("shadow_hits_total", "hits", "Hits of these accesses."),
    ("shadow_hit_ratio", "recent", "Hit ratio over the last interval."),
    ("shadow_latency_seconds", "mean_ns",
     "Mean latency with a simulated cache over the last interval."),
    ("shadow_ssd_written_bytes_total", "ssd_written_bytes",
     "Bytes written to the simulated SSDs."),
    ("shadow_disk_busy_seconds_total", "disk_busy_ns",
     "Busy time of all simulated disks together."),
)  # fmt: skip
OF_REAL = (
    ("real_accesses_total", "accesses", "Hits and misses that the running cache counted."),
    ("real_hits_total", "hits", "Hits that the running cache counted."),
    ("real_hit_ratio", "recent", "Hit ratio of the running cache over the last interval."),
)


def prometheus(state: Snapshot | None) -> str:
    """Return a state in Prometheus' text format; nothing before the first interval."""
    if state is None:
        return ""
    label = f'device="{_escaped(state.device)}"'
    out: list[str] = []

    def put(name: str, field: str, text: str, rows: Iterable[tuple[str, Any]]) -> None:
        rows = [(labels, value) for labels, value in rows if value is not None]
        if not rows:
            return
        kind = "counter" if name.endswith(("_total", "_sum", "_count")) else "gauge"
        out.append(f"# HELP hybridsim_{name} {text}")
        out.append(f"# TYPE hybridsim_{name} {kind}")
        out.extend(
            f"hybridsim_{name}{{{label}{',' if labels else ''}{labels}}} "
            f"{value / 1e9 if field.endswith('_ns') else value}"
            for labels, value in rows
        )

    for name, field, text in OF_REQUESTS:
        counts = map(int, state.total.of(field))
        put(name, field, text, ((f'op="{op}"', count) for op, count in zip(OPS, counts)))
    put("dropped_events_total", "", "Events that the kernel dropped.", [("", state.lost)])
    put("sampled_share", "", "Share of the pages simulated.", [("", state.rate)])
    for name, field, text in OF_SHADOWS:
        put(name, field, text, ((_labels(each), getattr(each, field)) for each in state.shadows))
    if (real := state.real) is not None:
        for name, field, text in OF_REAL:
            put(name, field, text, [(f'kind="{real.kind}"', getattr(real, field))])
    return "\n".join(out) + "\n"


def _labels(each: Shadow) -> str:
    return (
        f'policy="{_escaped(each.name)}",size_bytes="{each.size_bytes}",'
        f'page_bytes="{each.page_bytes}"'
    )


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
