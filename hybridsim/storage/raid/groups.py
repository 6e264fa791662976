"""Groups of device requests that belong together, and the segments that write to a stripe."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, grown_pool, pool_of
from hybridsim.jit import method, state_machine

NOTHING = -1

# The step of a group when nothing is pending any more; a BLOCKED segment waits to start.
JOIN, FLUSHED, BLOCKED, READING, WRITING, COPY_READ, COPY_WRITTEN = range(7)

STRIPE_BYTES = 4096  # unit in which md serialises writes
BUCKETS = 1024

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
    next_free: Int32s
    free: Ints  # [first free group, number of free groups]

    @classmethod
    def new(cls, capacity: int) -> Groups:
        """Return room for `capacity` groups."""
        return pool_of(cls, capacity)

    def grown(self, capacity: int) -> Groups:
        """Return the same groups with room for `capacity`."""
        return grown_pool(self, capacity)

    @method
    def take(self, parent, tag):
        """Allocate a group with nothing pending."""
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
        """Free a group."""
        self.next_free[group] = self.free[0]
        self.free[0] = group
        self.free[1] += 1

    @method
    def share_stripes(self, one, other):
        """Return whether two segments of a row have bytes in the same stripe."""
        return (
            self.offset[one] // STRIPE_BYTES
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


@state_machine
class Stripes(NamedTuple):
    """The segments being written or waiting, by row, in order of arrival."""

    bucket: Int32s  # first segment of the rows that share a bucket, or NOTHING

    @classmethod
    def new(cls) -> Stripes:
        """Return an empty table."""
        return cls(np.full(BUCKETS, NOTHING, np.int32))

    @method
    def first(self, row):
        """Return the oldest segment in the bucket of a row, or NOTHING."""
        return self.bucket[row % BUCKETS]

    @method
    def rival(self, groups, new):
        """Return the youngest segment that shares stripes with a new one, or NOTHING."""
        result = NOTHING
        other = self.first(groups.row[new])
        while other != NOTHING:
            if groups.row[other] == groups.row[new] and groups.share_stripes(new, other):
                result = other
            other = groups.next[other]
        return result

    @method
    def add(self, groups, new):
        """Add a segment after the others of its row."""
        groups.next[new] = NOTHING
        bucket = groups.row[new] % BUCKETS
        other = self.bucket[bucket]
        if other == NOTHING:
            self.bucket[bucket] = new
            return
        while groups.next[other] != NOTHING:
            other = groups.next[other]
        groups.next[other] = new

    @method
    def remove(self, groups, gone):
        """Remove a segment."""
        bucket = groups.row[gone] % BUCKETS
        other = self.bucket[bucket]
        if other == gone:
            self.bucket[bucket] = groups.next[gone]
            return
        while groups.next[other] != gone:
            other = groups.next[other]
        groups.next[other] = groups.next[gone]

    @method
    def is_free(self, groups, waiting):
        """Return whether no older segment shares stripes with a waiting one."""
        other = self.first(groups.row[waiting])
        while other != waiting:
            if groups.row[other] == groups.row[waiting] and groups.share_stripes(waiting, other):
                return False
            other = groups.next[other]
        return True
