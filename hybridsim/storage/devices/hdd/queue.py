"""Commands that wait at disks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import (
    Bytes,
    Int32s,
    Ints,
    filled,
    free_list,
    with_room,
)
from hybridsim.jit import method, state_machine

NOTHING = -1
COLUMNS = 13


@state_machine
class Queue(NamedTuple):
    """The commands at the disks of a bank, one slot each; queues are linked, oldest first."""

    tag: Ints
    member: Int32s
    op: Bytes
    after: Bytes  # what a read or a write follows: an index of the overheads
    offset: Ints
    length: Ints
    submitted_ns: Ints
    entered_ns: Ints  # when it became one of those that the arm chooses from
    prepared_ns: Ints  # earliest time at which it can go to the platters
    zone: Ints  # place of its first byte
    track: Ints
    cylinder: Ints
    angle_ns: Ints
    next: Int32s  # younger command of the same queue, or next free slot
    free: Ints  # [first free slot, number of free slots]
    oldest: Int32s  # by line, or NOTHING
    youngest: Int32s

    @classmethod
    def new(cls, lines: int, capacity: int) -> Queue:
        """Return empty queues with room for `capacity` commands in all."""
        links, free = free_list(capacity), np.array([0, capacity])
        oldest, youngest = (np.full(lines, NOTHING, np.int32) for _ in range(2))
        return filled(cls, capacity, next=links, free=free, oldest=oldest, youngest=youngest)

    def grown(self, capacity: int) -> Queue:
        """Return the same queues with room for `capacity` commands."""
        return with_room(self, capacity, self._fields[:COLUMNS], "next")

    @method
    def take(self, now, member, tag, op, offset, length):
        """Put a command into a free slot; return the slot."""
        slot = self.free[0]
        self.free[0] = self.next[slot]
        self.free[1] -= 1
        self.tag[slot] = tag
        self.member[slot] = member
        self.op[slot] = op
        self.offset[slot] = offset
        self.length[slot] = length
        self.submitted_ns[slot] = now
        return slot

    @method
    def find(self, slot, platters):
        """Set the place of a command on the platters."""
        place = platters.place(self.offset[slot])
        self.zone[slot], self.track[slot], self.cylinder[slot], self.angle_ns[slot] = place

    @method
    def place(self, slot):
        """Return the place of a command on the platters."""
        return self.zone[slot], self.track[slot], self.cylinder[slot], self.angle_ns[slot]

    @method
    def append(self, line, slot):
        """Append a command to a queue."""
        self.next[slot] = NOTHING
        if self.oldest[line] == NOTHING:
            self.oldest[line] = slot
        else:
            self.next[self.youngest[line]] = slot
        self.youngest[line] = slot

    @method
    def unlink(self, line, older, slot):
        """Remove a command from its queue; `older` is the one before it, or NOTHING."""
        if older == NOTHING:
            self.oldest[line] = self.next[slot]
        else:
            self.next[older] = self.next[slot]
        if self.youngest[line] == slot:
            self.youngest[line] = older

    @method
    def release(self, slot):
        """Free a slot."""
        self.next[slot] = self.free[0]
        self.free[0] = slot
        self.free[1] += 1


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
