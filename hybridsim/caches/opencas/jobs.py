"""Work in progress in Open CAS: jobs, the lines that each needs, the locks on these, and threads.

The threads of its queues sleep while the disk holds a write back (DESIGN.md 2.13.6).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.opencas import ways
from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled, grown_pool, pool_of
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.instructions import along
from hybridsim.jit.lists import NOTHING, Fifos, give_back, taken

SHARED, EXCLUSIVE = 0, 1
LOCKED = -1  # value of `owners` for a line that is locked exclusively


@state_machine
class Needs(NamedTuple):
    """A pool of the core lines of jobs, and the line of each."""

    core_line: Ints
    line: Ints  # or NOTHING; 64 bits, as it is multiplied to an address
    job: Int32s
    is_there: Bytes  # whether the line held the core line at the last look-up
    is_marked: Bytes  # 1: to be cleaned, its metadata must be written, or not to be backfilled
    waiting_next: Int32s  # the next need that waits for the same line
    following: Int32s  # the next need of the same job, in order; or in the free list
    free: Ints  # [first free, number of free]

    @method
    def take(self, job, core_line, line):
        """Allocate a need."""
        need = taken(self)
        self.core_line[need] = core_line
        self.line[need] = line
        self.job[need] = job
        self.is_there[need] = line != NOTHING
        self.is_marked[need] = 0
        self.following[need] = NOTHING
        return need


@state_machine
class Jobs(NamedTuple):
    """Requests, and batches of lines to be cleaned."""

    needs: Needs
    owners: Int32s  # by line: number of jobs that share it, or LOCKED
    waiting: Int32s  # by line: the first need that waits, or NOTHING
    last_waiting: Int32s
    queue: Fifos  # of jobs that have got all their locks
    is_awake: Ints  # [1: an event is scheduled that takes one of them]
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
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls, lines: int, capacity: int) -> Jobs:
        """Return room for `capacity` jobs and needs, with no line locked."""
        return pool_of(
            cls,
            capacity,
            needs=pool_of(Needs, capacity),
            owners=np.zeros(lines, np.int32),
            waiting=np.full(lines, NOTHING, np.int32),
            last_waiting=np.full(lines, NOTHING, np.int32),
            queue=Fifos.new(),
            is_awake=np.zeros(1, np.int64),
        )

    def grown(self, capacity: int) -> Jobs:
        """Return the same with room for `capacity` jobs and needs."""
        larger = self._replace(needs=grown_pool(self.needs, capacity))
        return grown_pool(larger, capacity, self._fields[6:-2])

    @method
    def take(self, request, way):
        """Allocate a job."""
        job = taken(self)
        self.request[job] = request
        self.way[job] = way
        self.pending[job] = self.waits[job] = self.has_waited[job] = self.is_cut[job] = 0
        self.lock[job] = SHARED
        self.first_need[job] = self.last_need[job] = NOTHING
        return job

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
        for need in along(self.first_need[rest], needs.following):
            needs.job[need] = rest
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
        for need in along(self.first_need[job], needs.following):
            line = needs.line[need]
            waits = line != NOTHING and self.waiting[line] != NOTHING
            if waits or (line != NOTHING and not self.enter(line, lock)):
                self.waits[job] += 1
                self.has_waited[job] = 1
                needs.waiting_next[need] = NOTHING
                if self.waiting[line] == NOTHING:
                    self.waiting[line] = need
                else:
                    needs.waiting_next[self.last_waiting[line]] = need
                self.last_waiting[line] = need

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
        lock = self.lock[job]
        for need in along(self.first_need[job], needs.following):
            line = needs.line[need]
            if line != NOTHING:
                self.owners[line] = 0 if lock == EXCLUSIVE else self.owners[line] - 1
                if self.waiting[line] != NOTHING:
                    self.grant_locks(now, line, events)
            give_back(needs, need)
        self.first_need[job] = self.last_need[job] = NOTHING

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
        self.queue.append(0, job, self.following)
        events.push_once(self.is_awake, 0, now, CACHE, ways.RESUME)


LOW, HIGH = range(2)  # lists of a thread
REQUESTS, PASSES, FIRST_ASLEEP, ASLEEP, WAITING_JOBS = range(5)


@state_machine
class Threads(NamedTuple):
    """What waits for each thread, and where one that sleeps goes on."""

    number: int
    waiting: Fifos  # by 2 * thread + list: jobs
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
        state, waiting = np.zeros(5, np.int64), Fifos.new(2 * number)
        return filled(cls, number, number=number, waiting=waiting, state=state)

    @method
    def next(self, what):
        """Return the thread of the next one of REQUESTS or PASSES: each in turn."""
        thread = self.state[what]
        self.state[what] = thread + 1 if thread + 1 < self.number else 0
        return thread

    @method
    def is_busy(self, thread):
        """Return whether what comes now has to wait."""
        if self.state[ASLEEP] == 0 and self.state[WAITING_JOBS] == 0:
            return False
        at = 2 * thread
        waits = not (self.waiting.is_empty(at + LOW) and self.waiting.is_empty(at + HIGH))
        return self.sleeps[thread] == 1 or waits

    @method
    def defers(self, jobs, job, todo, which):
        """If the thread of a job is busy, append the job to its list, and return True."""
        if not self.is_busy(jobs.thread[job]):
            return False
        jobs.todo[job] = todo
        self.state[WAITING_JOBS] += 1
        self.waiting.append(2 * jobs.thread[job] + which, job, jobs.following)
        return True

    @method
    def take(self, jobs, thread):
        """Remove and return the next job that waits for a thread, or -1."""
        high, low = 2 * thread + HIGH, 2 * thread + LOW
        job = self.waiting.pop(low if self.waiting.is_empty(high) else high, jobs.following)
        if job != NOTHING:
            self.state[WAITING_JOBS] -= 1
        return job

    @method
    def call(self, now, thread, events):
        """Have a thread run in this instant, if something waits for it and it is awake."""
        if self.sleeps[thread] == 0 and self.is_busy(thread):
            events.push_once(self.is_called, thread, now, CACHE, ways.THREAD + thread)

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
