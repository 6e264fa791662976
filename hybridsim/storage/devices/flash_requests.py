"""The requests in progress on flash drives, and the queues in which they wait."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, longer
from hybridsim.jit import method, state_machine
from hybridsim.storage.devices.lines import Lines


@state_machine
class Requests(NamedTuple):
    """Requests in progress on a drive, one slot each."""

    tag: Ints
    op: Ints
    offset: Ints
    length: Ints
    ready_ns: Ints  # write: when its data has arrived in the drive
    pending: Int32s  # number of dies that have not completed their part
    waiting: Lines  # by member; the last line is of free slots
    free: Ints  # [number of free slots]

    @classmethod
    def new(cls, members: int, capacity: int) -> Requests:
        """Return room for `capacity` requests."""
        columns = [np.zeros(capacity, np.int64) for _ in range(5)]
        waiting = Lines.new(members + 1, capacity).extend(members, range(capacity))
        pending = np.zeros(capacity, np.int32)
        return cls._make([*columns, pending, waiting, np.array([capacity])])

    def grown(self, capacity: int) -> Requests:
        """Return the same requests with room for `capacity`."""
        size = len(self.tag)
        columns = [longer(column, capacity) for column in self[:6]]
        waiting = self.waiting.grown(capacity)
        waiting.extend(len(waiting.first) - 1, range(size, capacity))
        return Requests._make([*columns, waiting, self.free + capacity - size])

    @method
    def take(self, tag, op, offset, length):
        """Put a request into a free slot; return the slot."""
        self.free[0] -= 1
        slot = self.waiting.pop(len(self.waiting.first) - 1)
        self.tag[slot] = tag
        self.op[slot] = op
        self.offset[slot] = offset
        self.length[slot] = length
        self.pending[slot] = 0
        return slot

    @method
    def release(self, slot):
        """Free a slot; return the tag that was in it."""
        self.free[0] += 1
        self.waiting.append(len(self.waiting.first) - 1, slot)
        return self.tag[slot]
