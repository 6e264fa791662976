"""An independent pairing of events to requests: slow and naive, with lists and no bounds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from hybridsim.foundation.codes import Flag, Op
from hybridsim.traces.formats.pairing import Action

NATIVE_AFTER = 64


class Event(NamedTuple):
    time_ns: int
    offset_bytes: int
    length_bytes: int
    pid: int
    error: int
    cpu: int
    action: int
    op: int
    flags: int


@dataclass
class Request:
    arrival: int
    op: int
    offset: int
    length: int
    flags: int
    left: int
    dispatch: int = -1
    complete: int = -1


@dataclass
class Piece:
    op: int
    start: int
    end: int
    number: int  # index of its request
    issued: bool


class Pairing:
    def __init__(self, by_issue: bool) -> None:
        self.by_issue = by_issue
        self.requests: list[Request] = []
        self.pieces: list[Piece] = []
        self.tails: list[tuple[int, int]] = []  # (offset, number) of writes with FUA, data done
        self.fua_done = self.fua_tails = 0
        self.splits_above = False

    def at(self, op: int, start: int) -> list[Piece]:
        return [p for p in self.pieces if p.op == op and p.start == start]

    def find(self, op: int, start: int, end: int, issued: bool) -> Piece | None:
        """Return the oldest match; prefer this issue state, then this length."""
        return min(
            self.at(op, start),
            key=lambda p: (p.issued != issued, p.end != end, p.number),
            default=None,
        )

    def begin(self, e: Event, op: int, offset: int) -> None:
        request = Request(e.time_ns, op, offset, e.length_bytes, e.flags, max(e.length_bytes, 1))
        if self.by_issue:
            request.dispatch = e.time_ns
        number = len(self.requests)
        self.requests.append(request)
        self.pieces.append(Piece(op, offset, offset + e.length_bytes, number, self.by_issue))

    def take(self, e: Event) -> None:
        internal = bool(e.flags & Flag.PREFLUSH) and e.op == Op.READ
        if e.action == Action.COMPLETE and e.length_bytes:
            self.complete(e)
        elif e.action == Action.COMPLETE:
            self.complete_empty(e, internal)
        elif e.action == Action.REQUEUE or (e.action == Action.ISSUE and not self.by_issue):
            self.issue(e, e.action == Action.ISSUE)
        elif e.action == Action.ISSUE:
            self.begin_issued(e, internal)
        elif self.by_issue:
            return
        elif e.action == Action.QUEUE and e.length_bytes:
            self.begin(e, e.op, e.offset_bytes)
        elif e.action == Action.QUEUE and e.flags & Flag.PREFLUSH:
            self.begin(e, Op.FLUSH, 0)
        elif e.action == Action.SPLIT:
            self.split(e)

    def begin_issued(self, e: Event, internal: bool) -> None:
        if not e.length_bytes and not internal:
            return
        op, offset = (e.op, e.offset_bytes) if e.length_bytes else (Op.FLUSH, 0)
        again = self.find(op, offset, offset + e.length_bytes, False)
        if again and not again.issued and again.end == offset + e.length_bytes:
            again.issued = True
            self.requests[again.number].dispatch = e.time_ns
        else:
            self.begin(e, op, offset)

    def split(self, e: Event) -> None:
        if not e.length_bytes:
            self.splits_above = True
            return
        cut = e.offset_bytes + e.length_bytes
        longer = [p for p in self.at(e.op, e.offset_bytes) if p.end > cut]
        if longer:
            piece = max(longer, key=lambda p: p.number)
            self.pieces.append(Piece(e.op, cut, piece.end, piece.number, False))
            piece.end = cut

    def issue(self, e: Event, issued: bool) -> None:
        at, end = e.offset_bytes, e.offset_bytes + e.length_bytes
        while at < end and (piece := self.find(e.op, at, end, not issued)):
            piece.issued = issued
            request = self.requests[piece.number]
            if not issued:
                request.dispatch = -1
                request.flags |= Flag.REQUEUED
            elif request.dispatch == -1:
                request.dispatch = e.time_ns
            at = piece.end

    def complete(self, e: Event) -> None:
        at, end = e.offset_bytes, e.offset_bytes + e.length_bytes
        if self.splits_above and not self.at(e.op, at):
            for request in self.requests[-1:-1026:-1]:
                whole = request.offset < at and request.offset + request.length == end
                if whole and request.op == e.op and request.complete == -1:
                    at = request.offset
                    break
        while at < end and (piece := self.find(e.op, at, end, True)):
            self.pieces.remove(piece)
            if piece.end > end:
                self.pieces.append(Piece(e.op, end, piece.end, piece.number, True))
            self.finish(e, piece.number, min(piece.end, end) - at)
            at = piece.end

    def finish(self, e: Event, number: int, length: int) -> None:
        request = self.requests[number]
        if e.error:
            request.flags |= Flag.ERROR
        request.left -= length
        if request.left:
            return
        request.complete = e.time_ns
        if request.flags & Flag.FUA and request.op != Op.FLUSH and not self.by_issue:
            self.fua_done += 1
            if self.fua_tails or self.fua_done < NATIVE_AFTER:
                self.tails.append((request.offset, number))

    def complete_empty(self, e: Event, internal: bool) -> None:
        if internal != self.by_issue:
            return
        tails = [t for t in self.tails if t[0] == e.offset_bytes and not internal]
        flush = self.find(Op.FLUSH, 0, 0, internal) if e.offset_bytes == 0 else None
        if tails:
            self.fua_tails += 1
            self.tails.remove(max(tails, key=lambda t: t[1]))
            number = max(t[1] for t in tails)
        elif flush:
            self.pieces.remove(flush)
            number = flush.number
        else:
            return
        self.requests[number].complete = e.time_ns
        if e.error:
            self.requests[number].flags |= Flag.ERROR


def pair(events: list[Event], by_issue: bool) -> list[tuple[int, ...]]:
    """Return requests as (arrival, dispatch, completion, op, offset, length)."""
    pairing = Pairing(by_issue)
    for event in events:
        pairing.take(event)
    return [
        (r.arrival, r.dispatch, r.complete, int(r.op), r.offset, r.length) for r in pairing.requests
    ]
