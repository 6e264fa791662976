"""The parts of a request on the members of an array without parity (DESIGN.md 2.5.2)."""

from __future__ import annotations

from hybridsim.foundation.codes import Op
from hybridsim.jit import kernel
from hybridsim.storage.raid.layout import FAILED

READ = int(Op.READ)
NOTHING = -1


@kernel
def gather_chunks(tier, now, group, op, offset, length, events):
    """Gather the range on each member; a write goes to every copy."""
    layout = tier.layout
    end = offset + length
    at = offset
    while at < end:
        chunk = at // layout.chunk_bytes
        upto = min((chunk + 1) * layout.chunk_bytes, end)
        if op == READ or layout.copies == 1:
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
