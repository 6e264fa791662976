"""Open CAS: lines with sectors; missed data is inserted unless a policy refuses it.

A request that misses is read from the core as a whole and written to the cache after it is
complete.  Writes go to both (write-through), to the cache only (write-back), or around it.
Details: DESIGN.md 2.13.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.opencas import ways
from hybridsim.caches.opencas.jobs import EXCLUSIVE, HIGH, LOW, REQUESTS, SHARED, Jobs, Threads
from hybridsim.caches.opencas.lines import (
    DIRTY,
    EVICTIONS,
    FREE,
    SECTOR_SHIFT,
    WORD_BITS,
    Dirt,
    Lines,
)
from hybridsim.caches.opencas.policies import Nhit, SequentialCutoff
from hybridsim.caches.opencas.transfers import (
    BACKFILLS,
    IDLE,
    IS_BLOCKED,
    LAST_IO_NS,
    PAGE_BYTES,
    ROOM_LINES,
    clean,
    clean_on,
    end_batch,
    flush,
    lines_per_page,
    make_room,
    metadata,
    overlay,
    places,
    range_to_origin,
    run_cleaner,
    write_from,
)
from hybridsim.foundation.arrays import Ints, filled
from hybridsim.foundation.cache_parameters import OpenCasParameters
from hybridsim.foundation.codes import (
    FUA,
    PREFLUSH,
    CasMode,
    Cleaning,
    Cutoff,
    Op,
    Path,
    Promotion,
    Reason,
    Restart,
)
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.instructions import along
from hybridsim.jit.lists import NOTHING, give_back

SECTOR_BYTES = 512


def metadata_bytes(lines: int, line_bytes: int) -> int:
    """Return the bytes that the metadata of `lines` lines takes on the cache device."""
    return -(-lines // lines_per_page(line_bytes)) * PAGE_BYTES


@state_machine
class OpenCas(NamedTuple):
    """Makes jobs of requests: chooses the way of each, locks its lines, and processes it."""

    page_bytes: int  # of a line
    mode: int
    promotion: int
    cutoff: SequentialCutoff
    nhit: Nhit
    backfills_max: int  # misses being written to the cache; beyond it READs bypass
    backfills_resume: int  # until they are fewer than this
    lines: Lines
    threads: Threads
    lines_per_page: int
    counts: Ints  # COUNTERS
    bytes_moved: Ints  # BYTES
    state: Ints  # [LAST_IO_NS ... PIECES, BACKFILLS under way, IS_BLOCKED]

    @classmethod
    def new(cls, parameters: OpenCasParameters, origin_bytes: int, room: int = 256) -> OpenCas:
        """Return an empty cache, with initial room for `room` jobs."""
        p = parameters
        dirt = Dirt.new(p, origin_bytes)
        held = Lines.new(p.lines, p.line_bytes, origin_bytes, dirt, Jobs.new(p.lines, room))
        counted = 2 * p.lines if p.promotion == Promotion.NHIT else 1
        return filled(
            cls,
            len(ways.COUNTERS),
            p,
            page_bytes=p.line_bytes,
            cutoff=SequentialCutoff.new(p),
            nhit=Nhit.new(p, counted),
            lines=held,
            threads=Threads.new(p.queues),
            lines_per_page=lines_per_page(p.line_bytes),
            bytes_moved=np.zeros(len(ways.BYTES), np.int64),
            state=np.array(IDLE),
        )

    def size(self) -> int:
        """Return the number of jobs there is room for."""
        return len(self.lines.jobs.request)

    def demand(self, longest_bytes: int) -> int:
        """Return the maximum number of parts in one step: of a request or of cleaning."""
        runs = max(self.page_bytes // SECTOR_BYTES // 2, 1)
        parts = longest_bytes // self.page_bytes + 2
        if self.mode in (CasMode.WB, CasMode.WO):
            parts += runs * (parts + ROOM_LINES)
            if self.lines.dirt.policy != Cleaning.NOP:
                parts += runs * self.lines.dirt.flush_max_buffers
        return parts + 3 + int(self.threads.number)

    def grown(self, room: int) -> OpenCas:
        """Return the same cache with room for `room` jobs."""
        return self._replace(lines=self.lines._replace(jobs=self.lines.jobs.grown(room)))

    def totals(self) -> dict[str, int]:
        """Return the counters so far by name, as `casadm --stats` prints them."""
        lines = self.lines
        counts = dict(zip(ways.COUNTERS, self.counts.tolist(), strict=True))
        moved = {
            name: number // PAGE_BYTES
            for name, number in zip(ways.BYTES, self.bytes_moved.tolist(), strict=True)
        }
        serviced = counts["read_total"] + counts["write_total"]
        passed = counts["pass_through_reads"] + counts["pass_through_writes"]
        each = self.page_bytes // PAGE_BYTES
        free = int(lines.state[FREE])
        held, dirty = lines.capacity - free, int(lines.dirt.state[DIRTY])
        evictions = int(lines.state[EVICTIONS])
        return {
            "occupancy": held * each,
            "free": free * each,
            "clean": (held - dirty) * each,
            "dirty": dirty * each,
            **counts,
            "serviced_requests": serviced,
            "total_requests": serviced + passed,
            **moved,
            "pages_present": held,
            "evictions": evictions,
        }

    def dirty_bytes(self) -> int:
        """Return how much is dirty, in sectors."""
        return int(self.dirty_ranges()[:, 1].sum())

    def dirty_ranges(self) -> Ints:
        """Return the offset and the length of each dirty sector, one row each."""
        lines, each = self.lines, self.lines.dirty.words_per_line
        words = np.flatnonzero(lines.dirty.words)
        bits = lines.dirty.words[words, None] >> np.arange(WORD_BITS) & 1
        which, sector = np.nonzero(bits)
        word = words[which]
        first = lines.table.number[word // each] * self.page_bytes
        begin = np.sort(first + (word % each * WORD_BITS + sector) * SECTOR_BYTES)
        return np.stack([begin, np.full(len(begin), SECTOR_BYTES)], axis=1)

    # Restarts (DESIGN.md 2.17).

    def restarted(self, now_ns: int, how: Restart) -> OpenCas:
        """Return the cache as it is loaded: after a crash with nothing but what is dirty."""
        old = self.lines
        jobs = Jobs.new(old.capacity, self.size())
        if how == Restart.UNCLEAN:
            lines = old.recovered(now_ns, old.dirt.emptied(), jobs)
        else:
            lines = old.restarted(old.dirt.restarted(), jobs)
        state = np.array(IDLE)
        state[LAST_IO_NS] = now_ns
        return self._replace(
            cutoff=SequentialCutoff.new(self.cutoff),
            nhit=Nhit.new(self.nhit, len(self.nhit.misses)),
            lines=lines,
            threads=Threads.new(self.threads.number),
            state=state,
        )

    def resume(self, now_ns: int, below: Any) -> None:
        """Run the cleaner, if anything is dirty."""
        self.lines.dirt.resume(now_ns, below.events)

    @method
    def room(self):
        """Return how many more parts can be made."""
        return min(self.lines.jobs.free[1], self.lines.jobs.needs.free[1])

    @method
    def submit(self, now, slot, requests, below):
        """Take a request from the host."""
        jobs = self.lines.jobs
        op = requests.op[slot]
        offset = requests.offset[slot]
        length = requests.length[slot]
        job = jobs.take(slot, ways.INSERT)
        jobs.thread[job] = self.threads.next(REQUESTS)
        if op == Op.FLUSH or length == 0:
            jobs.way[job] = ways.FLUSHING
            jobs.step[job] = ways.ENDS
            self.flush(now, job, below)
            return
        if op == Op.DISCARD:
            jobs.way[job] = ways.DISCARDING
            jobs.step[job] = ways.IS_DISCARDED
            jobs.pending[job] = 1
            below.slow.submit(now, job, Op.DISCARD, offset, length, below.events)
            return
        self.state[LAST_IO_NS] = now
        end = (offset + length + SECTOR_BYTES - 1) >> SECTOR_SHIFT << SECTOR_SHIFT
        offset = offset >> SECTOR_SHIFT << SECTOR_SHIFT
        jobs.offset[job], jobs.length[job] = offset, end - offset
        requests.pages[slot] = (end - 1) // self.page_bytes - offset // self.page_bytes + 1
        jobs.op[job] = op | (requests.flags[slot] & FUA) if op == Op.WRITE else op
        if op == Op.WRITE and requests.flags[slot] & PREFLUSH != 0:
            jobs.step[job] = ways.ROUTES
            self.flush(now, job, below)
        else:
            self.start(now, job, requests, below)

    @method
    def flush(self, now, job, below):
        """Flush both tiers for a job, once the thread of its queue has time."""
        jobs, threads = self.lines.jobs, self.threads
        if not threads.defers(jobs, job, ways.STARTS, LOW):
            flush(self, now, job, below)

    # The start of a request (DESIGN.md 2.13.1).

    @method
    def start(self, now, job, requests, below):
        """Choose the way of a request, and start it, or let it wait for the thread of its queue."""
        self.route(job, requests)
        jobs, threads = self.lines.jobs, self.threads
        is_busy = threads.is_busy(jobs.thread[job])
        if not is_busy or self.is_fast(job) or not threads.defers(jobs, job, ways.BEGINS, LOW):
            self.begin(now, job, requests, below)

    @method
    def begin(self, now, job, requests, below):
        """Start a job whose way is chosen."""
        self.ask_for_lines(now, job, requests, below)
        self.proceed(now, job, requests, below)

    @method
    def proceed(self, now, job, requests, below):
        """Process a job, restarting it as often as needed, until it waits for something."""
        jobs = self.lines.jobs
        while jobs.waits[job] == 0 and not self.go(now, job, requests, below):
            self.ask_for_lines(now, job, requests, below)

    @method
    def route(self, job, requests):
        """Choose the way of a job."""
        lines = self.lines
        jobs = lines.jobs
        is_read = jobs.op[job] == Op.READ
        pages = requests.pages[jobs.request[job]]
        if pages > lines.capacity or self.mode == CasMode.PT:
            self.bypass(job, Path.BYPASS, Reason.NO_CACHE, requests)
        elif self.cuts_off(job, pages):
            jobs.is_cut[job] = 1
            self.bypass(job, Path.BYPASS, Reason.SEQUENTIAL, requests)
        elif is_read and self.mode == CasMode.WO:
            jobs.way[job] = ways.OVERLAY
        elif is_read and self.state[IS_BLOCKED] == 1:
            self.bypass(job, Path.MISS, Reason.BUSY, requests)
        elif not is_read and self.mode == CasMode.WA:
            jobs.way[job] = ways.UPDATE
        elif not is_read and self.mode == CasMode.WI:
            jobs.way[job] = ways.INVALIDATE
        else:
            jobs.way[job] = ways.INSERT

    @method
    def cuts_off(self, job, pages):
        """Record a request's place; return whether it belongs to a stream to be cut off."""
        cutoff, lines = self.cutoff, self.lines
        if cutoff.sequential_cutoff_policy == Cutoff.NEVER:
            return False
        op = 0 if lines.jobs.op[job] == Op.READ else 1
        is_long = cutoff.is_long(op, lines.jobs.offset[job], lines.jobs.length[job])
        is_full = lines.state[FREE] <= cutoff.margin_lines + pages
        return is_long and (is_full or cutoff.sequential_cutoff_policy == Cutoff.ALWAYS)

    @method
    def bypass(self, job, path, reason, requests):
        """Make a job bypass the cache; set the reason of a READ."""
        jobs = self.lines.jobs
        if jobs.op[job] == Op.READ:
            jobs.way[job] = ways.PASS
            requests.path[jobs.request[job]] = path
            requests.reason[jobs.request[job]] = reason
        else:
            jobs.way[job] = ways.INVALIDATE

    @method
    def is_fast(self, job):
        """Return whether a job does not need the thread of its queue to start.

        In write-back and write-only a READ of valid sectors and a WRITE to lines that are there.
        """
        lines = self.lines
        jobs = lines.jobs
        is_here = jobs.way[job] == ways.INSERT or jobs.way[job] == ways.OVERLAY
        if not is_here or (self.mode != CasMode.WB and self.mode != CasMode.WO):
            return False
        offset = jobs.offset[job]
        end = offset + jobs.length[job]
        for core_line in range(offset // lines.line_bytes, (end - 1) // lines.line_bytes + 1):
            line = lines.table.find(core_line)
            if line == NOTHING:
                return False
            start, stop = lines.sectors_of(job, core_line)
            if jobs.op[job] == Op.READ and not lines.valid.has_all(line, start, stop):
                return False
        return True

    @method
    def ask_for_lines(self, now, job, requests, below):
        """Look up the core lines of a job, allocate lines if needed, and lock them."""
        lines = self.lines
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
            start, stop = lines.sectors_of(job, core_line)
            is_hit = is_hit and lines.valid.has_all(line, start, stop)
            is_dirty = is_dirty and lines.dirty.has_all(line, start, stop)
        is_read = jobs.op[job] == Op.READ
        if is_read and is_dirty and jobs.is_cut[job] == 1:
            jobs.way[job] = ways.INSERT
        elif jobs.way[job] == ways.UPDATE:
            jobs.way[job] = ways.INSERT if is_hit else ways.INVALIDATE
        if missing > 0 and jobs.way[job] == ways.INSERT:
            self.find_lines(now, job, missing, requests, below)
        way = jobs.way[job]
        shares = way == ways.PASS or way == ways.OVERLAY or (is_read and is_hit)
        jobs.ask(job, SHARED if shares else EXCLUSIVE)

    @method
    def find_lines(self, now, job, missing, requests, below):
        """Allocate lines for the core lines that have none, or make the job bypass the cache."""
        lines = self.lines
        is_new = missing == requests.pages[lines.jobs.request[job]]
        if is_new and self.is_refused(job):
            self.bypass(job, Path.MISS, Reason.NOT_HOT, requests)
        elif self.take_lines(job):
            self.hold_lines(job)
        else:
            make_room(self, now, lines.jobs.thread[job], below)
            self.bypass(job, Path.MISS, Reason.BUSY, requests)

    @method
    def is_refused(self, job):
        """Return whether promotion refuses a job because of too few misses."""
        lines = self.lines
        if (
            self.promotion != Promotion.NHIT
            or lines.capacity - lines.state[FREE] < self.nhit.trigger_threshold_lines
        ):
            return False
        needs = lines.jobs.needs
        is_refused = False
        for need in along(lines.jobs.first_need[job], needs.following):
            if not self.nhit.passes(needs.core_line[need]):
                is_refused = True
        return is_refused

    @method
    def take_lines(self, job):
        """Allocate lines for core lines that have none; return whether there are enough."""
        lines = self.lines
        needs = lines.jobs.needs
        first = needs.core_line[lines.jobs.first_need[job]]
        end = needs.core_line[lines.jobs.last_need[job]] + 1
        last = NOTHING
        last_free = NOTHING
        for need in along(lines.jobs.first_need[job], needs.following):
            if needs.is_there[need] == 0:
                line = last_free = lines.take_free(last_free)
                if line == NOTHING:
                    line = last = lines.take_held(last, first, end)
                if line == NOTHING:
                    self.give_lines(job)
                    return False
                needs.line[need] = line
        return True

    @method
    def give_lines(self, job):
        """Free the lines that were allocated for a job."""
        lines = self.lines
        needs = lines.jobs.needs
        for need in along(lines.jobs.first_need[job], needs.following):
            if needs.is_there[need] == 0 and needs.line[need] != NOTHING:
                lines.give_free(needs.line[need])
                needs.line[need] = NOTHING

    @method
    def hold_lines(self, job):
        """Assign the lines allocated for a job to their core lines."""
        lines = self.lines
        needs = lines.jobs.needs
        for need in along(lines.jobs.first_need[job], needs.following):
            if needs.is_there[need] == 0:
                lines.hold(needs.line[need], needs.core_line[need])
                needs.is_there[need] = 1
            if self.promotion == Promotion.NHIT:
                self.nhit.forget(needs.core_line[need])

    # Processing.

    @method
    def go(self, now, job, requests, below):
        """Process a job that has all its locks; return False if it must restart."""
        jobs = self.lines.jobs
        is_there, is_hit, some = self.look_again(job)
        way = jobs.way[job]
        is_read = jobs.op[job] == Op.READ
        if way == ways.INSERT:
            shared_miss = is_read and not is_hit and jobs.lock[job] == SHARED
            if shared_miss or not is_there:
                jobs.give_back(now, job, below.events)
                jobs.is_cut[job] = 0
                self.bypass(job, Path.MISS, Reason.BUSY, requests)
                return False
        if is_read and (way == ways.PASS or (way == ways.INSERT and not is_hit)):
            if clean(self, now, job, below):
                return True
        self.count_request(job, is_hit, some)
        if not is_read:
            self.write(now, job, below)
        elif is_hit and way != ways.PASS:
            slot = jobs.request[job]
            requests.path[slot] = Path.HIT
            requests.reason[slot] = Reason.NONE
            requests.pages_hit[slot] = requests.pages[slot]
            jobs.step[job] = ways.ENDS
            places(self, now, job, Op.READ, False, below)
        else:
            self.read_missing(now, job, requests, below)
        return True

    @method
    def look_again(self, job):
        """Return whether a job has all its lines, whether all sectors are valid, and any is."""
        lines = self.lines
        needs = lines.jobs.needs
        is_there, is_hit, some = True, True, False
        for need in along(lines.jobs.first_need[job], needs.following):
            line = needs.line[need]
            core_line = needs.core_line[need]
            if needs.is_there[need] == 1 and lines.holds(line, core_line):
                start, stop = lines.sectors_of(job, core_line)
                is_hit = is_hit and lines.valid.has_all(line, start, stop)
                some = some or lines.valid.has_any(line, start, stop)
            else:
                needs.is_there[need] = 0
                is_there = is_hit = False
        return is_there, is_hit, some

    @method
    def read_missing(self, now, job, requests, below):
        """Read from the core."""
        jobs = self.lines.jobs
        if jobs.way[job] == ways.PASS:
            jobs.step[job] = ways.ENDS
        else:
            self.set_reason(job, requests)
            jobs.step[job] = ways.OVERLAYS
        if jobs.way[job] == ways.INSERT:
            jobs.step[job] = ways.BACKFILLS
            self.make_valid(job)
            self.state[BACKFILLS] += 1
            if self.state[BACKFILLS] > self.backfills_max:
                self.state[IS_BLOCKED] = 1
        range_to_origin(self, now, job, Op.READ, below)

    @method
    def set_reason(self, job, requests):
        """Set why a READ is a miss, and, if it is overlaid, how much of it is in the cache."""
        lines = self.lines
        needs = lines.jobs.needs
        slot = lines.jobs.request[job]
        requests.path[slot] = Path.MISS
        reason = Reason.NONE
        for need in along(lines.jobs.first_need[job], needs.following):
            core_line = needs.core_line[need]
            line = needs.line[need] if needs.is_there[need] == 1 else NOTHING
            start, stop = lines.sectors_of(job, core_line)
            if line != NOTHING and lines.valid.has_all(line, start, stop):
                requests.pages_hit[slot] += lines.jobs.way[job] == ways.OVERLAY
            elif reason == Reason.NONE:
                reason = lines.why_missing(line, core_line)
        requests.reason[slot] = reason

    @method
    def make_valid(self, job):
        """Make all sectors of a job valid; mark the lines in which they were, for a backfill."""
        lines = self.lines
        needs = lines.jobs.needs
        for need in along(lines.jobs.first_need[job], needs.following):
            line = needs.line[need]
            start, stop = lines.sectors_of(job, needs.core_line[need])
            needs.is_marked[need] = lines.valid.has_all(line, start, stop)
            lines.valid.set(line, start, stop)

    @method
    def write(self, now, job, below):
        """Write to cache, core or both."""
        jobs = self.lines.jobs
        op = jobs.op[job]
        if jobs.way[job] == ways.INVALIDATE:
            jobs.step[job] = ways.IS_OVERWRITTEN
            range_to_origin(self, now, job, op, below)
            return
        self.make_valid(job)
        places(self, now, job, op, False, below)
        if self.mode == CasMode.WB or self.mode == CasMode.WO:
            jobs.step[job] = ways.IS_WRITTEN_BACK
        else:
            jobs.step[job] = ways.ENDS
            range_to_origin(self, now, job, op, below)

    @method
    def count_request(self, job, is_hit, some):
        """Count a request as casadm does; `some`: some of its sectors are valid."""
        jobs, counts = self.lines.jobs, self.counts
        write = 0 if jobs.op[job] == Op.READ else 1
        self.bytes_moved[ways.OF_EXPORTED + write] += jobs.length[job]
        way = jobs.way[job]
        if way == ways.PASS or way == ways.INVALIDATE:
            counts[ways.PASS_THROUGH + write] += 1
            return
        what = ways.FULL_MISSES
        if is_hit:
            what = ways.HITS if jobs.has_waited[job] == 0 else ways.DEFERRED
        elif some:
            what = ways.PARTIAL_MISSES
        counts[ways.OF_WRITES * write + what] += 1
        counts[ways.OF_WRITES * write + ways.TOTAL] += 1

    # Completed parts.

    @method
    def complete(self, now, tag, requests, below):
        """Take a tier's completion; return the slot of a request that is complete, or -1."""
        jobs = self.lines.jobs
        jobs.pending[tag] -= 1
        if jobs.pending[tag] > 0:
            return NOTHING
        return self.parts_done(now, tag, requests, below)

    @method
    def parts_done(self, now, job, requests, below):
        """Take the next step of a job, or let it wait for the thread of its queue."""
        jobs, threads = self.lines.jobs, self.threads
        if jobs.step[job] >= ways.BY_THREAD and threads.defers(jobs, job, ways.GOES_ON, HIGH):
            return NOTHING
        return self.go_on(now, job, requests, below)

    @method
    def go_on(self, now, job, requests, below):
        """Take the next step of a job; return the slot of a request that is complete, or -1."""
        jobs = self.lines.jobs
        step = jobs.step[job]
        if step == ways.ENDS or step == ways.IS_NOTED:
            return self.end(now, job, below.events)
        if step == ways.BACKFILLS:
            slot = jobs.request[job]
            requests.promoted[slot] = job
            return slot
        if step == ways.IS_BACKFILLED:
            self.state[BACKFILLS] -= 1
            if self.state[BACKFILLS] < self.backfills_resume:
                self.state[IS_BLOCKED] = 0
            self.end(now, job, below.events)
            return NOTHING
        if step == ways.ROUTES:
            self.start(now, job, requests, below)
            return NOTHING
        if step >= ways.CLEAN_READ:
            if clean_on(self, now, job, below):
                if jobs.way[job] == ways.MAKE_ROOM or jobs.way[job] == ways.CLEAN:
                    end_batch(self, now, job, below)
                else:
                    self.proceed(now, job, requests, below)
            return NOTHING
        ends = step == ways.OVERLAYS or step == ways.IS_DISCARDED
        jobs.step[job] = ways.ENDS if ends else ways.IS_NOTED
        if step == ways.IS_WRITTEN_BACK:
            self.written_back(now, job, below)
        elif step == ways.IS_OVERWRITTEN:
            self.overwritten(now, job, below)
        elif step == ways.OVERLAYS:
            overlay(self, now, job, below)
        elif step == ways.IS_DISCARDED:
            slot = jobs.request[job]
            self.discard(requests.offset[slot], requests.length[slot])
        if jobs.pending[job] > 0:
            return NOTHING
        return self.end(now, job, below.events)

    @method
    def end(self, now, job, events):
        """Release a job and its locks; return the slot of its request."""
        jobs = self.lines.jobs
        jobs.give_back(now, job, events)
        give_back(jobs, job)
        return jobs.request[job]

    @method
    def written_back(self, now, job, below):
        """Mark the written sectors as dirty."""
        lines = self.lines
        needs = lines.jobs.needs
        for need in along(lines.jobs.first_need[job], needs.following):
            line = needs.line[need]
            start, end = lines.sectors_of(job, needs.core_line[need])
            needs.is_marked[need] = not lines.dirty.has_all(line, start, end)
            lines.make_dirty(now, line, start, end, below.events)
        metadata(self, now, job, lines.jobs.op[job], below)

    @method
    def overwritten(self, now, job, below):
        """Invalidate the sectors that were written to the core."""
        lines = self.lines
        needs = lines.jobs.needs
        for need in along(lines.jobs.first_need[job], needs.following):
            needs.is_marked[need] = 0
            if needs.is_there[need] == 1:
                line = needs.line[need]
                start, end = lines.sectors_of(job, needs.core_line[need])
                needs.is_marked[need] = lines.dirty.has_any(line, start, end)
                lines.invalidate(line, start, end)
        metadata(self, now, job, lines.jobs.op[job], below)

    @method
    def discard(self, offset, length):
        """Drop the sectors that lie completely in a range, except in lines in use."""
        lines = self.lines
        end = (offset + length) >> SECTOR_SHIFT << SECTOR_SHIFT
        offset = (offset + SECTOR_BYTES - 1) >> SECTOR_SHIFT << SECTOR_SHIFT
        first = offset // self.page_bytes
        last = (end - 1) // self.page_bytes
        if offset >= end:
            return
        if last - first >= lines.capacity:
            for line in range(lines.capacity):
                core_line = lines.table.number[line]
                if lines.lists.is_held(line) and first <= core_line <= last:
                    self.discard_line(line, core_line, offset, end)
            return
        for core_line in range(first, last + 1):
            line = lines.table.find(core_line)
            if line != NOTHING:
                self.discard_line(line, core_line, offset, end)

    @method
    def discard_line(self, line, core_line, offset, end):
        """Drop sectors of one line, unless it is in use."""
        lines = self.lines
        if not lines.jobs.is_in_use(line):
            start, stop = lines.sectors(core_line, offset, end)
            lines.invalidate(line, start, stop)

    @method
    def finished(self, now, slot, requests, below):
        """Write the data of a completed read to the cache."""
        job = requests.promoted[slot]
        if job != NOTHING:
            jobs, threads = self.lines.jobs, self.threads
            jobs.step[job] = ways.IS_BACKFILLED
            if not threads.defers(jobs, job, ways.STORES, HIGH):
                places(self, now, job, Op.WRITE, True, below)

    @method
    def wake(self, now, number, requests, below):
        """Run an event of the cache; return the slot of a request that is complete, or -1."""
        jobs, threads = self.lines.jobs, self.threads
        if number == ways.CLEANER:
            run_cleaner(self, now, below)
            return NOTHING
        if number == ways.LET_IN:
            return self.wake_thread(now, requests, below)
        if number == ways.RESUME:
            job = jobs.queue.pop(0, jobs.following)
            if not threads.defers(jobs, job, ways.PROCEEDS, HIGH):
                self.proceed(now, job, requests, below)
            if jobs.queue.is_empty(0):
                jobs.is_awake[0] = 0
            else:
                below.events.push(now, CACHE, ways.RESUME)
            return NOTHING
        thread = number - ways.THREAD
        threads.is_called[thread] = 0
        if threads.sleeps[thread] == 1:
            return NOTHING
        slot = self.carry_out(now, threads.take(jobs, thread), requests, below)
        threads.call(now, thread, below.events)
        return slot

    # Threads (DESIGN.md 2.13.6).

    @method
    def carry_out(self, now, job, requests, below):
        """Do for a job what waited for the thread."""
        todo = self.lines.jobs.todo[job]
        if todo == ways.STARTS:
            flush(self, now, job, below)
        elif todo == ways.BEGINS:
            self.begin(now, job, requests, below)
        elif todo == ways.PROCEEDS:
            self.proceed(now, job, requests, below)
        elif todo == ways.STORES:
            places(self, now, job, Op.WRITE, True, below)
        else:
            return self.go_on(now, job, requests, below)
        return NOTHING

    @method
    def wake_thread(self, now, requests, below):
        """Go on with the thread that has slept for longest: its request was let in."""
        jobs, threads = self.lines.jobs, self.threads
        thread = threads.wake_first()
        job, slot = threads.job[thread], NOTHING
        if job != NOTHING:
            jobs.pending[job] -= 1
            write_from(self, now, job, threads.need[thread], threads.sector[thread], below)
            if jobs.pending[job] == 0:
                slot = self.parts_done(now, job, requests, below)
        threads.call(now, thread, below.events)
        return slot
