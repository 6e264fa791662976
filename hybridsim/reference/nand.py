"""Dies and the channels that they share (2.8.2)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from hybridsim.foundation.machine_parameters import FlashParameters
from hybridsim.reference.clock import Clock, Done


@dataclass
class Sense:
    """The reads of one die for one request."""

    length: int = 0
    duration: int = 0
    arrived: Done = lambda: None


@dataclass
class Program:
    """A program of a die; `left` is the remaining time in ns while it is suspended."""

    work: int
    complete: Done
    left: int = 0
    forced: list[Done] = field(default_factory=list)  # callbacks of writes with FUA


@dataclass(eq=False)
class Die:
    """A die: its current operation and its queues."""

    senses: deque[Sense] = field(default_factory=deque)
    programs: deque[Program] = field(default_factory=deque)
    work: int = 0  # ns of work before the next program
    at: Sense | Program | None = None
    suspended: Program | None = None
    running: Program | None = None
    runs: int = 0  # number of times a program was begun or resumed
    end: int = 0  # end time of the running program


@dataclass
class Channel:
    """A channel: dies with data to send, and dies that wait for a command."""

    busy: bool = False
    out: deque[Die] = field(default_factory=deque)
    commands: deque[Die] = field(default_factory=deque)


class Nand:
    """Dies and channels (2.8.2)."""

    def __init__(self, clock: Clock, parameters: FlashParameters) -> None:
        self.clock = clock
        self.parameters = parameters
        self.dies = [Die() for _ in range(parameters.dies)]
        self.channels = [Channel() for _ in range(parameters.channels)]

    def sense(self, number: int, sense: Sense) -> None:
        """Queue a read for a die; suspend its program if that is worthwhile."""
        p = self.parameters
        die = self.dies[number]
        die.senses.append(sense)
        if die.at is None:
            self.go_on(number)
        elif die.running is not None and die.end > self.clock.now + p.suspend_ns:
            program = die.running
            program.left = die.end - (self.clock.now + p.suspend_ns)
            die.running = None
            die.suspended = program
            self.clock.at(self.clock.now + p.suspend_ns, lambda: self.suspended(number))

    def program(self, number: int, program: Program) -> None:
        """Queue a program for a die."""
        die = self.dies[number]
        die.programs.append(program)
        die.work += program.work
        if die.at is None:
            self.go_on(number)

    def go_on(self, number: int) -> None:
        """Start the next operation of a die."""
        die = self.dies[number]
        if die.senses:
            die.at = die.senses.popleft()
        elif die.suspended is not None:
            die.at = program = die.suspended
            die.suspended = None
            self.run(number, program, program.left)
            return
        elif die.programs:
            die.at = die.programs.popleft()
        else:
            die.at = None
            return
        channel = self.channel(number)
        channel.commands.append(die)
        self.look(channel)

    def channel(self, number: int) -> Channel:
        """Return the channel of a die."""
        return self.channels[number % self.parameters.channels]

    def look(self, channel: Channel) -> None:
        """Serve the dies that wait for a channel, while it is free."""
        while not channel.busy:
            if channel.out:
                die = channel.out.popleft()
                assert isinstance(die.at, Sense)
                self.occupy(channel, die.at.length, self.bound(self.sent, die))
            elif channel.commands:
                die = channel.commands.popleft()
                if isinstance(die.at, Sense):
                    at = self.clock.now + die.at.duration
                    self.clock.at(at, self.bound(self.sensed, die))
                else:
                    size = self.parameters.program_units * self.parameters.unit_bytes
                    self.occupy(channel, size, self.bound(self.received, die))
            else:
                return

    def bound(self, action: Callable[[int], None], die: Die) -> Done:
        """Return `action` bound to a die's number."""
        number = self.dies.index(die)
        return lambda: action(number)

    def occupy(self, channel: Channel, size: int, done: Done) -> None:
        """Occupy a channel for a transfer of `size` bytes."""
        channel.busy = True
        wire = size * 10**9 // self.parameters.channel_bytes_per_s
        self.clock.at(self.clock.now + self.parameters.bus_ns + wire, done)

    def sensed(self, number: int) -> None:
        """Queue the data in a die's register for the channel."""
        channel = self.channel(number)
        channel.out.append(self.dies[number])
        self.look(channel)

    def sent(self, number: int) -> None:
        """Handle the arrival of a die's data at the controller."""
        channel = self.channel(number)
        channel.busy = False
        sense = self.dies[number].at
        assert isinstance(sense, Sense)
        self.go_on(number)
        self.look(channel)
        sense.arrived()

    def received(self, number: int) -> None:
        """Begin a program whose data have arrived in the die."""
        channel = self.channel(number)
        channel.busy = False
        die = self.dies[number]
        assert isinstance(die.at, Program)
        self.run(number, die.at, die.work + self.parameters.program_ns)
        die.work = 0
        self.look(channel)

    def run(self, number: int, program: Program, duration: int) -> None:
        """Run a program for `duration` ns, unless it is suspended."""
        die = self.dies[number]
        die.running = program
        die.end = self.clock.now + duration
        die.runs += 1
        this_run = die.runs

        def ended() -> None:
            if die.running is program and die.runs == this_run:
                die.running = None
                self.go_on(number)
                self.look(self.channel(number))
                program.complete()

        self.clock.at(die.end, ended)

    def suspended(self, number: int) -> None:
        """Continue with the next operation after a program was suspended."""
        self.go_on(number)
        self.look(self.channel(number))
