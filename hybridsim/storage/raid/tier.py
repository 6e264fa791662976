"""A tier: equal devices combined to an array; requests are split over them and joined again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled, grown_pool, pool_of
from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Op
from hybridsim.foundation.machine_parameters import ArrayParameters, RebuildParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import FAST_TIMER, SLOW, SLOW_TIMER, Events
from hybridsim.jit.lists import NOTHING, Fifos, give_back, taken
from hybridsim.storage.raid.layout import (
    FAILED,
    REBUILDING,
    WHOLE,
    Layout,
    gather_chunks,
    issue_gathered,
    mirror,
)
from hybridsim.storage.raid.parity import (
    BUCKETS,
    COPY_READ,
    COPY_WRITTEN,
    FLUSHED,
    JOIN,
    LOST,
    OUTSTANDING,
    READING,
    RESERVED,
    WRITING,
    Groups,
    cut_rows,
    end_segment,
    write_segment,
)
from hybridsim.storage.raid.rebuild import (
    IDLE_NS,
    LINE,
    NEVER,
    REBUILD_TIMER,
    WAKE_NS,
    WINDOW,
    Rebuild,
    end_copy,
    go_on_rebuilding,
    write_copy,
)


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

    def grown(self, capacity: int) -> Line:
        """Return the same queue with room for `capacity` requests."""
        return grown_pool(self, capacity, self._fields[1:5])

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
    open_start: Ints  # by member: range of a request being gathered
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
            self.read(now, tag, offset, length, events)
        elif op & PREFLUSH != 0:
            group = self.groups.take(NOTHING, tag)
            self.groups.then[group] = FLUSHED
            self.groups.op[group] = Op.WRITE | (op & FUA)
            self.groups.offset[group] = offset
            self.groups.length[group] = length
            self.fork_to_all(now, group, Op.FLUSH, events)
        else:
            self.write(now, tag, op, offset, length, events)

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
            self.write(now, tag, groups.op[group], offset, length, events)

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

    # Reads, and writes without parity.

    @method
    def read(self, now, tag, offset, length, events):
        """Read from the members that have the data."""
        layout = self.layout
        with_parity = layout.parities > 0
        if offset // layout.chunk_bytes == (offset + length - 1) // layout.chunk_bytes:
            member, start = self.source(offset, length)
            if not with_parity or self.can_read(member, start + length):
                self.issue(now, 2 * tag, member, Op.READ, start, length, events)
                return
        group = self.groups.take(NOTHING, tag)
        self.open_start[:] = NOTHING
        if with_parity and self.counts[LOST] > 0:
            cut_rows(self, now, group, Op.READ, offset, length, events)
        else:
            gather_chunks(self, now, group, Op.READ, offset, length, events)
        issue_gathered(self, now, group, Op.READ, events)

    @method
    def write(self, now, tag, op, offset, length, events):
        """Write to all members that hold the data or its parity."""
        if self.members == 1:
            self.issue(now, 2 * tag, 0, op, offset, length, events)
            return
        layout = self.layout
        if layout.copies == 1 and layout.parities == 0:
            if offset // layout.chunk_bytes == (offset + length - 1) // layout.chunk_bytes:
                member, start = self.source(offset, length)
                self.issue(now, 2 * tag, member, op, start, length, events)
                return
        group = self.groups.take(NOTHING, tag)
        if layout.parities > 0:
            cut_rows(self, now, group, op, offset, length, events)
            return
        self.open_start[:] = NOTHING
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
