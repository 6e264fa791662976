"""What a request is on the members of an array without parity, chunk by chunk (DESIGN.md 2.5.2)."""

from __future__ import annotations

from hybridsim.codes import Op
from hybridsim.jit import kernel
from hybridsim.raid.layout import FAILED

READ = int(Op.READ)


@kernel
def gather_chunks(tier, now, group, op, offset, length, events):
    """Gather what lies on each member; a write goes to every copy."""
    layout = tier.layout
    end = offset + length
    at = offset
    while at < end:
        chunk = at // layout.chunk_bytes
        upto = min((chunk + 1) * layout.chunk_bytes, end)
        if op == READ or layout.copies == 1:
            member, start = tier.source(at, upto - at)
            tier.gather(now, group, member, op, start, start + upto - at, events)
        else:
            within = at % layout.chunk_bytes
            for copy in range(layout.copies):
                member, row = layout.place(chunk, copy)
                start = row * layout.chunk_bytes + within
                if tier.state[member] != FAILED:
                    tier.gather(now, group, member, op, start, start + upto - at, events)
        at = upto
