"""Operations in progress between bcache and its device, one number each."""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, grown_pool, pool_of
from hybridsim.jit import method, state_machine

NOTHING = -1


@state_machine
class Pieces(NamedTuple):
    """Reads of hits, and writes of parts of inserts."""

    owner: Int32s  # the request, or the insert
    begin: Ints
    end: Ints
    place: Ints
    issue_ns: Ints
    generation: Int32s  # of the bucket at the start of the read
    following: Int32s  # in the insert, or in the free list
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls, room: int) -> Pieces:
        """Return room for `room` pieces."""
        return pool_of(cls, room)

    def grown(self, room: int) -> Pieces:
        """Return the same with room for `room` pieces."""
        return grown_pool(self, room)

    @method
    def take(self, owner, begin, end, place, now):
        """Allocate a piece."""
        piece = self.free[0]
        self.free[0] = self.following[piece]
        self.free[1] -= 1
        self.owner[piece] = owner
        self.begin[piece] = begin
        self.end[piece] = end
        self.place[piece] = place
        self.issue_ns[piece] = now
        self.following[piece] = NOTHING
        return piece

    @method
    def release(self, piece):
        """Free a piece."""
        self.following[piece] = self.free[0]
        self.free[0] = piece
        self.free[1] += 1


@state_machine
class Jobs(NamedTuple):
    """Inserts: ranges that are written to the cache."""

    begin: Ints
    end: Ints
    done: Ints  # end of the part already handled
    task: Ints
    kind: Bytes
    waits: Bytes  # 1: wait until the journal entry is durable
    request: Int32s  # the request that waits for it, or NOTHING
    keys: Int32s  # number of keys for the journal
    pending: Int32s  # number of pieces being written
    first: Int32s  # piece
    last: Int32s
    following: Int32s  # the next one that waits for a bucket, or in the free list
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls, room: int) -> Jobs:
        """Return room for `room` inserts."""
        return pool_of(cls, room)

    def grown(self, room: int) -> Jobs:
        """Return the same with room for `room` inserts."""
        return grown_pool(self, room)

    @method
    def take(self, kind, begin, end, task, request, waits):
        """Allocate an insert."""
        job = self.free[0]
        self.free[0] = self.following[job]
        self.free[1] -= 1
        self.begin[job] = begin
        self.end[job] = end
        self.done[job] = begin
        self.task[job] = task
        self.kind[job] = kind
        self.waits[job] = waits
        self.request[job] = request
        self.keys[job] = 0
        self.pending[job] = 0
        self.first[job] = NOTHING
        self.last[job] = NOTHING
        self.following[job] = NOTHING
        return job

    @method
    def release(self, job):
        """Free an insert."""
        self.following[job] = self.free[0]
        self.free[0] = job
        self.free[1] += 1
