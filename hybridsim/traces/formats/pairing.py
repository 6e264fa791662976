"""The events of a block trace, their order, and their pairing into requests.

The block layer splits, merges, requeues and completes requests in parts, so flags and lengths do
not identify a request.  Its range does: a queued request is one piece (a range of the device), a
split divides the piece, an issue or completion applies to all pieces that it covers.  A request is
complete when all its bytes are; a write with FUA ends at a later, empty completion at its offset.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.codes import Flag, Op
from hybridsim.jit import loop, method, state_machine
from hybridsim.requests.rows import DTYPES, UNKNOWN, Requests


class Action(IntEnum):
    """Actions, numbered as in the kernel's block tracer; all others are skipped."""

    QUEUE = 1
    REQUEUE = 6
    ISSUE = 7
    COMPLETE = 8
    SPLIT = 13


EVENT = np.dtype(
    [
        ("time_ns", np.int64),
        ("offset_bytes", np.int64),
        ("length_bytes", np.int64),  # of a SPLIT: its front part
        ("pid", np.int32),
        ("error", np.int16),
        ("cpu", np.uint16),
        ("action", np.uint8),
        ("op", np.uint8),  # codes.Op
        ("marks", np.uint8),  # codes.Flag; an internal flush has PREFLUSH and length 0
    ],
    align=True,
)
Events: TypeAlias = Any  # a recarray of EVENT: events[row].time_ns


def room_for(rows: int) -> Events:
    """Return an array for events; memory is allocated on first use."""
    return np.zeros(rows, EVENT).view(np.recarray)


WINDOW = 1 << 18  # events by which one CPU may lag behind another in a stream

Fill = Callable[[Events], int]  # fills rows from the start; returns their number, 0 at the end


class InOrder:
    """Sorts a stream of events by (time, CPU) within a window of WINDOW events.

    A later event keeps its position; pairing counts it and moves it to the time of the preceding
    event.
    """

    def __init__(self, fill: Fill, batch: int) -> None:
        self._fill = fill
        self._batch = batch
        self._held = room_for(WINDOW + batch)
        self._count = 0
        self._ended = False

    def fill(self, events: Events) -> int:
        """Fill `events` with the next ones in order; return their number, 0 at the end."""
        while not self._ended and self._count <= WINDOW:
            got = self._fill(self._held[self._count :])
            self._count += got
            self._ended = got == 0
        held, target = whole(self._held[: self._count]), whole(events)
        order = _order(self._held[: self._count])
        if order is not None:
            held[:] = held[order]
        out = min(self._count if self._ended else self._count - WINDOW // 2, len(events))
        target[:out] = held[:out]
        held[: self._count - out] = held[out:].copy()
        self._count -= out
        return out


def whole(events: Events) -> NDArray[Any]:
    """View events as opaque rows, which numpy copies much faster than field by field."""
    opaque: NDArray[Any] = events.view(np.dtype((np.void, EVENT.itemsize)), np.ndarray)
    return opaque


def _order(events: Events) -> NDArray[np.int64] | None:
    """Return the order of the rows by (time, CPU), or None if they are sorted."""
    time, cpu = events.time_ns, events.cpu
    if np.all((time[1:] > time[:-1]) | ((time[1:] == time[:-1]) & (cpu[1:] >= cpu[:-1]))):
        return None
    return np.lexsort((cpu, time))


PENDING_MAX = 1 << 18  # requests; one with this many younger ones is abandoned
LAST = PENDING_MAX - 1
PIECES_MAX = PENDING_MAX + (1 << 12)
BUCKETS = 1 << 14
TAIL = 9  # kind of a piece that waits for the empty completion of a write with FUA
NATIVE_AFTER = 64  # after this many such writes without one, the device implements FUA
RECENT = 1024  # requests searched for the start of a remainder
NONE = -1

QUEUE, REQUEUE, ISSUE, COMPLETE, SPLIT = map(int, Action)
READ, FLUSH = int(Op.READ), int(Op.FLUSH)
FUA, PREFLUSH, ERROR, REQUEUED, PARTIAL = map(
    int, (Flag.FUA, Flag.PREFLUSH, Flag.ERROR, Flag.REQUEUED, Flag.PARTIAL)
)


class At(IntEnum):
    """Indices into `Pairing.at`."""

    OLDEST = 0  # number of the oldest request not yet returned
    SETTLED = 1  # all requests before this number are complete
    NEXT = 2  # number of the next request
    NOW = 3
    FREE = 4  # head of the list of free pieces, which ends at UNUSED
    UNUSED = 5  # the first piece that was never used
    FUA_DONE = 6
    FUA_TAILS = 7
    DISORDER = 8  # events earlier than a preceding one
    UNMATCHED = 9  # completions of requests from before the trace, or whose events were lost
    EMPTY = 10  # queued without length, not a flush
    REQUEUES = 11
    ERRORS = 12
    INCOMPLETE = 13
    RESTS = 14  # splits by a stacked driver (device mapper)


OLDEST, SETTLED, NEXT, NOW, FREE, UNUSED = range(6)
FUA_DONE, FUA_TAILS, DISORDER, UNMATCHED, EMPTY, REQUEUES, ERRORS, INCOMPLETE, RESTS = range(6, 15)


ROW = np.dtype(
    [
        *((name.replace("flags", "marks"), dtype) for name, dtype in zip(Requests._fields, DTYPES)),
        ("left", np.int64),  # bytes not yet complete; a FLUSH counts as one byte
    ],
    align=True,
)
PIECE = np.dtype(
    [
        ("start", np.int64),
        ("end", np.int64),
        ("request", np.int64),  # number of its request
        ("after", np.int64),  # the next piece in its bucket, or in the list of free ones
        ("kind", np.uint8),  # codes.Op, or TAIL
        ("issued", np.bool_),
    ],
    align=True,
)


@state_machine
class Pairing(NamedTuple):
    """The pending requests, and the pieces of the device that they wait for."""

    at: Any  # int64, see At
    by_issue: bool  # requests arrive at their issue, after merging
    rows: Any  # ROW, a ring buffer: request n is in row n % PENDING_MAX
    pieces: Any  # PIECE
    bucket: Any  # int64: the first piece of each bucket

    @method
    def place(self, kind, start):
        """Return the bucket of the pieces of a kind that start at a byte."""
        mixed = ((start >> 9) + kind * 77) * 0x9E3779B1
        return (mixed ^ (mixed >> 17)) & (BUCKETS - 1)

    @method
    def add(self, kind, start, end, request, issued):
        """Add a piece; `pair` ensures that there is room."""
        number = self.at[FREE]
        piece = self.pieces[number]
        if number == self.at[UNUSED]:
            self.at[UNUSED] += 1
            self.at[FREE] += 1
        else:
            self.at[FREE] = piece.after
        where = self.place(kind, start)
        piece.start = start
        piece.end = end
        piece.request = request
        piece.kind = kind
        piece.issued = issued
        piece.after = self.bucket[where]
        self.bucket[where] = number

    @method
    def remove(self, number):
        """Remove a piece from its bucket and free it."""
        piece = self.pieces[number]
        where = self.place(piece.kind, piece.start)
        before = self.bucket[where]
        if before == number:
            self.bucket[where] = piece.after
        else:
            while self.pieces[before].after != number:
                before = self.pieces[before].after
            self.pieces[before].after = piece.after
        piece.after = self.at[FREE]
        self.at[FREE] = number

    @method
    def find(self, kind, start, length, issued):
        """Return the best piece at `start`: matching `issued`, then this length, then oldest."""
        best = NONE
        best_score = -1
        best_request = 0
        number = self.bucket[self.place(kind, start)]
        while number != NONE:
            piece = self.pieces[number]
            if piece.start == start and piece.kind == kind:
                score = 2 * (piece.issued == issued) + (piece.end - start == length)
                if score > best_score or (score == best_score and piece.request < best_request):
                    best = number
                    best_score = score
                    best_request = piece.request
            number = piece.after
        return best

    @method
    def youngest(self, kind, start, end):
        """Return the youngest piece that starts at `start` and ends after `end`, or NONE."""
        best = NONE
        best_request = -1
        number = self.bucket[self.place(kind, start)]
        while number != NONE:
            piece = self.pieces[number]
            if piece.start == start and piece.kind == kind and piece.end > end:
                if piece.request > best_request:
                    best = number
                    best_request = piece.request
            number = piece.after
        return best

    @method
    def begin(self, time, op, offset, length, flags, pid):
        """Add a request that arrives now, as one piece."""
        number = self.at[NEXT]
        self.at[NEXT] += 1
        row = self.rows[number & LAST]
        row.arrival_ns = time
        row.offset_bytes = offset
        row.length_bytes = length
        row.op = op
        row.marks = flags
        row.stream = pid
        row.dispatch_ns = time if self.by_issue else UNKNOWN
        row.complete_ns = UNKNOWN
        row.left = max(length, 1)
        self.add(op, offset, offset + length, number, self.by_issue)

    @method
    def begin_issued(self, time, op, offset, length, flags, pid):
        """Handle an issue with by_issue: add a request, or mark a requeued one as issued again."""
        number = self.find(op, offset, length, False)
        if number != NONE:
            piece = self.pieces[number]
            if not piece.issued and piece.end == offset + length:
                piece.issued = True
                self.rows[piece.request & LAST].dispatch_ns = time
                return
        self.begin(time, op, offset, length, flags, pid)

    @method
    def issue(self, time, op, offset, length, issued):
        """Mark the pieces of this range as issued to the driver, or (issued False) as requeued."""
        end = offset + length
        while offset < end:
            number = self.find(op, offset, end - offset, not issued)
            if number == NONE:
                return
            piece = self.pieces[number]
            piece.issued = issued
            row = self.rows[piece.request & LAST]
            if not issued:
                row.dispatch_ns = UNKNOWN
                row.marks |= REQUEUED
            elif row.dispatch_ns == UNKNOWN:
                row.dispatch_ns = time
            offset = piece.end

    @method
    def begin_of_rest(self, op, offset, end):
        """Return the start of a recent request that ends at `end` and covers `offset`, or NONE.

        For completions that report only the remainder of a split request.
        """
        number = self.at[NEXT] - 1
        last = max(self.at[SETTLED], number - RECENT)
        while number >= last:
            row = self.rows[number & LAST]
            if row.offset_bytes < offset and row.offset_bytes + row.length_bytes == end:
                if row.op == op and row.complete_ns == UNKNOWN:
                    return row.offset_bytes
            number -= 1
        return NONE

    @method
    def complete(self, time, op, offset, length, error):
        """Complete the pieces of this range."""
        end = offset + length
        rest = self.at[RESTS] > 0
        while offset < end:
            number = self.find(op, offset, end - offset, True)
            if number == NONE and rest:
                begin = self.begin_of_rest(op, offset, end)
                if begin != NONE:
                    offset = begin
                    number = self.find(op, offset, end - offset, True)
            rest = False
            if number == NONE:
                self.at[UNMATCHED] += 1
                return
            request = self.pieces[number].request
            piece_end = self.pieces[number].end
            self.remove(number)
            if piece_end > end:
                self.add(op, end, piece_end, request, True)
            self.finish(time, request, min(piece_end, end) - offset, error)
            offset = piece_end

    @method
    def finish(self, time, request, length, error):
        """Complete `length` bytes of a request, and the request if none are left."""
        row = self.rows[request & LAST]
        if error != 0:
            self.at[ERRORS] += not row.marks & ERROR
            row.marks |= ERROR
        if length < row.left:
            row.left -= length
            return
        row.complete_ns = time
        if row.marks & FUA and row.op != FLUSH and not self.by_issue:
            self.at[FUA_DONE] += 1
            if self.at[FUA_TAILS] > 0 or self.at[FUA_DONE] < NATIVE_AFTER:
                self.add(TAIL, row.offset_bytes, row.offset_bytes, request, True)
                return
        row.left = 0

    @method
    def complete_empty(self, time, offset, internal, error):
        """Handle a completion without bytes: the end of a flush, or of a write with FUA."""
        if internal != self.by_issue:
            return
        number = NONE
        if not internal:
            number = self.youngest(TAIL, offset, offset - 1)
        if number != NONE:
            self.at[FUA_TAILS] += 1
        elif offset == 0:
            number = self.find(FLUSH, 0, 0, internal)
        if number == NONE:
            self.at[UNMATCHED] += 1
            return
        row = self.rows[self.pieces[number].request & LAST]
        row.complete_ns = time
        row.left = 0
        if error != 0:
            self.at[ERRORS] += not row.marks & ERROR
            row.marks |= ERROR
        self.remove(number)

    @method
    def take(self, event):
        """Apply one event to the pending requests."""
        time = self.at[NOW]
        op = np.int64(event.op)
        flags = np.int64(event.marks)
        pid = np.int64(event.pid)
        offset = event.offset_bytes
        length = event.length_bytes
        # Flushes sent by the block layer itself are marked as reads, those of a caller as writes.
        internal = flags & PREFLUSH != 0 and op == READ
        if event.action == COMPLETE:
            if length > 0:
                self.complete(time, op, offset, length, event.error)
            else:
                self.complete_empty(time, offset, internal, event.error)
        elif event.action == REQUEUE or (event.action == ISSUE and not self.by_issue):
            self.at[REQUEUES] += event.action == REQUEUE
            self.issue(time, op, offset, length, event.action == ISSUE)
        elif event.action == ISSUE:
            if length > 0 or internal:
                kind = op if length > 0 else FLUSH
                start = offset if length > 0 else 0
                self.begin_issued(time, kind, start, length, flags, pid)
        elif self.by_issue:
            return
        elif event.action == QUEUE:
            if length > 0:
                self.begin(time, op, offset, length, flags, pid)
            elif flags & PREFLUSH:
                self.begin(time, FLUSH, 0, 0, flags, pid)
            else:
                self.at[EMPTY] += 1
        elif event.action == SPLIT and length == 0:
            # A stacked driver passed the front part on; it will report the remainder as complete.
            self.at[RESTS] += 1
        elif event.action == SPLIT:
            number = self.youngest(op, offset, offset + length)
            if number != NONE:
                end = self.pieces[number].end
                self.pieces[number].end = offset + length
                self.add(op, offset + length, end, self.pieces[number].request, False)


@loop
def pair(pairing, events, position, end, live):
    """Merge the lanes of events by time and pair them, until a live lane or the space runs out.

    `position` and `end` delimit each lane's rows in `events`.  Returns the lane that needs
    more events, NONE if there is no more space, and the number of lanes at the end of all.
    """
    at = pairing.at
    lanes = len(position)
    stop = NONE
    for lane in range(lanes):
        if live[lane] and position[lane] >= end[lane]:
            return lane
    while at[NEXT] - at[OLDEST] < PENDING_MAX and at[FREE] < PIECES_MAX - 1:
        best = NONE
        time = 0
        for lane in range(lanes):
            if position[lane] < end[lane]:
                head = events[position[lane]].time_ns
                if best == NONE or head < time:
                    best = lane
                    time = head
        if best == NONE:
            stop = lanes
            break
        at[DISORDER] += time < at[NOW]
        at[NOW] = max(at[NOW], time)
        pairing.take(events[position[best]])
        position[best] += 1
        if position[best] >= end[best] and live[best]:
            stop = best
            break
    number = at[SETTLED]
    while number < at[NEXT] and pairing.rows[number & LAST].left == 0:
        number += 1
    at[SETTLED] = number
    return stop


@loop
def give_up(pairing, requests):
    """Abandon the oldest requests: stop waiting for them and remove their pieces."""
    at = pairing.at
    oldest = at[SETTLED] + requests
    for number in range(at[SETTLED], oldest):
        row = pairing.rows[number & LAST]
        if row.left > 0 and row.complete_ns == UNKNOWN:
            at[INCOMPLETE] += 1
            if 0 < row.left < row.length_bytes:
                row.marks |= PARTIAL
        row.left = 0
    for where in range(BUCKETS):
        number = pairing.bucket[where]
        while number != NONE:
            following = pairing.pieces[number].after
            if pairing.pieces[number].request < oldest:
                pairing.remove(number)
            number = following
    while oldest < at[NEXT] and pairing.rows[oldest & LAST].left == 0:
        oldest += 1
    at[SETTLED] = oldest


class Pairer:
    """Reads lanes of events, each in order, and yields requests in order of arrival."""

    def __init__(self, lanes: Sequence[Fill], batch: int, *, by_issue: bool) -> None:
        self._lanes = lanes
        self._batch = batch
        self._pairing = Pairing(
            at=np.zeros(len(At), np.int64),
            by_issue=by_issue,
            rows=np.zeros(PENDING_MAX, ROW).view(np.recarray),  # allocated on first use
            pieces=np.zeros(PIECES_MAX, PIECE).view(np.recarray),
            bucket=np.full(BUCKETS, NONE, np.int64),
        )

    def count(self, what: At) -> int:
        """Return one of the pairing's counts."""
        return int(self._pairing.at[what])

    def requests(self, device: int, origin_ns: Any) -> Iterator[Requests]:
        """Yield all requests; `origin_ns()` is called once every lane has delivered events."""
        at, batch, lanes = self._pairing.at, self._batch, len(self._lanes)
        events = room_for(batch * lanes)
        position = np.arange(lanes, dtype=np.int64) * batch
        end = position.copy()
        live = np.ones(lanes, np.bool_)
        origin = None
        while True:
            with np.errstate(over="ignore"):  # in hashes, if it is not compiled
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
                yield self._settled(device, origin)
        give_up(self._pairing, int(at[NEXT] - at[SETTLED]))
        if at[NEXT] > at[OLDEST]:
            yield self._settled(device, origin_ns() if origin is None else origin)

    def _settled(self, device: int, origin_ns: int) -> Requests:
        """Return the settled requests and free their rows."""
        at = self._pairing.at
        first, stop = int(at[OLDEST]) % PENDING_MAX, int(at[SETTLED]) % PENDING_MAX
        rows = self._pairing.rows
        done = rows[first:stop] if first < stop else np.concatenate((rows[first:], rows[:stop]))
        names = (name for name in ROW.names or () if name != "left")
        out = Requests._make(np.ascontiguousarray(done[name]) for name in names)
        at[OLDEST] = at[SETTLED]
        out.device[:] = device
        np.subtract(out.arrival_ns, origin_ns, out=out.arrival_ns)
        for column in (out.dispatch_ns, out.complete_ns):
            np.subtract(column, origin_ns, out=column, where=column != UNKNOWN)
        return out
