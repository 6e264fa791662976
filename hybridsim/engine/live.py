"""An array in real time: requests arrive at any time, and each completion time is returned.

The same state machines as in a simulation, with the caller's clock instead of the event loop's
(DESIGN.md (48)): requests that arrive at the times of a trace are complete at the same nanosecond
as in its replay.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints, longer
from hybridsim.jit import fitting, loop, state_machine
from hybridsim.jit.events import CONTROLLER, FAST, KIND_BITS, KIND_MASK, SLOW, Events

NEVER = (1 << 63) - 1
LONGEST_BYTES = 1 << 20  # pools have room for requests of this length until a longer one comes
DONE, ROOM = range(2)  # why `go_on` returned
UNTIL_NS, TAG, OP, OFFSET, LENGTH = range(5)  # of `go_on`'s order
NOTHING = -1


@state_machine
class Completions(NamedTuple):
    """Completed requests in order, each with its completion time."""

    tag: Ints
    at_ns: Ints
    used: Ints  # [number of entries]


@loop
def go_on(tier: Any, events: Any, order: Ints, demand: int, completions: Completions) -> int:
    """Run the events that are due until UNTIL_NS and, if there is a TAG, submit that request then.

    Returns DONE, or ROOM if the next step could exhaust a pool.  Events at the nanosecond of an
    arrival run before it, as in a simulation.
    """
    heap = events.heap
    while True:
        full = completions.used[0] == len(completions.tag)
        if full or not tier.has_room(demand) or heap.room() < 2 * demand + tier.reserved():
            return ROOM
        if heap.is_empty() or heap.time_ns[0] > order[UNTIL_NS]:
            break
        now = heap.time_ns[0]
        what = heap.what[0]
        number = what >> KIND_BITS
        heap.pop()
        kind = what & KIND_MASK
        if kind == SLOW or kind == FAST:
            tag = tier.complete(now, number, events)
        elif kind == CONTROLLER:
            tag = tier.own_event(now, number, events)
        else:
            tag = tier.wake(now, number, events)
        if tag >= 0:
            completions.tag[completions.used[0]] = tag
            completions.at_ns[completions.used[0]] = now
            completions.used[0] += 1
    if order[TAG] != NOTHING:
        now = order[UNTIL_NS]
        tier.submit(now, order[TAG], order[OP], order[OFFSET], order[LENGTH], events)
    return DONE


class LiveArray:
    """An array, a RAID controller or a drive that runs in the caller's time."""

    def __init__(self, tier: Any, interpreted: bool = False) -> None:
        """Switch on an idle tier, at time 0."""
        self.tier = tier
        self.now_ns = 0
        self._events = Events.new(256)
        self._completions = Completions(*(np.zeros(size, np.int64) for size in (256, 256, 1)))
        self._order = np.zeros(5, np.int64)
        self._longest = 0
        self._demand = 0
        self._go_on = fitting(go_on, tier, interpreted)
        tier.start(self._events)
        self._expect(LONGEST_BYTES)

    @property
    def capacity_bytes(self) -> int:
        """Its capacity."""
        return int(self.tier.capacity_bytes)

    @property
    def next_ns(self) -> int:
        """Time of the next event, at the latest a completion; NEVER if no event is scheduled."""
        heap = self._events.heap
        return NEVER if heap.is_empty() else int(heap.time_ns[0])

    def submit(self, now_ns: int, tag: int, op: int, offset: int, length: int) -> None:
        """Submit a request; `advance` will return its tag, which must be at least 0.

        `op` is a codes.Op with flags, `now_ns` a time in ns, `offset` and `length` are bytes.  Time
        only goes forward: a time before this array's `now_ns` counts as `now_ns`.
        """
        self._expect(length)
        self._step(now_ns, tag, op, offset, length)

    def advance(self, now_ns: int) -> list[tuple[int, int]]:
        """Return (tag, completion time in ns) of the requests complete by `now_ns`, in order."""
        if self.next_ns <= now_ns:
            self._step(now_ns, NOTHING, 0, 0, 0)
        done = self._completions
        count = int(done.used[0])
        done.used[0] = 0
        return list(zip(done.tag[:count].tolist(), done.at_ns[:count].tolist()))

    def _step(self, now_ns: int, tag: int, op: int, offset: int, length: int) -> None:
        self.now_ns = max(now_ns, self.now_ns)
        self._order[:] = self.now_ns, tag, op, offset, length
        while self._go_on(self.tier, self._events, self._order, self._demand, self._completions):
            self._grow()

    def _expect(self, length: int) -> None:
        """Raise the demand to the maximum that a request of that length can need."""
        if length > self._longest:
            self._longest = length
            self._demand = int(self.tier.demand(length))

    def _grow(self) -> None:
        """Grow all pools that have too little room."""
        self.tier = self.tier.with_room(self._demand)
        self._events = self._events.with_room(2 * self._demand + int(self.tier.reserved()))
        tag, at_ns, used = self._completions
        if used[0] == len(tag):
            size = 2 * len(tag)
            self._completions = Completions(longer(tag, size), longer(at_ns, size), used)
