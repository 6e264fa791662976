"""Writes of a controller: into DRAM, one request after the other, and from there to the array."""

from __future__ import annotations

from hybridsim.foundation.codes import FUA, OP_MASK, Op
from hybridsim.jit import kernel
from hybridsim.jit.events import CONTROLLER
from hybridsim.storage.controller.counts import (
    DESTAGE,
    DESTAGED,
    DESTAGES,
    DESTAGES_DONE,
    DISCARDED,
    DRAIN_FIRST,
    DRAIN_LAST,
    DRAINING,
    FIRST_QUEUED,
    FULL_STRIPES,
    LAST_NS,
    LAST_QUEUED,
    OVERWRITTEN,
    PLACE,
    TIMER,
    WRITTEN,
)
from hybridsim.storage.controller.jobs import IDLE
from hybridsim.storage.controller.lines import SECTOR

WRITE, FLUSH = int(Op.WRITE), int(Op.FLUSH)
NOTHING = -1
NEVER = 1 << 62
STARTS_MAX = 2  # destages started at once: limits the array requests of one step


@kernel
def flush(controller, now, job, events):
    """Make written data durable: at once with a protected DRAM, else by destaging and flushing."""
    if controller.lines.slots.capacity == 0:
        controller.ask_array(now, job, FLUSH, 0, 0, events)
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
    if controller.state[FIRST_QUEUED] == NOTHING:
        controller.state[FIRST_QUEUED] = job
    else:
        jobs.next[controller.state[LAST_QUEUED]] = job
    controller.state[LAST_QUEUED] = job


@kernel
def leave_queue(controller):
    """Remove the first job of the queue; return its tag if it is complete, else -1."""
    job = controller.state[FIRST_QUEUED]
    controller.state[FIRST_QUEUED] = controller.jobs.next[job]
    return controller.jobs.completed(job)


@kernel
def go_on(controller, now, events):
    """Serve the queue, destage if there is a reason, and set the idle timer."""
    job = controller.state[FIRST_QUEUED]
    while job != NOTHING and serve(controller, now, job, events):
        leave_queue(controller)  # its transfer is in progress
        job = controller.state[FIRST_QUEUED]
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
            if controller.state[DESTAGES] < controller.destages_max:
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
        controller.ask_array(now, job, FLUSH, 0, 0, events)
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
    if jobs.stage[job] == DRAIN_FIRST and jobs.op[job] & OP_MASK == WRITE:
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
    job = controller.jobs.take(NOTHING, WRITE, start, length)
    controller.array.submit(now, job << 2 | DESTAGE, WRITE, start, length, events)


@kernel
def destage_done(controller, now, job, events):
    """End a destage: free its lines, unless they are dirty again."""
    start = controller.jobs.offset[job]
    controller.state[DESTAGES] -= 1
    controller.lines.landed(start, start + controller.jobs.length[job])
    controller.invalidate(job)
    controller.jobs.release(job)
    go_on(controller, now, events)
