"""The solid-state disk in detail (2.8.1): request queue, buffer and data placement."""

from collections import deque
from dataclasses import dataclass

from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Op
from hybridsim.foundation.machine_parameters import FlashParameters
from hybridsim.reference.clock import Clock, Done, Parts
from hybridsim.reference.device import Device
from hybridsim.reference.ftl import Mapping
from hybridsim.reference.nand import Nand, Program, Sense
from hybridsim.reference.ssd import level


@dataclass
class Waiting:
    """A request in the drive's queue."""

    op: int
    offset: int
    length: int
    done: Done
    ready: int = 0


class Flash(Device):
    """A drive with a buffer, a request queue, and dies behind channels (2.8.1)."""

    def __init__(self, clock: Clock, parameters: FlashParameters) -> None:
        super().__init__(clock)
        self.parameters = parameters
        self.nand = Nand(clock, parameters)
        self.mapping = Mapping(parameters) if parameters.mapped_units else None
        self.queue: deque[Waiting] = deque()
        self.link_free = self.used = self.open = self.open_die = self.issued = 0
        self.programming = self.reading = self.barriers = 0
        self.dirty = self.flushing = False

    def accept(self, op: int, offset: int, length: int, done: Done) -> None:
        """Take a request."""
        p = self.parameters
        what = op & OP_MASK
        if what == Op.FLUSH:
            self.accept_flush(done)
        elif length == 0 or what == Op.DISCARD:
            if what == Op.DISCARD and self.mapping is not None:
                first = -(-offset // p.unit_bytes)
                for unit in range(first, (offset + length) // p.unit_bytes):
                    self.mapping.forget(unit)
            self.clock.at(self.clock.now + p.command_ns, done)
        elif what == Op.READ:
            if p.is_blocking and self.barriers > 0:
                self.queue.append(Waiting(Op.READ, offset, length, done))
            else:
                self.read(offset, length, done)
        else:
            self.accept_write(op, offset, length, done)

    def accept_flush(self, done: Done) -> None:
        """Flush at once on a drive with power-loss protection, otherwise through the queue."""
        p = self.parameters
        if p.is_protected:
            cost = p.flush_ns if self.dirty else 0
            self.dirty = False
            self.clock.at(self.clock.now + p.command_ns + cost, done)
        else:
            self.wait(Waiting(Op.FLUSH, 0, 0, done))

    def accept_write(self, op: int, offset: int, length: int, done: Done) -> None:
        """Transfer a write over the link; store it if there is room, otherwise queue it."""
        p = self.parameters
        ready = self.cross(length) + p.command_ns + p.write_ns
        if p.is_protected:
            if op & PREFLUSH and self.dirty:
                ready += p.flush_ns
            op = Op.WRITE
        op &= OP_MASK | FUA | PREFLUSH
        request = Waiting(op, offset, length, done, ready)
        if op & PREFLUSH or self.queue or self.used >= p.buffer_units:
            self.wait(request)
        else:
            self.store(request)

    def cross(self, length: int) -> int:
        """Occupy the link; return when the data have crossed it."""
        p = self.parameters
        wire = length * 10**9 // p.link_bytes_per_s
        out = max(self.clock.now, self.link_free)
        self.link_free = out + max(wire, p.interval_ns)
        return out + wire

    # The queue.

    def wait(self, request: Waiting) -> None:
        """Append a request to the queue."""
        if request.op == Op.FLUSH or request.op & PREFLUSH:
            self.barriers += 1
        self.queue.append(request)
        self.look()

    def look(self) -> None:
        """Serve the queue as far as possible."""
        while self.queue and not self.flushing:
            request = self.queue[0]
            if request.op == Op.FLUSH or request.op & PREFLUSH:
                if not self.drained():
                    return
                self.start_flush()
            elif request.op == Op.READ:
                self.queue.popleft()
                self.read(request.offset, request.length, request.done)
            elif self.used < self.parameters.buffer_units:
                self.queue.popleft()
                self.store(request)
            else:
                return

    def drained(self) -> bool:
        """Close the open program; return whether no program is under way."""
        if self.open > 0:
            self.close()
        if self.programming > 0:
            return False
        return self.reading == 0 or not self.parameters.is_blocking

    def start_flush(self) -> None:
        """Begin the last part of a flush."""
        p = self.parameters
        cost = p.flush_ns if self.dirty else 0
        self.dirty = False
        self.flushing = True
        self.clock.at(self.clock.now + p.command_ns + cost, self.end_flush)

    def end_flush(self) -> None:
        """End a flush, and the FLUSH request if there is one."""
        self.flushing = False
        self.barriers -= 1
        request = self.queue[0]
        if request.op == Op.FLUSH:
            self.queue.popleft()
            self.look()
            request.done()
        else:
            request.op &= ~PREFLUSH
            self.look()

    # Data.

    def units(self, offset: int, length: int) -> range:
        """Return the units that a request touches."""
        size = self.parameters.unit_bytes
        return range(offset // size, (offset + length - 1) // size + 1)

    def read(self, offset: int, length: int, done: Done) -> None:
        """Sense on all dies that hold a part of the range."""
        p = self.parameters
        senses: dict[int, Sense] = {}
        for unit in self.units(offset, length):
            at = self.mapping.where.get(unit) if self.mapping else None
            die = unit % p.dies if at is None else at // p.program_units % p.dies
            sense = senses.setdefault(die, Sense())
            start, end = unit * p.unit_bytes, (unit + 1) * p.unit_bytes
            sense.length += min(end, offset + length) - max(start, offset)
            sense.duration += p.read_ns + p.step_ns * level(unit if at is None else at)
        self.reading += 1
        parts = Parts(lambda: self.arrived(length, done))
        for sense in senses.values():
            sense.arrived = parts.another()
        for die, sense in senses.items():
            self.nand.sense(die, sense)

    def arrived(self, length: int, done: Done) -> None:
        """Send a read's data over the link when all of them are at the controller."""
        completion = self.cross(length) + self.parameters.command_ns
        self.reading -= 1
        if self.parameters.is_blocking:
            self.look()
        if completion == self.clock.now:
            done()
        else:
            self.clock.at(completion, done)

    def store(self, request: Waiting) -> None:
        """Store a write in the buffer; FUA closes the last program and waits for all of them."""
        p = self.parameters
        self.dirty = True
        units = self.units(request.offset, request.length)
        self.used += len(units)
        programs: list[Program] = []
        for unit in units:
            if self.mapping is None:
                self.open_die = (unit if p.is_static else self.issued) % p.dies
            else:
                self.open_die = self.mapping.write(unit) // p.program_units % p.dies
            self.open += 1
            if self.open == p.program_units:
                programs.append(self.close())
        if request.op & FUA:
            if self.open > 0:
                programs.append(self.close())
            parts = Parts(lambda: self.forced(request))
            for program in programs:
                program.forced.append(parts.another())
        else:
            self.clock.at(max(self.clock.now, request.ready), request.done)

    def forced(self, request: Waiting) -> None:
        """Complete a write with FUA after its programs."""
        done = max(self.clock.now, request.ready) + self.parameters.flush_ns
        self.clock.at(done, request.done)

    def close(self) -> Program:
        """Close the open program and send it to its die."""
        self.used += self.parameters.program_units - self.open
        self.open = 0
        self.issued += 1
        self.programming += 1
        work = self.parameters.collect_ns
        if self.mapping is not None:
            work += self.mapping.debt.pop(self.open_die, 0)
        program = Program(work, lambda: self.programmed(program))
        self.nand.program(self.open_die, program)
        return program

    def programmed(self, program: Program) -> None:
        """Free the buffer of a completed program."""
        self.programming -= 1
        self.used -= self.parameters.program_units
        for done in program.forced:
            done()
        self.look()
