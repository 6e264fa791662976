"""A tier: equal devices joined to an array; requests are forked over them and joined again."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.arrays import Bytes, Int32s, Ints, extended_free_list, free_list, longer
from hybridsim.codes import Level, Op
from hybridsim.jit import method, state_machine

READ, WRITE, DISCARD, FLUSH = int(Op.READ), int(Op.WRITE), int(Op.DISCARD), int(Op.FLUSH)
RAID5 = int(Level.RAID5)
NOTHING = -1

# What a group does when its pending requests have completed.
JOIN, WRITE_SEGMENT = 0, 1


@state_machine
class Groups(NamedTuple):
    """Requests that wait for several others; a group is joined when `pending` falls to 0."""

    pending: Int32s
    then: Bytes  # JOIN or WRITE_SEGMENT
    parent: Int32s  # group that waits for this one, or NOTHING
    tag: Ints  # of the tier's request (of the outermost group)
    first_member: Int32s  # segment of a RAID-5 row: member of data index 0,
    first_written: Int32s  #   the data indices written, which follow each other,
    last_written: Int32s
    offset: Ints  #   and the range on every member
    length: Ints
    next_free: Int32s
    free: Ints  # [first free group, free groups]

    @classmethod
    def new(cls, capacity: int) -> Groups:
        """Make room for `capacity` groups."""
        members = (np.int32, np.int32, np.int32)
        kinds = (np.int32, np.uint8, np.int32, np.int64, *members, np.int64, np.int64)
        columns = (np.zeros(capacity, kind) for kind in kinds)
        return cls._make([*columns, free_list(capacity), np.array([0, capacity])])

    def grown(self, capacity: int) -> Groups:
        """Return the same groups with room for `capacity`."""
        added = capacity - len(self.pending)
        links, head = extended_free_list(self.next_free, int(self.free[0]), capacity)
        free = np.array([head, self.free[1] + added])
        columns = (longer(column, capacity) for column in self[:-2])
        return Groups._make([*columns, links, free])

    @method
    def take(self, parent, tag):
        """Open a group with nothing pending."""
        group = self.free[0]
        self.free[0] = self.next_free[group]
        self.free[1] -= 1
        self.pending[group] = 0
        self.then[group] = JOIN
        self.parent[group] = parent
        self.tag[group] = tag
        return group

    @method
    def release(self, group):
        """Give a group back."""
        self.next_free[group] = self.free[0]
        self.free[0] = group
        self.free[1] += 1


@state_machine
class Tier(NamedTuple):
    """An array of equal devices (DESIGN.md 2.5).

    A device request carries 2 * tag if it is the whole of a tier request, else 2 * group + 1.
    """

    kind: int  # events.SLOW or events.FAST
    level: int
    members: int
    chunk_bytes: int
    capacity_bytes: int
    groups: Groups
    open_start: Ints  # per member: range of a request being gathered
    open_end: Ints
    device: Any  # HDD, SSD, ...

    @classmethod
    def new(cls, kind: int, level: int, members: int, chunk_bytes: int, device: Any) -> Tier:
        """Join the members of a device bank; capacity is what whole rows of chunks hold."""
        rows = int(device.capacity_bytes) // chunk_bytes
        data_members = members - 1 if level == RAID5 else members
        return cls(
            kind=kind,
            level=level,
            members=members,
            chunk_bytes=chunk_bytes,
            capacity_bytes=int(device.capacity_bytes)
            if members == 1
            else rows * data_members * chunk_bytes,
            groups=Groups.new(256),
            open_start=np.zeros(members, np.int64),
            open_end=np.zeros(members, np.int64),
            device=device,
        )

    def demand(self, request_bytes: int) -> int:
        """Return how many groups or device requests one request of that length can take at most."""
        chunks = request_bytes // self.chunk_bytes + 2
        return 4 * chunks + 4 * self.members + 4

    @method
    def has_room(self, demand):
        """Tell whether `demand` more groups and device requests fit."""
        return self.groups.free[1] >= demand and self.device.room() >= demand

    @method
    def submit(self, now, tag, op, offset, length, events):
        """Take a request; `complete` will return its tag."""
        if op == FLUSH or op == DISCARD or length == 0:
            self.submit_to_all(now, tag, op, events)
        elif self.members == 1:
            self.device.submit(now, 0, 2 * tag, op, offset, length, self.kind, events)
        elif self.level == RAID5 and op == WRITE:
            self.submit_rows(now, tag, offset, length, events)
        elif offset // self.chunk_bytes == (offset + length - 1) // self.chunk_bytes:
            member, at = self.place(offset)
            self.device.submit(now, member, 2 * tag, op, at, length, self.kind, events)
        else:
            self.submit_chunks(now, tag, op, offset, length, events)

    @method
    def complete(self, now, number, events):
        """Take a device's completion; return the tag of a request that it completes, or -1."""
        tag = self.device.complete(now, number, self.kind, events)
        if tag < 0:
            return NOTHING
        if tag & 1 == 0:
            return tag >> 1
        groups = self.groups
        group = tag >> 1
        groups.pending[group] -= 1
        if groups.pending[group] > 0:
            return NOTHING
        if groups.then[group] == WRITE_SEGMENT:
            self.write_segment(now, group, events)
            return NOTHING
        tag = groups.tag[group]
        parent = groups.parent[group]
        groups.release(group)
        if parent == NOTHING:
            return tag
        groups.pending[parent] -= 1
        if groups.pending[parent] > 0:
            return NOTHING
        groups.release(parent)
        return tag

    @method
    def fork(self, now, group, member, op, offset, length, events):
        """Issue one device request of a group."""
        self.groups.pending[group] += 1
        self.device.submit(now, member, 2 * group + 1, op, offset, length, self.kind, events)

    @method
    def submit_to_all(self, now, tag, op, events):
        """Send a request without data to every member."""
        group = self.groups.take(NOTHING, tag)
        for member in range(self.members):
            self.fork(now, group, member, op, 0, 0, events)

    @method
    def place(self, offset):
        """Return the member and the byte on it that a byte of the array lies at."""
        chunk = offset // self.chunk_bytes
        within = offset % self.chunk_bytes
        if self.level == RAID5:
            row = chunk // (self.members - 1)
            member = (self.parity(row) + 1 + chunk % (self.members - 1)) % self.members
            return member, row * self.chunk_bytes + within
        return chunk % self.members, chunk // self.members * self.chunk_bytes + within

    @method
    def parity(self, row):
        """Return the member with the parity of a row: md's left-symmetric layout."""
        return (self.members - 1) - row % self.members

    @method
    def submit_chunks(self, now, tag, op, offset, length, events):
        """Issue what lies on each member, joining pieces that follow each other there."""
        group = self.groups.take(NOTHING, tag)
        self.open_start[:] = NOTHING
        end = offset + length
        at = offset
        while at < end:
            upto = min((at // self.chunk_bytes + 1) * self.chunk_bytes, end)
            member, start = self.place(at)
            if self.open_start[member] != NOTHING and self.open_end[member] != start:
                self.issue_open(now, group, member, op, events)
                self.open_start[member] = NOTHING
            if self.open_start[member] == NOTHING:
                self.open_start[member] = start
            self.open_end[member] = start + upto - at
            at = upto
        for member in range(self.members):
            if self.open_start[member] != NOTHING:
                self.issue_open(now, group, member, op, events)

    @method
    def issue_open(self, now, group, member, op, events):
        """Issue the range gathered for a member."""
        start = self.open_start[member]
        self.fork(now, group, member, op, start, self.open_end[member] - start, events)

    @method
    def submit_rows(self, now, tag, offset, length, events):
        """Write to RAID-5: each row falls into up to three segments with equal members written."""
        whole = self.groups.take(NOTHING, tag)
        row_bytes = (self.members - 1) * self.chunk_bytes
        end = offset + length
        at = offset
        while at < end:
            row = at // row_bytes
            upto = min((row + 1) * row_bytes, end)
            self.submit_row(now, whole, row, at - row * row_bytes, upto - row * row_bytes, events)
            at = upto

    @method
    def submit_row(self, now, whole, row, begin, end, events):
        """Write bytes begin..end of one row's data."""
        chunk = self.chunk_bytes
        first = begin // chunk
        last = (end - 1) // chunk
        head = begin % chunk
        tail = (end - 1) % chunk + 1
        if first == last:
            self.submit_segment(now, whole, row, head, tail, first, last, events)
            return
        low = min(head, tail)
        high = max(head, tail)
        start = 0
        for stop in (low, high, chunk):
            low_index = first if start >= head else first + 1
            high_index = last if stop <= tail else last - 1
            if stop > start and low_index <= high_index:
                self.submit_segment(now, whole, row, start, stop, low_index, high_index, events)
            start = stop

    @method
    def submit_segment(self, now, whole, row, start, stop, first, last, events):
        """Read what the new parity needs, or write at once if it needs nothing."""
        groups = self.groups
        groups.pending[whole] += 1
        group = groups.take(whole, groups.tag[whole])
        groups.first_member[group] = (self.parity(row) + 1) % self.members
        groups.first_written[group] = first
        groups.last_written[group] = last
        groups.offset[group] = row * self.chunk_bytes + start
        groups.length[group] = stop - start
        count = last - first + 1
        others = self.members - 1 - count
        if others == 0:
            self.write_segment(now, group, events)
            return
        groups.then[group] = WRITE_SEGMENT
        modify = count + 1 < others  # read-modify-write only where it reads less, as md does
        for member in range(self.members):
            index = (member - groups.first_member[group]) % self.members
            if index == self.members - 1:
                reads = modify
            else:
                reads = (first <= index <= last) == modify
            if reads:
                offset = groups.offset[group]
                self.fork(now, group, member, READ, offset, groups.length[group], events)

    @method
    def write_segment(self, now, group, events):
        """Write a segment's data and parity."""
        groups = self.groups
        groups.then[group] = JOIN
        for member in range(self.members):
            index = (member - groups.first_member[group]) % self.members
            first, last = groups.first_written[group], groups.last_written[group]
            if index == self.members - 1 or first <= index <= last:
                offset = groups.offset[group]
                self.fork(now, group, member, WRITE, offset, groups.length[group], events)
