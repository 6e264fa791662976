"""Writes to rows with parity, and reads of degraded rows (DESIGN.md 2.5.3).

Each function takes the tier of these rows.
"""

from __future__ import annotations

from hybridsim.foundation.codes import Op
from hybridsim.jit import kernel
from hybridsim.storage.raid.chunks import gather
from hybridsim.storage.raid.groups import BLOCKED, LOST, READING, RESERVED, WRITING
from hybridsim.storage.raid.layout import FAILED

READ = int(Op.READ)
NOTHING = -1


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
    if op == READ:
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
    rival = tier.stripes.rival(groups, group)
    if rival == NOTHING:
        tier.stripes.add(groups, group)
        start_segment(tier, now, group, events)
    elif groups.can_join(group, rival, tier.members - tier.layout.parities):
        join(tier, group, rival)
    else:
        tier.stripes.add(groups, group)
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
            gather(tier, now, whole, member, READ, start, stop, events)


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
            tier.fork(now, group, member, READ, offset, length, events)


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
    tier.stripes.remove(groups, group)
    joined = groups.joined[group]
    while joined != NOTHING:
        events.push(now, tier.timer, joined + 1)
        joined = groups.next[joined]
    row = groups.row[group]
    other = tier.stripes.first(row)
    while other != NOTHING:
        is_blocked = groups.row[other] == row and groups.then[other] == BLOCKED
        if is_blocked and tier.stripes.is_free(groups, other):
            tier.counts[RESERVED] -= tier.members
            start_segment(tier, now, other, events)
        other = groups.next[other]
