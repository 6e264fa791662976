"""A RAID controller: an array behind DRAM that reads ahead and writes back (DESIGN.md 2.11).

It has the methods of `raid.Tier`, and replaces it as the slow tier.  What is in DRAM is in memory:
windows that are read ahead, lines that are written back.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled, pool_of, roomy_pool
from hybridsim.foundation.codes import FUA, OP_MASK, PREFLUSH, Op
from hybridsim.foundation.machine_parameters import ControllerParameters
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.events import CONTROLLER
from hybridsim.jit.lists import NOTHING, Fifos, give_back, taken
from hybridsim.storage.controller.memory import DOOMED, READY, SECTOR, Lines, Windows
from hybridsim.storage.raid import Tier

# indices of `state`
DESTAGES, DRAINING, LAST_NS, TIMER = range(4)

# The tag of an array request is number << 2 | one of these; number is a job or a window.
JOB, WINDOW, DESTAGE = range(3)

# The next step of a queued job.
DRAIN_FIRST, PLACE, DRAIN_LAST = range(3)

# indices of `counts`
(
    DRAM_READ,
    WINDOW_WAITED,
    AHEAD_READ,
    WRITTEN,
    OVERWRITTEN,
    DISCARDED,
    DESTAGED,
    DESTAGES_DONE,
    FULL_STRIPES,
) = range(9)
NAMES = (
    "dram_read_bytes",  # read from DRAM
    "waited_bytes",  # read from a window that was still being read from the array
    "ahead_bytes",  # read ahead from the array
    "write_back_bytes",  # written to DRAM; then overwritten, discarded or destaged
    "overwritten_bytes",
    "discarded_bytes",
    "destaged_bytes",
    "destages",
    "full_stripes",  # destages of a whole row of the array
)

LINK, IDLE = 0, 1  # numbers of the controller's own events
SECOND_NS = 10**9
NEVER = 1 << 62
STARTS_MAX = 2  # destages started at once: limits the array requests of one step


@state_machine
class Jobs(NamedTuple):
    """Requests from the host, and the controller's own destages."""

    tag: Ints
    op: Bytes
    offset: Ints
    length: Ints
    pending: Int32s  # transfers and array requests in progress; plus one while it is queued
    stage: Bytes
    flushing: Bytes  # 1: a FLUSH of the array is in progress for it
    placed: Ints  # of a write: end of the part that is in DRAM
    following: Int32s  # next job in the queue, or next free job
    free: Ints  # [first free job, number of free jobs]

    @method
    def take(self, tag, op, offset, length):
        """Allocate a job with nothing pending."""
        job = taken(self)
        self.tag[job] = tag
        self.op[job] = op
        self.offset[job] = offset
        self.length[job] = length
        self.pending[job] = 0
        self.stage[job] = 0
        self.flushing[job] = 0
        return job

    @method
    def completed(self, job):
        """Count a completed part; return the tag of the request if it was the last, else -1."""
        self.pending[job] -= 1
        if self.pending[job] > 0:
            return NOTHING
        give_back(self, job)
        return self.tag[job]


@state_machine
class Link(NamedTuple):
    """Transfers between DRAM and host in order; some wait for their data first."""

    latency_ns: int
    bytes_per_s: int
    job: Int32s
    length: Ints
    done_ns: Ints
    queue: Fifos  # on the link
    free_ns: Ints  # [when the link is free]
    following: Int32s  # next transfer on the link or at a window, or next free transfer
    free: Ints  # [first free transfer, number of free transfers]

    @method
    def take(self, job, length):
        """Allocate a transfer; it is not on the link yet."""
        transfer = taken(self)
        self.job[transfer] = job
        self.length[transfer] = length
        return transfer

    @method
    def send(self, now, transfer, events):
        """Put a transfer on the link."""
        begin = max(self.free_ns[0], now)
        self.free_ns[0] = begin + self.length[transfer] * SECOND_NS // self.bytes_per_s
        self.done_ns[transfer] = self.free_ns[0] + self.latency_ns
        if self.queue.is_empty(0):
            events.push(self.done_ns[transfer], CONTROLLER, LINK)
        self.queue.append(0, transfer, self.following)

    @method
    def arrived(self, events):
        """Remove the first transfer, which is complete, from the link; return its job."""
        transfer = self.queue.pop(0, self.following)
        if not self.queue.is_empty(0):
            events.push(self.done_ns[self.queue.first[0]], CONTROLLER, LINK)
        give_back(self, transfer)
        return self.job[transfer]


@kernel
def read(controller, now, job, events):
    """Read each sector from DRAM or array, and read ahead of sequential streams."""
    windows = controller.windows
    offset = controller.jobs.offset[job]
    length = controller.jobs.length[job]
    start = offset // SECTOR * SECTOR
    end = (offset + length + SECTOR - 1) // SECTOR * SECTOR
    missing, missing_end, in_dram = gather(controller, job, start, end)
    if windows.slots.used() > 0:
        windows.drop_passed(start, end)
    if in_dram > 0:
        controller.counts[DRAM_READ] += in_dram
        controller.jobs.pending[job] += 1
        controller.link.send(now, controller.link.take(job, in_dram), events)
    if missing != NOTHING:
        begin = max(missing, offset)
        upto = min(missing_end, offset + length)
        controller.ask_array(now, job, controller.jobs.op[job], begin, upto - begin, events)
    if windows.slots.capacity > 0:
        stream = windows.streams.extend(offset, length)
        if windows.streams.run_requests[stream] >= windows.sequential_after:
            read_ahead(controller, now, end, events)


@kernel
def gather(controller, job, start, end):
    """Locate each sector; return start and end of the missing range, and the bytes in DRAM."""
    lines = controller.lines
    windows = controller.windows
    missing = NOTHING
    missing_end = NOTHING
    in_dram = 0
    at = start
    while at < end:
        upto = end
        held = False
        if windows.slots.used() > 0:
            upto = min(upto, windows.border(at))
        if lines.slots.used() > 0:
            upto = min(upto, lines.border(at))
            of_line = lines.held(at)
            mask = lines.mask(at, upto)
            if of_line & mask != 0 and of_line & mask != mask:
                upto = at + SECTOR
                mask = lines.mask(at, upto)
            held = of_line & mask != 0
        window = NOTHING if held else windows.holding(at)
        if held:
            in_dram += upto - at
        elif window == NOTHING:
            if missing == NOTHING:
                missing = at
            missing_end = upto
        elif windows.state[window] == READY:
            windows.ready.renew(0, window)
            in_dram += upto - at
        else:
            wait_for(controller, window, job, upto - at)
        at = upto
    return missing, missing_end, in_dram


@kernel
def wait_for(controller, window, job, length):
    """Queue a transfer of a job's bytes until the window has been read."""
    controller.counts[WINDOW_WAITED] += length
    windows, link = controller.windows, controller.link
    last = windows.waiting.last[window]
    if not windows.waiting.is_empty(window) and link.job[last] == job:
        link.length[last] += length
        return
    controller.jobs.pending[job] += 1
    windows.waiting.append(window, link.take(job, length), link.following)


@kernel
def read_ahead(controller, now, at, events):
    """Make sure that the data after byte `at` is in DRAM or being read."""
    windows = controller.windows
    end = min(at + windows.read_ahead_bytes, controller.capacity_bytes)
    if at >= end:
        return
    size = windows.window_bytes
    for number in range(at // size, (end - 1) // size + 1):
        if windows.slots.table.find(number) != NOTHING:
            continue
        start = max(at, number * size)
        slot = windows.claim(number, start)
        if slot == NOTHING:
            return
        length = windows.end(number) - start
        controller.counts[AHEAD_READ] += length
        controller.array.submit(now, slot << 2 | WINDOW, Op.READ, start, length, events)


@kernel
def window_arrived(controller, now, window, events):
    """Send the transfers that waited for a window; make it ready, or free it if it is doomed."""
    windows, link = controller.windows, controller.link
    while not windows.waiting.is_empty(window):
        link.send(now, windows.waiting.pop(window, link.following), events)
    if windows.state[window] == DOOMED:
        windows.slots.release(window)
    else:
        windows.state[window] = READY
        windows.ready.add(0, window)


@kernel
def flush(controller, now, job, events):
    """Make written data durable: at once with a protected DRAM, else by destaging and flushing."""
    if controller.lines.slots.capacity == 0:
        controller.ask_array(now, job, Op.FLUSH, 0, 0, events)
    elif controller.protected != 0:
        controller.jobs.pending[job] += 1
        controller.link.send(now, controller.link.take(job, 0), events)
    else:
        put_in_queue(controller, job, DRAIN_FIRST)
        go_on(controller, now, events)


@kernel
def discard(controller, start, end):
    """Drop the dirty sectors that are discarded completely."""
    start = (start + SECTOR - 1) // SECTOR * SECTOR
    end = end // SECTOR * SECTOR
    if start < end and controller.lines.slots.used() > 0:
        controller.counts[DISCARDED] += SECTOR * controller.lines.drop(start, end)


@kernel
def put_in_queue(controller, job, stage):
    """Queue a job; it is not complete before its turn."""
    jobs = controller.jobs
    jobs.pending[job] += 1
    jobs.stage[job] = stage
    controller.queue.append(0, job, jobs.following)


@kernel
def leave_queue(controller):
    """Remove the first job of the queue; return its tag if it is complete, else -1."""
    job = controller.queue.pop(0, controller.jobs.following)
    return controller.jobs.completed(job)


@kernel
def go_on(controller, now, events):
    """Serve the queue, destage if there is a reason, and set the idle timer."""
    job = controller.queue.first[0]
    while job != NOTHING and serve(controller, now, job, events):
        leave_queue(controller)  # its transfer is in progress
        job = controller.queue.first[0]
    used = controller.lines.slots.used()
    if used == 0:
        controller.state[DRAINING] = 0
        return
    if used >= controller.high_lines:
        controller.state[DRAINING] = 1
    if used <= controller.low_lines:
        controller.state[DRAINING] = 0
    idle = now - controller.state[LAST_NS] >= controller.idle_ns
    flushing = job != NOTHING and controller.jobs.stage[job] != PLACE
    if idle or flushing or controller.state[DRAINING] != 0:
        for _ in range(STARTS_MAX):
            if controller.state[DESTAGES] < controller.max_destages:
                destage(controller, now, events)
    if not idle and controller.idle_ns < NEVER and controller.state[TIMER] == 0:
        controller.state[TIMER] = 1
        events.push(controller.state[LAST_NS] + controller.idle_ns, CONTROLLER, IDLE)


@kernel
def serve(controller, now, job, events):
    """Serve the first job of the queue; return whether its turn is over."""
    jobs = controller.jobs
    if jobs.stage[job] == PLACE:
        if not place(controller, job):
            return False
        jobs.pending[job] += 1
        controller.link.send(now, controller.link.take(job, jobs.length[job]), events)
        if controller.protected != 0 or jobs.op[job] & FUA == 0:
            return True
        jobs.stage[job] = DRAIN_LAST
    if jobs.flushing[job] == 0 and controller.lines.slots.used() == 0:
        jobs.flushing[job] = 1
        controller.ask_array(now, job, Op.FLUSH, 0, 0, events)
    return False


@kernel
def place(controller, job):
    """Put a write's sectors into DRAM while there is room; return whether all are there."""
    lines = controller.lines
    jobs = controller.jobs
    end = (jobs.offset[job] + jobs.length[job] + SECTOR - 1) // SECTOR * SECTOR
    while jobs.placed[job] < end:
        at = jobs.placed[job]
        if not lines.has_place(at):
            return False
        upto = min(end, lines.border(at))
        controller.counts[WRITTEN] += upto - at
        controller.counts[OVERWRITTEN] += SECTOR * lines.write(at, upto)
        jobs.placed[job] = upto
    return True


@kernel
def drained(controller, job):
    """Continue the first job of the queue after a flush of the array; return its tag if done."""
    jobs = controller.jobs
    jobs.flushing[job] = 0
    if jobs.stage[job] == DRAIN_FIRST and jobs.op[job] & OP_MASK == Op.WRITE:
        jobs.stage[job] = PLACE
        return jobs.completed(job)
    jobs.pending[job] -= 1
    return leave_queue(controller)


@kernel
def destage(controller, now, events):
    """Send a run of dirty sectors to the array, if there is one."""
    lines = controller.lines
    start = lines.next_start(lines.slots.used() > controller.oldest_above_lines)
    if start == NOTHING:
        return
    length = lines.start(start) - start
    controller.state[DESTAGES] += 1
    controller.counts[DESTAGED] += length
    controller.counts[DESTAGES_DONE] += 1
    controller.counts[FULL_STRIPES] += length == lines.stripe_bytes
    job = controller.jobs.take(NOTHING, Op.WRITE, start, length)
    controller.array.submit(now, job << 2 | DESTAGE, Op.WRITE, start, length, events)


@kernel
def destage_done(controller, now, job, events):
    """End a destage: free its lines, unless they are dirty again."""
    start = controller.jobs.offset[job]
    controller.state[DESTAGES] -= 1
    controller.lines.landed(start, start + controller.jobs.length[job])
    controller.invalidate(job)
    give_back(controller.jobs, job)
    go_on(controller, now, events)


@state_machine
class Controller(NamedTuple):
    """DRAM in front of an array; the tag of an array request is a job or a window."""

    protected: int  # 1: data in DRAM survives a power failure
    high_lines: int
    low_lines: int
    oldest_above_lines: int
    idle_ns: int
    max_destages: int
    capacity_bytes: int
    array: Any
    windows: Windows
    lines: Lines
    jobs: Jobs
    queue: Fifos  # of jobs
    link: Link
    state: Ints  # [DESTAGES ... TIMER]
    counts: Ints  # [DRAM_READ ... FULL_STRIPES]

    @classmethod
    def new(cls, array: Any, parameters: ControllerParameters, capacity: int = 64) -> Controller:
        """Return a controller with empty DRAM."""
        p = parameters
        size = int(array.capacity_bytes)
        link = {"queue": Fifos.new(), "free_ns": np.zeros(1, np.int64)}
        return filled(
            cls,
            len(NAMES),
            p,
            capacity_bytes=size,
            array=array,
            windows=Windows.new(p, size),
            lines=Lines.new(p, size),
            jobs=pool_of(Jobs, capacity),
            queue=Fifos.new(),
            link=pool_of(Link, capacity, p, bytes_per_s=p.rate, **link),
            state=np.zeros(4, np.int64),
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
        windows, ahead = self.windows, 0
        if windows.slots.capacity:
            ahead = windows.read_ahead_bytes // windows.window_bytes + 2
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

    def with_room(self, demand: int) -> Controller:
        """Return the same controller with room for this demand, also in its array."""
        link = roomy_pool(self.link, demand, ("job", "length", "done_ns"))
        array = self.array.with_room(demand)
        return self._replace(jobs=roomy_pool(self.jobs, demand), link=link, array=array)

    @method
    def submit(self, now, tag, op, offset, length, events):
        """Take a request; `complete`, `wake` or `own_event` will return its tag."""
        self.state[LAST_NS] = now
        kind = op & OP_MASK
        if kind == Op.FLUSH or length == 0:
            job = self.jobs.take(tag, Op.FLUSH, 0, 0)
            flush(self, now, job, events)
            return
        job = self.jobs.take(tag, op, offset, length)
        if kind == Op.READ:
            read(self, now, job, events)
            return
        if kind == Op.WRITE and self.lines.slots.capacity > 0:
            drains = self.protected == 0 and op & PREFLUSH != 0
            put_in_queue(self, job, DRAIN_FIRST if drains else PLACE)
            self.jobs.placed[job] = offset // SECTOR * SECTOR
        else:
            if kind == Op.DISCARD:
                discard(self, offset, offset + length)
            self.ask_array(now, job, op, offset, length, events)
        go_on(self, now, events)

    submit_background = Tier.submit_background  # type: ignore[misc]
    holds_back = Tier.holds_back  # type: ignore[misc]

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
        if jobs.op[number] & OP_MASK == Op.READ:
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
