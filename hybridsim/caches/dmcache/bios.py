"""Bios, the parts of requests within one block, and the cells of blocks that are not cached."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.dmcache.table import Table
from hybridsim.foundation.arrays import (
    Bytes,
    Int32s,
    Ints,
    free_list,
    grown_pool,
    longer,
    pool_of,
    with_room,
)
from hybridsim.jit import method, state_machine

NOTHING = -1
# Special treatment of a bio.
PLAIN, MARKED, COMMITTED = 0, 1, 2
# The lock that it holds.
NONE, OF_SLOT, OF_CELL = range(3)


@state_machine
class Bios(NamedTuple):
    """Bios in flight, one number each."""

    request: Int32s  # slot of the request
    op: Bytes
    offset: Ints
    length: Ints
    parts: Int32s  # number of its parts that the tiers have not completed
    extra: Bytes  # PLAIN, MARKED (its completion is a tick), COMMITTED (it waited for a commit)
    accounted: Bytes  # 1: the cache is not idle while it is in flight
    holds: Bytes  # NONE, OF_SLOT, OF_CELL
    place: Int32s  # the slot or the cell
    item: Int32s  # the promotion that this write performs, or NOTHING
    following: Int32s  # next in its list, or in the free list
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls, capacity: int) -> Bios:
        """Return room for `capacity` bios."""
        return pool_of(cls, capacity)

    def grown(self, capacity: int) -> Bios:
        """Return the same bios with room for `capacity`."""
        return grown_pool(self, capacity)

    @method
    def take(self, request, op, offset, length):
        """Allocate a bio."""
        bio = self.free[0]
        self.free[0] = self.following[bio]
        self.free[1] -= 1
        self.request[bio] = request
        self.op[bio] = op
        self.offset[bio] = offset
        self.length[bio] = length
        self.parts[bio] = 1
        self.extra[bio] = PLAIN
        self.accounted[bio] = 0
        self.holds[bio] = NONE
        self.item[bio] = NOTHING
        return bio

    @method
    def release(self, bio):
        """Free a bio."""
        self.following[bio] = self.free[0]
        self.free[0] = bio
        self.free[1] += 1

    @method
    def are_none(self):
        """Return whether no bio is in flight."""
        return self.free[1] == len(self.request)


@state_machine
class Cells(NamedTuple):
    """Blocks that are not cached, with a bio or a promotion in progress."""

    table: Table  # block -> cell
    holders: Int32s
    item: Int32s  # the promotion, or NOTHING
    following: Int32s  # free list
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls, capacity: int) -> Cells:
        """Return room for `capacity` cells."""
        return cls(
            Table.new(capacity),
            np.zeros(capacity, np.int32),
            np.full(capacity, NOTHING, np.int32),
            free_list(capacity),
            np.array([0, capacity]),
        )

    def grown(self, capacity: int) -> Cells:
        """Return the same cells with room for `capacity`."""
        cells = with_room(self, capacity, ("holders",), "following")._replace(
            table=Table.new(capacity), item=longer(self.item, capacity, NOTHING)
        )
        for cell in range(len(self.holders)):
            if self.is_used(cell):
                cells.table.insert(cell, int(self.table.number[cell]))
        return cells

    @method
    def of(self, block):
        """Return the cell of a block; allocate one if there is none."""
        cell = self.table.find(block)
        if cell == NOTHING:
            cell = self.free[0]
            self.free[0] = self.following[cell]
            self.free[1] -= 1
            self.table.insert(cell, block)
            self.holders[cell] = 0
            self.item[cell] = NOTHING
        return cell

    @method
    def release_unused(self, cell):
        """Free a cell if nothing is in progress for its block."""
        if self.holders[cell] == 0 and self.item[cell] == NOTHING:
            self.table.remove(cell)
            self.following[cell] = self.free[0]
            self.free[0] = cell
            self.free[1] += 1

    @method
    def is_used(self, cell):
        """Return whether something is in progress for its block."""
        return self.holders[cell] > 0 or self.item[cell] != NOTHING


@state_machine
class Fifo(NamedTuple):
    """A list of bios or items, linked by their `following`."""

    ends: Ints  # [first, last]

    @classmethod
    def new(cls) -> Fifo:
        """Return an empty list."""
        return cls(np.full(2, NOTHING, np.int64))

    @method
    def is_empty(self):
        """Return whether the list is empty."""
        return self.ends[0] == NOTHING

    @method
    def append(self, one, following):
        """Append an element."""
        following[one] = NOTHING
        if self.ends[0] == NOTHING:
            self.ends[0] = one
        else:
            following[self.ends[1]] = one
        self.ends[1] = one

    @method
    def pop(self, following):
        """Remove and return the first element."""
        one = self.ends[0]
        self.ends[0] = following[one]
        if self.ends[0] == NOTHING:
            self.ends[1] = NOTHING
        return one

    @method
    def take_over(self, other):
        """Move all elements of another list to this one, which must be empty."""
        for end in range(2):
            self.ends[end] = other.ends[end]
            other.ends[end] = NOTHING
