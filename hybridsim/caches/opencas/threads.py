"""The threads of Open CAS's queues, which sleep while the disk holds a write back (2.13.6)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.opencas.jobs import THREAD
from hybridsim.foundation.arrays import Ints
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE

NOTHING = -1
LOW, HIGH = range(2)  # lists of a thread
# What a thread is to do with a job.
STARTS, BEGINS, PROCEEDS, GOES_ON, STORES = range(5)
REQUESTS, PASSES, FIRST_ASLEEP, ASLEEP, WAITING = range(5)


@state_machine
class Threads(NamedTuple):
    """What waits for each thread, and where one that sleeps goes on."""

    number: int
    first: Ints  # by 2 * thread + list: a job
    last: Ints
    sleeps: Ints  # by thread
    is_called: Ints  # by thread: whether an event will run it
    job: Ints  # by thread that sleeps: whose writes it sends, or NOTHING
    need: Ints  # and where it goes on
    sector: Ints
    order: Ints  # a ring of the threads that sleep, in order
    state: Ints  # [REQUESTS, PASSES, FIRST_ASLEEP, ASLEEP, WAITING]

    @classmethod
    def new(cls, number: int) -> Threads:
        """Return threads that have nothing to do."""
        lists = [np.full(2 * number, NOTHING, np.int64) for _ in range(2)]
        of_each = [np.zeros(number, np.int64) for _ in range(6)]
        return cls._make((number, *lists, *of_each, np.zeros(5, np.int64)))

    @method
    def next(self, what):
        """Return the thread of the next one of REQUESTS or PASSES: each in turn."""
        thread = self.state[what]
        self.state[what] = thread + 1 if thread + 1 < self.number else 0
        return thread

    @method
    def is_busy(self, thread):
        """Return whether what comes now has to wait."""
        if self.state[ASLEEP] == 0 and self.state[WAITING] == 0:
            return False
        at = 2 * thread
        waits = self.first[at + LOW] != NOTHING or self.first[at + HIGH] != NOTHING
        return self.sleeps[thread] == 1 or waits

    @method
    def put(self, jobs, job, todo, which):
        """Append a job to a list of its thread."""
        at = 2 * jobs.thread[job] + which
        jobs.todo[job] = todo
        jobs.following[job] = NOTHING
        self.state[WAITING] += 1
        if self.first[at] == NOTHING:
            self.first[at] = job
        else:
            jobs.following[self.last[at]] = job
        self.last[at] = job

    @method
    def take(self, jobs, thread):
        """Remove and return the next job that waits for a thread, or -1."""
        at = 2 * thread + HIGH
        if self.first[at] == NOTHING:
            at = 2 * thread + LOW
        job = self.first[at]
        if job != NOTHING:
            self.first[at] = jobs.following[job]
            self.state[WAITING] -= 1
        return job

    @method
    def call(self, now, thread, events):
        """Have a thread run in this instant, if something waits for it and it is awake."""
        if self.sleeps[thread] == 0 and self.is_called[thread] == 0 and self.is_busy(thread):
            self.is_called[thread] = 1
            events.push(now, CACHE, THREAD + thread)

    @method
    def fall_asleep(self, thread, job, need, sector):
        """Let a thread sleep; then it goes on with the writes of a job (NOTHING: with none)."""
        state = self.state
        self.sleeps[thread] = 1
        self.job[thread] = job
        self.need[thread] = need
        self.sector[thread] = sector
        self.order[(state[FIRST_ASLEEP] + state[ASLEEP]) % self.number] = thread
        state[ASLEEP] += 1

    @method
    def wake_first(self):
        """Wake the thread that has slept for longest, and return it."""
        state = self.state
        thread = self.order[state[FIRST_ASLEEP]]
        state[FIRST_ASLEEP] = (state[FIRST_ASLEEP] + 1) % self.number
        state[ASLEEP] -= 1
        self.sleeps[thread] = 0
        return thread
