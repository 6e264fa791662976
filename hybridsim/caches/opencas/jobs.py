"""Work in progress in Open CAS: jobs, the lines that each needs, and the locks on these."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import (
    Bytes,
    Int32s,
    Ints,
    columns_of,
    free_list,
    grown_pool,
    pool_of,
    with_room,
)
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE

NOTHING = -1
SHARED, EXCLUSIVE = 0, 1
LOCKED = -1  # value of `owners` for a line that is locked exclusively
FIRST, LAST, AWAKE = range(3)
FREE, COUNT = range(2)

RESUME, CLEANER, LET_IN, THREAD = range(4)  # events of the cache; of thread n THREAD + n


@state_machine
class Needs(NamedTuple):
    """The core lines of jobs, and the line of each."""

    core_line: Ints
    line: Ints  # or NOTHING; 64 bits, as it is multiplied to an address
    job: Int32s
    is_there: Bytes  # whether the line held the core line at the last look-up
    is_marked: Bytes  # 1: to be cleaned, its metadata must be written, or not to be backfilled
    waiting_next: Int32s  # the next need that waits for the same line
    following: Int32s  # the next need of the same job, in order; or in the free list
    free: Ints  # [FREE, COUNT]

    @classmethod
    def new(cls, capacity: int) -> Needs:
        """Return room for `capacity` needs."""
        return pool_of(cls, capacity)

    def grown(self, capacity: int) -> Needs:
        """Return the same with room for `capacity` needs."""
        return grown_pool(self, capacity)

    @method
    def take(self, job, core_line, line):
        """Allocate a need."""
        need = self.free[FREE]
        self.free[FREE] = self.following[need]
        self.free[COUNT] -= 1
        self.core_line[need] = core_line
        self.line[need] = line
        self.job[need] = job
        self.is_there[need] = line != NOTHING
        self.is_marked[need] = 0
        self.following[need] = NOTHING
        return need

    @method
    def release(self, need):
        """Free a need."""
        self.following[need] = self.free[FREE]
        self.free[FREE] = need
        self.free[COUNT] += 1


@state_machine
class Jobs(NamedTuple):
    """Requests, and batches of lines to be cleaned."""

    needs: Needs
    owners: Int32s  # by line: number of jobs that share it, or LOCKED
    waiting: Int32s  # by line: the first need that waits, or NOTHING
    last_waiting: Int32s
    queue: Ints  # [FIRST, LAST, AWAKE]: jobs that have got all their locks
    request: Int32s  # slot, or NOTHING
    way: Bytes
    step: Bytes  # the next step after the tiers have completed its parts
    op: Bytes  # with FUA
    offset: Ints  # in whole sectors, bytes
    length: Ints
    pending: Int32s  # number of parts that the tiers have not completed
    waits: Int32s  # number of locks that it waits for
    has_waited: Bytes
    lock: Bytes  # SHARED, EXCLUSIVE
    is_cut: Bytes
    thread: Int32s  # the number of its queue
    todo: Bytes  # what the thread is to do with it, if it waits for the thread
    first_need: Int32s
    last_need: Int32s
    following: Int32s  # next in a queue, or in the free list
    free: Ints  # [FREE, COUNT]

    @classmethod
    def new(cls, lines: int, capacity: int) -> Jobs:
        """Return room for `capacity` jobs and needs, with no line locked."""
        return cls._make(
            (
                Needs.new(capacity),
                np.zeros(lines, np.int32),
                *(np.full(lines, NOTHING, np.int32) for _ in range(2)),
                np.array([NOTHING, NOTHING, 0]),
                *columns_of(cls, capacity, cls._fields[5:-2]),
                free_list(capacity),
                np.array([0, capacity]),
            )
        )

    def grown(self, capacity: int) -> Jobs:
        """Return the same with room for `capacity` jobs and needs."""
        larger = self._replace(needs=self.needs.grown(capacity))
        return with_room(larger, capacity, self._fields[5:-2], "following")

    def size(self) -> int:
        """Return the number of jobs there is room for."""
        return len(self.request)

    @method
    def room(self):
        """Return how many more jobs and needs can be allocated."""
        return min(self.free[COUNT], self.needs.free[COUNT])

    @method
    def take(self, request, way):
        """Allocate a job."""
        job = self.free[FREE]
        self.free[FREE] = self.following[job]
        self.free[COUNT] -= 1
        self.request[job] = request
        self.way[job] = way
        self.pending[job] = 0
        self.waits[job] = 0
        self.has_waited[job] = 0
        self.is_cut[job] = 0
        self.lock[job] = SHARED
        self.first_need[job] = NOTHING
        self.last_need[job] = NOTHING
        return job

    @method
    def release(self, job):
        """Free a job without needs."""
        self.following[job] = self.free[FREE]
        self.free[FREE] = job
        self.free[COUNT] += 1

    @method
    def add_need(self, job, core_line, line):
        """Add a core line at the end of a job's needs."""
        need = self.needs.take(job, core_line, line)
        last = self.last_need[job]
        if last == NOTHING:
            self.first_need[job] = need
        else:
            self.needs.following[last] = need
        self.last_need[job] = need

    @method
    def add_in_order(self, job, core_line, line):
        """Add a core line to a job's needs, in order of address."""
        needs = self.needs
        last = self.last_need[job]
        if last == NOTHING or needs.core_line[last] < core_line:
            self.add_need(job, core_line, line)
            return
        need = needs.take(job, core_line, line)
        at = self.first_need[job]
        if core_line < needs.core_line[at]:
            needs.following[need] = at
            self.first_need[job] = need
            return
        while needs.core_line[needs.following[at]] < core_line:
            at = needs.following[at]
        needs.following[need] = needs.following[at]
        needs.following[at] = need

    @method
    def cut(self, job, count):
        """Move the needs of a job behind its first ones to a new job; NOTHING if there are none."""
        needs = self.needs
        last = self.first_need[job]
        for _ in range(count - 1):
            if last != NOTHING:
                last = needs.following[last]
        if last == NOTHING or needs.following[last] == NOTHING:
            return NOTHING
        rest = self.take(NOTHING, self.way[job])
        self.thread[rest] = self.thread[job]
        self.first_need[rest] = needs.following[last]
        self.last_need[rest] = self.last_need[job]
        needs.following[last] = NOTHING
        self.last_need[job] = last
        need = self.first_need[rest]
        while need != NOTHING:
            needs.job[need] = rest
            need = needs.following[need]
        return rest

    # Locks.

    @method
    def is_in_use(self, line):
        """Return whether a line is locked or waited for."""
        return self.owners[line] != 0 or self.waiting[line] != NOTHING

    @method
    def ask(self, job, lock):
        """Lock the lines of a job; queue it for those that are locked by others."""
        needs = self.needs
        self.lock[job] = lock
        self.has_waited[job] = 0
        need = self.first_need[job]
        while need != NOTHING:
            line = needs.line[need]
            if line != NOTHING and not self.lock_now(line, lock):
                self.waits[job] += 1
                self.has_waited[job] = 1
                needs.waiting_next[need] = NOTHING
                if self.waiting[line] == NOTHING:
                    self.waiting[line] = need
                else:
                    needs.waiting_next[self.last_waiting[line]] = need
                self.last_waiting[line] = need
            need = needs.following[need]

    @method
    def lock_now(self, line, lock):
        """Lock a line if no job waits for it and it is compatible; return whether it is locked."""
        if self.waiting[line] != NOTHING:
            return False
        return self.enter(line, lock)

    @method
    def enter(self, line, lock):
        """Lock a line if its present locks allow that; return whether it is locked."""
        owners = self.owners[line]
        if lock == SHARED and owners != LOCKED:
            self.owners[line] = owners + 1
            return True
        if owners == 0:
            self.owners[line] = LOCKED
            return True
        return False

    @method
    def give_back(self, now, job, events):
        """Unlock a job's lines, and free its needs."""
        needs = self.needs
        need = self.first_need[job]
        lock = self.lock[job]
        while need != NOTHING:
            line = needs.line[need]
            if line != NOTHING:
                self.owners[line] = 0 if lock == EXCLUSIVE else self.owners[line] - 1
                if self.waiting[line] != NOTHING:
                    self.grant_locks(now, line, events)
            following = needs.following[need]
            needs.release(need)
            need = following
        self.first_need[job] = NOTHING
        self.last_need[job] = NOTHING

    @method
    def grant_locks(self, now, line, events):
        """Lock a line for the jobs that wait for it, as far as possible."""
        needs = self.needs
        need = self.waiting[line]
        while need != NOTHING and self.enter(line, self.lock[needs.job[need]]):
            job = needs.job[need]
            self.waits[job] -= 1
            if self.waits[job] == 0:
                self.enqueue(now, job, events)
            need = needs.waiting_next[need]
            self.waiting[line] = need

    # The queue of jobs that continue.

    @method
    def enqueue(self, now, job, events):
        """Queue a job to continue later at this time."""
        queue = self.queue
        self.following[job] = NOTHING
        if queue[FIRST] == NOTHING:
            queue[FIRST] = job
        else:
            self.following[queue[LAST]] = job
        queue[LAST] = job
        if queue[AWAKE] == 0:
            queue[AWAKE] = 1
            events.push(now, CACHE, RESUME)

    @method
    def dequeue(self):
        """Remove and return the first job of the queue."""
        job = self.queue[FIRST]
        self.queue[FIRST] = self.following[job]
        return job

    @method
    def queue_on(self, now, events):
        """Schedule the next job of the queue, if there is one."""
        if self.queue[FIRST] == NOTHING:
            self.queue[AWAKE] = 0
        else:
            events.push(now, CACHE, RESUME)
