"""The operations in progress between bcache and its device, one number each, and the journal.

Keys are gathered for 100 ms, or until a flush waits for them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, pool_of
from hybridsim.foundation.codes import FUA, PREFLUSH, Op
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import expiry_ns
from hybridsim.jit.lists import NOTHING, Fifos, taken

BITS = 4
MASK = (1 << BITS) - 1

# Requests to the tiers.
PART, HIT, PIECE, JOURNAL, PRIORITIES, NODE, BACK_READ, BACK_WRITE = range(8)
# Events.
GC, GC_END, JOURNAL_TIMER, WAKE, RESUME, WRITE_BACK, RATE, STATISTICS, GO_ON = range(9)


@state_machine
class Pieces(NamedTuple):
    """A pool: reads of hits, and writes of parts of inserts."""

    owner: Int32s  # the request, or the insert
    begin: Ints
    end: Ints
    place: Ints
    issue_ns: Ints
    generation: Int32s  # of the bucket at the start of the read
    following: Int32s  # in the insert, or in the free list
    free: Ints  # [first free, number of free]

    @method
    def take(self, owner, begin, end, place, now):
        """Allocate a piece."""
        piece = taken(self)
        self.owner[piece] = owner
        self.begin[piece] = begin
        self.end[piece] = end
        self.place[piece] = place
        self.issue_ns[piece] = now
        self.following[piece] = NOTHING
        return piece


@state_machine
class Jobs(NamedTuple):
    """A pool of inserts: ranges that are written to the cache."""

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

    @method
    def take(self, kind, begin, end, task, request, waits):
        """Allocate an insert."""
        job = taken(self)
        self.begin[job] = begin
        self.end[job] = end
        self.done[job] = begin
        self.task[job] = task
        self.kind[job] = kind
        self.waits[job] = waits
        self.request[job] = request
        self.keys[job] = self.pending[job] = 0
        self.first[job] = self.last[job] = self.following[job] = NOTHING
        return job


DELAY_NS = 100_000_000  # journal_delay_ms
HEADER_BYTES, KEY_BYTES = 240, 24
ENTRY_MAX = 32 * 1024

(KEYS, IS_DIRTY, IS_DUE, IS_TIMED, IS_BEING_WRITTEN, CURSOR, PRIORITIES_WAIT,
 PRIORITIES_WRITTEN, JOURNAL_ENTRIES) = range(9)  # fmt: skip
# Lists of jobs: of the current entry, of the entry being written, and of durable entries.
CURRENT, WRITTEN, DURABLE = range(3)


@state_machine
class Journal(NamedTuple):
    """The current entry, and the one being written."""

    begin: int  # byte of the cache device
    size: int
    block_bytes: int
    jobs: Jobs  # waiting ones are linked
    waiting: Fifos  # of jobs: CURRENT, WRITTEN, DURABLE
    state: Ints  # [KEYS ... JOURNAL_ENTRIES]

    @classmethod
    def new(cls, begin: int, size: int, block_bytes: int, room: int) -> Journal:
        """Return an empty entry, with room for `room` jobs."""
        state = np.zeros(9, np.int64)
        return cls(begin, size, block_bytes, pool_of(Jobs, room), Fifos.new(3), state)

    @method
    def add(self, now, keys, below):
        """Add keys that no job waits for."""
        state = self.state
        state[KEYS] += keys
        if state[IS_DIRTY] == 0:
            state[IS_DIRTY] = 1
            due_ns = expiry_ns(now, DELAY_NS)
            below.events.push_once(state, IS_TIMED, due_ns, CACHE, JOURNAL_TIMER)
        if HEADER_BYTES + KEY_BYTES * state[KEYS] > ENTRY_MAX:
            state[IS_DUE] = 1
        self.write(now, below)

    @method
    def add_and_wait(self, now, keys, job, below):
        """Add keys that a job waits for; the job -1 stands for the priorities."""
        self.state[KEYS] += keys
        if job == NOTHING:
            self.state[PRIORITIES_WAIT] = 1
        else:
            self.waiting.append(CURRENT, job, self.jobs.following)
        self.state[IS_DUE] = 1
        self.write(now, below)

    @method
    def write(self, now, below):
        """Write the current entry if it is due and none is being written."""
        state = self.state
        if state[IS_DUE] == 0 or state[IS_BEING_WRITTEN] == 1:
            return
        blocks = -(-(HEADER_BYTES + KEY_BYTES * state[KEYS]) // self.block_bytes)
        length = min(blocks * self.block_bytes, self.size)
        if state[CURSOR] + length > self.size:
            state[CURSOR] = 0
        at = self.begin + state[CURSOR]
        state[CURSOR] += length
        state[JOURNAL_ENTRIES] += 1
        state[KEYS] = state[IS_DIRTY] = state[IS_DUE] = 0
        state[IS_BEING_WRITTEN] = 1
        state[PRIORITIES_WRITTEN] = state[PRIORITIES_WAIT]
        state[PRIORITIES_WAIT] = 0
        self.waiting.move_all(CURRENT, WRITTEN, self.jobs.following)
        below.fast.submit(now, JOURNAL, Op.WRITE | PREFLUSH | FUA, at, length, below.events)

    @method
    def on_commit(self):
        """On journal commit, return whether waiters must be woken."""
        waiting = self.waiting
        self.state[IS_BEING_WRITTEN] = 0
        is_waking = waiting.is_empty(DURABLE) and not waiting.is_empty(WRITTEN)
        waiting.move_all(WRITTEN, DURABLE, self.jobs.following)
        return is_waking

    @method
    def on_timer(self, now, below):
        """Write the current entry when its time is up."""
        self.state[IS_TIMED] = 0
        if self.state[IS_DIRTY] == 1:
            self.state[IS_DUE] = 1
            self.write(now, below)
