"""The choice of the copy that is read from mirrored data (DESIGN.md 2.5.2)."""

from __future__ import annotations

from hybridsim.jit import kernel
from hybridsim.storage.raid.layout import NEAR

NOTHING = -1


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
        if layout.spread != NEAR or tier.head[member] == start:
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
