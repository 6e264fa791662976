"""Open CAS: lines with sectors; missed data is inserted unless a policy refuses it.

A request that misses is read from the core as a whole and written to the cache after it is
complete.  Writes go to both (write-through), to the cache only (write-back), or around it.
Details: DESIGN.md 2.13.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.opencas.bits import WORD_BITS
from hybridsim.caches.opencas.cleaner import LAST_IO_NS, ROOM_LINES, Cleaner
from hybridsim.caches.opencas.dirt import DIRTY, Dirt
from hybridsim.caches.opencas.entry import Backfills, Entry
from hybridsim.caches.opencas.jobs import CLEANER, LET_IN, RESUME, THREAD, Jobs
from hybridsim.caches.opencas.lines import EVICTIONS, FREE, SECTOR_SHIFT, Lines
from hybridsim.caches.opencas.paths import Paths
from hybridsim.caches.opencas.policies import Nhit, SequentialCutoff
from hybridsim.caches.opencas.threads import (
    BEGINS,
    GOES_ON,
    HIGH,
    LOW,
    PROCEEDS,
    REQUESTS,
    STARTS,
    STORES,
    Threads,
)
from hybridsim.caches.opencas.transfers import PAGE_BYTES, Transfers, lines_per_page
from hybridsim.caches.opencas.ways import (
    BACKFILLS,
    BY_THREAD,
    BYTES,
    CLEAN,
    CLEAN_READ,
    COUNTERS,
    DISCARDING,
    ENDS,
    FLUSHING,
    INSERT,
    IS_BACKFILLED,
    IS_DISCARDED,
    IS_NOTED,
    IS_OVERWRITTEN,
    IS_WRITTEN_BACK,
    MAKE_ROOM,
    OVERLAYS,
    ROUTES,
)
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.cache_parameters import OpenCasParameters
from hybridsim.foundation.codes import (
    FUA,
    PREFLUSH,
    CasMode,
    Cleaning,
    Op,
    Path,
    Promotion,
    Reason,
    Restart,
)
from hybridsim.jit import method, state_machine

NOTHING = -1
SECTOR_BYTES = 512
SECOND_NS = 1_000_000_000

READ, WRITE, DISCARD, FLUSH = int(Op.READ), int(Op.WRITE), int(Op.DISCARD), int(Op.FLUSH)
BYPASS = int(Path.BYPASS)
WRITTEN, FLUSHED, DISCARDED = int(Reason.WRITE), int(Reason.FLUSH), int(Reason.DISCARD)


def metadata_bytes(lines: int, line_bytes: int) -> int:
    """Return the bytes that the metadata of `lines` lines takes on the cache device."""
    return -(-lines // lines_per_page(line_bytes)) * PAGE_BYTES


@state_machine
class OpenCas(NamedTuple):
    """Makes jobs of requests; `paths` processes them."""

    page_bytes: int  # of a line
    paths: Paths

    @classmethod
    def new(cls, parameters: OpenCasParameters, origin_bytes: int, room: int = 256) -> OpenCas:
        """Return an empty cache, with initial room for `room` jobs."""
        p = parameters
        dirt = Dirt.new(p, origin_bytes)
        held = Lines.new(p.lines, p.line_bytes, origin_bytes, dirt, Jobs.new(p.lines, room))
        counted = 2 * p.lines if p.promotion == Promotion.NHIT else 1
        cutoff = (int(p.sequential_cutoff_policy), p.sequential_cutoff_bytes, p.margin_lines)
        entry = Entry(
            int(p.mode),
            int(p.promotion),
            SequentialCutoff.new(*cutoff),
            Nhit.new(p.insertion_threshold, p.trigger_threshold_lines, counted),
            Cleaner.new(Transfers.new(held, p.queues)),
            Backfills.new(p.backfills_max, p.backfills_resume),
        )
        return cls(p.line_bytes, Paths(entry))

    @property
    def lines(self) -> Lines:
        """The lines of the cache."""
        return self.paths.entry.cleaner.transfers.lines

    def size(self) -> int:
        """Return the number of jobs there is room for."""
        return self.lines.jobs.size()

    def demand(self, longest_bytes: int) -> int:
        """Return the maximum number of parts in one step: of a request or of cleaning."""
        runs = max(self.page_bytes // SECTOR_BYTES // 2, 1)
        parts = longest_bytes // self.page_bytes + 2
        if self.paths.entry.mode in (CasMode.WB, CasMode.WO):
            parts += runs * (parts + ROOM_LINES)
            if self.lines.dirt.policy != Cleaning.NOP:
                parts += runs * self.lines.dirt.flush_max_buffers
        return parts + 3 + int(self.paths.entry.cleaner.transfers.threads.number)

    def grown(self, room: int) -> OpenCas:
        """Return the same cache with room for `room` jobs."""
        entry = self.paths.entry
        lines = self.lines._replace(jobs=self.lines.jobs.grown(room))
        transfers = entry.cleaner.transfers._replace(lines=lines)
        entry = entry._replace(cleaner=entry.cleaner._replace(transfers=transfers))
        return self._replace(paths=self.paths._replace(entry=entry))

    def totals(self) -> dict[str, int]:
        """Return the counters so far by name, as `casadm --stats` prints them."""
        lines, transfers = self.lines, self.paths.entry.cleaner.transfers
        counts = dict(zip(COUNTERS, transfers.counts.tolist(), strict=True))
        moved = {
            name: number // PAGE_BYTES
            for name, number in zip(BYTES, transfers.bytes_moved.tolist(), strict=True)
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
        entry, old = self.paths.entry, self.lines
        jobs = Jobs.new(old.capacity, old.jobs.size())
        if how == Restart.UNCLEAN:
            lines = old.recovered(now_ns, old.dirt.emptied(), jobs)
        else:
            lines = old.restarted(old.dirt.restarted(), jobs)
        queues = int(entry.cleaner.transfers.threads.number)
        moved = entry.cleaner.transfers._replace(lines=lines, threads=Threads.new(queues))
        cleaner = Cleaner.new(moved)
        cleaner.state[LAST_IO_NS] = now_ns
        entry = entry._replace(
            cutoff=entry.cutoff.forgotten(),
            nhit=entry.nhit.forgotten(),
            cleaner=cleaner,
            backfills=Backfills.new(entry.backfills.limit, entry.backfills.resume),
        )
        return self._replace(paths=self.paths._replace(entry=entry))

    def resume(self, now_ns: int, below: Any) -> None:
        """Run the cleaner, if anything is dirty."""
        self.lines.dirt.resume(now_ns, below.events)

    @method
    def room(self):
        """Return how many more parts can be made."""
        return self.paths.entry.cleaner.transfers.lines.jobs.room()

    @method
    def submit(self, now, slot, requests, below):
        """Take a request from the host."""
        transfers = self.paths.entry.cleaner.transfers
        jobs = transfers.lines.jobs
        op = requests.op[slot]
        offset = requests.offset[slot]
        length = requests.length[slot]
        job = jobs.take(slot, INSERT)
        jobs.thread[job] = transfers.threads.next(REQUESTS)
        requests.path[slot] = BYPASS
        if op == FLUSH or length == 0:
            requests.reason[slot] = FLUSHED
            jobs.way[job] = FLUSHING
            jobs.step[job] = ENDS
            self.flush(now, job, below)
            return
        if op == DISCARD:
            requests.reason[slot] = DISCARDED
            jobs.way[job] = DISCARDING
            jobs.step[job] = IS_DISCARDED
            jobs.pending[job] = 1
            below.slow.submit(now, job, DISCARD, offset, length, below.events)
            return
        self.paths.entry.cleaner.state[LAST_IO_NS] = now
        self.take_sectors(job, offset, length)
        offset = jobs.offset[job]
        end = offset + jobs.length[job]
        requests.pages[slot] = (end - 1) // self.page_bytes - offset // self.page_bytes + 1
        requests.reason[slot] = WRITTEN
        jobs.op[job] = op | (requests.flags[slot] & FUA) if op == WRITE else op
        if op == WRITE and requests.flags[slot] & PREFLUSH != 0:
            jobs.step[job] = ROUTES
            self.flush(now, job, below)
        else:
            self.paths.start(now, job, requests, below)

    @method
    def flush(self, now, job, below):
        """Flush both tiers for a job, once the thread of its queue has time."""
        transfers = self.paths.entry.cleaner.transfers
        jobs, threads = transfers.lines.jobs, transfers.threads
        if threads.is_busy(jobs.thread[job]):
            threads.put(jobs, job, STARTS, LOW)
        else:
            transfers.flush(now, job, below)

    @method
    def take_sectors(self, job, offset, length):
        """Set the range of a job: the sectors that a request touches."""
        jobs = self.paths.entry.cleaner.transfers.lines.jobs
        first = offset >> SECTOR_SHIFT
        end = (offset + length + SECTOR_BYTES - 1) >> SECTOR_SHIFT
        jobs.offset[job] = first << SECTOR_SHIFT
        jobs.length[job] = (end - first) << SECTOR_SHIFT

    @method
    def complete(self, now, tag, requests, below):
        """Take a tier's completion; return the slot of a request that is complete, or -1."""
        jobs = self.paths.entry.cleaner.transfers.lines.jobs
        jobs.pending[tag] -= 1
        if jobs.pending[tag] > 0:
            return NOTHING
        return self.parts_done(now, tag, requests, below)

    @method
    def parts_done(self, now, job, requests, below):
        """Take the next step of a job, or let it wait for the thread of its queue."""
        transfers = self.paths.entry.cleaner.transfers
        jobs, threads = transfers.lines.jobs, transfers.threads
        if jobs.step[job] >= BY_THREAD and threads.is_busy(jobs.thread[job]):
            threads.put(jobs, job, GOES_ON, HIGH)
            return NOTHING
        return self.go_on(now, job, requests, below)

    @method
    def go_on(self, now, job, requests, below):
        """Take the next step of a job; return the slot of a request that is complete, or -1."""
        paths = self.paths
        jobs = paths.entry.cleaner.transfers.lines.jobs
        step = jobs.step[job]
        if step == ENDS or step == IS_NOTED:
            return self.end(now, job, below.events)
        if step == BACKFILLS:
            slot = jobs.request[job]
            requests.promoted[slot] = job
            return slot
        if step == IS_BACKFILLED:
            paths.entry.backfills.end()
            self.end(now, job, below.events)
            return NOTHING
        if step == ROUTES:
            paths.start(now, job, requests, below)
            return NOTHING
        if step >= CLEAN_READ:
            if paths.entry.cleaner.go_on(now, job, below):
                self.cleaned(now, job, requests, below)
            return NOTHING
        jobs.step[job] = ENDS if step == OVERLAYS or step == IS_DISCARDED else IS_NOTED
        if step == IS_WRITTEN_BACK:
            paths.written_back(now, job, below)
        elif step == IS_OVERWRITTEN:
            paths.overwritten(now, job, below)
        elif step == OVERLAYS:
            paths.entry.cleaner.transfers.overlay(now, job, below)
        elif step == IS_DISCARDED:
            slot = jobs.request[job]
            self.discard(requests.offset[slot], requests.length[slot])
        if jobs.pending[job] > 0:
            return NOTHING
        return self.end(now, job, below.events)

    @method
    def end(self, now, job, events):
        """Release a job and its locks; return the slot of its request."""
        jobs = self.paths.entry.cleaner.transfers.lines.jobs
        jobs.give_back(now, job, events)
        jobs.release(job)
        return jobs.request[job]

    @method
    def cleaned(self, now, job, requests, below):
        """Continue a job whose lines are clean."""
        way = self.paths.entry.cleaner.transfers.lines.jobs.way[job]
        if way == MAKE_ROOM or way == CLEAN:
            self.paths.entry.cleaner.end_batch(now, job, below)
        else:
            self.paths.proceed(now, job, requests, below)

    @method
    def discard(self, offset, length):
        """Drop the sectors that lie completely in a range, except in lines in use."""
        lines = self.paths.entry.cleaner.transfers.lines
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
        lines = self.paths.entry.cleaner.transfers.lines
        if not lines.jobs.is_in_use(line):
            lines.invalidate(line, lines.start(core_line, offset), lines.end(core_line, end))

    @method
    def finished(self, now, slot, requests, below):
        """Write the data of a completed read to the cache."""
        job = requests.promoted[slot]
        if job != NOTHING:
            transfers = self.paths.entry.cleaner.transfers
            jobs, threads = transfers.lines.jobs, transfers.threads
            jobs.step[job] = IS_BACKFILLED
            if threads.is_busy(jobs.thread[job]):
                threads.put(jobs, job, STORES, HIGH)
            else:
                transfers.missing_places(now, job, below)

    @method
    def wake(self, now, number, requests, below):
        """Run an event of the cache; return the slot of a request that is complete, or -1."""
        transfers = self.paths.entry.cleaner.transfers
        jobs, threads = transfers.lines.jobs, transfers.threads
        if number == CLEANER:
            self.paths.entry.cleaner.run_cleaner(now, below)
            return NOTHING
        if number == LET_IN:
            return self.wake_thread(now, requests, below)
        if number == RESUME:
            job = jobs.dequeue()
            if threads.is_busy(jobs.thread[job]):
                threads.put(jobs, job, PROCEEDS, HIGH)
            else:
                self.paths.proceed(now, job, requests, below)
            jobs.queue_on(now, below.events)
            return NOTHING
        thread = number - THREAD
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
        transfers = self.paths.entry.cleaner.transfers
        todo = transfers.lines.jobs.todo[job]
        if todo == STARTS:
            transfers.flush(now, job, below)
        elif todo == BEGINS:
            self.paths.begin(now, job, requests, below)
        elif todo == PROCEEDS:
            self.paths.proceed(now, job, requests, below)
        elif todo == STORES:
            transfers.missing_places(now, job, below)
        else:
            return self.go_on(now, job, requests, below)
        return NOTHING

    @method
    def wake_thread(self, now, requests, below):
        """Go on with the thread that has slept for longest: its request was let in."""
        transfers = self.paths.entry.cleaner.transfers
        jobs, threads = transfers.lines.jobs, transfers.threads
        thread = threads.wake_first()
        job, slot = threads.job[thread], NOTHING
        if job != NOTHING:
            jobs.pending[job] -= 1
            transfers.write_from(now, job, threads.need[thread], threads.sector[thread], below)
            if jobs.pending[job] == 0:
                slot = self.parts_done(now, job, requests, below)
        threads.call(now, thread, below.events)
        return slot
