"""Inserts: data is written to the open buckets, and then its keys are added to the index."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache.allocator import GC_WANTED, RESUMING, WAITING, Allocator
from hybridsim.caches.bcache.buckets import AVAIL, DIRTY, NONE
from hybridsim.caches.bcache.pieces import Pieces
from hybridsim.caches.bcache.space import LENGTH, PLACE, Space
from hybridsim.caches.bcache.statistics import COLLISIONS, Statistics
from hybridsim.caches.bcache.tags import BITS, PIECE, RESUME
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE

NOTHING = -1
WRITE = int(Op.WRITE)

FILL, THROUGH, BACK, NO_DATA = range(4)

FIRST_WAITING, LAST_WAITING, PARTS, WRITING, HUNG = range(5)
# The result of a step of an insert.
WAITS, IS_UNDER_WAY, HAS_ENDED = range(3)


@state_machine
class Inserts(NamedTuple):
    """The inserts in progress."""

    bucket_bytes: int
    allocator: Allocator
    space: Space
    pieces: Pieces
    statistics: Statistics
    state: Ints  # [FIRST_WAITING, LAST_WAITING, PARTS, WRITING, HUNG]

    @classmethod
    def new(
        cls,
        allocator: Allocator,
        statistics: Statistics,
        block_bytes: int,
        open_buckets: int,
        room: int,
    ) -> Inserts:
        """Return no inserts, with room for `room` of them."""
        return cls(
            allocator.buckets.bucket_bytes,
            allocator,
            Space.new(block_bytes, allocator, open_buckets),
            Pieces.new(room),
            statistics,
            np.array([NOTHING, NOTHING, 0, 0, 0]),
        )

    @method
    def begin(self, now, kind, begin, end, task, request, waits, below):
        """Insert the data of a request; return whether that has ended at once."""
        job = self.allocator.journal.jobs.take(kind, begin, end, task, request, waits)
        return self.start(now, job, below) == HAS_ENDED and waits == 0

    @method
    def start(self, now, job, below):
        """Start an insert; if there is no bucket for a write-back insert, it waits for one."""
        jobs = self.allocator.journal.jobs
        self.allocator.insert_begins(now, jobs.end[job] - jobs.begin[job], below)
        becomes = self.go_on(now, job, below)
        if becomes == WAITS:
            self.wait(job)
        return becomes

    @method
    def go_on(self, now, job, below):
        """Write as much as there is space for."""
        jobs, state = self.allocator.journal.jobs, self.space.state
        while jobs.done[job] < jobs.end[job]:
            begin, end = jobs.done[job], jobs.end[job]
            if self.space.find(now, begin, end - begin, jobs.task[job], below):
                self.write(now, job, begin, state[PLACE], state[LENGTH], below)
                continue
            if jobs.kind[job] == BACK:
                return WAITS
            if jobs.kind[job] == THROUGH:
                self.erase_rest(now, job, below)
            jobs.done[job] = end
        if jobs.pending[job] > 0:
            return IS_UNDER_WAY
        self.end(now, job, below)
        return HAS_ENDED

    @method
    def erase_rest(self, now, job, below):
        """Erase what is left of a write for which there is no bucket."""
        jobs = self.allocator.journal.jobs
        jobs.keys[job] += 1
        self.allocator.erase(now, jobs.done[job], jobs.end[job], below)

    @method
    def write(self, now, job, begin, place, length, below):
        """Write a part to its place."""
        jobs, pieces = self.allocator.journal.jobs, self.pieces
        if jobs.kind[job] == BACK:
            self.allocator.buckets.mark[place // self.bucket_bytes] = DIRTY
        piece = pieces.take(job, begin, begin + length, place, now)
        if jobs.first[job] == NOTHING:
            jobs.first[job] = piece
        else:
            pieces.following[jobs.last[job]] = piece
        jobs.last[job] = piece
        jobs.pending[job] += 1
        jobs.done[job] = begin + length
        self.state[PARTS] += 1
        self.state[WRITING] += 1
        below.fast.submit(now, piece << BITS | PIECE, WRITE, place, length, below.events)

    # Waiting for a bucket.

    @method
    def wait(self, job):
        """Queue a write-back insert until there are buckets."""
        state = self.state
        if state[FIRST_WAITING] == NOTHING:
            state[FIRST_WAITING] = job
        else:
            self.allocator.journal.jobs.following[state[LAST_WAITING]] = job
        state[LAST_WAITING] = job
        self.allocator.state[WAITING] += 1

    @method
    def holds(self, task):
        """Return whether an insert of a task waits for a bucket."""
        job = self.state[FIRST_WAITING]
        for _ in range(self.allocator.state[WAITING]):
            if self.allocator.journal.jobs.task[job] == task:
                return True
            job = self.allocator.journal.jobs.following[job]
        return False

    @method
    def resume(self, now, below):
        """Continue the insert that has waited longest."""
        waits = self.allocator.state
        job = self.state[FIRST_WAITING]
        if self.go_on(now, job, below) == WAITS:
            waits[RESUMING] = 0
            return
        self.state[FIRST_WAITING] = self.allocator.journal.jobs.following[job]
        waits[WAITING] -= 1
        waits[RESUMING] = 0
        if waits[WAITING] > 0 and self.allocator.buckets.list_count[NONE] > 0:
            waits[RESUMING] = 1
            below.events.push(now, CACHE, RESUME)

    @method
    def is_exhausted(self):
        """Return whether an insert waits, none is being written, and a gc found no bucket."""
        waits, buckets = self.allocator.state, self.allocator.buckets
        if waits[WAITING] == 0 or waits[RESUMING] == 1 or buckets.list_count[NONE] > 0:
            return False
        return waits[GC_WANTED] == 1 and buckets.state[AVAIL] == 0 and self.state[WRITING] == 0

    @method
    def next_to_give_way(self):
        """Remove the insert that has waited longest from those that wait, and return it."""
        job = self.state[FIRST_WAITING]
        self.state[FIRST_WAITING] = self.allocator.journal.jobs.following[job]
        self.allocator.state[WAITING] -= 1
        self.state[HUNG] += 1
        return job

    @method
    def give_way(self, now, job, below):
        """End a write-back without a bucket for the rest of it."""
        self.erase_rest(now, job, below)
        self.allocator.journal.jobs.done[job] = self.allocator.journal.jobs.end[job]
        self.end(now, job, below)

    # The end.

    @method
    def is_over(self, job):
        """Return whether all of an insert is written."""
        return (
            self.allocator.journal.jobs.pending[job] == 0
            and self.allocator.journal.jobs.done[job] == self.allocator.journal.jobs.end[job]
        )

    @method
    def end(self, now, job, below):
        """Add the keys of an insert to the index."""
        pieces, allocator = self.pieces, self.allocator
        jobs = allocator.journal.jobs
        is_dirty = 1 if jobs.kind[job] == BACK else 0
        collides = False
        piece = jobs.first[job]
        while piece != NOTHING:
            begin, end, place = pieces.begin[piece], pieces.end[piece], pieces.place[piece]
            if jobs.kind[job] == FILL:
                end = self.placeholder_end(job, begin, end)
            if end > begin:
                allocator.enter(now, begin, end, place, is_dirty, below)
                jobs.keys[job] += 1
            else:
                collides = True
            allocator.buckets.pins[place // self.bucket_bytes] -= 1
            following = pieces.following[piece]
            pieces.release(piece)
            piece = following
        if jobs.kind[job] == FILL:
            allocator.buckets.keys.drop_placeholder(job, jobs.begin[job], jobs.end[job])
            if collides:
                self.statistics.add(now, COLLISIONS, 1, below)
        elif jobs.waits[job] == 1:
            allocator.journal.add_and_wait(now, jobs.keys[job], job, below)
            allocator.changed()
            return
        else:
            allocator.journal.add(now, jobs.keys[job], below)
        allocator.changed()
        jobs.release(job)

    @method
    def placeholder_end(self, job, begin, end):
        """Return the end of the part of a fill's placeholder that is still there."""
        keys = self.allocator.buckets.keys
        key = keys.first_beyond(begin)
        while key != NOTHING and keys.begin[key] <= begin and begin < end:
            if keys.place[key] != -1 - job:
                break
            begin = min(keys.end[key], end)
            key = keys.after[key]
        return begin

    @method
    def cancel(self, job):
        """Cancel a fill that has not started."""
        jobs = self.allocator.journal.jobs
        self.allocator.buckets.keys.drop_placeholder(job, jobs.begin[job], jobs.end[job])
        jobs.release(job)
