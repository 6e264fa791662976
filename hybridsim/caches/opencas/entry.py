"""The start of requests in Open CAS: routing, allocation of lines, locks (DESIGN.md 2.13.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.opencas.cleaner import Cleaner
from hybridsim.caches.opencas.jobs import EXCLUSIVE, SHARED
from hybridsim.caches.opencas.lines import FREE
from hybridsim.caches.opencas.policies import Nhit, SequentialCutoff
from hybridsim.caches.opencas.ways import INSERT, INVALIDATE, OVERLAY, PASS, UPDATE
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import CasMode, Cutoff, Op, Path, Promotion, Reason
from hybridsim.jit import method, state_machine

NOTHING = -1
READ = int(Op.READ)
WA, PT, WI = int(CasMode.WA), int(CasMode.PT), int(CasMode.WI)
WB, WO = int(CasMode.WB), int(CasMode.WO)
NHIT, NEVER, ALWAYS = int(Promotion.NHIT), int(Cutoff.NEVER), int(Cutoff.ALWAYS)
MISS, BYPASS = int(Path.MISS), int(Path.BYPASS)
NOT_HOT, BUSY = int(Reason.NOT_HOT), int(Reason.BUSY)
SEQUENTIAL, NO_CACHE = int(Reason.SEQUENTIAL), int(Reason.NO_CACHE)

UNDER_WAY, IS_BLOCKED = range(2)


@state_machine
class Backfills(NamedTuple):
    """The number of misses being written to the cache, with its limits."""

    limit: int
    resume: int
    state: Ints  # [UNDER_WAY, IS_BLOCKED]

    @classmethod
    def new(cls, limit: int, resume: int) -> Backfills:
        """Return none in progress."""
        return cls(limit, resume, np.zeros(2, np.int64))

    @method
    def are_blocked(self):
        """Return whether the limit was exceeded and the number has not fallen to `resume` yet."""
        return self.state[IS_BLOCKED] == 1

    @method
    def begin(self):
        """Count a start."""
        self.state[UNDER_WAY] += 1
        if self.state[UNDER_WAY] > self.limit:
            self.state[IS_BLOCKED] = 1

    @method
    def end(self):
        """Count an end."""
        self.state[UNDER_WAY] -= 1
        if self.state[UNDER_WAY] < self.resume:
            self.state[IS_BLOCKED] = 0


@state_machine
class Entry(NamedTuple):
    """Chooses the way of each job, allocates its lines and locks them."""

    mode: int
    promotion: int
    cutoff: SequentialCutoff
    nhit: Nhit
    cleaner: Cleaner
    backfills: Backfills

    @method
    def route(self, job, requests):
        """Choose the way of a job."""
        lines = self.cleaner.transfers.lines
        jobs = lines.jobs
        is_read = jobs.op[job] == READ
        pages = requests.pages[jobs.request[job]]
        if pages > lines.capacity or self.mode == PT:
            self.bypass(job, BYPASS, NO_CACHE, requests)
        elif self.cuts_off(job, pages):
            jobs.is_cut[job] = 1
            self.bypass(job, BYPASS, SEQUENTIAL, requests)
        elif is_read and self.mode == WO:
            jobs.way[job] = OVERLAY
        elif is_read and self.backfills.are_blocked():
            self.bypass(job, MISS, BUSY, requests)
        elif not is_read and self.mode == WA:
            jobs.way[job] = UPDATE
        elif not is_read and self.mode == WI:
            jobs.way[job] = INVALIDATE
        else:
            jobs.way[job] = INSERT

    @method
    def cuts_off(self, job, pages):
        """Record a request's place; return whether it belongs to a stream to be cut off."""
        cutoff, lines = self.cutoff, self.cleaner.transfers.lines
        if cutoff.policy == NEVER:
            return False
        op = 0 if lines.jobs.op[job] == READ else 1
        is_long = cutoff.is_long(op, lines.jobs.offset[job], lines.jobs.length[job])
        is_full = lines.state[FREE] <= cutoff.margin_lines + pages
        return is_long and (is_full or cutoff.policy == ALWAYS)

    @method
    def bypass(self, job, path, reason, requests):
        """Make a job bypass the cache; set the reason of a READ."""
        jobs = self.cleaner.transfers.lines.jobs
        if jobs.op[job] == READ:
            jobs.way[job] = PASS
            requests.path[jobs.request[job]] = path
            requests.reason[jobs.request[job]] = reason
        else:
            jobs.way[job] = INVALIDATE

    # Start.

    @method
    def is_fast(self, job):
        """Return whether a job does not need the thread of its queue to start.

        In write-back and write-only a READ of valid sectors and a WRITE to lines that are there.
        """
        lines = self.cleaner.transfers.lines
        jobs = lines.jobs
        is_here = jobs.way[job] == INSERT or jobs.way[job] == OVERLAY
        if not is_here or (self.mode != WB and self.mode != WO):
            return False
        offset = jobs.offset[job]
        end = offset + jobs.length[job]
        for core_line in range(offset // lines.line_bytes, (end - 1) // lines.line_bytes + 1):
            line = lines.table.find(core_line)
            if line == NOTHING:
                return False
            start = lines.start(core_line, offset)
            stop = lines.end(core_line, end)
            if jobs.op[job] == READ and not lines.valid.has_all(line, start, stop):
                return False
        return True

    @method
    def begin(self, now, job, requests, below):
        """Look up the core lines of a job, allocate lines if needed, and lock them."""
        lines = self.cleaner.transfers.lines
        jobs = lines.jobs
        offset = jobs.offset[job]
        end = offset + jobs.length[job]
        missing = 0
        is_hit = True
        is_dirty = True
        for core_line in range(offset // lines.line_bytes, (end - 1) // lines.line_bytes + 1):
            line = lines.look_up(core_line)
            jobs.add_need(job, core_line, line)
            if line == NOTHING:
                missing += 1
                is_hit = is_dirty = False
                continue
            start = lines.start(core_line, offset)
            stop = lines.end(core_line, end)
            is_hit = is_hit and lines.valid.has_all(line, start, stop)
            is_dirty = is_dirty and lines.dirty.has_all(line, start, stop)
        is_read = jobs.op[job] == READ
        if is_read and is_dirty and jobs.is_cut[job] == 1:
            jobs.way[job] = INSERT
        elif jobs.way[job] == UPDATE:
            jobs.way[job] = INSERT if is_hit else INVALIDATE
        if missing > 0 and jobs.way[job] == INSERT:
            self.find_lines(now, job, missing, requests, below)
        way = jobs.way[job]
        shares = way == PASS or way == OVERLAY or (is_read and is_hit)
        jobs.ask(job, SHARED if shares else EXCLUSIVE)

    @method
    def find_lines(self, now, job, missing, requests, below):
        """Allocate lines for the core lines that have none, or make the job bypass the cache."""
        lines = self.cleaner.transfers.lines
        is_new = missing == requests.pages[lines.jobs.request[job]]
        if is_new and self.is_refused(job):
            self.bypass(job, MISS, NOT_HOT, requests)
        elif self.take_lines(job):
            self.hold_lines(job)
        else:
            self.cleaner.make_room(now, lines.jobs.thread[job], below)
            self.bypass(job, MISS, BUSY, requests)

    @method
    def is_refused(self, job):
        """Return whether promotion refuses a job because of too few misses."""
        lines = self.cleaner.transfers.lines
        if (
            self.promotion != NHIT
            or lines.capacity - lines.state[FREE] < self.nhit.trigger_threshold_lines
        ):
            return False
        needs = lines.jobs.needs
        is_refused = False
        need = lines.jobs.first_need[job]
        while need != NOTHING:
            if not self.nhit.passes(needs.core_line[need]):
                is_refused = True
            need = needs.following[need]
        return is_refused

    @method
    def take_lines(self, job):
        """Allocate lines for core lines that have none; return whether there are enough."""
        lines = self.cleaner.transfers.lines
        needs = lines.jobs.needs
        need = lines.jobs.first_need[job]
        first = needs.core_line[need]
        end = needs.core_line[lines.jobs.last_need[job]] + 1
        last = NOTHING
        last_free = NOTHING
        while need != NOTHING:
            if needs.is_there[need] == 0:
                line = last_free = lines.take_free(last_free)
                if line == NOTHING:
                    line = last = lines.take_held(last, first, end)
                if line == NOTHING:
                    self.give_lines(job)
                    return False
                needs.line[need] = line
            need = needs.following[need]
        return True

    @method
    def give_lines(self, job):
        """Free the lines that were allocated for a job."""
        lines = self.cleaner.transfers.lines
        needs = lines.jobs.needs
        need = lines.jobs.first_need[job]
        while need != NOTHING:
            if needs.is_there[need] == 0 and needs.line[need] != NOTHING:
                lines.give_free(needs.line[need])
                needs.line[need] = NOTHING
            need = needs.following[need]

    @method
    def hold_lines(self, job):
        """Assign the lines allocated for a job to their core lines."""
        lines = self.cleaner.transfers.lines
        needs = lines.jobs.needs
        need = lines.jobs.first_need[job]
        while need != NOTHING:
            if needs.is_there[need] == 0:
                lines.hold(needs.line[need], needs.core_line[need])
                needs.is_there[need] = 1
            if self.promotion == NHIT:
                self.nhit.forget(needs.core_line[need])
            need = needs.following[need]
