"""Solid-state drives: a controller, a link, and dies that read and program side by side."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.arrays import Ints
from hybridsim.codes import OP_MASK, Op
from hybridsim.jit import method, state_machine

READ, WRITE = int(Op.READ), int(Op.WRITE)
BYTES_READ, BYTES_WRITTEN = 0, 1
UNITS, REQUESTS = 0, 1


@state_machine
class SSD(NamedTuple):
    """A bank of equal drives; rows of the arrays are the members (DESIGN.md 2.7)."""

    dies: int
    unit_bytes: int
    command_ns: int
    interval_ns: int
    read_ns: int
    program_ns: int
    scatter_ns: int
    suspend_ns: int
    write_ns: int
    buffer_ns: int
    link_bytes_per_s: int
    capacity_bytes: int
    controller_free_ns: Ints
    link_free_ns: Ints
    read_free_ns: Ints  # [member, die]
    write_free_ns: Ints  # [member, die]
    written: Ints  # [member, UNITS | REQUESTS]: the next of each goes to that die, modulo dies
    counts: Ints  # [member, BYTES_READ | BYTES_WRITTEN]

    @classmethod
    def new(cls, members: int, timing: dict[str, int]) -> SSD:
        """Make `members` idle drives; `timing` gives the parameters by name."""
        dies = (members, timing["dies"])
        return cls(
            **{name: timing[name] for name in cls._fields[:12]},
            controller_free_ns=np.zeros(members, np.int64),
            link_free_ns=np.zeros(members, np.int64),
            read_free_ns=np.zeros(dies, np.int64),
            write_free_ns=np.zeros(dies, np.int64),
            written=np.zeros((members, 2), np.int64),
            counts=np.zeros((members, 2), np.int64),
        )

    @method
    def room(self):
        """Return how many requests the bank can still take: it keeps none itself."""
        return 1 << 62

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return what all members have done so far, by name."""
        read, written = self.counts.sum(axis=0).tolist()
        return {"bytes_read": read, "bytes_written": written}

    @method
    def submit(self, now, member, tag, op, offset, length, kind, events):
        """Take a request; its completion is scheduled at once."""
        op &= OP_MASK
        start = max(now, self.controller_free_ns[member])
        self.controller_free_ns[member] = start + self.interval_ns
        begin = start + self.command_ns
        done = begin
        if length > 0 and (op == READ or op == WRITE):
            link_free = max(self.link_free_ns[member], begin) + self.wire_ns(length)
            self.link_free_ns[member] = link_free
            if op == READ:
                done = self.read_done(member, offset, length, begin, link_free)
            else:
                done = self.write_done(member, offset, length, link_free + self.write_ns)
        events.push(done, kind, tag)

    @method
    def complete(self, now, tag, kind, events):
        """Return the tag of the completed request."""
        return tag

    @method
    def wire_ns(self, length):
        """Return how long the link carries `length` bytes."""
        return length * 1_000_000_000 // self.link_bytes_per_s

    @method
    def read_done(self, member, offset, length, begin, link_free):
        """Read every unit from its die; return when the last byte is across the link."""
        self.counts[member, BYTES_READ] += length
        done = link_free
        end = offset + length
        at = offset
        while at < end:
            unit = at // self.unit_bytes
            upto = min((unit + 1) * self.unit_bytes, end)
            die = unit % self.dies
            start = max(begin, self.read_free_ns[member, die])
            if self.write_free_ns[member, die] > start:
                start += self.suspend_ns
                self.write_free_ns[member, die] += self.read_ns + self.suspend_ns
            self.read_free_ns[member, die] = start + self.read_ns
            done = max(done, start + self.read_ns + self.wire_ns(upto - at))
            at = upto
        return done

    @method
    def write_done(self, member, offset, length, buffered):
        """Put every unit on the next die; return when the drive says that the data are safe."""
        self.counts[member, BYTES_WRITTEN] += length
        done = buffered
        units = (offset + length - 1) // self.unit_bytes - offset // self.unit_bytes + 1
        for _ in range(units):
            done = max(done, self.work(member, UNITS, buffered, self.program_ns))
        if self.scatter_ns > 0:
            done = max(done, self.work(member, REQUESTS, buffered, self.scatter_ns))
        return done

    @method
    def work(self, member, turn, begin, work_ns):
        """Give work to the die whose turn it is; return when the buffer need not hold it longer."""
        die = self.written[member, turn] % self.dies
        self.written[member, turn] += 1
        free = max(self.write_free_ns[member, die], begin) + work_ns
        self.write_free_ns[member, die] = free
        return free - self.buffer_ns
