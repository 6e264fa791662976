"""Cleaning in Open CAS: for a job, for an eviction without a clean line, by a policy (2.13.4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.opencas.dirt import ALRU, CHUNK, DIRTY, IS_AWAKE, NEXT
from hybridsim.caches.opencas.jobs import CLEANER, SHARED
from hybridsim.caches.opencas.threads import GOES_ON, HIGH, PASSES
from hybridsim.caches.opencas.transfers import Transfers
from hybridsim.caches.opencas.ways import (
    CLEAN,
    CLEAN_FLUSHED,
    CLEAN_NOTED,
    CLEAN_READ,
    CLEAN_STABLE,
    CLEAN_WRITTEN,
    MAKE_ROOM,
)
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import expiry_ns

NOTHING = -1
ROOM_LINES = 32  # lines cleaned when none can be evicted
WRITE = int(Op.WRITE)
SECOND_NS = 1_000_000_000
BLOCKED_NS = SECOND_NS  # pause of the cleaner while casadm reads the counters
PIECE_LINES, LARGE_PIECE_LINES, MANY_LINES = 128, 1024, 4096  # of a pass, which goes by pieces
LAST_IO_NS, MAKES_ROOM, BEGAN_NS, EMPTY_S, PIECES = range(5)
NEVER_S = -(10**9)


@state_machine
class Cleaner(NamedTuple):
    """Cleans the lines of jobs, and batches of lines as jobs of their own."""

    transfers: Transfers
    state: Ints  # [LAST_IO_NS, MAKES_ROOM, BEGAN_NS, EMPTY_S, PIECES]

    @classmethod
    def new(cls, transfers: Transfers) -> Cleaner:
        """Return an idle cleaner."""
        return cls(transfers, np.array([0, 0, 0, NEVER_S, 0], np.int64))

    @method
    def clean(self, now, job, below):
        """Start to clean the lines of a job; return whether there is something to clean."""
        self.transfers.lines.jobs.step[job] = CLEAN_READ
        return self.transfers.read_dirty(now, job, below)

    @method
    def go_on(self, now, job, below):
        """Start the next step of cleaning; return whether the last step is complete."""
        transfers, jobs = self.transfers, self.transfers.lines.jobs
        step: int | np.int64 = np.int64(jobs.step[job])
        if step == CLEAN_READ:
            jobs.step[job] = CLEAN_WRITTEN
            transfers.write_dirty(now, job, below)
            if jobs.pending[job] > 0:
                return False
            step = CLEAN_WRITTEN  # another job has cleaned them meanwhile
            if transfers.threads.is_busy(jobs.thread[job]):
                transfers.threads.put(jobs, job, GOES_ON, HIGH)
                return False
        if step == CLEAN_WRITTEN:
            jobs.step[job] = CLEAN_FLUSHED
            transfers.flush_origin(now, job, below)
        elif step == CLEAN_FLUSHED:
            jobs.step[job] = CLEAN_NOTED
            transfers.make_clean(job)
            transfers.metadata(now, job, WRITE, below)
        elif step == CLEAN_NOTED:
            jobs.step[job] = CLEAN_STABLE
            transfers.flush_cache(now, job, below)
        return step == CLEAN_STABLE

    # Batches.

    @method
    def add_to_batch(self, job, line):
        """Lock a line that is not in use, and add it to a batch."""
        lines = self.transfers.lines
        lines.jobs.enter(line, SHARED)
        lines.jobs.add_in_order(job, lines.table.number[line], line)

    @method
    def make_room(self, now, thread, below):
        """Clean some lines, so that later requests can evict them."""
        lines = self.transfers.lines
        if self.state[MAKES_ROOM] == 1:
            return
        line = lines.next_to_clean(True)
        if line == NOTHING:
            return
        self.state[MAKES_ROOM] = 1
        job = lines.jobs.take(NOTHING, MAKE_ROOM)
        lines.jobs.thread[job] = thread
        chosen = 0
        while line != NOTHING:
            self.add_to_batch(job, line)
            chosen += 1
            line = lines.next_to_clean(False) if chosen < ROOM_LINES else NOTHING
        self.clean(now, job, below)

    @method
    def end_batch(self, now, job, below):
        """End a batch after its last step."""
        jobs, dirt = self.transfers.lines.jobs, self.transfers.lines.dirt
        jobs.give_back(now, job, below.events)
        if jobs.way[job] == MAKE_ROOM:
            self.state[MAKES_ROOM] = 0
            jobs.release(job)
            return
        self.state[PIECES] -= 1
        if self.state[PIECES] == 0:
            pause_ns = 0 if dirt.policy == ALRU else dirt.wake_up_ns
            if pause_ns == 0 and dirt.queries(now) > dirt.queries(self.state[BEGAN_NS]):
                pause_ns = BLOCKED_NS
            below.events.push(expiry_ns(now, pause_ns), CACHE, CLEANER)
        jobs.release(job)

    @method
    def run_cleaner(self, now, below):
        """Clean the lines that the policy chooses, if there are any."""
        jobs, dirt = self.transfers.lines.jobs, self.transfers.lines.dirt
        if dirt.state[DIRTY] == 0:
            dirt.state[IS_AWAKE] = 0
            dirt.state[CHUNK] = NOTHING
            return
        pause_ns = dirt.wake_up_ns
        job = jobs.take(NOTHING, CLEAN)
        chosen = 0
        if dirt.policy == ALRU:
            since_s = now // SECOND_NS - self.state[EMPTY_S]
            is_idle = now - self.state[LAST_IO_NS] >= dirt.activity_threshold_ns
            if is_idle and since_s > dirt.wake_up_ns // SECOND_NS:
                chosen = self.choose_oldest(now, job)
                if jobs.first_need[job] == NOTHING:
                    self.state[EMPTY_S] = now // SECOND_NS
        else:
            chosen = self.choose_densest(job)
            if chosen == NOTHING:
                pause_ns = SECOND_NS
        if jobs.first_need[job] == NOTHING:
            jobs.release(job)
            below.events.push(expiry_ns(now, pause_ns), CACHE, CLEANER)
        else:
            self.state[BEGAN_NS] = now
            jobs.thread[job] = self.transfers.threads.next(PASSES)
            limit = LARGE_PIECE_LINES if chosen > MANY_LINES else PIECE_LINES
            piece = job
            while piece != NOTHING:
                rest = jobs.cut(piece, limit)
                self.state[PIECES] += 1
                self.clean(now, piece, below)
                piece = rest

    @method
    def choose_oldest(self, now, job):
        """Choose the lines that were not written for longest, and return how many (ALRU)."""
        jobs, dirt = self.transfers.lines.jobs, self.transfers.lines.dirt
        chosen = 0
        line = dirt.oldest()
        while line != NOTHING and chosen < dirt.flush_max_buffers and dirt.older_than(line, now):
            if not jobs.is_in_use(line):
                self.add_to_batch(job, line)
                chosen += 1
            line = dirt.by_age.before[line]
        return chosen

    @method
    def choose_densest(self, job):
        """Choose the next dirty lines of a chunk, which is cleaned from end to end (ACP).

        Return how many; NOTHING if there is no chunk to clean.
        """
        jobs, dirt = self.transfers.lines.jobs, self.transfers.lines.dirt
        if dirt.state[CHUNK] == NOTHING:
            chunk = dirt.densest_chunk()
            if chunk == NOTHING:
                return NOTHING
            dirt.state[CHUNK], dirt.state[NEXT] = chunk, chunk * dirt.lines_per_chunk
        chosen = 0
        whole = (dirt.state[CHUNK] + 1) * dirt.lines_per_chunk
        end = min(whole, 8 * len(dirt.dirty.eights))
        core_line = dirt.dirty.next(dirt.state[NEXT], end)
        while core_line != NOTHING and chosen < dirt.flush_max_buffers:
            line = self.transfers.lines.table.find(core_line)
            if not jobs.is_in_use(line):
                self.add_to_batch(job, line)
                chosen += 1
            dirt.state[NEXT] = core_line + 1
            core_line = dirt.dirty.next(core_line + 1, end)
        if chosen < dirt.flush_max_buffers or dirt.state[NEXT] == whole:
            dirt.state[CHUNK] = NOTHING
        return chosen
