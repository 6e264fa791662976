"""What is under way between bcache and its device, one number each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, extended_free_list, free_list, longer
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
    generation: Int32s  # of the bucket, when it was read from
    following: Int32s  # in the insert, or in the list of the free
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls, room: int) -> Pieces:
        """Make room for so many."""
        kinds = (np.int32, *[np.int64] * 4, np.int32)
        columns = (np.zeros(room, kind) for kind in kinds)
        return cls._make([*columns, free_list(room), np.array([0, room])])

    def grown(self, room: int) -> Pieces:
        """Return the same with room for so many."""
        added = room - len(self.owner)
        links, head = extended_free_list(self.following, int(self.free[0]), room)
        columns = (longer(column, room) for column in self[:-2])
        return Pieces._make([*columns, links, np.array([head, self.free[1] + added])])

    @method
    def take(self, owner, begin, end, place, now):
        """Return a new piece."""
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
        """Give a piece back."""
        self.following[piece] = self.free[0]
        self.free[0] = piece
        self.free[1] += 1


@state_machine
class Jobs(NamedTuple):
    """Inserts: ranges that go into the cache."""

    begin: Ints
    end: Ints
    done: Ints  # up to where it has been dealt with
    task: Ints
    kind: Bytes
    waits: Bytes  # 1: until the journal has it
    request: Int32s  # which waits for it, or NOTHING
    keys: Int32s  # that are to be journalled
    pending: Int32s  # pieces being written
    first: Int32s  # piece
    last: Int32s
    following: Int32s  # that waits for a bucket, too, or in the list of the free
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls, room: int) -> Jobs:
        """Make room for so many."""
        kinds = (*[np.int64] * 4, *[np.uint8] * 2, *[np.int32] * 5)
        columns = (np.zeros(room, kind) for kind in kinds)
        return cls._make([*columns, free_list(room), np.array([0, room])])

    def grown(self, room: int) -> Jobs:
        """Return the same with room for so many."""
        added = room - len(self.begin)
        links, head = extended_free_list(self.following, int(self.free[0]), room)
        columns = (longer(column, room) for column in self[:-2])
        return Jobs._make([*columns, links, np.array([head, self.free[1] + added])])

    @method
    def take(self, kind, begin, end, task, request, waits):
        """Return a new insert."""
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
        """Give an insert back."""
        self.following[job] = self.free[0]
        self.free[0] = job
        self.free[1] += 1
