"""The processing of requests in Open CAS (DESIGN.md 2.13.1)."""

from __future__ import annotations

from typing import NamedTuple

from hybridsim.caches.opencas.entry import Entry
from hybridsim.caches.opencas.jobs import SHARED
from hybridsim.caches.opencas.threads import BEGINS, LOW
from hybridsim.caches.opencas.ways import (
    BACKFILLS,
    DEFERRED,
    ENDS,
    FULL_MISSES,
    HITS,
    INSERT,
    INVALIDATE,
    IS_OVERWRITTEN,
    IS_WRITTEN_BACK,
    OF_EXPORTED,
    OF_WRITES,
    OVERLAY,
    OVERLAYS,
    PARTIAL_MISSES,
    PASS,
    PASS_THROUGH,
    TOTAL,
)
from hybridsim.foundation.codes import CasMode, Op, Path, Reason
from hybridsim.jit import method, state_machine

NOTHING = -1
READ = int(Op.READ)
WB, WO = int(CasMode.WB), int(CasMode.WO)
HIT, MISS = int(Path.HIT), int(Path.MISS)
NONE, BUSY = int(Reason.NONE), int(Reason.BUSY)


@state_machine
class Paths(NamedTuple):
    """Processes a job that has its lines."""

    entry: Entry

    @method
    def start(self, now, job, requests, below):
        """Choose the way of a request, and start it, or let it wait for the thread of its queue."""
        self.entry.route(job, requests)
        transfers = self.entry.cleaner.transfers
        jobs, threads = transfers.lines.jobs, transfers.threads
        if threads.is_busy(jobs.thread[job]) and not self.entry.is_fast(job):
            threads.put(jobs, job, BEGINS, LOW)
        else:
            self.begin(now, job, requests, below)

    @method
    def begin(self, now, job, requests, below):
        """Start a job whose way is chosen."""
        self.entry.begin(now, job, requests, below)
        self.proceed(now, job, requests, below)

    @method
    def proceed(self, now, job, requests, below):
        """Process a job, restarting it as often as needed, until it waits for something."""
        jobs = self.entry.cleaner.transfers.lines.jobs
        while jobs.waits[job] == 0 and not self.go(now, job, requests, below):
            self.entry.begin(now, job, requests, below)

    # Processing.

    @method
    def go(self, now, job, requests, below):
        """Process a job that has all its locks; return False if it must restart."""
        jobs = self.entry.cleaner.transfers.lines.jobs
        is_there, is_hit, some = self.look_again(job)
        way = jobs.way[job]
        is_read = jobs.op[job] == READ
        if way == INSERT:
            shared_miss = is_read and not is_hit and jobs.lock[job] == SHARED
            if shared_miss or not is_there:
                jobs.give_back(now, job, below.events)
                jobs.is_cut[job] = 0
                self.entry.bypass(job, MISS, BUSY, requests)
                return False
        if is_read and (way == PASS or (way == INSERT and not is_hit)):
            if self.entry.cleaner.clean(now, job, below):
                return True
        self.count_request(job, is_hit, some)
        if not is_read:
            self.write(now, job, below)
        elif is_hit and way != PASS:
            slot = jobs.request[job]
            requests.path[slot] = HIT
            requests.reason[slot] = NONE
            requests.pages_hit[slot] = requests.pages[slot]
            jobs.step[job] = ENDS
            self.entry.cleaner.transfers.places(now, job, READ, below)
        else:
            self.read_missing(now, job, requests, below)
        return True

    @method
    def look_again(self, job):
        """Return whether a job has all its lines, whether all sectors are valid, and any is."""
        lines = self.entry.cleaner.transfers.lines
        needs = lines.jobs.needs
        offset = lines.jobs.offset[job]
        end = offset + lines.jobs.length[job]
        is_there, is_hit, some = True, True, False
        need = lines.jobs.first_need[job]
        while need != NOTHING:
            line = needs.line[need]
            core_line = needs.core_line[need]
            if needs.is_there[need] == 1 and lines.holds(line, core_line):
                start = lines.start(core_line, offset)
                stop = lines.end(core_line, end)
                is_hit = is_hit and lines.valid.has_all(line, start, stop)
                some = some or lines.valid.has_any(line, start, stop)
            else:
                needs.is_there[need] = 0
                is_there = is_hit = False
            need = needs.following[need]
        return is_there, is_hit, some

    @method
    def read_missing(self, now, job, requests, below):
        """Read from the core."""
        transfers = self.entry.cleaner.transfers
        jobs = transfers.lines.jobs
        if jobs.way[job] == PASS:
            jobs.step[job] = ENDS
        else:
            self.set_reason(job, requests)
            jobs.step[job] = OVERLAYS
        if jobs.way[job] == INSERT:
            jobs.step[job] = BACKFILLS
            self.make_valid(job)
            self.entry.backfills.begin()
        transfers.range_to_origin(now, job, READ, below)

    @method
    def set_reason(self, job, requests):
        """Set why a READ is a miss, and, if it is overlaid, how much of it is in the cache."""
        lines = self.entry.cleaner.transfers.lines
        needs = lines.jobs.needs
        slot = lines.jobs.request[job]
        offset = lines.jobs.offset[job]
        end = offset + lines.jobs.length[job]
        requests.path[slot] = MISS
        reason = NONE
        need = lines.jobs.first_need[job]
        while need != NOTHING:
            core_line = needs.core_line[need]
            line = needs.line[need] if needs.is_there[need] == 1 else NOTHING
            start = lines.start(core_line, offset)
            if line != NOTHING and lines.valid.has_all(line, start, lines.end(core_line, end)):
                requests.pages_hit[slot] += lines.jobs.way[job] == OVERLAY
            elif reason == NONE:
                reason = lines.why_missing(line, core_line)
            need = needs.following[need]
        requests.reason[slot] = reason

    @method
    def make_valid(self, job):
        """Make all sectors of a job valid; mark the lines in which they were, for a backfill."""
        lines = self.entry.cleaner.transfers.lines
        needs = lines.jobs.needs
        offset = lines.jobs.offset[job]
        end = offset + lines.jobs.length[job]
        need = lines.jobs.first_need[job]
        while need != NOTHING:
            core_line = needs.core_line[need]
            line = needs.line[need]
            start, stop = lines.start(core_line, offset), lines.end(core_line, end)
            needs.is_marked[need] = lines.valid.has_all(line, start, stop)
            lines.valid.set(line, start, stop)
            need = needs.following[need]

    @method
    def write(self, now, job, below):
        """Write to cache, core or both."""
        transfers = self.entry.cleaner.transfers
        jobs = transfers.lines.jobs
        op = jobs.op[job]
        if jobs.way[job] == INVALIDATE:
            jobs.step[job] = IS_OVERWRITTEN
            transfers.range_to_origin(now, job, op, below)
            return
        self.make_valid(job)
        transfers.places(now, job, op, below)
        if self.entry.mode == WB or self.entry.mode == WO:
            jobs.step[job] = IS_WRITTEN_BACK
        else:
            jobs.step[job] = ENDS
            transfers.range_to_origin(now, job, op, below)

    @method
    def count_request(self, job, is_hit, some):
        """Count a request as casadm does; `some`: some of its sectors are valid."""
        transfers = self.entry.cleaner.transfers
        jobs, counts = transfers.lines.jobs, transfers.counts
        write = 0 if jobs.op[job] == READ else 1
        transfers.bytes_moved[OF_EXPORTED + write] += jobs.length[job]
        way = jobs.way[job]
        if way == PASS or way == INVALIDATE:
            counts[PASS_THROUGH + write] += 1
            return
        what = FULL_MISSES
        if is_hit:
            what = HITS if jobs.has_waited[job] == 0 else DEFERRED
        elif some:
            what = PARTIAL_MISSES
        counts[OF_WRITES * write + what] += 1
        counts[OF_WRITES * write + TOTAL] += 1

    # Completed parts.

    @method
    def written_back(self, now, job, below):
        """Mark the written sectors as dirty."""
        lines = self.entry.cleaner.transfers.lines
        needs = lines.jobs.needs
        offset = lines.jobs.offset[job]
        upto = offset + lines.jobs.length[job]
        need = lines.jobs.first_need[job]
        while need != NOTHING:
            line = needs.line[need]
            start = lines.start(needs.core_line[need], offset)
            end = lines.end(needs.core_line[need], upto)
            needs.is_marked[need] = not lines.dirty.has_all(line, start, end)
            lines.make_dirty(now, line, start, end, below.events)
            need = needs.following[need]
        self.entry.cleaner.transfers.metadata(now, job, lines.jobs.op[job], below)

    @method
    def overwritten(self, now, job, below):
        """Invalidate the sectors that were written to the core."""
        lines = self.entry.cleaner.transfers.lines
        needs = lines.jobs.needs
        offset = lines.jobs.offset[job]
        upto = offset + lines.jobs.length[job]
        need = lines.jobs.first_need[job]
        while need != NOTHING:
            needs.is_marked[need] = 0
            if needs.is_there[need] == 1:
                line = needs.line[need]
                start = lines.start(needs.core_line[need], offset)
                end = lines.end(needs.core_line[need], upto)
                needs.is_marked[need] = lines.dirty.has_any(line, start, end)
                lines.invalidate(line, start, end)
            need = needs.following[need]
        self.entry.cleaner.transfers.metadata(now, job, lines.jobs.op[job], below)
