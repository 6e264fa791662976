"""Writeback throttling of a disk's queue, as Linux's blk-wbt does it (DESIGN.md 2.16).

Background writes and discards wait in front of the disk while reads are slow.  It replaces the slow
tier: `submit_background` is what it throttles, `submit` passes at once.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, pool_of, roomy_pool
from hybridsim.foundation.codes import OP_MASK, Op
from hybridsim.foundation.machine_parameters import ThrottleParameters
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.events import CACHE, CONTROLLER
from hybridsim.jit.jiffies import JIFFY_NS
from hybridsim.jit.lists import NOTHING, Fifos, give_back, taken
from hybridsim.storage.controller import Controller

NEVER = -(1 << 40)
WINDOW_NS = 100_000_000
READ_LATELY = 25  # jiffies
DEPTH = 16
UNKNOWN_MAX = 5
WRITES_LEAST = 3
STEPS = 8  # beyond the deepest: 16 >> 4 is 1 already
# What a request is: a read, a write that passes (also a flush, which is no sample), one that waits.
IS_READ, PASSES, FLUSHES, WAITS, DISCARDS = range(5)
QUEUES = (WAITS, DISCARDS)
COUNTERS = ("held_writes", "held_ns", "throttle_windows", "throttled_windows")
HELD_WRITES, HELD_NS, WINDOWS, THROTTLED = range(len(COUNTERS))
(STEP, IS_FULL, MOST, NORMAL, BACKGROUND, UNKNOWN, WINDOW, IS_ARMED, LAST_READ, LAST_READ_DONE,
 WATCHED, READS, SMALLEST_NS, WRITES, WAITING, LAST_WAITS) = range(16)  # fmt: skip


@kernel
def depth_of(queue_depth, step):
    """Return how many writes may be under way at a step, and whether that is the most.

    Steps above 0 throttle, those below 0 let more in.
    """
    if queue_depth == 1:
        return (1, 0) if step > 0 else (2, 1)
    depth = min(DEPTH, queue_depth)
    if step > 0:
        return 1 + ((depth - 1) >> min(31, step)), 0
    if step == 0:
        return depth, 0
    most = 3 * queue_depth // 4
    depth = 1 + ((depth - 1) << -step)
    return (most, 1) if depth > most else (depth, 0)


@state_machine
class Throttle(NamedTuple):
    """Requests in front of a tier of one device and in it; the tag in the tier is their number.

    `calls` is the event of the cache when a background write of it that waited is issued; -1: none.
    """

    target_ns: int
    queue_depth: int
    has_write_cache: int
    capacity_bytes: int
    calls: int
    array: Any  # a Tier
    tag: Ints
    op: Bytes
    offset: Ints
    length: Ints
    since_ns: Ints  # begin of the wait, then of the service
    what: Bytes  # IS_READ ... DISCARDS
    windows_ns: Ints  # by step
    queues: Fifos  # by what
    under_way: Ints  # by what
    state: Ints  # [STEP ... LAST_WAITS]
    counts: Ints  # COUNTERS
    following: Int32s  # next in the queue, or next free
    free: Ints  # [first free, number of free]

    @classmethod
    def new(
        cls,
        array: Any,
        parameters: ThrottleParameters,
        room: int = 64,
        calls: int = NOTHING,
    ) -> Throttle:
        """Throttle the writes to a tier so that its reads take the target time at most."""
        p = parameters
        windows = [WINDOW_NS] + [
            WINDOW_NS * 16 // math.isqrt((step + 1) * 256) for step in range(1, STEPS)
        ]
        state = np.zeros(16, np.int64)
        state[[MOST, NORMAL, BACKGROUND]] = limits_of(depth_of(p.queue_depth, 0)[0])
        state[[LAST_READ, LAST_READ_DONE]] = NEVER
        state[WATCHED] = NOTHING
        return pool_of(
            cls,
            room,
            p,
            capacity_bytes=int(array.capacity_bytes),
            calls=calls,
            array=array,
            windows_ns=np.array(windows),
            queues=Fifos.new(DISCARDS + 1),
            under_way=np.zeros(DISCARDS + 1, np.int64),
            state=state,
            counts=np.zeros(len(COUNTERS), np.int64),
        )

    # As a controller it takes the place of the array, and hands on what that completes.
    device = Controller.device  # type: ignore[misc]
    members = Controller.members  # type: ignore[misc]
    start = Controller.start  # type: ignore[misc]
    complete = Controller.complete  # type: ignore[misc]
    wake = Controller.wake  # type: ignore[misc]

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return the counters of the array and of the throttle, by name.

        Writes that waited, how long in ns all together; windows, and those that began throttled.
        """
        own = dict(zip(COUNTERS, self.counts.tolist(), strict=True))
        return dict(self.array.totals(now_ns)) | own

    def demand(self, request_bytes: int) -> int:
        """Return the maximum that a request of that length can need from any one pool."""
        return int(self.array.demand(request_bytes))

    def with_room(self, demand: int) -> Throttle:
        """Return the same throttle with room for this demand, and of those that wait, below."""
        array = self.array.with_room(demand + int(self.state[WAITING]))
        columns = ("tag", "op", "offset", "length", "since_ns", "what")
        return roomy_pool(self._replace(array=array), demand, columns)

    @method
    def is_idle(self):
        """Return whether every request is complete."""
        return self.state[WAITING] == 0 and self.array.is_idle()

    @method
    def reserved(self):
        """Return how many device requests and events those that wait can need."""
        return self.array.reserved() + 3 * self.state[WAITING]

    @method
    def has_room(self, demand):
        """Return whether requests with this demand fit, and all that wait with them."""
        return self.free[1] >= demand and self.array.has_room(demand + self.state[WAITING])

    # Requests.

    @method
    def submit(self, now, tag, op, offset, length, events):
        """Take a request that somebody waits for; discards and flushes may wait even so."""
        kind = op & OP_MASK
        what = IS_READ if kind == Op.READ else PASSES
        if kind == Op.FLUSH or length == 0:
            what = FLUSHES if self.has_write_cache == 1 else PASSES
        elif kind == Op.DISCARD:
            what = DISCARDS
        self.enter(now, self.take(tag, op, offset, length, what), events)

    @method
    def submit_background(self, now, tag, op, offset, length, events):
        """Take a write that nobody waits for, or a FLUSH whose sender sleeps while it waits."""
        passes = op & OP_MASK == Op.FLUSH and self.has_write_cache == 0
        waiting = self.state[WAITING]
        self.enter(now, self.take(tag, op, offset, length, PASSES if passes else WAITS), events)
        self.state[LAST_WAITS] = self.state[WAITING] - waiting

    @method
    def holds_back(self):
        """Return whether the last background request waited in front of the tier when it came."""
        return self.state[LAST_WAITS] == 1

    @method
    def take(self, tag, op, offset, length, what):
        """Allocate a request."""
        number = taken(self)
        self.tag[number] = tag
        self.op[number] = op
        self.offset[number] = offset
        self.length[number] = length
        self.what[number] = what
        return number

    @method
    def queue_of(self, number):
        """Return the queue of a request: WAITS, DISCARDS, or -1 if it passes."""
        what = self.what[number]
        if what == FLUSHES:
            return WAITS
        return what if what >= WAITS else NOTHING

    @method
    def enter(self, now, number, events):
        """Issue a request, or let it wait behind others."""
        queue = self.queue_of(number)
        if queue == NOTHING:
            self.issue(now, number, events)
            return
        if self.queues.is_empty(queue) and self.under_way[queue] < self.limit(now, queue):
            self.let_in(now, number, queue, events)
            return
        self.since_ns[number] = now
        self.queues.append(queue, number, self.following)
        self.state[WAITING] += 1

    @method
    def limit(self, now, queue):
        """Return how many requests of a queue may be under way."""
        state = self.state
        jiffies = now // JIFFY_NS
        is_reading = jiffies < max(state[LAST_READ], state[LAST_READ_DONE]) + READ_LATELY
        return state[BACKGROUND] if queue == DISCARDS or is_reading else state[NORMAL]

    @method
    def let_in(self, now, number, queue, events):
        """Issue a request that counts, and see that a window is measured."""
        self.under_way[queue] += 1
        self.issue(now, number, events)
        if self.state[IS_ARMED] == 0:
            self.arm(now, events)

    @method
    def issue(self, now, number, events):
        """Send a request to the device; watch a read if none is watched."""
        state = self.state
        self.since_ns[number] = now
        if self.what[number] == IS_READ:
            state[LAST_READ] = now // JIFFY_NS
            if state[WATCHED] == NOTHING:
                state[WATCHED] = number
        offset, length = self.offset[number], self.length[number]
        self.array.submit(now, number, self.op[number], offset, length, events)

    @method
    def array_done(self, now, number, events):
        """Take a completed request of the array, if it is one, and issue those that may now go."""
        if number < 0:
            return NOTHING
        state = self.state
        what = self.what[number]
        if what == IS_READ:
            if state[WATCHED] == number:
                state[WATCHED] = NOTHING
            state[LAST_READ_DONE] = now // JIFFY_NS
            took_ns = now - self.since_ns[number]
            if state[IS_ARMED] == 1:
                is_smaller = state[READS] == 0 or took_ns < state[SMALLEST_NS]
                state[SMALLEST_NS] = took_ns if is_smaller else state[SMALLEST_NS]
                state[READS] += 1
        elif state[IS_ARMED] == 1 and self.length[number] > 0:
            if self.op[number] & OP_MASK != Op.FLUSH:
                state[WRITES] += 1
        queue = self.queue_of(number)
        tag = self.tag[number]
        give_back(self, number)
        if queue != NOTHING:
            self.left(now, queue, events)
        return tag

    @method
    def left(self, now, queue, events):
        """Count a request that is complete; with a write cache the next go when all are."""
        state = self.state
        self.under_way[queue] -= 1
        under_way = self.under_way[queue]
        most = state[BACKGROUND] if queue == DISCARDS else state[NORMAL]
        if queue == WAITS and self.has_write_cache == 1:
            most = 0
        if under_way > 0 and (under_way >= most or most - under_way < state[BACKGROUND] // 2):
            return
        self.wake_up(now, queue, events)

    @method
    def wake_up(self, now, queue, events):
        """Issue those that wait, in order, as far as the limit lets them."""
        while not self.queues.is_empty(queue):
            if self.under_way[queue] >= self.limit(now, queue):
                return
            number = self.queues.pop(queue, self.following)
            self.state[WAITING] -= 1
            self.counts[HELD_WRITES] += 1
            self.counts[HELD_NS] += now - self.since_ns[number]
            self.let_in(now, number, queue, events)
            if self.calls != NOTHING and self.what[number] == WAITS:
                events.push(now, CACHE, self.calls)

    # The window.

    @method
    def arm(self, now, events):
        """Begin a window; its timer fires a jiffy late."""
        state = self.state
        state[WINDOW] = self.windows_ns[max(state[STEP], 0)]
        state[IS_ARMED] = 1
        jiffies = now // JIFFY_NS + state[WINDOW] // JIFFY_NS + 1
        events.push(jiffies * JIFFY_NS, CONTROLLER, 0)

    @method
    def own_event(self, now, number, events):
        """End a window: let fewer writes in if reads were slow, else more."""
        state = self.state
        state[IS_ARMED] = 0
        under_way = self.under_way[WAITS] + self.under_way[DISCARDS]
        self.counts[WINDOWS] += 1
        self.counts[THROTTLED] += state[STEP] > 0
        reads, writes, smallest_ns = state[READS], state[WRITES], state[SMALLEST_NS]
        state[READS] = 0
        state[WRITES] = 0
        late_ns = 0
        if state[WATCHED] != NOTHING:
            late_ns = now - self.since_ns[state[WATCHED]]
        if late_ns > state[WINDOW] or (late_ns > self.target_ns and reads == 0):
            self.scale(now, 1, events)
        elif reads == 0 or writes < WRITES_LEAST:
            if writes > 0 or under_way > 0:
                self.scale(now, -1, events)
            else:
                self.on_unknown(now, events)
        else:
            self.scale(now, 1 if smallest_ns > self.target_ns else -1, events)
        if state[IS_ARMED] == 0 and (state[STEP] != 0 or under_way > 0):
            self.arm(now, events)
        return NOTHING

    @method
    def on_unknown(self, now, events):
        """After some windows without anything go back toward step 0."""
        state = self.state
        state[UNKNOWN] += 1
        if state[UNKNOWN] < UNKNOWN_MAX:
            return
        if state[STEP] > 0:
            self.scale(now, -1, events)
        elif state[STEP] < 0:
            self.set_step(state[STEP] + 1)

    @method
    def scale(self, now, by, events):
        """Go a step up (by -1) or down (by 1), if there is one."""
        state = self.state
        if by > 0:
            if state[MOST] > 1:
                self.set_step(max(state[STEP], -1) + 1)
        elif state[IS_FULL] == 0:
            step = state[STEP] - 1
            self.set_step(step)
            state[IS_FULL] = depth_of(self.queue_depth, step)[1]
            for queue in QUEUES:
                self.wake_up(now, queue, events)

    @method
    def set_step(self, step):
        """Set the step, and what it lets in."""
        state = self.state
        state[STEP] = step
        state[IS_FULL] = 0
        state[UNKNOWN] = 0
        most, normal, background = limits_of(depth_of(self.queue_depth, step)[0])
        state[MOST] = most
        state[NORMAL] = normal
        state[BACKGROUND] = background


@kernel
def limits_of(depth):
    """Return a depth, and what of it is for writes without reads and with them."""
    if depth <= 2:
        return depth, depth, 1
    return depth, (depth + 1) // 2, (depth + 3) // 4
