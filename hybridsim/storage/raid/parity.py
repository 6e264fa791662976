"""Groups of device requests; writes to rows with parity, and reads of degraded rows.

Each function takes the tier of these rows (DESIGN.md 2.5.3).
"""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.foundation.arrays import Bytes, Int32s, Ints
from hybridsim.foundation.codes import Op
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.lists import NOTHING, taken
from hybridsim.storage.raid.layout import FAILED, gather

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
    joined = groups.joined[group]
    while joined != NOTHING:
        events.push(now, tier.timer, joined + 1)
        joined = groups.next[joined]
    other = tier.stripes.first[row % BUCKETS]
    while other != NOTHING:
        is_blocked = groups.row[other] == row and groups.then[other] == BLOCKED
        if is_blocked and rival_of(tier, other) == NOTHING:
            tier.counts[RESERVED] -= tier.members
            start_segment(tier, now, other, events)
        other = groups.next[other]
