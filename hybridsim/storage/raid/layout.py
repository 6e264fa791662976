"""Where an array's chunks lie on its members, for all RAID levels, and which copy is read.

Of arrays without parity also the parts of a request on the members (DESIGN.md 2.5.2).
"""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.foundation.codes import Level, Op, Spread
from hybridsim.jit import kernel, method, state_machine

NOTHING = -1
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
