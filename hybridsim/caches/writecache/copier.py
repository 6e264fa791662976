"""The worker that copies blocks of a dm-writecache to the slow tier: kcopyd (DESIGN.md 2.15)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.writecache.slots import NOTHING, Slots
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.codes import Op
from hybridsim.jit import method, state_machine

QUEUE_MAX = 256  # requests that the queue of a drive takes (nr_requests); then the worker sleeps
READ_BYTES = 1280 * 1024  # maximum of one read (max_sectors_kb)

READ, WRITE = int(Op.READ), int(Op.WRITE)

# In the low bits of a tier request's tag; the number of a slot is in the high bits.
COPY_READ, COPY_WRITE, COPY_FLUSH = 4, 5, 6
TAG_BITS = 3

# Queues of copies: that wait to be read and written, and that are written but not reported.
TO_READ, TO_WRITE, DONE = range(3)
READING, WRITING, SLEEPS = range(3)


@state_machine
class Copier(NamedTuple):
    """Copies in order; each is a run of slots that is identified by the first one.

    There is one worker.  While the disk holds back one of its writes it sleeps: it starts no other
    copy, and reports none that is complete.
    """

    block_bytes: int
    slots: Slots
    run: Ints  # by first slot: length of the run
    read_with: Ints  # by first slot of a read: length of all runs in it
    next: Int32s  # by first slot: the next one in its queue, or NOTHING
    first: Ints  # by queue
    last: Ints
    state: Ints  # [READING, WRITING, SLEEPS]

    @classmethod
    def new(cls, block_bytes: int, slots: Slots) -> Copier:
        """Return a worker without work."""
        blocks = len(slots.free)
        run, read_with = np.zeros(blocks, np.int64), np.zeros(blocks, np.int64)
        links = np.full(blocks, NOTHING, np.int32)
        first, last = np.full(3, NOTHING, np.int64), np.full(3, NOTHING, np.int64)
        return cls(block_bytes, slots, run, read_with, links, first, last, np.zeros(3, np.int64))

    @method
    def push(self, queue, slot):
        """Append a copy to a queue."""
        self.next[slot] = NOTHING
        if self.first[queue] == NOTHING:
            self.first[queue] = slot
        else:
            self.next[self.last[queue]] = slot
        self.last[queue] = slot

    @method
    def pop(self, queue):
        """Remove and return the first copy of a queue, or -1."""
        slot = self.first[queue]
        if slot != NOTHING:
            self.first[queue] = self.next[slot]
        return slot

    @method
    def add(self, slot, number):
        """Add a copy of a run of slots."""
        self.run[slot] = number
        self.push(TO_READ, slot)

    @method
    def work(self, now, below):
        """Write what is read, then read what is added, until the worker sleeps."""
        state = self.state
        while state[SLEEPS] == 0 and state[WRITING] < QUEUE_MAX and self.first[TO_WRITE] != NOTHING:
            self.write(now, self.pop(TO_WRITE), below)
        if state[SLEEPS] == 1 or self.first[TO_WRITE] != NOTHING:
            return
        while state[READING] < QUEUE_MAX and self.first[TO_READ] != NOTHING:
            self.read(now, self.pop(TO_READ), below)

    @method
    def read(self, now, slot, below):
        """Read a copy, and those behind it that lie in the next slots: the kernel merges them."""
        number = self.run[slot]
        following = self.first[TO_READ]
        while (
            following == slot + number
            and (number + self.run[following]) * self.block_bytes <= READ_BYTES
        ):
            number += self.run[following]
            self.pop(TO_READ)
            following = self.first[TO_READ]
        self.read_with[slot] = number
        self.state[READING] += 1
        at, tag = slot * self.block_bytes, slot << TAG_BITS | COPY_READ
        below.fast.submit(now, tag, READ, at, number * self.block_bytes, below.events)

    @method
    def on_read(self, first):
        """Queue the copies of a read that is complete."""
        self.state[READING] -= 1
        slot = first
        while slot < first + self.read_with[first]:
            self.push(TO_WRITE, slot)
            slot += self.run[slot]

    @method
    def write(self, now, slot, below):
        """Write a copy; the worker sleeps if the disk holds the write back."""
        at = self.slots.table.number[slot] * self.block_bytes
        length = min(self.run[slot] * self.block_bytes, below.slow.capacity_bytes - at)
        tag = slot << TAG_BITS | COPY_WRITE
        self.state[WRITING] += 1
        below.slow.submit_background(now, tag, WRITE, at, length, below.events)
        self.state[SLEEPS] = 1 if below.slow.holds_back() else 0

    @method
    def on_written(self, slot):
        """Note that a copy is written."""
        self.state[WRITING] -= 1
        self.push(DONE, slot)

    @method
    def is_busy(self):
        """Return whether the worker sleeps, or waits for room in a queue: it reports nothing."""
        waits = self.first[TO_WRITE] != NOTHING or self.first[TO_READ] != NOTHING
        return self.state[SLEEPS] == 1 or waits
