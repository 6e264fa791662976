"""The rebuild of a replaced member, piece by piece (DESIGN.md 2.5.4).

Each function takes the tier of that member.
"""

from __future__ import annotations

from hybridsim.foundation.codes import Op
from hybridsim.jit import kernel
from hybridsim.storage.raid.groups import COPY_READ, COPY_WRITTEN, LOST, OUTSTANDING
from hybridsim.storage.raid.layout import WHOLE
from hybridsim.storage.raid.rebuild import REBUILD_TIMER, WAKE_NS

READ, WRITE = int(Op.READ), int(Op.WRITE)
NOTHING = -1


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
                tier.fork(now, group, member, READ, start, length, events)
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
            tier.fork(now, group, member, READ, at, length, events)
            return


@kernel
def write_copy(tier, now, group, events):
    """Write a piece to the replaced member."""
    groups = tier.groups
    groups.then[group] = COPY_WRITTEN
    offset, length = groups.offset[group], groups.length[group]
    tier.fork(now, group, tier.rebuild.member, WRITE, offset, length, events)


@kernel
def end_copy(tier, now, piece, events):
    """Advance the rebuilt range; after the last piece the array is whole again."""
    tier.rebuild.end(now, piece)
    if tier.rebuild.is_under_way():
        go_on_rebuilding(tier, now, events)
    else:
        tier.state[tier.rebuild.member] = WHOLE
        tier.counts[LOST] -= 1
