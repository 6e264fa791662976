"""Operations in progress in a controller: requests, and their data on the link to the host."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import (
    Bytes,
    Int32s,
    Ints,
    filled,
    free_list,
)
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CONTROLLER

NOTHING = -1
LINK, IDLE = 0, 1  # numbers of the controller's own events
SECOND = 1_000_000_000


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
    next: Int32s  # next job in the queue, or next free job
    free: Ints  # [first free job, number of free jobs]

    @method
    def take(self, tag, op, offset, length):
        """Allocate a job with nothing pending."""
        job = self.free[0]
        self.free[0] = self.next[job]
        self.free[1] -= 1
        self.tag[job] = tag
        self.op[job] = op
        self.offset[job] = offset
        self.length[job] = length
        self.pending[job] = 0
        self.stage[job] = 0
        self.flushing[job] = 0
        self.next[job] = NOTHING
        return job

    @method
    def completed(self, job):
        """Count a completed part; return the tag of the request if it was the last, else -1."""
        self.pending[job] -= 1
        if self.pending[job] > 0:
            return NOTHING
        tag = self.tag[job]
        self.release(job)
        return tag

    @method
    def release(self, job):
        """Free a job."""
        self.next[job] = self.free[0]
        self.free[0] = job
        self.free[1] += 1


@state_machine
class Link(NamedTuple):
    """Transfers between DRAM and host in order; some wait for their data first."""

    latency_ns: int
    bytes_per_s: int
    job: Int32s
    length: Ints
    done_ns: Ints
    next: Int32s  # next transfer on the link or at a window, or next free transfer
    free: Ints  # [first free transfer, number of free transfers]
    queue: Ints  # [first on the link, last on the link]
    free_ns: Ints  # [when the link is free]

    @classmethod
    def new(cls, latency_ns: int, bytes_per_s: int, capacity: int) -> Link:
        """Return an idle link with room for `capacity` transfers."""
        return filled(
            cls, capacity, latency_ns=latency_ns, bytes_per_s=bytes_per_s,
            next=free_list(capacity), free=np.array([0, capacity]),
            queue=np.full(2, NOTHING, np.int64), free_ns=np.zeros(1, np.int64),
        )  # fmt: skip

    @method
    def take(self, job, length):
        """Allocate a transfer; it is not on the link yet."""
        transfer = self.free[0]
        self.free[0] = self.next[transfer]
        self.free[1] -= 1
        self.job[transfer] = job
        self.length[transfer] = length
        self.next[transfer] = NOTHING
        return transfer

    @method
    def send(self, now, transfer, events):
        """Put a transfer on the link."""
        begin = max(self.free_ns[0], now)
        self.free_ns[0] = begin + self.length[transfer] * SECOND // self.bytes_per_s
        self.done_ns[transfer] = self.free_ns[0] + self.latency_ns
        self.next[transfer] = NOTHING
        if self.queue[0] == NOTHING:
            self.queue[0] = transfer
            events.push(self.done_ns[transfer], CONTROLLER, LINK)
        else:
            self.next[self.queue[1]] = transfer
        self.queue[1] = transfer

    @method
    def arrived(self, events):
        """Remove the first transfer, which is complete, from the link; return its job."""
        transfer = self.queue[0]
        behind = self.next[transfer]
        self.queue[0] = behind
        if behind != NOTHING:
            events.push(self.done_ns[behind], CONTROLLER, LINK)
        self.next[transfer] = self.free[0]
        self.free[0] = transfer
        self.free[1] += 1
        return self.job[transfer]
