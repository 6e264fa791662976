"""Write-back of a dm-writecache: from the high watermark down to the low one, oldest first."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.writecache.commits import (
    CHOOSING,
    EPOCH,
    IDLE,
    OVERWROTE,
    STAGE,
    WRITES_UNDER_WAY,
    Commits,
)
from hybridsim.caches.writecache.copier import COPY_FLUSH, DONE, SLEEPS, Copier
from hybridsim.caches.writecache.slots import NOTHING, Slots
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.codes import Op
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE

PASS_BLOCKS = 64  # blocks after which a pass ends, and the next one begins (WRITEBACK_LATENCY)

FLUSH = int(Op.FLUSH)

NO, YES = range(2)  # whether to write back
# The number of an event is the routine to run.
SERVER, WRITER, AUTOCOMMIT, COPIER = range(4)

DRAINS, IS_CALLED, AROUND, QUIET_SINCE, LANDED, FLUSHED, BEGUN, FREES, COMMITS = range(9)


@state_machine
class WriteBack(NamedTuple):
    """Chooses what is copied; each copy is a run of slots that is identified by the first one."""

    block_bytes: int
    high_watermark_blocks: int
    low_watermark_blocks: int
    pause_writeback_ns: int
    pass_time_ns: int  # of the CPU, for one pass
    slots: Slots
    commits: Commits
    copier: Copier
    following: Int32s  # by first slot: the next copy that waits for the same flush, or NOTHING
    state: Ints  # [DRAINS ... COMMITS]

    @classmethod
    def new(
        cls,
        block_bytes: int,
        watermarks: tuple[int, int],
        times_ns: tuple[int, int],
        slots: Slots,
        commits: Commits,
    ) -> WriteBack:
        """Return a structure with nothing to copy.

        Watermarks in blocks: high, low; times: the pause before write-back, that of a pass.
        """
        copier = Copier.new(block_bytes, slots)
        following = np.zeros(len(slots.free), np.int32)
        pause_ns, pass_ns = times_ns
        state = np.array([NO, 0, 0, -pause_ns, NOTHING, NOTHING, -pass_ns, 0, 0])
        return cls(block_bytes, *watermarks, *times_ns, slots, commits, copier, following, state)

    @method
    def call(self, now, events):
        """Schedule the writer, if it has work and is not scheduled yet."""
        if self.state[DRAINS] != NO and self.state[IS_CALLED] == 0:
            self.call_at(now, events)

    @method
    def call_at(self, then, events):
        """Schedule the writer, which is not scheduled, for a time."""
        self.state[IS_CALLED] = 1
        events.push(then, CACHE, WRITER)

    @method
    def check(self, now, events):
        """Start write-back if more than the high watermark is used."""
        if self.state[DRAINS] == NO and self.slots.used() > self.high_watermark_blocks:
            self.state[DRAINS] = YES
            self.call(now, events)

    @method
    def run_writer(self, now, below):
        """Run one pass, or schedule it for when it may begin."""
        state, events = self.state, below.events
        state[IS_CALLED] = 0
        if self.commits.state[STAGE] != IDLE or self.copier.is_busy():
            return
        if now < state[BEGUN] + self.pass_time_ns:
            self.call_at(state[BEGUN] + self.pass_time_ns, events)
            return
        if self.pause_writeback_ns > 0:
            if state[AROUND] > 0:
                return
            if now < state[QUIET_SINCE] + self.pause_writeback_ns:
                self.call_at(state[QUIET_SINCE] + self.pause_writeback_ns, events)
                return
        if self.slots.used() <= self.low_watermark_blocks:
            state[DRAINS] = NO
            return
        commits = self.commits.state
        if commits[OVERWROTE] == 1 and commits[WRITES_UNDER_WAY] > 0:
            commits[STAGE] = CHOOSING
        else:
            self.choose(now, below)

    @method
    def choose(self, now, below):
        """Begin a pass, or first a commit."""
        state = self.state
        slot = self.slots.to_write_back()
        if slot == NOTHING:
            return
        if self.slots.epoch[slot] == self.commits.state[EPOCH]:
            state[COMMITS] = self.commits.begin(now, below)  # then it chooses
            return
        state[BEGUN] = now
        self.run_pass(slot)
        self.work(now, below)

    @method
    def run_pass(self, slot):
        """Choose copies, the oldest slots first."""
        chosen = 0
        while slot != NOTHING and self.slots.epoch[slot] != self.commits.state[EPOCH]:
            number = self.slots.run_of(slot, self.commits.state[EPOCH])
            for each in range(slot, slot + number):
                self.slots.fly(each)
            self.copier.add(slot, number)
            chosen += number
            if self.slots.used() <= self.low_watermark_blocks:
                self.state[DRAINS] = NO
                return
            if chosen >= PASS_BLOCKS:
                return
            slot = self.slots.to_write_back()

    # Copies.

    @method
    def work(self, now, below):
        """Let the worker go on, take the copies that it reports, and call the writer."""
        self.copier.work(now, below)
        if self.copier.is_busy():
            return
        slot = self.copier.pop(DONE)
        while slot != NOTHING:
            self.written(now, slot, below)
            slot = self.copier.pop(DONE)
        self.call(now, below.events)

    @method
    def on_read(self, now, slot, below):
        """Take a completed read of the worker."""
        self.copier.on_read(slot)
        self.work(now, below)

    @method
    def on_written(self, now, slot, below):
        """Take a completed write of the worker."""
        self.copier.on_written(slot)
        self.work(now, below)

    @method
    def let_in(self, now, below):
        """Wake the worker: the disk has let the write in that it held back."""
        self.copier.state[SLEEPS] = 0
        self.work(now, below)

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
        """Free the slots of the flushed copies, once the lock is free."""
        if self.commits.state[STAGE] == IDLE:
            self.free_flushed(now, below)
        else:
            self.state[FREES] = 1

    @method
    def free_flushed(self, now, below):
        """Free the slots of the flushed copies, the copy written last first."""
        self.state[FREES] = 0
        slot = self.state[FLUSHED]
        while slot != NOTHING:
            for each in range(slot, slot + self.copier.run[slot]):
                self.slots.landed(each)
                self.commits.note(each)
            slot = self.following[slot]
        self.commits.begin_freed(now, below)

    @method
    def freed(self, now, below):
        """Flush for the copies that were reported meanwhile: it is durable that slots are free."""
        self.state[FLUSHED] = NOTHING
        if self.state[LANDED] != NOTHING:
            self.flush(now, below)

    @method
    def on_write_around(self, now, events):
        """Record the end of a write to the slow tier that was not cached."""
        self.state[AROUND] -= 1
        self.state[QUIET_SINCE] = now
        if self.state[AROUND] == 0:
            self.call(now, events)
