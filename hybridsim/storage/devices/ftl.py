"""The place of each unit in a flash drive: a page-mapped FTL with greedy garbage collection."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.machine_parameters import FlashParameters
from hybridsim.jit import method, state_machine

NOWHERE = -1
# Added to the count of valid units of a block that is free or being written: never collected.
NOT_FULL = 1 << 30
FRONTIER, POSITION, FIRST_FREE, FREE, PLACED, MOVED = range(6)


@state_machine
class Mapping(NamedTuple):
    """Logical units of each member and their places (DESIGN.md 2.8.3); rows are members.

    Drives whose garbage collection is not simulated have a mapping without units.
    """

    model: FlashParameters
    move_ns: int  # die time of moving a unit
    where: Int32s  # [member, logical unit]: physical unit, or NOWHERE
    owner: Int32s  # [member, physical unit]: logical unit, or NOWHERE
    valid: Int32s  # [member, block]
    free: Int32s  # [member, ring]: free blocks, in the order in which they became free
    state: Ints  # [member, FRONTIER ... MOVED]
    debt_ns: Ints  # [member, die]: work of collection that the die has not started

    @classmethod
    def new(cls, members: int, model: FlashParameters) -> Mapping:
        """Return the mapping of `members` drives, all written once in order, or all empty."""
        units, blocks, block_units = model.mapped_units, model.blocks, model.block_units
        written = units if model.filled else 0
        where = np.full(units, NOWHERE, np.int32)
        where[:written] = np.arange(written)
        owner = np.full(blocks * block_units, NOWHERE, np.int32)
        owner[:written] = np.arange(written)
        frontier, position = divmod(written, max(block_units, 1))
        valid = np.full(blocks, NOT_FULL, np.int32)
        valid[:frontier] = block_units
        if blocks:
            valid[frontier] += position
        free = np.roll(np.arange(blocks, dtype=np.int32), -frontier - 1)
        state = np.array([frontier, position, 0, blocks - frontier - 1, 0, 0])
        columns = (np.tile(column, (members, 1)) for column in (where, owner, valid, free, state))
        move_ns = (model.read_ns + model.program_ns) // model.program_units
        debt_ns = np.zeros((members, model.dies), np.int64)
        return cls._make([model, move_ns, *columns, debt_ns])

    @method
    def is_simulated(self):
        """Return whether there is a mapping at all."""
        return self.where.shape[1] > 0

    def moves(self) -> tuple[int, int]:
        """Return the units placed for the host, and the units moved by collection."""
        placed, moved = self.state[:, PLACED:].sum(axis=0).tolist()
        return placed, moved

    @method
    def address(self, member, unit):
        """Return the place of a unit; a unit that was never written is at its own number."""
        if self.is_simulated() and self.where[member, unit] != NOWHERE:
            return int(self.where[member, unit])
        return unit

    @method
    def die(self, member, unit):
        """Return the die of a unit."""
        if self.is_simulated() and self.where[member, unit] != NOWHERE:
            return int(self.where[member, unit]) // self.model.program_units % self.model.dies
        return unit % self.model.dies

    @method
    def write(self, member, unit):
        """Assign a new place to a unit that the host writes; return the die of that place."""
        state = self.state
        while state[member, POSITION] == self.model.block_units and state[member, FREE] < 2:
            self.collect(member)
        self.forget(member, unit)
        state[member, PLACED] += 1
        return self.append(member, unit) // self.model.program_units % self.model.dies

    @method
    def forget(self, member, unit):
        """Mark the old place of a unit as garbage."""
        at = int(self.where[member, unit])
        if at != NOWHERE:
            self.where[member, unit] = NOWHERE
            self.owner[member, at] = NOWHERE
            self.valid[member, at // self.model.block_units] -= 1

    @method
    def append(self, member, unit):
        """Put a unit at the frontier; open a new block if the last one is full."""
        state = self.state
        if state[member, POSITION] == self.model.block_units:
            state[member, FRONTIER] = self.free[member, state[member, FIRST_FREE]]
            state[member, FIRST_FREE] = (state[member, FIRST_FREE] + 1) % self.free.shape[1]
            state[member, FREE] -= 1
            state[member, POSITION] = 0
        block = state[member, FRONTIER]
        at = block * self.model.block_units + state[member, POSITION]
        state[member, POSITION] += 1
        self.where[member, unit] = at
        self.owner[member, at] = unit
        self.valid[member, block] += 1
        if state[member, POSITION] == self.model.block_units:
            self.valid[member, block] -= NOT_FULL
        return at

    @method
    def collect(self, member):
        """Move the valid units out of the block that has the fewest, and erase that block."""
        victim = self.emptiest(member)
        begin = victim * self.model.block_units
        for at in range(begin, begin + self.model.block_units):
            unit = int(self.owner[member, at])
            if unit != NOWHERE:
                self.owner[member, at] = NOWHERE
                to = self.append(member, unit)
                self.debt_ns[member, to // self.model.program_units % self.model.dies] += (
                    self.move_ns
                )
                self.state[member, MOVED] += 1
        self.valid[member, victim] = NOT_FULL
        ring = self.free.shape[1]
        state = self.state
        self.free[member, (state[member, FIRST_FREE] + state[member, FREE]) % ring] = victim
        state[member, FREE] += 1
        first = begin // self.model.program_units
        for each in range(min(self.model.block_units // self.model.program_units, self.model.dies)):
            self.debt_ns[member, (first + each) % self.model.dies] += self.model.erase_ns

    @method
    def emptiest(self, member):
        """Return the full block with the fewest valid units, the lowest of equals."""
        fewest = NOT_FULL
        for block in range(self.valid.shape[1]):
            fewest = min(fewest, self.valid[member, block])
        block = 0
        while self.valid[member, block] != fewest:
            block += 1
        return block

    @method
    def discard(self, member, first, end):
        """Invalidate the units from `first` to before `end`."""
        if self.is_simulated():
            for unit in range(first, end):
                self.forget(member, unit)
