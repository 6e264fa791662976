"""Solid-state drives in detail: the place of each unit, dies on channels, and requests."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, grown_pool, pool_of, roomy_pool
from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Op
from hybridsim.foundation.machine_parameters import FlashParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.lists import NOTHING, Fifos, give_back, taken
from hybridsim.storage.devices.ssd import level

state_machine(FlashParameters)  # a part of these

# A page-mapped FTL with greedy garbage collection.

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


# The dies of drives, and the channels between them and the controller.

# The activity of a die.
IDLE, WANTS_BUS, SENSING, HOLDS_DATA, RECEIVING, PROGRAMMING = range(6)
# State of a die: its activity; when its program ends or is suspended; the rest of the program after
# a suspension; programs to come, and other work before the next of them; its current read; its last
# event; programs assigned to it, and completed ones.
DOING, UNTIL_NS, LEFT_NS, PROGRAMS, WORK_NS, SENSE, EVENT, GIVEN, PROGRAMMED = range(9)

PROGRAM_ENDS = -2  # result of an event, besides the request that has all of a die's data


@state_machine
class Senses(NamedTuple):
    """The work of one die for one request, one entry each: a read, or a program to wait for."""

    request: Int32s
    length: Ints
    sense_ns: Ints  # for a program to wait for: the number of the program on its die
    waiting: Fifos  # by die
    forced: Fifos  # by die: entries that are complete with a program
    following: Int32s  # the next one of a die, or in the free list
    free: Ints  # [first free, number of free]

    @method
    def take(self, request, length, sense_ns):
        """Fill a free entry and return it."""
        entry = taken(self)
        self.request[entry] = request
        self.length[entry] = length
        self.sense_ns[entry] = sense_ns
        return entry

    @method
    def force(self, die, request, program):
        """Make a request wait for a program of a die; return whether it did not wait before."""
        last = self.forced.last[die]
        if not self.forced.is_empty(die) and self.request[last] == request:
            self.sense_ns[last] = program
            return False
        self.forced.append(die, self.take(request, 0, program), self.following)
        return True

    @method
    def release(self, entry):
        """Free an entry; return its request."""
        give_back(self, entry)
        return np.int64(self.request[entry])


@state_machine
class Dies(NamedTuple):
    """Dies read before they program, and share the channel that they are on (DESIGN.md 2.8.2).

    Die d of a drive is on its channel d % channels; the dies of all drives of a bank are numbered
    consecutively, and so are the channels. The number of an event is a die and the number of its
    earlier events: the event of a suspended program becomes invalid.
    """

    model: FlashParameters
    senses: Senses
    going_out: Fifos  # by channel: dies with data for the controller
    going_in: Fifos  # by channel: dies that wait for a command or for data
    following: Int32s  # by die: the next one that waits for the channel
    is_busy: Int32s  # by channel
    state: Ints  # [die, DOING ... EVENT]

    @classmethod
    def new(cls, members: int, model: FlashParameters, capacity: int) -> Dies:
        """Return idle dies for `members` drives; each may have `capacity` requests."""
        dies, channels = members * model.dies, members * model.channels
        return cls(
            model=model,
            senses=pool_of(
                Senses, capacity * model.dies, waiting=Fifos.new(dies), forced=Fifos.new(dies)
            ),
            going_out=Fifos.new(channels),
            going_in=Fifos.new(channels),
            following=np.zeros(dies, np.int32),
            is_busy=np.zeros(channels, np.int32),
            state=np.zeros((dies, 9), np.int64),
        )

    def grown(self, senses: int) -> Dies:
        """Return the same dies with room for so many entries of their work."""
        return self._replace(senses=grown_pool(self.senses, senses, Senses._fields[:3]))

    @method
    def channel(self, die):
        """Return the channel of a die."""
        dies, channels = self.model.dies, self.model.channels
        return die // dies * channels + die % dies % channels

    @method
    def read(self, now, die, request, length, sense_ns, kind, events):
        """Queue a read of a die; a program in progress is suspended if that saves time."""
        state = self.state
        senses = self.senses
        senses.waiting.append(die, senses.take(request, length, sense_ns), senses.following)
        if state[die, DOING] == IDLE:
            self.go_on(now, die, kind, events)
        elif state[die, DOING] == PROGRAMMING and state[die, LEFT_NS] == 0:
            left = state[die, UNTIL_NS] - now - self.model.suspend_ns
            if left > 0:
                state[die, LEFT_NS] = left
                self.until(now + self.model.suspend_ns, die, kind, events)

    @method
    def program(self, now, die, work_ns, kind, events):
        """Queue a program of a die, preceded by other work of `work_ns`."""
        self.state[die, PROGRAMS] += 1
        self.state[die, GIVEN] += 1
        self.state[die, WORK_NS] += work_ns
        if self.state[die, DOING] == IDLE:
            self.go_on(now, die, kind, events)

    @method
    def force(self, die, request):
        """Make a request wait for a die's last program; return whether it is its first."""
        return self.senses.force(die, request, self.state[die, GIVEN])

    @method
    def forced(self, die):
        """Return a request that waited for the program that ends on a die, or NOTHING."""
        senses = self.senses
        if senses.forced.is_empty(die):
            return NOTHING
        entry = senses.forced.first[die]
        if senses.sense_ns[entry] != self.state[die, PROGRAMMED]:
            return NOTHING
        return senses.release(senses.forced.pop(die, senses.following))

    @method
    def go_on(self, now, die, kind, events):
        """Start the next work of an idle die: read, resume, program."""
        state, senses = self.state, self.senses
        state[die, DOING] = WANTS_BUS
        if not senses.waiting.is_empty(die):
            state[die, SENSE] = senses.waiting.pop(die, senses.following)
        elif state[die, LEFT_NS] > 0:
            state[die, DOING] = PROGRAMMING
            left = state[die, LEFT_NS]
            state[die, LEFT_NS] = 0
            self.until(now + left, die, kind, events)
            return
        elif state[die, PROGRAMS] > 0:
            state[die, SENSE] = NOTHING
        else:
            state[die, DOING] = IDLE
            return
        self.going_in.append(self.channel(die), die, self.following)
        self.transfer(now, self.channel(die), kind, events)

    @method
    def transfer(self, now, channel, kind, events):
        """Use a free channel: for data read first, then in order of arrival."""
        state = self.state
        while self.is_busy[channel] == 0:
            if not self.going_out.is_empty(channel):
                die = self.going_out.pop(channel, self.following)
                length = self.senses.length[state[die, SENSE]]
                self.occupy(now, channel, die, length, kind, events)
            elif self.going_in.is_empty(channel):
                return
            else:
                die = self.going_in.pop(channel, self.following)
                if state[die, SENSE] == NOTHING:
                    state[die, DOING] = RECEIVING
                    length = self.model.program_units * self.model.unit_bytes
                    self.occupy(now, channel, die, length, kind, events)
                else:
                    state[die, DOING] = SENSING
                    sense_ns = self.senses.sense_ns[state[die, SENSE]]
                    self.until(now + sense_ns, die, kind, events)

    @method
    def occupy(self, now, channel, die, length, kind, events):
        """Transfer `length` bytes over a channel."""
        self.is_busy[channel] = 1
        wire_ns = length * 1_000_000_000 // self.model.channel_bytes_per_s
        self.until(now + self.model.bus_ns + wire_ns, die, kind, events)

    @method
    def until(self, time_ns, die, kind, events):
        """Schedule the end of the current activity of a die."""
        state = self.state
        state[die, UNTIL_NS] = time_ns
        state[die, EVENT] += 1
        events.push(time_ns, kind, -1 - (die + len(state) * state[die, EVENT]))

    @method
    def happen(self, now, event, kind, events):
        """Process a die's event; return a request whose part arrived, PROGRAM_ENDS, or NOTHING."""
        state = self.state
        die = event % len(state)
        if event // len(state) != state[die, EVENT]:
            return NOTHING
        doing = state[die, DOING]
        channel = self.channel(die)
        result = NOTHING
        if doing == SENSING:
            state[die, DOING] = HOLDS_DATA
            self.going_out.append(channel, die, self.following)
        elif doing == HOLDS_DATA:
            self.is_busy[channel] = 0
            result = self.senses.release(state[die, SENSE])
            self.go_on(now, die, kind, events)
        elif doing == RECEIVING:
            self.is_busy[channel] = 0
            state[die, DOING] = PROGRAMMING
            state[die, PROGRAMS] -= 1
            work_ns = state[die, WORK_NS]
            state[die, WORK_NS] = 0
            self.until(now + work_ns + self.model.program_ns, die, kind, events)
        else:  # a program ends, or is suspended
            if state[die, LEFT_NS] == 0:
                result = PROGRAM_ENDS
                state[die, PROGRAMMED] += 1
            self.go_on(now, die, kind, events)
        self.transfer(now, channel, kind, events)
        return result


# Requests.


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

    def with_room(self, demand: int) -> Flash:
        """Return the same bank with room for `demand` more requests, each on all dies."""
        requests = roomy_pool(self.requests, demand, Requests._fields[:6])
        if requests is self.requests:
            return self
        nand = self.nand.grown(len(requests.tag) * self.model.dies)
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
