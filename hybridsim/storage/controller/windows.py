"""Read-ahead data in a controller's DRAM: aligned windows of the array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.lru import LRU
from hybridsim.caches.streams import Streams
from hybridsim.foundation.arrays import Bytes, Int32s, Ints
from hybridsim.foundation.machine_parameters import ControllerParameters
from hybridsim.jit import method, state_machine
from hybridsim.storage.controller.slots import Slots

NOTHING = -1
READING, DOOMED, READY = 1, 2, 3  # DOOMED: being read, but stale on arrival


@state_machine
class Windows(NamedTuple):
    """The windows in DRAM or being read, and the streams that they are read for."""

    window_bytes: int
    ahead_bytes: int  # read-ahead distance
    after: int  # number of requests that make a stream sequential
    capacity_bytes: int  # of the array
    slots: Slots
    state: Bytes
    start: Ints  # first byte that was read
    first_waiting: Int32s  # transfers that wait for the window
    last_waiting: Int32s
    ready: LRU
    streams: Streams

    @classmethod
    def new(cls, parameters: ControllerParameters, capacity_bytes: int) -> Windows:
        """Return empty DRAM."""
        p, length = parameters, max(parameters.windows, 1)
        return cls(
            p.window_bytes,
            p.ahead_bytes,
            p.after,
            capacity_bytes,
            Slots.new(p.windows),
            np.zeros(length, np.uint8),
            np.zeros(length, np.int64),
            np.full(length, NOTHING, np.int32),
            np.full(length, NOTHING, np.int32),
            LRU.new(length),
            Streams.new(p.streams),
        )

    @method
    def holding(self, byte):
        """Return the window that has a byte, or will have it after the read in progress; or -1."""
        slot = self.slots.find(byte // self.window_bytes)
        if slot == NOTHING or self.state[slot] == DOOMED or byte < self.start[slot]:
            return NOTHING
        return slot

    @method
    def border(self, byte):
        """Return the next byte after which the state of bytes may change."""
        number = byte // self.window_bytes
        slot = self.slots.find(number)
        if slot != NOTHING and byte < self.start[slot]:
            return self.start[slot]
        return (number + 1) * self.window_bytes

    @method
    def end(self, number):
        """Return the byte after the last of a window."""
        return min((number + 1) * self.window_bytes, self.capacity_bytes)

    @method
    def claim(self, number, start):
        """Allocate a slot for a new window, to be read from `start` on; -1 if there is none."""
        if self.slots.free[1] == 0:
            victim = self.ready.evict()
            if victim == NOTHING:
                return NOTHING
            self.slots.release(victim)
        slot = self.slots.take(number)
        self.state[slot] = READING
        self.start[slot] = start
        self.first_waiting[slot] = NOTHING
        return slot

    @method
    def arrived(self, slot):
        """Make a window that has been read ready, or free it if it is doomed."""
        if self.state[slot] == DOOMED:
            self.slots.release(slot)
        else:
            self.state[slot] = READY
            self.ready.admit(slot)

    @method
    def drop_window(self, slot):
        """Drop a window; one that is being read keeps its slot."""
        if self.state[slot] == READY:
            self.ready.remove(slot)
            self.slots.release(slot)
        else:
            self.state[slot] = DOOMED

    @method
    def drop_passed(self, start, end):
        """Drop the windows whose end a read from `start` to `end` has reached."""
        for number in range(start // self.window_bytes, (end - 1) // self.window_bytes + 1):
            if self.end(number) <= end:
                slot = self.slots.find(number)
                if slot != NOTHING:
                    self.drop_window(slot)

    @method
    def invalidate(self, start, end):
        """Drop all windows that overlap a range."""
        if self.slots.used() == 0:
            return
        first = start // self.window_bytes
        last = (end - 1) // self.window_bytes
        if last - first < self.slots.capacity:
            for number in range(first, last + 1):
                slot = self.slots.find(number)
                if slot != NOTHING:
                    self.drop_window(slot)
            return
        for slot in range(self.slots.capacity):  # a discard of half a disk
            number = self.slots.number[slot]
            if first <= number <= last and self.slots.find(number) == slot:
                self.drop_window(slot)
