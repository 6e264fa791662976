"""From events to requests: which completion ends which request.

The block layer splits, merges, requeues and completes in parts, so flags and lengths do not
identify a request.  Coverage does: a queued request is one piece of its device, a split cuts
the piece, an issue or completion walks the pieces it covers.  A request is done when all its
bytes are; the host sees a write with FUA end at a later, empty completion at the same place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from hybridsim.codes import Flag, Op
from hybridsim.formats.events import Action, Events, Fill, room_for
from hybridsim.formats.rows import UNKNOWN, DTYPES, Requests
from hybridsim.jit import loop, method

PENDING_MAX = 1 << 18  # requests; one that is behind this many younger ones is given up
PIECES_MAX = 1 << 18
BUCKETS = 1 << 15
TAIL = 9  # the class of a piece that waits for the empty completion of a write with FUA
NATIVE_AFTER = 64  # this many such writes without one: the device does FUA itself
NONE = -1

QUEUE, REQUEUE, ISSUE, COMPLETE, SPLIT = (
    int(Action.QUEUE),
    int(Action.REQUEUE),
    int(Action.ISSUE),
    int(Action.COMPLETE),
    int(Action.SPLIT),
)
FLUSH = int(Op.FLUSH)
FUA, PREFLUSH, ERROR, REQUEUED, PARTIAL = (
    int(Flag.FUA),
    int(Flag.PREFLUSH),
    int(Flag.ERROR),
    int(Flag.REQUEUED),
    int(Flag.PARTIAL),
)


class At(IntEnum):
    """Which number of `Pairing.at` means what."""

    OLDEST = 0  # number of the oldest request not handed out
    SETTLED = 1  # all before this number are done
    NEXT = 2  # number of the next request
    NOW = 3
    FREE = 4  # first of the free pieces
    UNUSED = 5  # all pieces from here on were never used
    FUA_DONE = 6
    FUA_TAILS = 7
    DISORDER = 8  # events earlier than one before them
    UNMATCHED = 9  # completions of requests that began before the trace, or were lost
    EMPTY = 10  # queued without length, and no flush
    REQUEUES = 11
    ERRORS = 12
    INCOMPLETE = 13


OLDEST, SETTLED, NEXT, NOW, FREE, UNUSED = range(6)
FUA_DONE, FUA_TAILS, DISORDER, UNMATCHED, EMPTY, REQUEUES, ERRORS, INCOMPLETE = range(6, 14)


ROW = np.dtype(
    [
        *zip(Requests._fields, DTYPES),
        ("left", np.int64),  # bytes not yet complete; a FLUSH counts as one
    ],
    align=True,
)
PIECE = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("request", np.int64),  # its number
        ("after", np.int32),  # the next piece in its bucket, or in the list of free ones
        ("kind", np.uint8),  # codes.Op, or TAIL
        ("issued", np.bool_),
    ],
    align=True,
)


class Pairing(NamedTuple):
    """The requests in the making, and the pieces of the device that they wait for."""

    at: Any  # int64, see At
    by_issue: bool  # requests begin when they are issued, after merging
    rows: Any  # ROW, a ring: request n is in row n % PENDING_MAX
    pieces: Any  # PIECE
    bucket: Any  # int32: the first piece of each bucket

    @method
    def place(self, kind, start):
        """The bucket of the pieces of a kind that begin at a byte."""
        mixed = (start // 512 + kind * 77) * 0x9E3779B1
        return (mixed ^ (mixed >> 17)) & (BUCKETS - 1)

    @method
    def add(self, kind, start, end, request, issued):
        """Add a piece; there is room, see `pair`."""
        piece = self.at[FREE]
        if piece == NONE:
            piece = self.at[UNUSED]
            self.at[UNUSED] += 1
        else:
            self.at[FREE] = self.pieces[piece].after
        where = self.place(kind, start)
        self.pieces[piece].start = start
        self.pieces[piece].end = end
        self.pieces[piece].request = request
        self.pieces[piece].kind = kind
        self.pieces[piece].issued = issued
        self.pieces[piece].after = self.bucket[where]
        self.bucket[where] = piece

    @method
    def remove(self, piece):
        """Take a piece out and free it."""
        where = self.place(self.pieces[piece].kind, self.pieces[piece].start)
        if self.bucket[where] == piece:
            self.bucket[where] = self.pieces[piece].after
        else:
            before = self.bucket[where]
            while self.pieces[before].after != piece:
                before = self.pieces[before].after
            self.pieces[before].after = self.pieces[piece].after
        self.pieces[piece].after = self.at[FREE]
        self.at[FREE] = piece

    @method
    def find(self, kind, start, length, issued):
        """The piece at `start`: rather one issued or not, rather of this length, the oldest."""
        best = NONE
        best_score = -1
        piece = self.bucket[self.place(kind, start)]
        while piece != NONE:
            if self.pieces[piece].start == start and self.pieces[piece].kind == kind:
                score = 2 * (self.pieces[piece].issued == issued) + (self.pieces[piece].end - start == length)
                if score > best_score or (
                    score == best_score and self.pieces[piece].request < self.pieces[best].request
                ):
                    best = piece
                    best_score = score
            piece = self.pieces[piece].after
        return best

    @method
    def youngest(self, kind, start, end):
        """The youngest piece that begins at `start` and ends after `end`."""
        best = NONE
        piece = self.bucket[self.place(kind, start)]
        while piece != NONE:
            if self.pieces[piece].start == start and self.pieces[piece].kind == kind and self.pieces[piece].end > end:
                if best == NONE or self.pieces[piece].request > self.pieces[best].request:
                    best = piece
            piece = self.pieces[piece].after
        return best

    @method
    def begin(self, time, op, offset, length, flags, pid):
        """Begin a request that arrives now."""
        number = self.at[NEXT]
        self.at[NEXT] += 1
        row = number & (PENDING_MAX - 1)
        rows = self.rows
        rows[row].arrival_ns = time
        rows[row].offset_bytes = offset
        rows[row].length_bytes = length
        rows[row].op = op
        rows[row].flags = flags
        rows[row].stream = pid
        rows[row].dispatch_ns = UNKNOWN
        rows[row].complete_ns = UNKNOWN
        self.rows[row].left = max(length, 1)
        return number

    @method
    def queue(self, time, op, offset, length, flags, pid):
        """A request enters the block layer."""
        if length > 0:
            number = self.begin(time, op, offset, length, flags, pid)
            self.add(op, offset, offset + length, number, False)
        elif flags & PREFLUSH:
            number = self.begin(time, FLUSH, 0, 0, flags, pid)
            self.add(FLUSH, 0, 0, number, False)
        else:
            self.at[EMPTY] += 1

    @method
    def split(self, op, offset, length):
        """A request is cut: its front part goes on alone."""
        piece = self.youngest(op, offset, offset + length)
        if piece != NONE and length > 0:
            end = self.pieces[piece].end
            self.pieces[piece].end = offset + length
            self.add(op, offset + length, end, self.pieces[piece].request, False)

    @method
    def begin_issued(self, time, op, offset, length, flags, pid):
        """An issue where issues are what counts: a new request, or a requeued one again."""
        if length == 0 and not flags & PREFLUSH:
            return
        if length == 0:
            op = FLUSH
            offset = 0
        piece = self.find(op, offset, length, False)
        if piece != NONE and not self.pieces[piece].issued and self.pieces[piece].end == offset + length:
            self.pieces[piece].issued = True
            number = self.pieces[piece].request
        else:
            number = self.begin(time, op, offset, length, flags, pid)
            self.add(op, offset, offset + length, number, True)
        self.rows[number & (PENDING_MAX - 1)].dispatch_ns = time

    @method
    def issue(self, time, op, offset, length, issued):
        """The driver takes over what lies in this range, or (issued False) gives it back."""
        end = offset + length
        while offset < end:
            piece = self.find(op, offset, end - offset, not issued)
            if piece == NONE:
                return
            row = self.pieces[piece].request & (PENDING_MAX - 1)
            self.pieces[piece].issued = issued
            if not issued:
                self.rows[row].dispatch_ns = UNKNOWN
                self.rows[row].flags |= REQUEUED
            elif self.rows[row].dispatch_ns == UNKNOWN:
                self.rows[row].dispatch_ns = time
            offset = self.pieces[piece].end

    @method
    def complete(self, time, op, offset, length, error):
        """The device has done what lies in this range."""
        end = offset + length
        while offset < end:
            piece = self.find(op, offset, end - offset, True)
            if piece == NONE:
                self.at[UNMATCHED] += 1
                return
            number = self.pieces[piece].request
            piece_end = self.pieces[piece].end
            done = min(piece_end, end)
            self.remove(piece)
            if piece_end > end:
                self.add(op, end, piece_end, number, True)
            self.finish(time, number, done - offset, error)
            offset = done

    @method
    def finish(self, time, number, length, error):
        """Some bytes of a request are done; perhaps the request is."""
        row = number & (PENDING_MAX - 1)
        if error != 0:
            if not self.rows[row].flags & ERROR:
                self.at[ERRORS] += 1
            self.rows[row].flags |= ERROR
        if length < self.rows[row].left:
            self.rows[row].left -= length
            return
        self.rows[row].complete_ns = time
        if not self.by_issue and self.rows[row].flags & FUA:
            self.at[FUA_DONE] += 1
            if self.at[FUA_TAILS] > 0 or self.at[FUA_DONE] < NATIVE_AFTER:
                offset = self.rows[row].offset_bytes
                self.add(TAIL, offset, offset, number, True)
                return
        self.rows[row].left = 0

    @method
    def complete_empty(self, time, offset, flags, error):
        """A completion without bytes: the end of a flush, or of a write with FUA."""
        internal = flags & PREFLUSH != 0
        if internal != self.by_issue:
            return
        piece = NONE
        if not internal:
            piece = self.youngest(TAIL, offset, offset - 1)
        if piece != NONE:
            self.at[FUA_TAILS] += 1
        elif offset == 0:
            piece = self.find(FLUSH, 0, 0, self.by_issue)
        if piece == NONE:
            self.at[UNMATCHED] += 1
            return
        row = self.pieces[piece].request & (PENDING_MAX - 1)
        self.rows[row].complete_ns = time
        self.rows[row].left = 0
        if error != 0:
            self.at[ERRORS] += 1
            self.rows[row].flags |= ERROR
        self.remove(piece)

    @method
    def settle(self):
        """Find how many requests from the oldest on are done."""
        number = self.at[SETTLED]
        while number < self.at[NEXT] and self.rows[number & (PENDING_MAX - 1)].left == 0:
            number += 1
        self.at[SETTLED] = number

    @method
    def give_up(self, requests):
        """Stop waiting for the oldest requests, and forget their pieces."""
        oldest = self.at[SETTLED] + requests
        for number in range(self.at[SETTLED], oldest):
            row = number & (PENDING_MAX - 1)
            if self.rows[row].left > 0 and self.rows[row].complete_ns == UNKNOWN:
                self.at[INCOMPLETE] += 1
                if self.rows[row].left < self.rows[row].length_bytes:
                    self.rows[row].flags |= PARTIAL
            self.rows[row].left = 0
        for where in range(BUCKETS):
            piece = self.bucket[where]
            while piece != NONE:
                following = self.pieces[piece].after
                if self.pieces[piece].request < oldest:
                    self.remove(piece)
                piece = following


@method
def earliest(events, position, end):
    """The lane whose next event is the earliest; of equal ones the first."""
    best = 0
    for lane in range(1, len(position)):
        if position[lane] < end[lane] and (
            position[best] >= end[best]
            or events[position[lane]].time_ns < events[position[best]].time_ns
        ):
            best = lane
    return best


@loop
def pair(pairing, events, position, end, live):
    """Merge the lanes of events by time and pair them, until a live lane or the room runs out.

    `position` and `end` delimit each lane's rows in `events`.  Returns the lane that needs
    more events, NONE when there is no more room, and the number of lanes when all are done.
    """
    at = pairing.at
    for lane in range(len(position)):
        if live[lane] and position[lane] >= end[lane]:
            return lane
    while True:
        if at[NEXT] - at[OLDEST] >= PENDING_MAX or (
            at[FREE] == NONE and at[UNUSED] >= PIECES_MAX - 1
        ):
            pairing.settle()
            return NONE
        lane = earliest(events, position, end)
        row = position[lane]
        if row >= end[lane]:
            pairing.settle()
            return len(position)
        if events[row].time_ns < at[NOW]:
            at[DISORDER] += 1
        at[NOW] = max(at[NOW], events[row].time_ns)
        take(pairing, events, row)
        position[lane] = row + 1
        if row + 1 >= end[lane] and live[lane]:
            pairing.settle()
            return lane


@method
def take(pairing, events, row):
    """Let one event change the requests in the making."""
    time = pairing.at[NOW]
    op = np.int64(events[row].op)
    offset = events[row].offset_bytes
    length = events[row].length_bytes
    flags = np.int64(events[row].flags)
    action = events[row].action
    if action == COMPLETE:
        if length > 0:
            pairing.complete(time, op, offset, length, events[row].error)
        else:
            pairing.complete_empty(time, offset, flags, events[row].error)
    elif action == ISSUE:
        if pairing.by_issue:
            pairing.begin_issued(time, op, offset, length, flags, events[row].pid)
        else:
            pairing.issue(time, op, offset, length, True)
    elif action == REQUEUE:
        pairing.at[REQUEUES] += 1
        pairing.issue(time, op, offset, length, False)
    elif pairing.by_issue:
        return
    elif action == QUEUE:
        pairing.queue(time, op, offset, length, flags, events[row].pid)
    elif action == SPLIT:
        pairing.split(op, offset, length)


@loop
def give_up(pairing, requests):
    """Stop waiting for the oldest requests (compiled entry)."""
    pairing.give_up(requests)
    pairing.settle()


def new_pairing(by_issue: bool) -> Pairing:
    """Return an empty state; its memory is only taken as it is used."""
    at = np.zeros(len(At), np.int64)
    at[At.FREE] = NONE
    return Pairing(
        at=at,
        by_issue=by_issue,
        rows=np.zeros(PENDING_MAX, ROW).view(np.recarray),
        pieces=np.zeros(PIECES_MAX, PIECE).view(np.recarray),
        bucket=np.full(BUCKETS, NONE, np.int32),
    )


class Pairer:
    """Reads lanes of events, each in order, and hands out requests in order of arrival."""

    def __init__(self, lanes: Sequence[Fill], batch: int, *, by_issue: bool) -> None:
        self._lanes = lanes
        self._batch = batch
        self._pairing = new_pairing(by_issue)

    def count(self, what: At) -> int:
        """Return one of the pairing's counts."""
        return int(self._pairing.at[what])

    def requests(self, device: int, origin_ns: Any) -> Iterator[Requests]:
        """Yield all requests; `origin_ns()` is asked once every lane has been begun."""
        at, batch, lanes = self._pairing.at, self._batch, len(self._lanes)
        events = room_for(batch * lanes)
        position = np.arange(lanes, dtype=np.int64) * batch
        end = position.copy()
        live = np.ones(lanes, np.bool_)
        origin = None
        while True:
            lane = int(pair(self._pairing, events, position, end, live))
            if lane == lanes:
                break
            if lane >= 0:
                first = lane * batch
                got = self._lanes[lane](events[first : first + batch])
                position[lane], end[lane], live[lane] = first, first + got, got > 0
            if at[SETTLED] == at[OLDEST] and lane == NONE:
                give_up(self._pairing, min(PENDING_MAX // 8, int(at[NEXT] - at[SETTLED])))
            if at[SETTLED] - at[OLDEST] >= PENDING_MAX // 4 or lane == NONE:
                origin = origin_ns() if origin is None else origin
                yield self._hand_out(device, origin)
        give_up(self._pairing, int(at[NEXT] - at[SETTLED]))
        if at[NEXT] > at[OLDEST]:
            yield self._hand_out(device, origin_ns() if origin is None else origin)

    def _hand_out(self, device: int, origin_ns: int) -> Requests:
        """Return the settled requests and free their rows."""
        at = self._pairing.at
        first, stop = int(at[OLDEST]) % PENDING_MAX, int(at[SETTLED]) % PENDING_MAX
        rows = self._pairing.rows
        done = rows[first:stop] if first < stop else np.concatenate((rows[first:], rows[:stop]))
        out = Requests(*(np.ascontiguousarray(done[name]) for name in Requests._fields))
        at[OLDEST] = at[SETTLED]
        out.device[:] = device
        np.subtract(out.arrival_ns, origin_ns, out=out.arrival_ns)
        for column in (out.dispatch_ns, out.complete_ns):
            np.subtract(column, origin_ns, out=column, where=column != UNKNOWN)
        return out
