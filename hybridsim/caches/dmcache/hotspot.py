"""The hotspot queue of smq: the parts of the origin that are missed most (DESIGN.md 2.14.5).

It covers a multiple of the cache in coarse blocks.  The share of misses whose block is at a high
level measures how well it separates hot from cold; the higher it is, the more is promoted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.dmcache.multiqueue import LEVELS, Links, MultiQueue
from hybridsim.caches.dmcache.table import Table
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine

NOTHING = -1
TOP_LEVELS = 8
HIT_LEVEL = 3 * LEVELS // 4
FULL = 256  # unit of the share of hits
POOR, FAIR = FULL // 16, FULL // 8
HITS, MISSES, JUMP, EPOCH, USED, THRESHOLD = range(6)
NOBODY_PASSES = LEVELS
FIRST_STATE = np.array([0, 0, 1, 1, 0, NOBODY_PASSES])


@state_machine
class Hotspot(NamedTuple):
    """Coarse blocks of the origin, in a multiqueue."""

    blocks_each: int  # cache blocks per coarse block
    queue: MultiQueue
    table: Table
    hit_epoch: Ints  # by entry: tick of its last hit
    state: Ints  # [HITS ... THRESHOLD]

    @classmethod
    def new(cls, blocks: int, block_bytes: int, origin_bytes: int) -> Hotspot:
        """Return a queue that covers about four times the cache, at most the origin."""
        entries = max(blocks // 4, 1024)
        each = 16
        while each > 1 and each * block_bytes * entries > origin_bytes:
            each //= 2
        in_top = min(entries // 64, blocks // each)
        return cls(
            each,
            MultiQueue.new(Links.new(entries), TOP_LEVELS, in_top),
            Table.new(entries),
            np.zeros(entries, np.int64),
            FIRST_STATE.copy(),
        )

    def forgotten(self) -> Hotspot:
        """Return an empty queue of the same size."""
        queue = self.queue
        entries = queue.nodes.entries
        return self._replace(
            queue=MultiQueue.new(Links.new(entries), queue.top_levels, queue.in_top),
            table=Table.new(entries),
            hit_epoch=np.zeros(entries, np.int64),
            state=FIRST_STATE.copy(),
        )

    @method
    def touch(self, block):
        """Record a miss of a cache block; return the new level of its coarse block."""
        queue, state = self.queue, self.state
        level = queue.nodes.level
        number = block // self.blocks_each
        entry = self.table.find(number)
        if entry == NOTHING:
            state[MISSES] += 1
            entry = self.take()
            self.table.insert(entry, number)
            queue.push(entry)
            return level[entry]
        if level[entry] >= HIT_LEVEL:
            state[HITS] += 1
        else:
            state[MISSES] += 1
        again = self.hit_epoch[entry] == state[EPOCH]
        self.hit_epoch[entry] = state[EPOCH]
        queue.requeue(entry, 0 if again else state[JUMP], NOTHING, NOTHING)
        return level[entry]

    @method
    def knows(self, block):
        """Return whether the coarse block of a cache block is in the queue."""
        return self.table.find(block // self.blocks_each) != NOTHING

    @method
    def take(self):
        """Return an entry for a new block: a free one, or the oldest of the lowest level."""
        if self.state[USED] < self.queue.nodes.entries:
            self.state[USED] += 1
            return self.state[USED] - 1
        entry = self.queue.peek(LEVELS, True)
        self.queue.remove(entry)
        self.table.remove(entry)
        self.hit_epoch[entry] = 0
        return entry

    @method
    def tick(self):
        """Start a new tick, and set the level from which on a miss is promoted."""
        self.state[EPOCH] += 1
        confidence = self.confidence()
        if confidence < POOR:
            self.state[THRESHOLD] = HIT_LEVEL
        elif confidence < FAIR:
            self.state[THRESHOLD] = LEVELS // 2
        else:
            self.state[THRESHOLD] = 0

    @method
    def end_period(self):
        """Redistribute the queue over the levels, and reset the counts of hits."""
        confidence = self.confidence()
        self.state[JUMP] = 4 if confidence < POOR else 2 if confidence < FAIR else 1
        self.queue.redistribute()
        self.state[HITS] = 0
        self.state[MISSES] = 0

    @method
    def confidence(self):
        """Return the share of misses whose block was at a high level, in 256ths."""
        total = self.state[HITS] + self.state[MISSES]
        return FULL * self.state[HITS] // total if total > 0 else 0
