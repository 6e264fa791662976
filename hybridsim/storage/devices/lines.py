"""Queues of numbered items, each in at most one queue; first come, first served."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, longer
from hybridsim.jit import method, state_machine

NOTHING = -1


@state_machine
class Lines(NamedTuple):
    """Some queues over the same items; a queue of unused items is a pool."""

    first: Int32s  # by line: item, or NOTHING
    last: Int32s
    next: Int32s  # by item

    @classmethod
    def new(cls, lines: int, items: int) -> Lines:
        """Return empty queues; no item is in one yet."""
        ends = (np.full(lines, NOTHING, np.int32) for _ in range(2))
        return cls._make([*ends, np.full(items, NOTHING, np.int32)])

    def grown(self, items: int) -> Lines:
        """Return the same queues over more items."""
        return self._replace(next=longer(self.next, items, NOTHING))

    def extend(self, line: int, items: range) -> Lines:
        """Append items that are in no queue to one."""
        for item in items:
            self.append(line, item)
        return self

    @method
    def is_empty(self, line):
        """Return whether a queue is empty."""
        return self.first[line] == NOTHING

    @method
    def append(self, line, item):
        """Append an item to a queue."""
        self.next[item] = NOTHING
        if self.first[line] == NOTHING:
            self.first[line] = item
        else:
            self.next[self.last[line]] = item
        self.last[line] = item

    @method
    def pop(self, line):
        """Remove and return the first item of a queue that is not empty."""
        item = int(self.first[line])
        self.first[line] = self.next[item]
        return item
