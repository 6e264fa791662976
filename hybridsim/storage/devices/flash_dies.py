"""The dies of flash drives and the channels between them and the controller."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, grown_pool, pool_of
from hybridsim.foundation.machine_parameters import FlashParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.lists import NOTHING, Fifos, give_back, taken

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
