"""The solid-state disk (2.7): dies that work in parallel behind one controller and one link."""

from hybridsim.codes import Op
from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.device import Device
from hybridsim.reference.parameters import SsdParameters


class Ssd(Device):
    """An SSD with a write buffer, whose reads suspend the programming of a die.

    Nothing that comes later delays a request, so that its completion is known when it is submitted.
    """

    def __init__(self, clock: Clock, parameters: SsdParameters) -> None:
        super().__init__(clock)
        self.parameters = parameters
        self.controller_free = 0
        self.link_free = 0
        self.read_free = [0] * parameters.dies
        self.write_free = [0] * parameters.dies
        self.units_written = self.requests_written = 0

    def accept(self, op: Op, offset: int, length: int, done: Done) -> None:
        """Compute when the request will complete, and schedule that."""
        start = max(self.clock.now, self.controller_free)
        self.controller_free = start + self.parameters.interval_ns
        begin = start + self.parameters.command_ns
        if length == 0 or op in (Op.FLUSH, Op.DISCARD):
            completion = begin
        else:
            self.link_free = max(self.link_free, begin) + self.wire(length)
            if op == Op.READ:
                completion = self.read(begin, offset, length)
            else:
                completion = self.write(offset, length)
        self.clock.at(completion, done)

    def read(self, begin: int, offset: int, length: int) -> int:
        """Read each unit from its die; what is read goes over the link."""
        p = self.parameters
        completion = self.link_free
        for unit, size in self.units(offset, length):
            die = unit % p.dies
            sense = max(begin, self.read_free[die])
            if self.write_free[die] > sense:
                sense += p.suspend_ns
                self.write_free[die] += p.read_ns + p.suspend_ns
            self.read_free[die] = sense + p.read_ns
            completion = max(completion, sense + p.read_ns + self.wire(size))
        return completion

    def write(self, offset: int, length: int) -> int:
        """Take the data into the buffer; a die that has too much to program yet makes it wait."""
        p = self.parameters
        buffered = self.link_free + p.write_ns
        free = []
        for _ in self.units(offset, length):
            free.append(self.program(self.units_written, buffered, p.program_ns))
            self.units_written += 1
        if p.scatter_ns > 0:
            free.append(self.program(self.requests_written, buffered, p.scatter_ns))
            self.requests_written += 1
        return max(buffered, max(free) - p.buffer_ns)

    def program(self, turn: int, begin: int, duration: int) -> int:
        """Keep the die whose turn it is busy, wherever the data are addressed; say until when."""
        die = turn % self.parameters.dies
        self.write_free[die] = max(self.write_free[die], begin) + duration
        return self.write_free[die]

    def wire(self, size: int) -> int:
        """How long `size` bytes take on the link."""
        return size * 10**9 // self.parameters.link_bytes_per_s

    def units(self, offset: int, length: int) -> list[tuple[int, int]]:
        """The units that a range touches, in order, each with the bytes of it that it touches."""
        size = self.parameters.unit_bytes
        end = offset + length
        first, last = offset // size, (end - 1) // size
        return [
            (unit, min(end, (unit + 1) * size) - max(offset, unit * size))
            for unit in range(first, last + 1)
        ]
