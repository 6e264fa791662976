"""Write-back of a dm-writecache: from the high watermark down to the low one, oldest first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.writecache.commits import EPOCH, IDLE, STAGE, Commits
from hybridsim.caches.writecache.slots import NOTHING, Slots
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.codes import Op
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE

COPIES_MAX = 128  # queue length of a block device (BLKDEV_DEFAULT_RQ)

READ, WRITE, FLUSH = int(Op.READ), int(Op.WRITE), int(Op.FLUSH)

# Whether to write back: not, once the slow tier is quiet, yes.
NO, ONCE_QUIET, YES = range(3)
# In the low bits of a tier request's tag; the number of a slot is in the high bits.
COPY_READ, COPY_WRITE, COPY_FLUSH = 4, 5, 6
TAG_BITS = 3
# The number of an event is the routine to run.
SERVER, WRITER, AUTOCOMMIT = range(3)

DRAINS, COPIES, IS_CALLED, AROUND, QUIET_SINCE, LANDED, FLUSHED = range(7)


@state_machine
class WriteBack(NamedTuple):
    """Copies in progress, each of a run of slots that is identified by the first one."""

    block_bytes: int
    high_blocks: int
    low_blocks: int
    pause_ns: int
    slots: Slots
    commits: Commits
    run: Ints  # by first slot: length of the run
    following: Int32s  # by first slot: the next copy that waits for the same flush, or NOTHING
    state: Ints  # [DRAINS ... FLUSHED]

    @classmethod
    def new(
        cls,
        block_bytes: int,
        watermarks: tuple[int, int],
        pause_ns: int,
        slots: Slots,
        commits: Commits,
    ) -> WriteBack:
        """Return a structure with nothing to copy; watermarks in blocks: high, low."""
        blocks = len(slots.free)
        run, following = np.zeros(blocks, np.int64), np.zeros(blocks, np.int32)
        state = np.array([NO, 0, 0, 0, -pause_ns, NOTHING, NOTHING])
        return cls(block_bytes, *watermarks, pause_ns, slots, commits, run, following, state)

    @method
    def call(self, now, events):
        """Schedule the writer, if it has work and is not scheduled yet."""
        if self.state[DRAINS] != NO and self.state[IS_CALLED] == 0:
            self.state[IS_CALLED] = 1
            events.push(now, CACHE, WRITER)

    @method
    def check(self, now, events):
        """Start write-back if more than the high watermark is used."""
        if self.state[DRAINS] == NO and self.slots.used() > self.high_blocks:
            self.state[DRAINS] = ONCE_QUIET
            self.call(now, events)

    @method
    def run_writer(self, now, below):
        """Start one copy, and schedule the next one at the same time."""
        state, events = self.state, below.events
        state[IS_CALLED] = 0
        if self.commits.state[STAGE] != IDLE:
            return
        if state[DRAINS] == ONCE_QUIET:
            if state[AROUND] > 0:
                return
            if now < state[QUIET_SINCE] + self.pause_ns:
                state[IS_CALLED] = 1
                events.push(state[QUIET_SINCE] + self.pause_ns, CACHE, WRITER)
                return
            state[DRAINS] = YES
        if self.slots.used() <= self.low_blocks:
            state[DRAINS] = NO
            return
        slot = self.slots.to_write_back()
        if slot == NOTHING or state[COPIES] == COPIES_MAX:
            return
        if self.slots.epoch[slot] == self.commits.state[EPOCH]:
            self.commits.begin(now, below)
            return
        self.copy(now, slot, below)
        self.call(now, events)

    @method
    def copy(self, now, slot, below):
        """Read a run of slots."""
        number = self.slots.run_of(slot, self.commits.state[EPOCH])
        for each in range(slot, slot + number):
            self.slots.fly(each)
        self.run[slot] = number
        self.state[COPIES] += 1
        at = slot * self.block_bytes
        tag = slot << TAG_BITS | COPY_READ
        below.fast.submit(now, tag, READ, at, number * self.block_bytes, below.events)

    @method
    def write(self, now, slot, below):
        """Write the data that has been read."""
        at = self.slots.table.number[slot] * self.block_bytes
        length = min(self.run[slot] * self.block_bytes, below.slow.capacity_bytes - at)
        tag = slot << TAG_BITS | COPY_WRITE
        below.slow.submit(now, tag, WRITE, at, length, below.events)

    @method
    def written(self, now, slot, below):
        """Queue a written copy for a flush; one flush is in progress at a time."""
        self.following[slot] = self.state[LANDED]
        self.state[LANDED] = slot
        if self.state[FLUSHED] == NOTHING:
            self.flush(now, below)

    @method
    def flush(self, now, below):
        """Flush the slow tier for all queued copies."""
        self.state[FLUSHED] = self.state[LANDED]
        self.state[LANDED] = NOTHING
        below.slow.submit(now, COPY_FLUSH, FLUSH, 0, 0, below.events)

    @method
    def flushed(self, now, below):
        """Free the slots of the flushed copies, the copy written last first."""
        slot = self.state[FLUSHED]
        while slot != NOTHING:
            for each in range(slot, slot + self.run[slot]):
                self.slots.landed(each)
                self.commits.note(each)
            self.state[COPIES] -= 1
            slot = self.following[slot]
        self.state[FLUSHED] = NOTHING
        if self.state[LANDED] != NOTHING:
            self.flush(now, below)
        self.call(now, below.events)

    @method
    def on_write_around(self, now, events):
        """Record the end of a write to the slow tier that was not cached."""
        self.state[AROUND] -= 1
        self.state[QUIET_SINCE] = now
        if self.state[AROUND] == 0:
            self.call(now, events)
