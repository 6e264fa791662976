"""Requests in flight, the batches they come from and the facts that they record."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, columns_of, grown_pool, pool_of
from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, SYNC, Op, Path, Reason
from hybridsim.jit import method, state_machine
from hybridsim.jit.lists import NOTHING, give_back, taken

NO_STREAMS = np.zeros(0, np.int64)


@state_machine
class Batch(NamedTuple):
    """Requests to come, in order of arrival; columns of equal length."""

    arrival_ns: Ints  # divided by the speed
    op: Bytes  # codes.Op; a WRITE may have FUA, PREFLUSH and SYNC
    offset: Ints
    length: Ints
    parent: Ints  # think: number of the request that this one waits for, or -1
    gap_ns: Ints  # think: how long after the parent's completion it is issued
    state: Ints  # [next row, 1 if no batch follows, number of row 0]
    stream: Ints = NO_STREAMS  # the process of each request; empty: all the same

    @classmethod
    def empty(cls) -> Batch:
        """Return a batch of no requests, with more to follow."""
        none = np.zeros(0, np.int64)
        return cls(none, np.zeros(0, np.uint8), none, none, none, none, np.zeros(3, np.int64))

    @method
    def left(self):
        """Return how many requests are left in the batch."""
        return len(self.arrival_ns) - self.state[0]

    @method
    def is_last(self):
        """Return whether no batch follows."""
        return self.state[1] == 1


@state_machine
class Facts(NamedTuple):
    """What happened to each request, in order of completion; nothing is aggregated here."""

    number: Ints
    issue_ns: Ints
    done_ns: Ints
    op: Bytes
    length: Ints
    path: Bytes
    reason: Bytes
    pages: Int32s
    pages_hit: Int32s
    used: Ints  # [rows written]

    @classmethod
    def new(cls, rows: int) -> Facts:
        """Return an empty table with room for `rows` facts."""
        *columns, _ = columns_of(cls, rows)
        return cls._make([*columns, np.zeros(1, np.int64)])

    def drained(self) -> Facts:
        """Return a copy of the rows written, and restart at the first row."""
        used = int(self.used[0])
        self.used[0] = 0
        columns = (column[:used].copy() for column in self[:-1])
        return Facts._make([*columns, np.array([used])])


@state_machine
class InFlight(NamedTuple):
    """The requests loaded or outstanding, one slot each."""

    number: Ints
    issue_ns: Ints
    op: Bytes
    flags: Bytes  # FUA, PREFLUSH
    offset: Ints
    length: Ints
    path: Bytes
    reason: Bytes
    pages: Int32s
    pages_hit: Int32s
    pending: Int32s  # its parts that the tiers have not completed
    promoted: Int32s  # first page reserved for it, or -1 (the cache links the pages)
    last_promoted: Int32s
    stream: Ints
    is_sync: Bytes
    following: Int32s  # of a free slot: the next free one
    free: Ints  # [first free slot, free slots]

    @classmethod
    def new(cls, capacity: int) -> InFlight:
        """Return an empty pool with room for `capacity` requests."""
        return pool_of(cls, capacity)

    def grown(self, capacity: int) -> InFlight:
        """Return the same requests with room for `capacity`."""
        return grown_pool(self, capacity)

    @method
    def take(self, batch):
        """Move the next request of the batch into a free slot; return the slot."""
        row = batch.state[0]
        batch.state[0] += 1
        return self.take_row(batch, row, batch.state[2] + row)

    @method
    def take_row(self, batch, row, number):
        """Move a request into a free slot; return the slot."""
        stream = batch.stream[row] if len(batch.stream) > 0 else 0
        return self.take_new(number, batch.op[row], batch.offset[row], batch.length[row], stream)

    @method
    def take_new(self, number, op, offset, length, stream):
        """Put a request into a free slot; return the slot."""
        slot = taken(self)
        self.put(slot, number, op, offset, length)
        self.stream[slot] = stream
        return slot

    @method
    def put(self, slot, number, op, offset, length):
        """Put a request into a slot; the cache, which gets it next, changes path and reason."""
        self.number[slot] = number
        self.op[slot] = op & OP_MASK
        self.flags[slot] = op & (FUA | PREFLUSH)
        self.is_sync[slot] = 1 if op & SYNC != 0 else 0
        self.offset[slot] = offset
        self.length[slot] = length
        self.path[slot] = Path.BYPASS
        if op & OP_MASK == Op.FLUSH or length == 0:
            self.reason[slot] = Reason.FLUSH
        else:
            self.reason[slot] = Reason.DISCARD if op & OP_MASK == Op.DISCARD else Reason.WRITE
        self.pending[slot] = self.pages[slot] = self.pages_hit[slot] = 0
        self.promoted[slot] = NOTHING

    @method
    def record(self, slot, done_ns, facts):
        """Write the fact of a completed request."""
        row = facts.used[0]
        facts.used[0] += 1
        facts.number[row] = self.number[slot]
        facts.issue_ns[row] = self.issue_ns[slot]
        facts.done_ns[row] = done_ns
        facts.op[row] = self.op[slot]
        facts.length[row] = self.length[slot]
        facts.path[row] = self.path[slot]
        facts.reason[row] = self.reason[slot]
        facts.pages[row] = self.pages[slot]
        facts.pages_hit[row] = self.pages_hit[slot]

    @method
    def release(self, slot):
        """Free the slot."""
        give_back(self, slot)
