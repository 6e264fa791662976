"""Commits of a dm-writecache: they make the metadata, and with it the data, durable."""

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

# The stage of a commit.
IDLE, REGIONS, WRITES, FLUSHING, SUPERBLOCK = range(5)
STAGE, REGION, EPOCH, UNCOMMITTED, OVERWROTE, WRITES_UNDER_WAY, WAITER, COUNT = range(8)


def metadata_bytes(blocks: int) -> int:
    """Return the bytes of metadata after the blocks on the fast tier."""
    return SUPERBLOCK_BYTES + -(-blocks // REGION_SLOTS) * REGION_BYTES


@state_machine
class Commits(NamedTuple):
    """One commit at a time; while it is in progress, no request is served."""

    place: int  # of the metadata on the fast tier, bytes
    tag: int  # of its requests to the fast tier
    is_dirty: Bytes  # by region of the metadata
    state: Ints  # [STAGE ... COUNT]

    @classmethod
    def new(cls, blocks: int, block_bytes: int, tag: int) -> Commits:
        """Return commits with nothing to commit."""
        regions = -(-blocks // REGION_SLOTS)
        state = np.array([IDLE, 0, 0, 0, 0, 0, NOTHING, 0])
        return cls(blocks * block_bytes, tag, np.zeros(regions, np.uint8), state)

    def restarted(self) -> Commits:
        """Return commits with nothing to commit; what is cached is committed."""
        state = np.array([IDLE, 0, self.state[EPOCH] + 1, 0, 0, 0, NOTHING, self.state[COUNT]])
        return self._replace(is_dirty=np.zeros_like(self.is_dirty), state=state)

    @method
    def note(self, slot):
        """Mark the metadata of a slot as changed."""
        self.is_dirty[slot // REGION_SLOTS] = 1

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
        state[STAGE] = WRITES
        if changed:
            state[REGION] = NOTHING
            self.write_region(now, below)
        else:
            state[REGION] = len(self.is_dirty)  # no regions, and no superblock
            self.flush(now, below)
        return True

    @method
    def write_region(self, now, below):
        """Write the next region that changed; after the last one, wait for the data."""
        state = self.state
        region = state[REGION] + 1
        while region < len(self.is_dirty) and self.is_dirty[region] == 0:
            region += 1
        if region == len(self.is_dirty):
            state[STAGE] = WRITES
            self.flush(now, below)
            return
        state[STAGE] = REGIONS
        state[REGION] = region
        self.is_dirty[region] = 0
        at = self.place + SUPERBLOCK_BYTES + region * REGION_BYTES
        below.fast.submit(now, self.tag, WRITE, at, REGION_BYTES, below.events)

    @method
    def flush(self, now, below):
        """Flush, if a commit waits for that and no data is being written to the fast tier."""
        if self.state[STAGE] == WRITES and self.state[WRITES_UNDER_WAY] == 0:
            self.state[STAGE] = FLUSHING
            below.fast.submit(now, self.tag, FLUSH, 0, 0, below.events)

    @method
    def go_on(self, now, below):
        """Start the next step of a commit; return whether the commit is complete."""
        state = self.state
        if state[STAGE] == REGIONS:
            self.write_region(now, below)
            return False
        if state[STAGE] == FLUSHING and state[REGION] < len(self.is_dirty):
            state[STAGE] = SUPERBLOCK
            write = WRITE | FUA
            below.fast.submit(now, self.tag, write, self.place, SUPERBLOCK_BYTES, below.events)
            return False
        if state[STAGE] == SUPERBLOCK:
            state[EPOCH] += 1
        state[STAGE] = IDLE
        return True
