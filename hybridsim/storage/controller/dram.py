"""A RAID controller: an array behind DRAM that reads ahead and writes back (DESIGN.md 2.11)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints, doubled
from hybridsim.foundation.codes import OP_MASK, PREFLUSH, Op
from hybridsim.foundation.machine_parameters import ControllerParameters
from hybridsim.jit import method, state_machine
from hybridsim.storage.controller.counts import (
    DESTAGE,
    DRAIN_FIRST,
    FIRST_QUEUED,
    JOB,
    LAST_NS,
    LAST_QUEUED,
    NAMES,
    PLACE,
    TIMER,
    WINDOW,
)
from hybridsim.storage.controller.jobs import LINK, Jobs, Link
from hybridsim.storage.controller.lines import SECTOR, Lines
from hybridsim.storage.controller.reads import read, window_arrived
from hybridsim.storage.controller.windows import Windows
from hybridsim.storage.controller.writes import (
    STARTS_MAX,
    destage_done,
    discard,
    drained,
    flush,
    go_on,
    put_in_queue,
)

READ, WRITE, DISCARD, FLUSH = int(Op.READ), int(Op.WRITE), int(Op.DISCARD), int(Op.FLUSH)
NOTHING = -1


@state_machine
class Controller(NamedTuple):
    """DRAM in front of an array; the tag of an array request is a job or a window."""

    protected: int  # 1: data in DRAM survives a power failure
    high_lines: int
    low_lines: int
    oldest_above_lines: int
    idle_ns: int
    destages_max: int
    capacity_bytes: int
    array: Any
    windows: Windows
    lines: Lines
    jobs: Jobs
    link: Link
    state: Ints  # [DESTAGES ... LAST_QUEUED]
    counts: Ints  # [DRAM_READ ... FULL_STRIPES]

    @classmethod
    def new(cls, array: Any, parameters: ControllerParameters, capacity: int = 64) -> Controller:
        """Return a controller with empty DRAM."""
        p = parameters
        size = int(array.capacity_bytes)
        state = np.zeros(6, np.int64)
        state[[FIRST_QUEUED, LAST_QUEUED]] = NOTHING
        return cls(
            **{name: getattr(p, name) for name in cls._fields[:6]},
            capacity_bytes=size,
            array=array,
            windows=Windows.new(p, size),
            lines=Lines.new(p.line_bytes, p.lines, p.stripe_bytes, size),
            jobs=Jobs.new(capacity),
            link=Link.new(p.latency_ns, p.bytes_per_s, capacity),
            state=state,
            counts=np.zeros(len(NAMES), np.int64),
        )

    @property
    def device(self) -> Any:
        """The drives of the array."""
        return self.array.device

    @property
    def members(self) -> int:
        """Number of drives."""
        return int(self.array.members)

    def start(self, events: Any) -> None:
        """Schedule the background work of the array."""
        self.array.start(events)

    def totals(self, now_ns: int) -> dict[str, int]:
        """Return the counters of the array, by name."""
        return dict(self.array.totals(now_ns))

    def dram_totals(self) -> dict[str, int]:
        """Return the counters of the DRAM so far, by name."""
        return dict(zip(NAMES, self.counts.tolist(), strict=True))

    def demand(self, request_bytes: int) -> int:
        """Return the maximum that a request of that length can need from any one pool."""
        windows = self.windows
        ahead = windows.ahead_bytes // windows.window_bytes + 2 if windows.slots.capacity else 0
        return int(
            self.array.demand(request_bytes)
            + ahead * self.array.demand(windows.window_bytes)
            + STARTS_MAX * self.array.demand(self.lines.stripe_bytes)
            + request_bytes // windows.window_bytes
            + 4
        )

    @method
    def is_idle(self):
        """Return whether every request is complete, and no array request is in progress."""
        return self.array.is_idle() and self.jobs.free[1] == len(self.jobs.tag)

    @method
    def reserved(self):
        """Return how many device requests the requests waiting in the array can need."""
        return self.array.reserved()

    @method
    def has_room(self, demand):
        """Return whether requests with this demand fit."""
        return (
            self.jobs.free[1] >= demand
            and self.link.free[1] >= demand
            and self.array.has_room(demand)
        )

    def grown(self, demand: int, array: Any) -> Controller:
        """Return the same controller with room for this demand, and a larger array."""
        jobs, link = self.jobs, self.link
        if jobs.free[1] < demand:
            jobs = jobs.grown(doubled(len(jobs.tag), int(jobs.free[1]), demand))
        if link.free[1] < demand:
            link = link.grown(doubled(len(link.job), int(link.free[1]), demand))
        return self._replace(jobs=jobs, link=link, array=array)

    @method
    def submit(self, now, tag, op, offset, length, events):
        """Take a request; `complete`, `wake` or `own_event` will return its tag."""
        self.state[LAST_NS] = now
        kind = op & OP_MASK
        if kind == FLUSH or length == 0:
            job = self.jobs.take(tag, FLUSH, 0, 0)
            flush(self, now, job, events)
            return
        job = self.jobs.take(tag, op, offset, length)
        if kind == READ:
            read(self, now, job, events)
            return
        if kind == WRITE and self.lines.slots.capacity > 0:
            drains = self.protected == 0 and op & PREFLUSH != 0
            put_in_queue(self, job, DRAIN_FIRST if drains else PLACE)
            self.jobs.placed[job] = offset // SECTOR * SECTOR
        else:
            if kind == DISCARD:
                discard(self, offset, offset + length)
            self.ask_array(now, job, op, offset, length, events)
        go_on(self, now, events)

    @method
    def submit_background(self, now, tag, op, offset, length, events):
        """Take a write that nobody waits for; nothing holds it up here."""
        self.submit(now, tag, op, offset, length, events)

    @method
    def holds_back(self):
        """Return whether the last background write waits in front of the tier: never."""
        return False

    @method
    def complete(self, now, number, events):
        """Take a device's completion; return the tag of a request that it completes, or -1."""
        return self.array_done(now, self.array.complete(now, number, events), events)

    @method
    def wake(self, now, number, events):
        """Take a timer event of the array; return the tag of a completed request, or -1."""
        return self.array_done(now, self.array.wake(now, number, events), events)

    @method
    def own_event(self, now, number, events):
        """Take an event of the controller; return the tag of a request that it completes, or -1."""
        if number == LINK:
            return self.jobs.completed(self.link.arrived(events))
        self.state[TIMER] = 0
        go_on(self, now, events)
        return NOTHING

    @method
    def array_done(self, now, tag, events):
        """Process a completed array request, if `tag` is one; return a completed tag, or -1."""
        if tag < 0:
            return NOTHING
        what = tag & 3
        number = tag >> 2
        if what == WINDOW:
            window_arrived(self, now, number, events)
            return NOTHING
        if what == DESTAGE:
            destage_done(self, now, number, events)
            return NOTHING
        jobs = self.jobs
        if jobs.op[number] & OP_MASK == READ:
            return jobs.completed(number)
        if jobs.flushing[number] == 0:
            self.invalidate(number)
            return jobs.completed(number)
        tag = drained(self, number)
        go_on(self, now, events)
        return tag

    @method
    def invalidate(self, job):
        """Drop the windows that a job has made stale."""
        if self.jobs.length[job] > 0:
            start = self.jobs.offset[job]
            self.windows.invalidate(start, start + self.jobs.length[job])

    @method
    def ask_array(self, now, job, op, offset, length, events):
        """Send a part of a job to the array."""
        self.jobs.pending[job] += 1
        self.array.submit(now, job << 2 | JOB, op, offset, length, events)
