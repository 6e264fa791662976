"""Solid-state drives in detail: requests; dies and mapping have their own files."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, grown_pool, pool_of
from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Op
from hybridsim.foundation.machine_parameters import FlashParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.lists import NOTHING, Fifos, give_back, taken
from hybridsim.storage.devices.flash_dies import PROGRAM_ENDS, Dies
from hybridsim.storage.devices.ftl import Mapping
from hybridsim.storage.devices.ssd import level


@state_machine
class Requests(NamedTuple):
    """Requests in progress on a drive, one slot each."""

    tag: Ints
    op: Ints
    offset: Ints
    length: Ints
    ready_ns: Ints  # write: when its data has arrived in the drive
    pending: Int32s  # number of dies that have not completed their part
    waiting: Fifos  # by member
    following: Int32s  # the next one that waits, or in the free list
    free: Ints  # [first free slot, number of free slots]

    @method
    def take(self, tag, op, offset, length):
        """Put a request into a free slot; return the slot."""
        slot = taken(self)
        self.tag[slot] = tag
        self.op[slot] = op
        self.offset[slot] = offset
        self.length[slot] = length
        self.pending[slot] = 0
        return slot

    @method
    def release(self, slot):
        """Free a slot; return the tag that was in it."""
        give_back(self, slot)
        return self.tag[slot]


BYTES_READ, BYTES_WRITTEN = 0, 1

# State of a drive: when its link to the host is free; units in the buffer; units in the program
# that is being assembled, and the die that it goes to; programs issued, and those not complete;
# reads in progress; whether anything was written since the last flush; whether a flush is in its
# last part; barriers in its queue.
(
    LINK_FREE_NS,
    USED,
    OPEN,
    OPEN_DIE,
    ISSUED,
    UNPROGRAMMED,
    READING,
    DIRTY,
    FLUSHING,
    BARRIERS,
) = range(10)

state_machine(FlashParameters)  # a part of this one


@state_machine
class Flash(NamedTuple):
    """A bank of equal drives (DESIGN.md 2.8).

    The number of an event is a request's tag, or negative: a die's event, or the end of a flush,
    which has the number that the first event of a die would have.
    """

    model: FlashParameters
    requests: Requests
    nand: Dies
    mapping: Mapping
    drive: Ints  # [member, LINK_FREE_NS ... BARRIERS]
    wanted: Ints  # by die of a member: [bytes, sense_ns] of the current request
    counts: Ints  # [member, BYTES_READ | BYTES_WRITTEN]

    @classmethod
    def new(cls, members: int, model: FlashParameters, capacity: int = 256) -> Flash:
        """Return `members` idle drives."""
        return cls(
            model=model,
            requests=pool_of(Requests, capacity, waiting=Fifos.new(members)),
            nand=Dies.new(members, model, capacity),
            mapping=Mapping.new(members, model),
            drive=np.zeros((members, 10), np.int64),
            wanted=np.zeros((model.dies, 2), np.int64),
            counts=np.zeros((members, 2), np.int64),
        )

    @property
    def capacity_bytes(self) -> int:
        """Bytes of each drive."""
        return self.model.capacity_bytes

    @method
    def room(self):
        """Return how many more requests the bank can take."""
        return self.requests.free[1]

    def size(self) -> int:
        """Return the capacity of the bank in requests."""
        return len(self.requests.tag)

    def grown(self, capacity: int) -> Flash:
        """Return the same bank with room for `capacity` requests, each on all dies of a drive."""
        requests = grown_pool(self.requests, capacity, Requests._fields[:6])
        nand = self.nand.grown(capacity * self.model.dies)
        return self._replace(requests=requests, nand=nand)

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return the counters of all members so far, by name."""
        read, written = self.counts.sum(axis=0).tolist()
        placed, moved = self.mapping.moves()
        return {
            "bytes_read": read,
            "bytes_written": written,
            "bytes_placed": placed * self.model.unit_bytes,
            "bytes_moved": moved * self.model.unit_bytes,
        }

    # Requests.

    @method
    def submit(self, now, member, tag, op, offset, length, kind, events):
        """Take a request."""
        what = op & OP_MASK
        if what == Op.FLUSH:
            if self.model.is_protected == 1:
                self.flush_buffer(now, member, tag, kind, events)
            else:  # a power loss could destroy what is in the buffer
                self.wait(now, member, self.requests.take(tag, Op.FLUSH, 0, 0), kind, events)
        elif length == 0 or what == Op.DISCARD:
            if what == Op.DISCARD:
                end = (offset + length) // self.model.unit_bytes
                self.mapping.discard(member, -(-offset // self.model.unit_bytes), end)
            events.push(now + self.model.command_ns, kind, tag)
        elif what == Op.READ:
            self.counts[member, BYTES_READ] += length
            slot = self.requests.take(tag, Op.READ, offset, length)
            if self.model.is_blocking == 1 and self.drive[member, BARRIERS] > 0:
                self.requests.waiting.append(member, slot, self.requests.following)
            else:
                self.read(now, member, slot, kind, events)
        else:
            self.counts[member, BYTES_WRITTEN] += length
            self.submit_write(now, member, tag, op, offset, length, kind, events)

    @method
    def submit_write(self, now, member, tag, op, offset, length, kind, events):
        """Transfer data over the link into the buffer, or queue the write for it."""
        ready = self.cross(now, member, length) + self.model.command_ns + self.model.write_ns
        if self.model.is_protected == 1 and op & PREFLUSH and self.drive[member, DIRTY] == 1:
            ready += self.model.flush_ns
        if self.model.is_protected == 1:
            op = Op.WRITE
        in_line = not self.requests.waiting.is_empty(member) or not self.has_space(member)
        slot = self.requests.take(tag, op, offset, length)
        self.requests.ready_ns[slot] = ready
        if in_line or op & PREFLUSH != 0:
            self.wait(now, member, slot, kind, events)
        else:
            self.accept(now, member, slot, kind, events)

    @method
    def cross(self, now, member, length):
        """Occupy the link to the host; return when the data have crossed it."""
        wire_ns = length * 1_000_000_000 // self.model.link_bytes_per_s
        out = max(now, self.drive[member, LINK_FREE_NS])
        self.drive[member, LINK_FREE_NS] = out + max(wire_ns, self.model.interval_ns)
        return out + wire_ns

    @method
    def accept(self, now, member, slot, kind, events):
        """Take a write into the buffer; with FUA it waits until its data is programmed."""
        requests = self.requests
        offset, length = requests.offset[slot], requests.length[slot]
        if requests.op[slot] & FUA != 0:
            self.store(now, member, offset, length, slot, kind, events)
        else:
            self.store(now, member, offset, length, NOTHING, kind, events)
            events.push(max(now, requests.ready_ns[slot]), kind, requests.release(slot))

    @method
    def wait(self, now, member, slot, kind, events):
        """Queue a request, and start it if possible."""
        op = self.requests.op[slot]
        if op == Op.FLUSH or op & PREFLUSH != 0:
            self.drive[member, BARRIERS] += 1
        self.requests.waiting.append(member, slot, self.requests.following)
        self.proceed(now, member, kind, events)

    @method
    def has_space(self, member):
        """Return whether the buffer can take another write."""
        return self.drive[member, USED] < self.model.buffer_units

    @method
    def proceed(self, now, member, kind, events):
        """Process the drive's queue in order as far as possible."""
        requests = self.requests
        waiting, links = requests.waiting, requests.following
        while self.drive[member, FLUSHING] == 0 and not waiting.is_empty(member):
            slot = waiting.first[member]
            op = requests.op[slot]
            if op & OP_MASK == Op.FLUSH or op & PREFLUSH != 0:
                if not self.is_drained(now, member, kind, events):
                    return
                self.drive[member, FLUSHING] = 1
                self.flush_buffer(now, member, -1 - member, kind, events)
            elif op == Op.READ:
                waiting.pop(member, links)
                self.read(now, member, slot, kind, events)
            elif self.has_space(member):
                waiting.pop(member, links)
                self.accept(now, member, slot, kind, events)
            else:
                return

    @method
    def is_drained(self, now, member, kind, events):
        """Return whether all written data is programmed; start the missing program."""
        drive = self.drive
        if drive[member, OPEN] > 0:
            self.close(now, member, NOTHING, kind, events)
        if drive[member, UNPROGRAMMED] > 0:
            return False
        return self.model.is_blocking == 0 or drive[member, READING] == 0

    @method
    def flush_buffer(self, now, member, number, kind, events):
        """Start the last part of a flush, which nothing can delay; its event has this number."""
        flush_ns = self.model.flush_ns if self.drive[member, DIRTY] == 1 else 0
        self.drive[member, DIRTY] = 0
        events.push(now + self.model.command_ns + flush_ns, kind, number)

    @method
    def end_flush(self, now, member, kind, events):
        """Continue after a flush; return the tag of a request that it completes, or NOTHING."""
        requests = self.requests
        self.drive[member, FLUSHING] = 0
        slot = requests.waiting.first[member]
        tag = NOTHING
        if requests.op[slot] == Op.FLUSH:
            requests.waiting.pop(member, requests.following)
            tag = requests.release(slot)
        else:
            requests.op[slot] -= PREFLUSH
        self.drive[member, BARRIERS] -= 1
        self.proceed(now, member, kind, events)
        return tag

    # Data.

    @method
    def read(self, now, member, slot, kind, events):
        """Request the data from every die that has some of it."""
        requests = self.requests
        at = requests.offset[slot]
        end = at + requests.length[slot]
        first = at // self.model.unit_bytes
        last = (end - 1) // self.model.unit_bytes
        for unit in range(first, last + 1):
            die = self.mapping.die(member, unit)
            upto = min((unit + 1) * self.model.unit_bytes, end)
            self.wanted[die, 0] += upto - at
            sense_ns = self.model.read_ns
            if self.model.step_ns > 0:
                sense_ns += self.model.step_ns * level(self.mapping.address(member, unit))
            self.wanted[die, 1] += sense_ns
            at = upto
        self.drive[member, READING] += 1
        for unit in range(first, last + 1):
            die = self.mapping.die(member, unit)
            length = self.wanted[die, 0]
            if length > 0:
                sense_ns = self.wanted[die, 1]
                self.wanted[die, 0] = 0
                self.wanted[die, 1] = 0
                requests.pending[slot] += 1
                nand_die = member * self.model.dies + die
                self.nand.read(now, nand_die, slot, length, sense_ns, kind, events)

    @method
    def store(self, now, member, offset, length, forced, kind, events):
        """Put data into the buffer; each time it is enough for a program, a die programs it.

        `forced` is the slot of a request that waits until its data is programmed, or NOTHING.
        """
        drive = self.drive
        first = offset // self.model.unit_bytes
        last = (offset + length - 1) // self.model.unit_bytes
        drive[member, DIRTY] = 1
        drive[member, USED] += last - first + 1
        for unit in range(first, last + 1):
            if self.mapping.is_simulated():
                drive[member, OPEN_DIE] = self.mapping.write(member, unit)
            elif self.model.is_static == 1:
                drive[member, OPEN_DIE] = unit % self.model.dies
            else:
                drive[member, OPEN_DIE] = drive[member, ISSUED] % self.model.dies
            drive[member, OPEN] += 1
            if drive[member, OPEN] == self.model.program_units:
                self.close(now, member, forced, kind, events)
        if forced != NOTHING and drive[member, OPEN] > 0:
            self.close(now, member, forced, kind, events)

    @method
    def close(self, now, member, forced, kind, events):
        """Start a program of the assembled units, after the collection that is due on the die."""
        drive = self.drive
        drive[member, USED] += self.model.program_units - drive[member, OPEN]
        die = drive[member, OPEN_DIE]
        drive[member, OPEN] = 0
        drive[member, ISSUED] += 1
        drive[member, UNPROGRAMMED] += 1
        work_ns = self.model.collect_ns + self.mapping.debt_ns[member, die]
        self.mapping.debt_ns[member, die] = 0
        die += member * self.model.dies
        self.nand.program(now, die, work_ns, kind, events)
        if forced != NOTHING and self.nand.force(die, forced):
            self.requests.pending[forced] += 1

    @method
    def complete(self, now, number, kind, events):
        """Process an event; return the tag of a completed request, or NOTHING."""
        if number >= 0:
            return number
        event = -1 - number
        if event < len(self.nand.state):
            return self.end_flush(now, event, kind, events)
        result = self.nand.happen(now, event, kind, events)
        if result == NOTHING:
            return NOTHING
        member = event % len(self.nand.state) // self.model.dies
        if result == PROGRAM_ENDS:
            self.end_program(now, member, event % len(self.nand.state), kind, events)
            return NOTHING
        self.requests.pending[result] -= 1
        if self.requests.pending[result] > 0:
            return NOTHING
        return self.end_read(now, member, result, kind, events)

    @method
    def end_program(self, now, member, die, kind, events):
        """Free the space in the buffer, and continue the requests that waited for it."""
        requests = self.requests
        self.drive[member, USED] -= self.model.program_units
        self.drive[member, UNPROGRAMMED] -= 1
        slot = self.nand.forced(die)
        while slot != NOTHING:
            requests.pending[slot] -= 1
            if requests.pending[slot] == 0:
                done = max(now, requests.ready_ns[slot]) + self.model.flush_ns
                events.push(done, kind, requests.release(slot))
            slot = self.nand.forced(die)
        self.proceed(now, member, kind, events)

    @method
    def end_read(self, now, member, slot, kind, events):
        """Send the data read to the host; return the tag if that takes no time."""
        done = self.cross(now, member, self.requests.length[slot]) + self.model.command_ns
        self.drive[member, READING] -= 1
        tag = self.requests.release(slot)
        if self.model.is_blocking == 1:
            self.proceed(now, member, kind, events)
        if done == now:
            return tag
        events.push(done, kind, tag)
        return NOTHING
