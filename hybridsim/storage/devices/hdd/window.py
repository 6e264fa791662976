"""The commands that a disk has, of all that wait for it: the arm chooses among these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.jit import method, state_machine
from hybridsim.storage.devices.hdd.queue import NOTHING


@state_machine
class Window(NamedTuple):
    """The `size` oldest commands of each disk's line; a command's age begins when it enters."""

    size: int
    waiting: Ints  # commands in the line, inside or behind
    youngest: Int32s  # of those inside, or NOTHING

    @classmethod
    def new(cls, members: int, size: int) -> Window:
        """Make empty windows."""
        return cls(size, np.zeros(members, np.int64), np.full(members, NOTHING, np.int32))

    @method
    def append(self, now, member, line, slot, queue):
        """Put a command at the young end of a disk's line."""
        queue.append(line, slot)
        self.waiting[member] += 1
        if self.waiting[member] <= self.size:
            self.enter(now, member, slot, queue)

    @method
    def unlink(self, now, member, line, older, slot, queue):
        """Take a command out of its line; `older` is the one before it, or NOTHING."""
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
        """Let a command be chosen from now on."""
        queue.entered_ns[slot] = now
        self.youngest[member] = slot
