"""The journal: keys are gathered for 100 ms, or until a flush waits for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache.pieces import Jobs
from hybridsim.caches.bcache.tags import JOURNAL, JOURNAL_TIMER
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.codes import FUA, PREFLUSH, Op
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import expiry_ns

NOTHING = -1
DELAY_NS = 100_000_000  # journal_delay_ms
HEADER_BYTES, KEY_BYTES = 240, 24
ENTRY_MAX = 32 * 1024

WRITE = int(Op.WRITE)

(KEYS, IS_DIRTY, IS_DUE, IS_TIMED, IS_BEING_WRITTEN, CURSOR, PRIORITIES_WAIT,
 PRIORITIES_WRITTEN, ENTRIES) = range(9)  # fmt: skip
# Lists of jobs: of the current entry, of the entry being written, and of durable entries.
CURRENT, WRITTEN, DURABLE = range(3)


@state_machine
class Journal(NamedTuple):
    """The current entry, and the one being written."""

    begin: int  # byte of the cache device
    size: int
    block_bytes: int
    jobs: Jobs  # waiting ones are linked
    first: Int32s  # by list
    last: Int32s
    state: Ints  # [KEYS ... ENTRIES]

    @classmethod
    def new(cls, begin: int, size: int, block_bytes: int, room: int) -> Journal:
        """Return an empty entry, with room for `room` jobs."""
        first, last = np.full(3, NOTHING, np.int32), np.full(3, NOTHING, np.int32)
        return cls(begin, size, block_bytes, Jobs.new(room), first, last, np.zeros(9, np.int64))

    @method
    def add(self, now, keys, below):
        """Add keys that no job waits for."""
        state = self.state
        state[KEYS] += keys
        if state[IS_DIRTY] == 0:
            state[IS_DIRTY] = 1
            if state[IS_TIMED] == 0:
                state[IS_TIMED] = 1
                below.events.push(expiry_ns(now, DELAY_NS), CACHE, JOURNAL_TIMER)
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
            self.append(job)
        self.state[IS_DUE] = 1
        self.write(now, below)

    @method
    def append(self, job):
        """Make a job wait for the current entry."""
        following = self.jobs.following
        following[job] = NOTHING
        if self.first[CURRENT] == NOTHING:
            self.first[CURRENT] = job
        else:
            following[self.last[CURRENT]] = job
        self.last[CURRENT] = job

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
        state[ENTRIES] += 1
        state[KEYS] = 0
        state[IS_DIRTY] = 0
        state[IS_DUE] = 0
        state[IS_BEING_WRITTEN] = 1
        state[PRIORITIES_WRITTEN] = state[PRIORITIES_WAIT]
        state[PRIORITIES_WAIT] = 0
        self.first[WRITTEN] = self.first[CURRENT]
        self.last[WRITTEN] = self.last[CURRENT]
        self.first[CURRENT] = NOTHING
        below.fast.submit(now, JOURNAL, WRITE | PREFLUSH | FUA, at, length, below.events)

    @method
    def on_commit(self):
        """On journal commit, return whether waiters must be woken."""
        self.state[IS_BEING_WRITTEN] = 0
        was_empty = self.first[DURABLE] == NOTHING
        if self.first[WRITTEN] == NOTHING:
            return False
        if was_empty:
            self.first[DURABLE] = self.first[WRITTEN]
        else:
            self.jobs.following[self.last[DURABLE]] = self.first[WRITTEN]
        self.last[DURABLE] = self.last[WRITTEN]
        self.first[WRITTEN] = NOTHING
        return was_empty

    @method
    def pop_durable(self):
        """Remove and return the next job whose entry is durable."""
        job = self.first[DURABLE]
        self.first[DURABLE] = self.jobs.following[job]
        return job

    @method
    def on_timer(self, now, below):
        """Write the current entry when its time is up."""
        self.state[IS_TIMED] = 0
        if self.state[IS_DIRTY] == 1:
            self.state[IS_DUE] = 1
            self.write(now, below)
