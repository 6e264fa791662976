"""The solid-state disk (2.7): parallel dies behind one controller and one link."""

from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Op
from hybridsim.foundation.machine_parameters import SsdParameters
from hybridsim.reference.clock import Clock, Done
from hybridsim.reference.device import Device
from hybridsim.reference.runs import split, touched

STREAMS = 8  # of writes in sequence that a drive follows at once


def scattered(address: int) -> int:
    """Return a hash of an address, below 32,768."""
    return address % 2**31 * 1_327_217_885 % 2**31 // 65_536


def level(address: int) -> int:
    """Return the number of extra read levels of a page: 0, 1 or 3, by a hash of its address."""
    return [0, 1, 3][scattered(address) % 3]


class Ssd(Device):
    """An SSD with a write buffer; its reads suspend the programming of a die.

    Later requests do not delay a request, so its completion time is computed at submission.
    """

    def __init__(self, clock: Clock, parameters: SsdParameters) -> None:
        super().__init__(clock)
        self.parameters = parameters
        self.controller_free = 0
        self.link_free = 0
        self.pipe_free = 0
        self.lane_free = [0] * parameters.write_lanes
        self.read_free = [0] * parameters.dies
        self.write_free = [0] * parameters.dies
        self.units_written = self.requests_written = 0
        self.collections = self.owed = 0  # of whole programs; die time
        self.in_slc = 0  # units
        self.erased = parameters.erased_units
        self.unfolded = 0  # units to write until the full SLC cache is folded
        self.streams: list[int] = []  # addresses at which writes ended, in the order of their begin
        self.last_buffered = 0
        self.replaced = 0  # streams
        self.written = False  # whether data were written since the last flush
        self.last_completion = 0

    def accept(self, op: int, offset: int, length: int, done: Done) -> None:
        """Compute the completion time of a request and schedule it."""
        p = self.parameters
        what = op & OP_MASK
        if what == Op.FLUSH and not p.needs_flush:
            self.clock.at(self.clock.now, done)  # not sent: the drive reports no volatile cache
            return
        start = max(self.clock.now, self.controller_free)
        if self.clock.now - self.last_completion >= p.sleep_ns:
            start += p.wake_ns
        self.controller_free = start + (p.write_interval_ns if what == Op.WRITE else p.interval_ns)
        begin = start + p.command_ns
        if what == Op.FLUSH or op & PREFLUSH:
            begin = self.flush(begin)
        if length == 0 or what in (Op.FLUSH, Op.DISCARD):
            completion = begin
        else:
            self.link_free = max(self.link_free, begin) + self.wire(length)
            if what == Op.READ:
                completion = self.read(begin, offset, length)
            else:
                completion = self.write(begin, offset, length, forced=bool(op & FUA))
        self.last_completion = max(self.last_completion, completion)
        self.clock.at(completion, done)

    def flush(self, begin: int) -> int:
        """Flush the written data; return when the flush ends."""
        p = self.parameters
        if not self.written:
            return begin
        self.written = False
        if p.is_protected:
            return begin + p.flush_ns
        self.close(begin)
        drained = max(begin, *self.write_free)
        if not p.is_blocking:
            return drained + p.flush_ns
        end = max(drained, self.last_completion) + p.flush_ns
        self.controller_free = max(self.controller_free, end)
        return end

    def read(self, begin: int, offset: int, length: int) -> int:
        """Read each page from its die and send it over the link; return the completion time."""
        p = self.parameters
        completion = self.link_free
        for page, first, last in split(offset, offset + length, p.unit_bytes * p.page_units):
            sensed = self.sense(page % p.dies, p.read_ns + p.step_ns * level(page), begin)
            completion = max(completion, sensed + self.wire(last - first))
        return completion

    def sense(self, die: int, duration: int, begin: int) -> int:
        """Occupy a die by reading; a program is suspended, or its end awaited. Return the end."""
        p = self.parameters
        period = self.unit_duration * p.program_units
        sense = max(begin, self.read_free[die])
        rest = self.write_free[die] - sense  # of all programs, then of the current one
        if rest > 0:
            self.write_free[die] += duration
            if self.read_free[die] < begin:  # else reads follow each other: none is running
                if period > 0:
                    rest = (rest - 1) % period + 1
                if p.load_ns > 0 and rest > period - p.load_ns:
                    sense += rest  # its data are still on the way
                else:
                    if rest > p.suspend_ns:
                        self.write_free[die] += p.suspend_ns
                    sense += min(rest, p.suspend_ns)
        self.read_free[die] = sense + duration
        return sense + duration

    def write(self, begin: int, offset: int, length: int, forced: bool) -> int:
        """Buffer a write; return when it completes, later if a die has too much left to program."""
        p = self.parameters
        self.written = True
        self.pipe_free = max(self.pipe_free, begin) + length * 10**9 // p.pipe_bytes_per_s
        buffered = self.buffered(max(self.link_free, self.pipe_free), offset)
        self.fold(buffered)
        follows = self.follows(offset, length)
        units = self.programmed_units(offset, length, follows)
        collected = not (p.is_by_stream and follows)
        each = self.whole_programs if p.load_ns > 0 else self.unit_programs
        free = [buffered, *each(units, collected, buffered)]
        if forced and not p.is_protected:
            return max(*free, self.close(buffered)) + p.flush_ns
        return max(buffered, max(free) - p.buffer_ns)

    def buffered(self, arrived: int, offset: int) -> int:
        """Return when a write is in the buffer, behind others on its lane of the controller."""
        p = self.parameters
        if not p.write_lanes:
            return arrived + p.write_ns
        lane = scattered(offset // p.unit_bytes) % p.write_lanes
        self.lane_free[lane] = max(arrived, self.lane_free[lane]) + p.write_ns
        return self.lane_free[lane]

    def close(self, begin: int) -> int:
        """Program the units of a program that is not complete; return when that ends."""
        p = self.parameters
        turn, rest = divmod(self.units_written, p.program_units)
        if p.load_ns == 0 or rest == 0:
            return begin
        self.units_written = (turn + 1) * p.program_units
        return self.program(turn, begin, p.program_ns * p.program_units)

    def unit_programs(self, units: int, collected: bool, buffered: int) -> list[int]:
        """Program each unit, then pay for the collection of a write; return the ends."""
        p = self.parameters
        free = []
        for _ in range(units):
            turn = self.units_written // p.program_units
            free.append(self.program(turn, buffered, self.unit_duration))
            self.units_written += 1
            if self.slc_full:
                self.erased -= min(self.erased, 1)
                self.unfolded -= min(self.unfolded, 1)
            else:
                self.in_slc += 1
                if self.in_slc == p.slc_units:  # it is full now
                    self.unfolded = p.folding_units
        scatter = p.native_scatter_ns if self.slc_full else p.scatter_ns
        if scatter > 0 and collected:
            free.append(self.program(self.requests_written, buffered, scatter))
            self.requests_written += 1
        return free

    def whole_programs(self, units: int, collected: bool, buffered: int) -> list[int]:
        """Program what is complete, then collect what a write owes; return the ends."""
        p = self.parameters
        program = p.program_ns * p.program_units
        free = []
        for _ in range(units):
            turn = self.units_written // p.program_units
            self.units_written += 1
            complete = self.units_written % p.program_units == 0
            free.append(self.program(turn, buffered, program if complete else 0))
        self.owed += p.scatter_ns if collected else 0
        while self.owed >= program + p.collect_ns:
            self.owed -= program + p.collect_ns
            self.sense(self.collections % p.dies, p.collect_ns, buffered)
            self.collections += 1
            free.append(self.program(self.units_written // p.program_units, buffered, program))
            self.units_written += p.program_units
        return free

    @property
    def slc_full(self) -> bool:
        """Whether the drive has an SLC cache and no space is left in it."""
        return 0 < self.parameters.slc_units <= self.in_slc

    @property
    def unit_duration(self) -> int:
        """Time of the next unit on its die: by where it goes, and what has to be folded before."""
        p = self.parameters
        if not self.slc_full:
            return p.program_ns
        if p.folded_program_ns and not self.erased:
            return p.folded_program_ns
        return p.folding_program_ns if self.unfolded else p.native_program_ns

    def fold(self, buffered: int) -> None:
        """Free the part of the SLC cache that was folded between the last write and this one."""
        p = self.parameters
        idle = buffered - self.last_buffered - p.slc_idle_ns
        self.last_buffered = buffered
        if idle > 0:
            left = max(self.in_slc - idle * p.slc_units_per_s // 10**9, 0)
            self.erased = max(self.erased - (self.in_slc - left), 0)
            self.in_slc = left

    def follows(self, offset: int, length: int) -> bool:
        """Return whether a write continues one of the last eight streams; remember its end."""
        if offset in self.streams:
            self.streams[self.streams.index(offset)] = offset + length
            return True
        if len(self.streams) < STREAMS:
            self.streams.append(offset + length)
        else:
            self.streams[self.replaced % STREAMS] = offset + length
            self.replaced += 1
        return False

    def programmed_units(self, offset: int, length: int, follows: bool) -> int:
        """Return the units of all map entries touched, without one that its stream began."""
        p = self.parameters
        entry = p.map_units * p.unit_bytes
        is_begun = follows and p.map_units > 1 and offset % entry > 0
        return (len(touched(offset, offset + length, entry)) - is_begun) * p.map_units

    def program(self, turn: int, begin: int, duration: int) -> int:
        """Program the next die in turn, whatever the address; return when it ends."""
        die = turn % self.parameters.dies
        self.write_free[die] = max(self.write_free[die], begin) + duration
        return self.write_free[die]

    def wire(self, size: int) -> int:
        """Return the time of `size` bytes on the link."""
        return size * 10**9 // self.parameters.link_bytes_per_s
