"""The solid-state disk in detail (2.8): request queue, buffer, dies, data placement."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Op
from hybridsim.foundation.machine_parameters import FlashParameters
from hybridsim.reference.clock import Clock, Done, Step, each_of, in_turn, nothing
from hybridsim.reference.device import Device
from hybridsim.reference.runs import covered, split, touched
from hybridsim.reference.ssd import level


@dataclass
class Sense:
    """The reads of one die for one request."""

    length: int = 0
    duration: int = 0
    arrived: Done = nothing


@dataclass
class Program:
    """A program of a die; `left` is the remaining time in ns while it is suspended."""

    work: int
    complete: Done
    left: int = 0
    forced: list[Done] = field(default_factory=list)  # callbacks of writes with FUA


@dataclass(eq=False)
class Channel:
    """A channel: what waits to send data on it, and what waits to send a command."""

    busy: bool = False
    out: deque[Done] = field(default_factory=deque)
    commands: deque[Done] = field(default_factory=deque)


@dataclass(eq=False)
class Die:
    """A die: its current operation and its queues."""

    channel: Channel
    senses: deque[Sense] = field(default_factory=deque)
    programs: deque[Program] = field(default_factory=deque)
    work: int = 0  # ns of work before the next program
    busy: bool = False
    suspended: Program | None = None
    running: Program | None = None
    runs: int = 0  # number of times a program was begun or resumed
    end: int = 0  # end time of the running program


class Nand:
    """Dies and the channels that they share (2.8.2)."""

    def __init__(self, clock: Clock, parameters: FlashParameters) -> None:
        self.clock = clock
        self.parameters = p = parameters
        channels = [Channel() for _ in range(p.channels)]
        self.dies = [Die(channels[number % p.channels]) for number in range(p.dies)]

    def sense(self, number: int, sense: Sense, arrived: Done) -> None:
        """Queue a read for a die; suspend its program if that is worthwhile."""
        die, suspended = self.dies[number], self.clock.now + self.parameters.suspend_ns
        sense.arrived = arrived
        die.senses.append(sense)
        if not die.busy:
            self.go_on(die)
        elif die.running is not None and die.end > suspended:
            die.running.left = die.end - suspended
            die.suspended, die.running = die.running, None
            self.clock.at(suspended, lambda: self.next(die))

    def program(self, number: int, program: Program) -> None:
        """Queue a program for a die."""
        die = self.dies[number]
        die.programs.append(program)
        die.work += program.work
        if not die.busy:
            self.go_on(die)

    def next(self, die: Die) -> None:
        """Start the next operation of a die, and those that wait for its channel."""
        self.go_on(die)
        self.look(die.channel)

    def go_on(self, die: Die) -> None:
        """Start the next operation of a die."""
        die.busy = True
        if die.senses:
            sense = die.senses.popleft()
            in_turn(self.sensing(die, sense), sense.arrived)
        elif die.suspended is not None:
            program, die.suspended = die.suspended, None
            in_turn(self.running(die, program, program.left))
        elif die.programs:
            in_turn(self.programming(die, die.programs.popleft()))
        else:
            die.busy = False

    def sensing(self, die: Die, sense: Sense) -> Iterator[Step]:
        """Read: a command over the channel, time of the die, data over the channel."""
        yield partial(self.queue, die.channel, die.channel.commands)
        yield partial(self.clock.at, self.clock.now + sense.duration)
        yield partial(self.queue, die.channel, die.channel.out)
        yield from self.occupying(die.channel, sense.length)
        self.next(die)

    def programming(self, die: Die, program: Program) -> Iterator[Step]:
        """Send data over the channel, and begin to program them."""
        yield partial(self.queue, die.channel, die.channel.commands)
        size = self.parameters.program_units * self.parameters.unit_bytes
        yield from self.occupying(die.channel, size)
        in_turn(self.running(die, program, die.work + self.parameters.program_ns))
        die.work = 0
        self.look(die.channel)

    def queue(self, channel: Channel, waiting: deque[Done], turn: Done) -> None:
        """Wait for a channel."""
        waiting.append(turn)
        self.look(channel)

    def look(self, channel: Channel) -> None:
        """Serve what waits for a channel, while it is free."""
        while not channel.busy and (waiting := channel.out or channel.commands):
            waiting.popleft()()

    def occupying(self, channel: Channel, size: int) -> Iterator[Step]:
        """Occupy a channel for a transfer of `size` bytes."""
        channel.busy = True
        wire = size * 10**9 // self.parameters.channel_bytes_per_s
        yield partial(self.clock.at, self.clock.now + self.parameters.bus_ns + wire)
        channel.busy = False

    def running(self, die: Die, program: Program, duration: int) -> Iterator[Step]:
        """Run a program for `duration` ns, unless it is suspended."""
        die.running = program
        die.end = self.clock.now + duration
        die.runs += 1
        this_run = die.runs
        yield partial(self.clock.at, die.end)
        if die.running is program and die.runs == this_run:
            die.running = None
            self.next(die)
            program.complete()


class Mapping:
    """Data placement (2.8.3): one write frontier and greedy garbage collection."""

    def __init__(self, parameters: FlashParameters) -> None:
        self.parameters = parameters
        self.where: dict[int, int] = {}
        # of each block the logical unit at each place written, None where it is invalid
        self.blocks: list[list[int | None]] = [[] for _ in range(parameters.blocks)]
        self.frontier: int | None = 0  # None: full and collected
        self.free = list(range(1, parameters.blocks))
        self.debt: Counter[int] = Counter()  # by die
        self.placed = self.moved = 0
        if parameters.filled:
            for unit in range(parameters.mapped_units):
                self.append(unit)
            if self.needs_frontier():
                self.frontier = self.free.pop(0)

    def needs_frontier(self) -> bool:
        """Whether the frontier is full."""
        return self.frontier is None or self.is_full(self.frontier)

    def is_full(self, block: int) -> bool:
        """Whether a block is written completely."""
        return len(self.blocks[block]) == self.parameters.block_units

    def write(self, unit: int) -> int:
        """Write a unit; return its new place."""
        while self.needs_frontier() and len(self.free) < 2:
            self.collect()
        self.forget(unit)
        self.placed += 1
        return self.append(unit)

    def forget(self, unit: int) -> None:
        """Invalidate the place of a unit."""
        at = self.where.pop(unit, None)
        if at is not None:
            block, place = divmod(at, self.parameters.block_units)
            self.blocks[block][place] = None

    def append(self, unit: int) -> int:
        """Write a unit at the frontier; return its place."""
        if self.frontier is None or self.is_full(self.frontier):
            self.frontier = self.free.pop(0)
        block = self.blocks[self.frontier]
        self.where[unit] = self.frontier * self.parameters.block_units + len(block)
        block.append(unit)
        return self.where[unit]

    def collect(self) -> None:
        """Collect the full block with fewest valid units."""
        p = self.parameters
        full = [block for block in range(p.blocks) if self.is_full(block)]
        victim = max(full, key=lambda block: self.blocks[block].count(None))  # the first of equals
        move_ns = (p.read_ns + p.program_ns) // p.program_units
        for unit in self.blocks[victim]:
            if unit is not None:
                self.debt[self.append(unit) // p.program_units % p.dies] += move_ns
                self.moved += 1
        self.blocks[victim] = []
        if victim == self.frontier:
            self.frontier = None
        self.free.append(victim)
        first = victim * p.block_units // p.program_units
        for each in range(min(p.block_units // p.program_units, p.dies)):
            self.debt[(first + each) % p.dies] += p.erase_ns


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
        self.programming = self.reads = self.barriers = 0
        self.dirty = self.flushing = False

    def accept(self, op: int, offset: int, length: int, done: Done) -> None:
        """Take a request."""
        p = self.parameters
        what = op & OP_MASK
        if what == Op.FLUSH and p.is_protected:
            self.flush(done)
        elif what == Op.FLUSH:
            self.wait(Waiting(Op.FLUSH, 0, 0, done))
        elif length == 0 or what == Op.DISCARD:
            if what == Op.DISCARD and self.mapping is not None:
                for unit in covered(offset, offset + length, p.unit_bytes):
                    self.mapping.forget(unit)
            self.clock.at(self.clock.now + p.command_ns, done)
        elif what == Op.READ:
            if p.is_blocking and self.barriers > 0:
                self.queue.append(Waiting(Op.READ, offset, length, done))
            else:
                in_turn(self.reading(offset, length), done)
        else:
            self.accept_write(op, offset, length, done)

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
            in_turn(self.storing(request), done)

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
                self.flushing = True
                self.flush(self.end_flush)
            elif request.op == Op.READ:
                self.queue.popleft()
                in_turn(self.reading(request.offset, request.length), request.done)
            elif self.used < self.parameters.buffer_units:
                self.queue.popleft()
                in_turn(self.storing(request), request.done)
            else:
                return

    def drained(self) -> bool:
        """Close the open program; return whether no program is under way."""
        if self.open > 0:
            self.close()
        if self.programming > 0:
            return False
        return self.reads == 0 or not self.parameters.is_blocking

    def flush(self, done: Done) -> None:
        """Begin the last part of a flush."""
        cost = self.parameters.flush_ns if self.dirty else 0
        self.dirty = False
        self.clock.at(self.clock.now + self.parameters.command_ns + cost, done)

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

    def reading(self, offset: int, length: int) -> Iterator[Step]:
        """Sense on all dies that hold a part of the range; then send all data over the link."""
        p = self.parameters
        senses: dict[int, Sense] = {}
        for unit, first, last in split(offset, offset + length, p.unit_bytes):
            at = self.mapping.where.get(unit) if self.mapping else None
            die = unit % p.dies if at is None else at // p.program_units % p.dies
            sense = senses.setdefault(die, Sense())
            sense.length += last - first
            sense.duration += p.read_ns + p.step_ns * level(unit if at is None else at)
        self.reads += 1
        yield partial(each_of, [partial(self.nand.sense, *each) for each in senses.items()])
        completion = self.cross(length) + p.command_ns
        self.reads -= 1
        if p.is_blocking:
            self.look()
        if completion > self.clock.now:
            yield partial(self.clock.at, completion)

    def storing(self, request: Waiting) -> Iterator[Step]:
        """Store a write in the buffer; FUA closes the last program and waits for all of them."""
        p = self.parameters
        self.dirty = True
        units = touched(request.offset, request.offset + request.length, p.unit_bytes)
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
            yield partial(each_of, [program.forced.append for program in programs])
            request.ready = max(self.clock.now, request.ready) + p.flush_ns
        yield partial(self.clock.at, max(self.clock.now, request.ready))

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
