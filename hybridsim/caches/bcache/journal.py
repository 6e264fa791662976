"""The journal: keys come together for 100 ms, or until a flush waits for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache.pieces import Jobs
from hybridsim.caches.bcache.tags import JOURNAL, JOURNAL_TIMER
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.codes import FUA, PREFLUSH, Op
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE

NOTHING = -1
DELAY_NS = 100_000_000  # journal_delay_ms
HEADER_BYTES, KEY_BYTES = 240, 24
ENTRY_MAX = 32 * 1024

WRITE = int(Op.WRITE)

(KEYS, IS_DIRTY, IS_DUE, IS_TIMED, IS_BEING_WRITTEN, CURSOR, PRIORITIES_WAIT,
 PRIORITIES_WRITTEN, ENTRIES) = range(9)  # fmt: skip
# Lists of jobs: those of the present entry, of that being written, and those to be told.
PRESENT, WRITTEN, TOLD = range(3)


@state_machine
class Journal(NamedTuple):
    """The present entry, and the one that is being written."""

    begin: int  # byte of the cache device
    size: int
    block_bytes: int
    jobs: Jobs  # those that wait are linked
    first: Int32s  # by list
    last: Int32s
    state: Ints  # [KEYS ... ENTRIES]

    @classmethod
    def new(cls, begin: int, size: int, block_bytes: int, room: int) -> Journal:
        """Have an empty entry, with room for so many jobs."""
        first, last = np.full(3, NOTHING, np.int32), np.full(3, NOTHING, np.int32)
        return cls(begin, size, block_bytes, Jobs.new(room), first, last, np.zeros(9, np.int64))

    @method
    def add(self, now, keys, below):
        """Add keys for which nobody waits."""
        state = self.state
        state[KEYS] += keys
        if state[IS_DIRTY] == 0:
            state[IS_DIRTY] = 1
            if state[IS_TIMED] == 0:
                state[IS_TIMED] = 1
                below.events.push(now + DELAY_NS, CACHE, JOURNAL_TIMER)
        if HEADER_BYTES + KEY_BYTES * state[KEYS] > ENTRY_MAX:
            state[IS_DUE] = 1
        self.write(now, below)

    @method
    def add_and_wait(self, now, keys, job, below):
        """Add keys for which a job waits, or the priorities (-1)."""
        self.state[KEYS] += keys
        if job == NOTHING:
            self.state[PRIORITIES_WAIT] = 1
        else:
            self.append(job)
        self.state[IS_DUE] = 1
        self.write(now, below)

    @method
    def append(self, job):
        """Let a job wait for the present entry."""
        following = self.jobs.following
        following[job] = NOTHING
        if self.first[PRESENT] == NOTHING:
            self.first[PRESENT] = job
        else:
            following[self.last[PRESENT]] = job
        self.last[PRESENT] = job

    @method
    def write(self, now, below):
        """Write the present entry if it is due and none is being written."""
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
        self.first[WRITTEN] = self.first[PRESENT]
        self.last[WRITTEN] = self.last[PRESENT]
        self.first[PRESENT] = NOTHING
        below.fast.submit(now, JOURNAL, WRITE | PREFLUSH | FUA, at, length, below.events)

    @method
    def written(self):
        """Hear that an entry is on the medium; tell whether some are to be told now."""
        self.state[IS_BEING_WRITTEN] = 0
        was_empty = self.first[TOLD] == NOTHING
        if self.first[WRITTEN] == NOTHING:
            return False
        if was_empty:
            self.first[TOLD] = self.first[WRITTEN]
        else:
            self.jobs.following[self.last[TOLD]] = self.first[WRITTEN]
        self.last[TOLD] = self.last[WRITTEN]
        self.first[WRITTEN] = NOTHING
        return was_empty

    @method
    def pop_told(self):
        """Return the next job that is to be told."""
        job = self.first[TOLD]
        self.first[TOLD] = self.jobs.following[job]
        return job

    @method
    def time_is_up(self, now, below):
        """Hear the timer."""
        self.state[IS_TIMED] = 0
        if self.state[IS_DIRTY] == 1:
            self.state[IS_DUE] = 1
            self.write(now, below)
