"""The window of a disk: the waiting commands that the arm chooses from."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.jit import method, state_machine
from hybridsim.storage.devices.hdd.queue import NOTHING


@state_machine
class Window(NamedTuple):
    """The `size` oldest commands of each disk's queue; a command's age starts when it enters."""

    size: int
    waiting: Ints  # number of commands in the queue, inside the window or after it
    youngest: Int32s  # of those inside, or NOTHING

    @classmethod
    def new(cls, members: int, size: int) -> Window:
        """Return empty windows."""
        return cls(size, np.zeros(members, np.int64), np.full(members, NOTHING, np.int32))

    @method
    def append(self, now, member, line, slot, queue):
        """Append a command to a disk's queue."""
        queue.append(line, slot)
        self.waiting[member] += 1
        if self.waiting[member] <= self.size:
            self.enter(now, member, slot, queue)

    @method
    def unlink(self, now, member, line, older, slot, queue):
        """Remove a command from its queue; `older` is the one before it, or NOTHING."""
        queue.unlink(line, older, slot)
        self.waiting[member] -= 1
        if self.youngest[member] == slot:
            self.youngest[member] = older
        if self.waiting[member] >= self.size:
            last = self.youngest[member]
            following = queue.oldest[line] if last == NOTHING else queue.next[last]
            self.enter(now, member, following, queue)

    @method
    def enter(self, now, member, slot, queue):
        """Move the next command into the window."""
        queue.entered_ns[slot] = now
        self.youngest[member] = slot
