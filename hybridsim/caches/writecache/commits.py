"""Commits of a dm-writecache: they make the metadata, and with it the data, durable.

So does what follows a write-back; both hold a lock, for which requests wait.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.foundation.codes import FUA, Op
from hybridsim.jit import method, state_machine

NOTHING = -1
SUPERBLOCK_BYTES = 4 * 1024
REGION_BYTES = 64 * 1024
REGION_SLOTS = REGION_BYTES // 16  # a slot has 16 bytes of metadata

WRITE, FLUSH = int(Op.WRITE), int(Op.FLUSH)

# Who has the lock, and what they wait for: nobody; a commit; slots that are freed; the writer.
(IDLE, REGIONS, WRITES, FLUSHING, SUPERBLOCK, READS, FREED_REGIONS, FREED_FLUSHING,
 CHOOSING) = range(9)  # fmt: skip
(STAGE, PENDING, EPOCH, UNCOMMITTED, OVERWROTE, WRITES_UNDER_WAY, WAITER, COUNT, HAS_NEW,
 READS_UNDER_WAY) = range(10)  # fmt: skip
UNDER_WAY, COMMITTED, FREED = range(3)  # what `go_on` says: what is over


def metadata_bytes(blocks: int) -> int:
    """Return the bytes of metadata after the blocks on the fast tier."""
    return SUPERBLOCK_BYTES + -(-blocks // REGION_SLOTS) * REGION_BYTES


@state_machine
class Commits(NamedTuple):
    """The lock: while a commit, or what else takes it, is in progress, no request is served."""

    place: int  # of the metadata on the fast tier, bytes
    tag: int  # of its requests to the fast tier
    is_dirty: Bytes  # by region of the metadata: whether a slot of it was freed
    is_new: Bytes  # whether one was allocated, which the next commit writes
    state: Ints  # [STAGE ... READS_UNDER_WAY]

    @classmethod
    def new(cls, blocks: int, block_bytes: int, tag: int) -> Commits:
        """Return commits with nothing to commit."""
        regions = -(-blocks // REGION_SLOTS)
        state = np.array([IDLE, 0, 0, 0, 0, 0, NOTHING, 0, 0, 0])
        is_dirty, is_new = np.zeros(regions, np.uint8), np.zeros(regions, np.uint8)
        return cls(blocks * block_bytes, tag, is_dirty, is_new, state)

    def restarted(self) -> Commits:
        """Return commits with nothing to commit; what is cached is committed."""
        count, epoch = self.state[COUNT], self.state[EPOCH] + 1
        state = np.array([IDLE, 0, epoch, 0, 0, 0, NOTHING, count, 0, 0])
        marks = [np.zeros_like(self.is_dirty) for _ in range(2)]
        return self._replace(is_dirty=marks[0], is_new=marks[1], state=state)

    @method
    def note(self, slot):
        """Mark the metadata of a slot that is freed."""
        self.is_dirty[slot // REGION_SLOTS] = 1

    @method
    def note_new(self, slot):
        """Mark the metadata of a slot that is allocated."""
        self.is_new[slot // REGION_SLOTS] = 1

    @method
    def begin(self, now, below):
        """Start a commit; return whether there is anything to wait for."""
        state = self.state
        changed = state[UNCOMMITTED] > 0
        if not changed and state[OVERWROTE] == 0:
            return False
        state[COUNT] += 1
        state[UNCOMMITTED] = 0
        state[OVERWROTE] = 0
        state[HAS_NEW] = changed
        state[STAGE] = REGIONS
        if not changed or self.write_regions(now, True, below) == 0:
            state[STAGE] = WRITES
            self.flush(now, below)
        return True

    @method
    def begin_freed(self, now, below):
        """Make it durable that slots were freed, once nobody reads them."""
        self.state[STAGE] = READS
        self.on_read(now, below)

    @method
    def on_read(self, now, below):
        """Go on, if freed slots wait for reads and none is under way."""
        state = self.state
        if state[STAGE] == READS and state[READS_UNDER_WAY] == 0:
            state[STAGE] = FREED_REGIONS
            if self.write_regions(now, False, below) == 0:
                state[STAGE] = FREED_FLUSHING
                below.fast.submit(now, self.tag, FLUSH, 0, 0, below.events)

    @method
    def write_regions(self, now, with_new, below):
        """Write each run of regions that changed; return the number of runs."""
        first = NOTHING
        self.state[PENDING] = 0
        regions = len(self.is_dirty)
        for region in range(regions + 1):
            changed = region < regions and (
                self.is_dirty[region] == 1 or (with_new and self.is_new[region] == 1)
            )
            if changed:
                first = region if first == NOTHING else first
                self.is_dirty[region] = 0
                if with_new:
                    self.is_new[region] = 0
            elif first != NOTHING:
                self.state[PENDING] += 1
                at = self.place + SUPERBLOCK_BYTES + first * REGION_BYTES
                length = (region - first) * REGION_BYTES
                below.fast.submit(now, self.tag, WRITE, at, length, below.events)
                first = NOTHING
        return self.state[PENDING]

    @method
    def flush(self, now, below):
        """Flush, if a commit waits for that and no data is being written to the fast tier."""
        if self.state[STAGE] == WRITES and self.state[WRITES_UNDER_WAY] == 0:
            self.state[STAGE] = FLUSHING
            below.fast.submit(now, self.tag, FLUSH, 0, 0, below.events)

    @method
    def go_on(self, now, below):
        """Start the next step; return what is over: UNDER_WAY (nothing), COMMITTED or FREED."""
        state = self.state
        if state[STAGE] == REGIONS or state[STAGE] == FREED_REGIONS:
            state[PENDING] -= 1
            if state[PENDING] > 0:
                return UNDER_WAY
            if state[STAGE] == REGIONS:
                state[STAGE] = WRITES
                self.flush(now, below)
            else:
                state[STAGE] = FREED_FLUSHING
                below.fast.submit(now, self.tag, FLUSH, 0, 0, below.events)
            return UNDER_WAY
        if state[STAGE] == FLUSHING and state[HAS_NEW] == 1:
            state[STAGE] = SUPERBLOCK
            write = WRITE | FUA
            below.fast.submit(now, self.tag, write, self.place, SUPERBLOCK_BYTES, below.events)
            return UNDER_WAY
        if state[STAGE] == SUPERBLOCK:
            state[EPOCH] += 1
        is_freed = state[STAGE] == FREED_FLUSHING
        state[STAGE] = IDLE
        return FREED if is_freed else COMMITTED
