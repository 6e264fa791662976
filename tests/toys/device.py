"""Drives of memory: every request takes the same time, beside all others."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import OP_MASK, Op
from hybridsim.jit import method, state_machine

if TYPE_CHECKING:
    from hybridsim.storage.drives.datasheet import Placement
    from hybridsim.storage.drives.ram import MemoryDrive

READ, WRITE = int(Op.READ), int(Op.WRITE)


@state_machine
class Ram(NamedTuple):
    """A bank of equal drives."""

    latency_ns: int
    capacity_bytes: int
    counts: Ints  # [member, bytes read | bytes written]

    @classmethod
    def new(cls, members: int, latency_ns: int, capacity_bytes: int) -> Ram:
        """Return `members` idle drives."""
        return cls(latency_ns, capacity_bytes, np.zeros((members, 2), np.int64))

    @method
    def room(self):
        """Return a number larger than any demand: the bank stores no requests."""
        return 1 << 62

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return the counters of all members so far, by name."""
        read, written = self.counts.sum(axis=0).tolist()
        return {"bytes_read": read, "bytes_written": written}

    @method
    def submit(self, now, member, tag, op, offset, length, kind, events):
        """Take a request; its completion is scheduled at once."""
        what = op & OP_MASK
        if what == READ or what == WRITE:
            self.counts[member, 0 if what == READ else 1] += length
        events.push(now + self.latency_ns, kind, tag)

    @method
    def complete(self, now, tag, kind, events):
        """Return the tag of the completed request."""
        return tag


def bank(drive: MemoryDrive, members: int, use: Placement) -> Ram:
    """Return `members` idle drives."""
    return Ram.new(members, drive.latency_ns, use.capacity_bytes)
