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
    with contextlib.nullcontext() if kept is None else contextlib.closing(kept):
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
                    kept.add(piece)
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
