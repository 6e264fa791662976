"""The rebuild of a replaced member under load, piece by piece (DESIGN.md 2.5.4).

Each function takes the tier of that member.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints, filled
from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import RebuildParameters
from hybridsim.jit import kernel, method, state_machine
from hybridsim.storage.raid.layout import WHOLE, Layout
from hybridsim.storage.raid.parity import COPY_READ, COPY_WRITTEN, LOST, OUTSTANDING

NOTHING = -1
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
