"""Arrays: a tier of equal devices in md's layouts (DESIGN.md 2.5); requests are split and joined.

Where chunks lie; groups of device requests; the rebuild; the queue in front; the tier.  Then the
functions that are parts of it: the requests of arrays without parity, of rows with parity, and of a
rebuild.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled, pool_of, roomy_pool
from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Level, Op, Spread
from hybridsim.foundation.machine_parameters import ArrayParameters, RebuildParameters
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.events import FAST_TIMER, SLOW, SLOW_TIMER, Events
from hybridsim.jit.instructions import along
from hybridsim.jit.lists import NOTHING, Fifos, give_back, taken

WHOLE, FAILED, REBUILDING = range(3)  # states of a member


@state_machine
class Layout(NamedTuple):
    """Chunks distributed over the members, with copies of each or parities of each row.

    A row is the chunks at the same position of all members.
    Linear and RAID-1 have one chunk on each member; RAID-1 has a copy of it on each member.
    """

    members: int
    chunk_bytes: int
    copies: int  # of each chunk; 1 without redundancy and with parity
    parities: int  # chunks of parity per row
    spread: int  # placement of copies: codes.Spread
    rows: int  # chunks per member

    @classmethod
    def new(
        cls, level: int, members: int, chunk_bytes: int, member_bytes: int, spread: int
    ) -> Layout:
        """Return the layout of a level (codes.Level) on members of `member_bytes`."""
        rows = member_bytes // chunk_bytes
        if level in (Level.LINEAR, Level.RAID1):
            chunk_bytes, rows = rows * chunk_bytes, 1
        copies = {Level.RAID1: members, Level.RAID10: 2}.get(Level(level), 1)
        parities = {Level.RAID5: 1, Level.RAID6: 2}.get(Level(level), 0)
        return cls(members, chunk_bytes, copies, parities, spread, rows)

    @property
    def chunks(self) -> int:
        """Number of chunks of data in the array."""
        if self.spread == Spread.NEAR:
            return self.rows * (self.members - self.parities) // self.copies
        return self.rows // self.copies * self.members

    @method
    def place(self, chunk, copy):
        """Return member and row of a copy of a chunk (not for parity)."""
        if self.spread == Spread.NEAR:
            position = chunk * self.copies + copy
            return position % self.members, position // self.members
        member = (chunk + copy) % self.members
        row = chunk // self.members
        if self.spread == Spread.FAR:
            return member, row + copy * (self.rows // self.copies)
        # Spread.OFFSET: the copies of a row are in the next rows.
        return member, row * self.copies + copy

    @method
    def chunk_at(self, member, row):
        """Return the chunk at a place, and the number of the copy: `copies` if there is none."""
        if self.spread == Spread.NEAR:
            position = row * self.members + member
            return position // self.copies, position % self.copies
        if self.spread == Spread.FAR:
            half = self.rows // self.copies
            copy = min(row // half, self.copies)
            return row % half * self.members + (member - copy) % self.members, copy
        copy = row % self.copies
        return row // self.copies * self.members + (member - copy) % self.members, copy

    @method
    def first_member(self, row):
        """Return the member of data index 0 of a row: md's left-symmetric layout, P then Q."""
        parity = (self.members - 1) - row % self.members
        return (parity + self.parities) % self.members


# The step of a group when nothing is pending any more; a BLOCKED segment waits to start.
JOIN, FLUSHED, BLOCKED, READING, WRITING, COPY_READ, COPY_WRITTEN = range(7)

STRIPE_BYTES = 4096  # unit in which md serialises writes
BUCKETS = 1024  # of rows: a queue each of the segments that are being written or wait

OUTSTANDING, RESERVED, LOST = range(3)  # counts of a tier


@state_machine
class Groups(NamedTuple):
    """A table of groups; a group is complete when `pending` falls to 0."""

    pending: Int32s
    then: Bytes  # JOIN ... COPY_WRITTEN
    op: Bytes  # with its flags
    parent: Int32s  # group that waits for this one, or NOTHING
    tag: Ints  # of the tier's request (of the outermost group); of a copy, the piece
    row: Ints  # segment of a row with parity:
    first: Int32s  #   the contiguous data indices written,
    last: Int32s
    offset: Ints  #   and the range on every member; or the range of a request, of a copy
    length: Ints
    joined: Int32s  # first of the segments that this one also writes, or NOTHING
    next: Int32s  # next segment of the bucket, or next joined one
    following: Int32s  # the free list
    free: Ints  # [first free group, number of free groups]

    @method
    def take(self, parent, tag):
        """Allocate a group with nothing pending."""
        group = taken(self)
        self.pending[group] = 0
        self.then[group] = JOIN
        self.parent[group] = parent
        self.tag[group] = tag
        return group

    @method
    def share_stripes(self, one, other):
        """Return whether two segments are of one row, and have bytes in the same stripe."""
        return (
            self.row[one] == self.row[other]
            and self.offset[one] // STRIPE_BYTES
            <= (self.offset[other] + self.length[other] - 1) // STRIPE_BYTES
            and self.offset[other] // STRIPE_BYTES
            <= (self.offset[one] + self.length[one] - 1) // STRIPE_BYTES
        )

    @method
    def can_join(self, new, other, data):
        """Return whether a segment can be written together with an adjacent one."""
        if self.offset[new] != self.offset[other] or self.length[new] != self.length[other]:
            return False
        if self.first[new] != self.last[other] + 1 and self.first[other] != self.last[new] + 1:
            return False
        count = self.last[new] - self.first[new] + self.last[other] - self.first[other] + 2
        then = self.then[other]
        return then == BLOCKED or (then == READING and count == data)


NEVER = 1 << 62
WINDOW = 16  # maximum number of pieces in progress, from the oldest unfinished one on
PIECE_BYTES = 64 * 1024  # md's resync block
REBUILD_TIMER = 0  # number of the timer; other timers of a tier are group + 1
QUIET_NS = 10_000_000  # time without a request after which the array counts as idle
NEXT, OLDEST, LINE, FREE_NS, DUE_NS, WAKE_NS, IDLE_NS, DONE_NS = range(8)


@state_machine
class Rebuild(NamedTuple):
    """Pieces of the member in order of address; all data below the line is rebuilt."""

    member: int  # or NOTHING
    chunk_bytes: int
    per_chunk: int  # pieces per chunk
    pieces: int
    min_bytes_per_s: int
    max_bytes_per_s: int
    state: Ints  # [NEXT ... DONE_NS]; LINE: the byte below which everything is rebuilt
    is_done: Bytes  # ring by piece

    @classmethod
    def new(cls, layout: Layout, parameters: RebuildParameters | None) -> Rebuild:
        """Start at the first byte of a member, if any is to be rebuilt."""
        p = parameters or RebuildParameters(NOTHING, 1, 1)
        per_chunk = -(-layout.chunk_bytes // PIECE_BYTES)
        state = np.zeros(8, np.int64)
        state[[WAKE_NS, DONE_NS]] = NEVER
        pieces = layout.rows * per_chunk if p.member != NOTHING else 0
        of = {"chunk_bytes": layout.chunk_bytes, "per_chunk": per_chunk, "pieces": pieces}
        return filled(cls, WINDOW, p, state=state, **of)

    @method
    def is_under_way(self):
        """Return whether the rebuild is not complete."""
        return self.state[OLDEST] < self.pieces

    @method
    def start_of(self, piece):
        """Return the first byte of a piece on the member."""
        inside = piece % self.per_chunk * PIECE_BYTES
        return piece // self.per_chunk * self.chunk_bytes + inside

    @method
    def length_of(self, piece):
        """Return the length of a piece in bytes; the last of a chunk may be shorter."""
        return min(PIECE_BYTES, self.chunk_bytes - piece % self.per_chunk * PIECE_BYTES)

    @method
    def next_ns(self, now, outstanding):
        """Return when the next piece may start: now, at a later time, or NEVER by itself."""
        state = self.state
        span = state[NEXT] - state[OLDEST]
        if state[NEXT] == self.pieces or span == WINDOW:
            return NEVER
        if now < state[FREE_NS]:
            return state[FREE_NS]
        idle_ns = NEVER if outstanding > 0 else state[IDLE_NS] + QUIET_NS
        if span == 0 or now >= state[DUE_NS] or now >= idle_ns:
            return now
        return min(state[DUE_NS], idle_ns)

    @method
    def begin(self, now):
        """Return the next piece, and charge its bytes to both rates."""
        state = self.state
        piece = state[NEXT]
        state[NEXT] += 1
        length = self.length_of(piece)
        state[FREE_NS] = now + length * 1_000_000_000 // self.max_bytes_per_s
        due_ns = min(state[DUE_NS], now)
        state[DUE_NS] = due_ns + length * 1_000_000_000 // self.min_bytes_per_s
        return piece

    @method
    def end(self, now, piece):
        """Record that a piece is written, and advance the line."""
        state = self.state
        self.is_done[piece % WINDOW] = 1
        while state[OLDEST] < state[NEXT] and self.is_done[state[OLDEST] % WINDOW] == 1:
            self.is_done[state[OLDEST] % WINDOW] = 0
            state[OLDEST] += 1
        state[LINE] = self.start_of(state[OLDEST])
        if state[OLDEST] == self.pieces:
            state[DONE_NS] = now

    def totals(self) -> dict[str, int]:
        """Return the bytes rebuilt and the total to rebuild; empty if there is no rebuild."""
        if self.member == NOTHING:
            return {}
        return {"rebuilt_bytes": int(self.state[LINE]), "rebuild_bytes": self.start_of(self.pieces)}


@state_machine
class Line(NamedTuple):
    """A queue in front of an array; `depth` requests may be inside, 0: no limit."""

    depth: int
    tag: Ints
    op: Bytes
    offset: Ints
    length: Ints
    queue: Fifos
    inside: Ints  # [number of requests inside]
    following: Int32s  # the next one in the queue, or in the free list
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls, depth: int, capacity: int = 64) -> Line:
        """Return an empty queue; without a depth it is never used."""
        inside = np.zeros(1, np.int64)
        return pool_of(cls, capacity, depth=depth, queue=Fifos.new(), inside=inside)

    def with_room(self, demand: int) -> Line:
        """Return the same queue with room for `demand` more requests."""
        return self if self.has_room(demand) else roomy_pool(self, demand, self._fields[1:5])

    @method
    def has_room(self, demand):
        """Return whether `demand` more requests could wait."""
        return self.depth == 0 or self.free[1] >= demand

    @method
    def lets_in(self):
        """Return whether a request may enter, and count it as inside if so."""
        if self.inside[0] >= self.depth:
            return False
        self.inside[0] += 1
        return True

    @method
    def push(self, tag, op, offset, length):
        """Queue a request."""
        entry = taken(self)
        self.tag[entry] = tag
        self.op[entry] = op
        self.offset[entry] = offset
        self.length[entry] = length
        self.queue.append(0, entry, self.following)

    @method
    def left(self):
        """Count a request that leaves; return the entry that replaces it, or -1."""
        entry = self.queue.pop(0, self.following)
        if entry == NOTHING:
            self.inside[0] -= 1
        else:
            give_back(self, entry)
        return entry


REQUESTS_NS, IN_USE_NS = range(2)


@state_machine
class Usage(NamedTuple):
    """The time that members are in use, and the sum of request times (DESIGN.md 2.5.5).

    The start of a request is subtracted, its end is added.
    """

    under_way: Ints  # by member: number of device requests in progress
    spent: Ints  # [REQUESTS_NS, IN_USE_NS], correct when no request is in progress

    @classmethod
    def new(cls, members: int) -> Usage:
        """Return idle members."""
        return cls(np.zeros(members, np.int64), np.zeros(2, np.int64))

    @method
    def begin(self, now, member):
        """Count the start of a device request."""
        if self.under_way[member] == 0:
            self.spent[IN_USE_NS] -= now
        self.under_way[member] += 1
        self.spent[REQUESTS_NS] -= now

    @method
    def end(self, now, member):
        """Count the end of a device request."""
        self.under_way[member] -= 1
        if self.under_way[member] == 0:
            self.spent[IN_USE_NS] += now
        self.spent[REQUESTS_NS] += now

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return both sums in ns by name; requests in progress count as if they ended now."""
        requests, in_use = self.spent.tolist()
        requests += int(self.under_way.sum()) * now_ns
        in_use += int((self.under_way > 0).sum()) * now_ns
        return {"requests_ns": requests, "in_use_ns": in_use}


FLUSH_AFTER = 1 << 40  # flag in a tag
ARRIVED = -1  # number of a timer: this less the tag of a request that has returned


@state_machine
class Tier(NamedTuple):
    """An array of equal devices (DESIGN.md 2.5).

    The tag of a device request is 2 * tag if it is the whole of a tier request, else 2 * group + 1;
    the member is in the lowest bits.
    """

    kind: int  # events.SLOW or events.FAST
    timer: int  # events.SLOW_TIMER or events.FAST_TIMER
    level: int
    members: int
    member_bits: int
    rmw_level: int
    rotates: int  # 1: mirrors are chosen by the position of their heads
    capacity_bytes: int
    layout: Layout
    groups: Groups
    line: Line  # requests that wait for the queue depth
    path_latency_ns: int
    has_fua: int
    stripes: Fifos  # by row, modulo BUCKETS: segments in order of arrival
    rebuild: Rebuild
    counts: Ints  # [OUTSTANDING, RESERVED, LOST]
    state: Bytes  # by member: WHOLE, FAILED, REBUILDING
    usage: Usage
    head: Ints  # by member, of mirrors: end of its last request
    next_read: Ints  # by member, of mirrors: end of its last READ
    open_start: Ints  # by member: range of a request being gathered, or NOTHING
    open_end: Ints
    device: Any  # HDD, SSD, ...

    @classmethod
    def new(
        cls, kind: int, parameters: ArrayParameters, device: Any, *, rotates: bool = True
    ) -> Tier:
        """Combine the members of a device bank; the capacity is that of whole rows of chunks."""
        p, members = parameters, parameters.members
        device_bytes = int(device.capacity_bytes)
        layout = Layout.new(int(p.level), members, p.chunk_bytes, device_bytes, int(p.spread))
        state = np.full(members, WHOLE, np.uint8)
        state[p.failed] = FAILED
        if p.rebuild is not None:
            state[p.rebuild.member] = REBUILDING
        lost = int((state != WHOLE).sum())
        return filled(
            cls,
            members,
            p,
            kind=kind,
            timer=SLOW_TIMER if kind == SLOW else FAST_TIMER,
            member_bits=(members - 1).bit_length(),
            rotates=int(rotates),
            capacity_bytes=device_bytes if members == 1 else layout.chunks * layout.chunk_bytes,
            layout=layout,
            groups=pool_of(Groups, 256),
            line=Line.new(p.queue_depth),
            stripes=Fifos.new(BUCKETS),
            rebuild=Rebuild.new(layout, p.rebuild),
            counts=np.array([0, 0, lost]),
            state=state,
            usage=Usage.new(members),
            next_read=np.full(members, NOTHING, np.int64),
            open_start=np.full(members, NOTHING, np.int64),
            device=device,
        )

    def start(self, events: Events) -> None:
        """Schedule the start of a rebuild, if there is one."""
        if self.rebuild.is_under_way():
            self.rebuild.state[WAKE_NS] = 0
            events.push(0, self.timer, REBUILD_TIMER)

    def fail(self, member: int) -> None:
        """Lose a member; requests under way at it still complete (DESIGN.md 2.17)."""
        self.state[member] = FAILED
        self.counts[LOST] += 1

    def replaced(self, now: int, rebuild: RebuildParameters, events: Events) -> Tier:
        """Return the same array, which begins to rebuild a failed member now."""
        self.state[rebuild.member] = REBUILDING
        tier = self._replace(rebuild=Rebuild.new(self.layout, rebuild))
        tier.rebuild.state[[IDLE_NS, WAKE_NS]] = now
        events.push(now, tier.timer, REBUILD_TIMER)
        return tier

    def demand(self, request_bytes: int) -> int:
        """Return the maximum number of groups or device requests for a request of that length."""
        chunks = request_bytes // self.layout.chunk_bytes + 2
        pieces = WINDOW if self.rebuild.is_under_way() else 0
        return 4 * chunks + (8 + pieces) * self.members + 8 + pieces

    def with_room(self, demand: int) -> Tier:
        """Return the same array with room for a step that needs `demand` entries of each pool."""
        groups, wanted = roomy_pool(self.groups, demand), demand + int(self.reserved())
        device = self.device
        if device.room() < wanted:
            device = device.with_room(wanted)
        return self._replace(groups=groups, device=device, line=self.line.with_room(wanted))

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return the usage of the members so far, by name, and the progress of a rebuild."""
        return self.usage.totals(now_ns) | self.rebuild.totals()

    @method
    def is_idle(self):
        """Return whether every request is complete."""
        return self.counts[OUTSTANDING] == 0

    @method
    def reserved(self):
        """Return how many device requests and events the waiting segments can need."""
        return self.counts[RESERVED]

    @method
    def has_room(self, demand):
        """Return whether `demand` more groups and device requests fit."""
        return (
            self.groups.free[1] >= demand
            and self.device.room() >= demand + self.reserved()
            and self.line.has_room(demand)
        )

    @method
    def submit(self, now, tag, op, offset, length, events):
        """Take a request, its op with flags; `complete` or `wake` will return its tag."""
        self.counts[OUTSTANDING] += 1
        if self.line.depth == 0 or self.line.lets_in():
            self.begin(now, tag, op, offset, length, events)
        else:
            self.line.push(tag, op, offset, length)

    @method
    def submit_background(self, now, tag, op, offset, length, events):
        """Take a write that nobody waits for; nothing holds it up here."""
        self.submit(now, tag, op, offset, length, events)

    @method
    def holds_back(self):
        """Return whether the last background write waits in front of the tier: never."""
        return False

    @method
    def begin(self, now, tag, op, offset, length, events):
        """Issue a request to the members."""
        if self.has_fua == 0 and op & FUA != 0:
            op ^= FUA
            tag = np.int64(tag) | FLUSH_AFTER
        if self.members == 1 and op <= Op.WRITE and length > 0:
            self.issue(now, 2 * tag, 0, op, offset, length, events)
            return
        plain = op & OP_MASK
        if length == 0 or plain == Op.FLUSH or (plain == Op.DISCARD and self.is_redundant()):
            group = self.groups.take(NOTHING, tag)
            self.fork_to_all(now, group, plain, events)
        elif plain == Op.READ:
            self.transfer(now, tag, plain, offset, length, events)
        elif op & PREFLUSH != 0:
            group = self.groups.take(NOTHING, tag)
            self.groups.then[group] = FLUSHED
            self.groups.op[group] = Op.WRITE | (op & FUA)
            self.groups.offset[group] = offset
            self.groups.length[group] = length
            self.fork_to_all(now, group, Op.FLUSH, events)
        else:
            self.transfer(now, tag, op, offset, length, events)

    @method
    def is_redundant(self):
        """Return whether the members hold redundant data."""
        return self.layout.copies > 1 or self.layout.parities > 0

    @method
    def complete(self, now, number, events):
        """Take a device's completion; return the tag of a request that it completes, or -1."""
        code = self.device.complete(now, number, self.kind, events)
        if code < 0:
            return NOTHING
        self.usage.end(now, code & ((1 << self.member_bits) - 1))
        code >>= self.member_bits
        if code & 1 == 0:
            return self.done(now, code >> 1, events)
        return self.end_part(now, code >> 1, events)

    @method
    def wake(self, now, number, events):
        """Take a timer event; return the tag of a request that it completes, or -1."""
        if number < REBUILD_TIMER:
            return self.completed(now, ARRIVED - number, events)
        if number != REBUILD_TIMER:  # a segment that was written with another one
            self.counts[RESERVED] -= 1
            return self.end_part(now, number - 1, events)
        if self.rebuild.state[WAKE_NS] == now:
            self.rebuild.state[WAKE_NS] = NEVER
            go_on_rebuilding(self, now, events)
        return NOTHING

    @method
    def own_event(self, now, number, events):
        """Ignore an event of a controller."""
        return NOTHING

    @method
    def done(self, now, tag, events):
        """Return the tag of a request whose members are done; -1 while it is on the path back."""
        if tag >= FLUSH_AFTER:
            group = self.groups.take(NOTHING, tag ^ FLUSH_AFTER)
            self.fork_to_all(now, group, Op.FLUSH, events)
            return NOTHING
        if self.path_latency_ns == 0:
            return self.completed(now, tag, events)
        events.push(now + self.path_latency_ns, self.timer, ARRIVED - tag)
        return NOTHING

    @method
    def completed(self, now, tag, events):
        """Count a completed request; return its tag."""
        self.counts[OUTSTANDING] -= 1
        line = self.line
        entry = line.left() if line.depth > 0 else NOTHING
        if entry != NOTHING:  # the next one that waits
            offset, length = line.offset[entry], line.length[entry]
            self.begin(now, line.tag[entry], line.op[entry], offset, length, events)
        if self.counts[OUTSTANDING] == 0 and self.rebuild.is_under_way():
            self.rebuild.state[IDLE_NS] = now
            go_on_rebuilding(self, now, events)
        return tag

    @method
    def end_part(self, now, group, events):
        """Count a completed part of a group; return the tag of a completed request, or -1."""
        groups = self.groups
        while True:
            groups.pending[group] -= 1
            if groups.pending[group] > 0:
                return NOTHING
            then = groups.then[group]
            if then == READING:
                write_segment(self, now, group, events)
                return NOTHING
            tag = groups.tag[group]
            parent = groups.parent[group]
            if then == WRITING:
                end_segment(self, now, group, events)
            elif then != JOIN:
                self.go_on(now, group, then, events)
                return NOTHING
            give_back(groups, group)
            if parent == NOTHING:
                return self.done(now, tag, events)
            group = parent

    @method
    def go_on(self, now, group, then, events):
        """Start the next step of a group that is not part of a write."""
        groups = self.groups
        if then == COPY_READ:
            write_copy(self, now, group, events)
            return
        tag = groups.tag[group]
        give_back(groups, group)
        if then == COPY_WRITTEN:
            end_copy(self, now, tag, events)
        else:
            offset, length = groups.offset[group], groups.length[group]
            self.transfer(now, tag, groups.op[group], offset, length, events)

    @method
    def issue(self, now, code, member, op, offset, length, events):
        """Issue a device request."""
        self.usage.begin(now, member)
        if self.layout.copies > 1:
            self.head[member] = offset + length
        code = code << self.member_bits | member
        self.device.submit(now, member, code, op, offset, length, self.kind, events)

    @method
    def fork(self, now, group, member, op, offset, length, events):
        """Issue one device request of a group."""
        self.groups.pending[group] += 1
        self.issue(now, 2 * group + 1, member, op, offset, length, events)

    @method
    def fork_to_all(self, now, group, op, events):
        """Send a request without data to every member that is present."""
        for member in range(self.members):
            if self.state[member] != FAILED:
                self.fork(now, group, member, op, 0, 0, events)

    @method
    def transfer(self, now, tag, op, offset, length, events):
        """Read from the members that have the data, or write to all that hold it or its parity."""
        layout = self.layout
        reads, has_parity = op == Op.READ, layout.parities > 0
        if reads or (layout.copies == 1 and not has_parity):
            end = offset + length - 1
            if self.members == 1 or offset // layout.chunk_bytes == end // layout.chunk_bytes:
                member, start = self.source(offset, length)
                if not has_parity or self.can_read(member, start + length):
                    self.issue(now, 2 * tag, member, op, start, length, events)
                    return
        group = self.groups.take(NOTHING, tag)
        if has_parity and not reads:
            cut_rows(self, now, group, op, offset, length, events)
            return
        if has_parity and self.counts[LOST] > 0:
            cut_rows(self, now, group, op, offset, length, events)
        else:
            gather_chunks(self, now, group, op, offset, length, events)
        issue_gathered(self, now, group, op, events)

    @method
    def can_read(self, member, end):
        """Return whether a member has its data up to a byte."""
        state = self.state[member]
        return state == WHOLE or (state == REBUILDING and end <= self.rebuild.state[LINE])

    @method
    def source(self, offset, length):
        """Return the member to read a part of a chunk from, and the first byte on it."""
        layout = self.layout
        chunk = offset // layout.chunk_bytes
        within = offset % layout.chunk_bytes
        if layout.copies > 1:
            return mirror(self, chunk, within, length)
        if layout.parities > 0:
            data = layout.members - layout.parities
            row = chunk // data
            member = (layout.first_member(row) + chunk % data) % layout.members
            return member, row * layout.chunk_bytes + within
        member, row = layout.place(chunk, 0)
        return member, row * layout.chunk_bytes + within


# Requests of arrays without parity, and which copy is read.


@kernel
def mirror(tier, chunk, within, length):
    """Return the member and start of the copy of a chunk to read, mostly as md does."""
    layout = tier.layout
    best = NOTHING
    best_start = least = 0
    for copy in range(layout.copies):
        member, row = layout.place(chunk, copy)
        start = row * layout.chunk_bytes + within
        if not tier.can_read(member, start + length):
            continue
        if layout.spread != Spread.NEAR or tier.head[member] == start:
            best, best_start = member, start
            break
        if tier.next_read[member] == start:
            best, best_start = member, start
            break
        cost = tier.usage.under_way[member]
        if tier.rotates == 1 and cost > 0:
            cost = 1 + abs(start - tier.head[member])
        if best == NOTHING or cost < least:
            best, best_start, least = member, start, cost
    tier.next_read[best] = best_start + length
    return best, best_start


@kernel
def gather_chunks(tier, now, group, op, offset, length, events):
    """Gather the range on each member; a write goes to every copy."""
    layout = tier.layout
    end = offset + length
    at = offset
    while at < end:
        chunk = at // layout.chunk_bytes
        upto = min((chunk + 1) * layout.chunk_bytes, end)
        if op == Op.READ or layout.copies == 1:
            member, start = tier.source(at, upto - at)
            gather(tier, now, group, member, op, start, start + upto - at, events)
        else:
            within = at % layout.chunk_bytes
            for copy in range(layout.copies):
                member, row = layout.place(chunk, copy)
                start = row * layout.chunk_bytes + within
                if tier.state[member] != FAILED:
                    gather(tier, now, group, member, op, start, start + upto - at, events)
        at = upto


@kernel
def gather(tier, now, group, member, op, start, end, events):
    """Add a piece to a member's range; issue the old range if the piece does not continue it."""
    if tier.open_start[member] != NOTHING and tier.open_end[member] != start:
        issue_open(tier, now, group, member, op, events)
    if tier.open_start[member] == NOTHING:
        tier.open_start[member] = start
    tier.open_end[member] = end


@kernel
def issue_open(tier, now, group, member, op, events):
    """Issue the range gathered for a member."""
    start = tier.open_start[member]
    tier.fork(now, group, member, op, start, tier.open_end[member] - start, events)
    tier.open_start[member] = NOTHING


@kernel
def issue_gathered(tier, now, group, op, events):
    """Issue all gathered ranges, in order of member."""
    for member in range(tier.members):
        if tier.open_start[member] != NOTHING:
            issue_open(tier, now, group, member, op, events)


# Writes to rows with parity, and reads of degraded rows.


@kernel
def rival_of(tier, segment):
    """Return the youngest of the older segments that share stripes with one, or NOTHING."""
    groups, result = tier.groups, NOTHING
    other = tier.stripes.first[groups.row[segment] % BUCKETS]
    while other != NOTHING and other != segment:
        if groups.share_stripes(segment, other):
            result = other
        other = groups.next[other]
    return result


@kernel
def cut_rows(tier, now, whole, op, offset, length, events):
    """Split a request at the borders of rows."""
    row_bytes = (tier.members - tier.layout.parities) * tier.layout.chunk_bytes
    end = offset + length
    at = offset
    while at < end:
        row = at // row_bytes
        upto = min((row + 1) * row_bytes, end)
        begin = at - row * row_bytes
        cut_row(tier, now, whole, op, row, begin, upto - row * row_bytes, events)
        at = upto


@kernel
def cut_row(tier, now, whole, op, row, begin, end, events):
    """Split bytes begin..end of a row's data into up to three segments of equal members."""
    chunk = tier.layout.chunk_bytes
    first = begin // chunk
    last = (end - 1) // chunk
    head = begin % chunk
    tail = (end - 1) % chunk + 1
    if first == last:
        take_segment(tier, now, whole, op, row, head, tail, first, last, events)
        return
    low = min(head, tail)
    high = max(head, tail)
    start = 0
    for stop in (low, high, chunk):
        from_index = first if start >= head else first + 1
        to_index = last if stop <= tail else last - 1
        if stop > start and from_index <= to_index:
            take_segment(tier, now, whole, op, row, start, stop, from_index, to_index, events)
        start = stop


@kernel
def take_segment(tier, now, whole, op, row, start, stop, first, last, events):
    """Read or write bytes start..stop of the chunks first..last of a row."""
    base = row * tier.layout.chunk_bytes
    if op == Op.READ:
        read_segment(tier, now, whole, row, base + start, base + stop, first, last, events)
        return
    groups = tier.groups
    groups.pending[whole] += 1
    group = groups.take(whole, groups.tag[whole])
    groups.op[group] = op
    groups.row[group] = row
    groups.first[group] = first
    groups.last[group] = last
    groups.offset[group] = base + start
    groups.length[group] = stop - start
    groups.joined[group] = NOTHING
    rival = rival_of(tier, group)
    if rival == NOTHING:
        tier.stripes.append(row % BUCKETS, group, groups.next)
        start_segment(tier, now, group, events)
    elif groups.can_join(group, rival, tier.members - tier.layout.parities):
        join(tier, group, rival)
    else:
        tier.stripes.append(row % BUCKETS, group, groups.next)
        groups.then[group] = BLOCKED
        tier.counts[RESERVED] += tier.members


@kernel
def join(tier, group, rival):
    """Make a segment that has not started to write include another one."""
    groups = tier.groups
    groups.pending[group] = 1
    groups.first[rival] = min(groups.first[rival], groups.first[group])
    groups.last[rival] = max(groups.last[rival], groups.last[group])
    groups.op[rival] |= groups.op[group]
    groups.next[group] = NOTHING
    tier.counts[RESERVED] += 1
    if groups.joined[rival] == NOTHING:
        groups.joined[rival] = group
        return
    other = groups.joined[rival]
    while groups.next[other] != NOTHING:
        other = groups.next[other]
    groups.next[other] = group


@kernel
def read_segment(tier, now, whole, row, start, stop, first, last, events):
    """Gather the chunks to read; if one is lost, the whole rest of the row."""
    is_lost = False
    begin = tier.layout.first_member(row)
    for index in range(first, last + 1):
        if not tier.can_read((begin + index) % tier.members, stop):
            is_lost = True
    for member in range(tier.members):
        index = (member - begin) % tier.members
        wanted = tier.can_read(member, stop) if is_lost else first <= index <= last
        if wanted:
            gather(tier, now, whole, member, Op.READ, start, stop, events)


@kernel
def start_segment(tier, now, group, events):
    """Read the data that the new parity needs; write at once if it needs none."""
    groups = tier.groups
    first = groups.first[group]
    last = groups.last[group]
    data = tier.members - tier.layout.parities
    if last - first + 1 == data:
        write_segment(tier, now, group, events)
        return
    modified_lost, others_lost = losses(tier, group)
    modify = modifies(tier, last - first + 1, modified_lost, others_lost)
    everything = (modified_lost or tier.rmw_level == 0) and others_lost
    groups.then[group] = READING
    begin = tier.layout.first_member(groups.row[group])
    offset, length = groups.offset[group], groups.length[group]
    for member in range(tier.members):
        index = (member - begin) % tier.members
        modified = index >= data or first <= index <= last
        if everything:
            reads = tier.can_read(member, offset + length)
        else:
            reads = modified == modify
        if reads:
            tier.fork(now, group, member, Op.READ, offset, length, events)


@kernel
def modifies(tier, written, modified_lost, others_lost):
    """Return whether to read old data and parity (read-modify-write), not the other data."""
    if modified_lost or tier.rmw_level == 0:
        return False
    if others_lost:
        return True
    reads = written + tier.layout.parities
    others = tier.members - tier.layout.parities - written
    return reads < others or (reads == others and tier.rmw_level == 2)


@kernel
def losses(tier, group):
    """Return whether old data or parity of a segment is lost, and whether other data is."""
    modified_lost = others_lost = False
    if tier.counts[LOST] == 0:
        return modified_lost, others_lost
    groups = tier.groups
    begin = tier.layout.first_member(groups.row[group])
    data = tier.members - tier.layout.parities
    for member in range(tier.members):
        if tier.can_read(member, groups.offset[group] + groups.length[group]):
            continue
        index = (member - begin) % tier.members
        if index >= data or groups.first[group] <= index <= groups.last[group]:
            modified_lost = True
        else:
            others_lost = True
    return modified_lost, others_lost


@kernel
def write_segment(tier, now, group, events):
    """Write a segment's data and parity."""
    groups = tier.groups
    groups.then[group] = WRITING
    first, last = groups.first[group], groups.last[group]
    data = tier.members - tier.layout.parities
    begin = tier.layout.first_member(groups.row[group])
    offset, length = groups.offset[group], groups.length[group]
    for member in range(tier.members):
        index = (member - begin) % tier.members
        if tier.state[member] != FAILED and (index >= data or first <= index <= last):
            tier.fork(now, group, member, groups.op[group], offset, length, events)


@kernel
def end_segment(tier, now, group, events):
    """Complete the segments that joined a segment, and start those that waited for it."""
    groups = tier.groups
    row = groups.row[group]
    tier.stripes.remove(row % BUCKETS, group, groups.next)
    for joined in along(groups.joined[group], groups.next):
        events.push(now, tier.timer, joined + 1)
    other = tier.stripes.first[row % BUCKETS]
    while other != NOTHING:
        is_blocked = groups.row[other] == row and groups.then[other] == BLOCKED
        if is_blocked and rival_of(tier, other) == NOTHING:
            tier.counts[RESERVED] -= tier.members
            start_segment(tier, now, other, events)
        other = groups.next[other]


# The rebuild of a replaced member under load, piece by piece.


@kernel
def go_on_rebuilding(tier, now, events):
    """Start the pieces that may start now; schedule the start of the next one."""
    rebuild = tier.rebuild
    at = rebuild.next_ns(now, tier.counts[OUTSTANDING])
    while at == now:
        read_copy(tier, now, rebuild.begin(now), events)
        at = rebuild.next_ns(now, tier.counts[OUTSTANDING])
    if at < rebuild.state[WAKE_NS]:
        rebuild.state[WAKE_NS] = at
        events.push(at, tier.timer, REBUILD_TIMER)


@kernel
def read_copy(tier, now, piece, events):
    """Read the data from which a piece is computed or copied."""
    layout, rebuild, groups = tier.layout, tier.rebuild, tier.groups
    start = rebuild.start_of(piece)
    length = rebuild.length_of(piece)
    group = groups.take(NOTHING, piece)
    groups.then[group] = COPY_READ
    groups.offset[group] = start
    groups.length[group] = length
    if layout.parities > 0:
        for member in range(tier.members):
            if tier.state[member] == WHOLE:
                tier.fork(now, group, member, Op.READ, start, length, events)
    else:
        read_other_copy(tier, now, group, start, length, events)
    if groups.pending[group] == 0:
        write_copy(tier, now, group, events)  # a place without a chunk


@kernel
def read_other_copy(tier, now, group, start, length, events):
    """Read the data of a piece from the first member that has a copy."""
    layout = tier.layout
    chunk, own = layout.chunk_at(tier.rebuild.member, start // layout.chunk_bytes)
    if own == layout.copies or chunk >= tier.capacity_bytes // layout.chunk_bytes:
        return
    for copy in range(layout.copies):
        member, row = layout.place(chunk, copy)
        if tier.state[member] == WHOLE:
            at = row * layout.chunk_bytes + start % layout.chunk_bytes
            tier.fork(now, group, member, Op.READ, at, length, events)
            return


@kernel
def write_copy(tier, now, group, events):
    """Write a piece to the replaced member."""
    groups = tier.groups
    groups.then[group] = COPY_WRITTEN
    offset, length = groups.offset[group], groups.length[group]
    tier.fork(now, group, tier.rebuild.member, Op.WRITE, offset, length, events)


@kernel
def end_copy(tier, now, piece, events):
    """Advance the rebuilt range; after the last piece the array is whole again."""
    tier.rebuild.end(now, piece)
    if tier.rebuild.is_under_way():
        go_on_rebuilding(tier, now, events)
    else:
        tier.state[tier.rebuild.member] = WHOLE
        tier.counts[LOST] -= 1
