"""The tier requests of Open CAS jobs (DESIGN.md 2.13.1)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.opencas.lines import SECTOR_SHIFT, Lines
from hybridsim.caches.opencas.threads import Threads
from hybridsim.caches.opencas.ways import (
    BYTES,
    CLEANED,
    COUNTERS,
    METADATA_WRITES,
    OF_CACHE,
    OF_ORIGIN,
)
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import OP_MASK, Op
from hybridsim.jit import method, state_machine

NOTHING = -1
PAGE_BYTES = 4096
READ, WRITE, FLUSH = int(Op.READ), int(Op.WRITE), int(Op.FLUSH)


def lines_per_page(line_bytes: int) -> int:
    """Return the number of lines whose metadata fits into a page.

    An estimate: 8 bytes for the core line, 2 for the core, 2 bits a sector.
    """
    return PAGE_BYTES // (10 + line_bytes // 2048)


@state_machine
class Transfers(NamedTuple):
    """Parts of jobs that are sent to the tiers."""

    lines: Lines
    threads: Threads
    lines_per_page: int
    counts: Ints  # COUNTERS
    bytes_moved: Ints  # BYTES

    @classmethod
    def new(cls, lines: Lines, queues: int) -> Transfers:
        """Return a structure with nothing in progress."""
        counts, moved = np.zeros(len(COUNTERS), np.int64), np.zeros(len(BYTES), np.int64)
        threads = Threads.new(queues)
        return cls(lines, threads, lines_per_page(lines.line_bytes), counts, moved)

    @method
    def to_origin(self, now, job, op, offset, length, below):
        """Read or write the core."""
        self.bytes_moved[OF_ORIGIN + (op & OP_MASK)] += length
        self.lines.jobs.pending[job] += 1
        below.slow.submit(now, job, op, offset, length, below.events)

    @method
    def to_cache(self, now, job, op, offset, length, below):
        """Read or write lines."""
        self.bytes_moved[OF_CACHE + (op & OP_MASK)] += length
        self.lines.jobs.pending[job] += 1
        below.fast.submit(now, job, op, offset, length, below.events)

    @method
    def flush(self, now, job, below):
        """Flush both tiers."""
        self.lines.jobs.pending[job] += 1
        self.flush_origin(now, job, below)
        below.fast.submit(now, job, FLUSH, 0, 0, below.events)

    @method
    def flush_origin(self, now, job, below):
        """Flush the core; the thread sleeps while that is held back."""
        self.lines.jobs.pending[job] += 1
        below.slow.submit_background(now, job, FLUSH, 0, 0, below.events)
        if below.slow.holds_back():
            self.threads.fall_asleep(self.lines.jobs.thread[job], NOTHING, NOTHING, 0)

    @method
    def flush_cache(self, now, job, below):
        """Flush the cache device."""
        self.lines.jobs.pending[job] += 1
        below.fast.submit(now, job, FLUSH, 0, 0, below.events)

    @method
    def range_to_origin(self, now, job, op, below):
        """Read or write the range of a job in the core."""
        jobs = self.lines.jobs
        self.to_origin(now, job, op, jobs.offset[job], jobs.length[job], below)

    @method
    def places(self, now, job, op, below):
        """Read or write the range of a job in its lines: each run of adjacent ones at once."""
        need = self.lines.jobs.first_need[job]
        while need != NOTHING:
            need = self.run(now, job, need, op, below)

    @method
    def missing_places(self, now, job, below):
        """Write the range of a job to its lines, but not runs that begin at a marked line.

        If all its lines are adjacent, it is written whole.
        """
        jobs = self.lines.jobs
        need = jobs.first_need[job]
        is_one = self.end_of_run(need) == NOTHING
        while need != NOTHING:
            if jobs.needs.is_marked[need] == 1 and not is_one:
                need = jobs.needs.following[need]
            else:
                need = self.run(now, job, need, WRITE, below)

    @method
    def run(self, now, job, need, op, below):
        """Read or write the lines from a need on that are adjacent; return the need after them."""
        jobs, line_bytes = self.lines.jobs, self.lines.line_bytes
        core_line, end = jobs.needs.core_line[need], self.end_of_run(need)
        begin = max(jobs.offset[job], core_line * line_bytes)
        upto = jobs.offset[job] + jobs.length[job]
        if end != NOTHING:
            upto = jobs.needs.core_line[end] * line_bytes
        at = jobs.needs.line[need] * line_bytes + begin - core_line * line_bytes
        self.to_cache(now, job, op, at, upto - begin, below)
        return end

    @method
    def end_of_run(self, need):
        """Return the first need whose line is not adjacent to the one before, or -1."""
        needs = self.lines.jobs.needs
        line = needs.line[need] + 1
        need = np.int64(needs.following[need])
        while need != NOTHING and needs.line[need] == line:
            line += 1
            need = np.int64(needs.following[need])
        return need

    @method
    def overlay(self, now, job, below):
        """Read the valid sectors of a job from its lines."""
        lines = self.lines
        jobs, needs = lines.jobs, lines.jobs.needs
        offset = jobs.offset[job]
        upto = offset + jobs.length[job]
        need = jobs.first_need[job]
        while need != NOTHING:
            if needs.is_there[need] == 1:
                line = needs.line[need]
                end = lines.end(needs.core_line[need], upto)
                at = lines.valid.first(line, 1, lines.start(needs.core_line[need], offset), end)
                while at < end:
                    stop = lines.valid.first(line, 0, at, end)
                    place = line * lines.line_bytes + (at << SECTOR_SHIFT)
                    self.to_cache(now, job, READ, place, (stop - at) << SECTOR_SHIFT, below)
                    at = lines.valid.first(line, 1, stop, end)
            need = needs.following[need]

    @method
    def metadata(self, now, job, op, below):
        """Write the metadata of the marked lines of a job."""
        first = self.next_page(job, NOTHING)
        start = self.lines.capacity * self.lines.line_bytes
        while first != NOTHING:
            end = first + 1
            following = self.next_page(job, first)
            while following == end:
                end += 1
                following = self.next_page(job, end - 1)
            self.counts[METADATA_WRITES] += 1
            self.lines.jobs.pending[job] += 1
            at = start + first * PAGE_BYTES
            below.fast.submit(now, job, op, at, (end - first) * PAGE_BYTES, below.events)
            first = following

    @method
    def next_page(self, job, after):
        """Return the first page after `after` with metadata of a marked line, or -1."""
        needs = self.lines.jobs.needs
        best = NOTHING
        need = self.lines.jobs.first_need[job]
        while need != NOTHING:
            if needs.is_marked[need] == 1:
                page = needs.line[need] // self.lines_per_page
                if page > after and (best == NOTHING or page < best):
                    best = page
            need = needs.following[need]
        return best

    # Cleaning, step by step.

    @method
    def read_dirty(self, now, job, below):
        """Mark and read the dirty lines of a job; return whether there are any."""
        lines, needs = self.lines, self.lines.jobs.needs
        has_dirty = False
        need = lines.jobs.first_need[job]
        while need != NOTHING:
            line = needs.line[need]
            is_dirty = needs.is_there[need] == 1 and lines.lists.is_dirty(line)
            needs.is_marked[need] = is_dirty
            if is_dirty:
                has_dirty = True
                at = line * lines.line_bytes
                self.lines.jobs.pending[job] += 1
                below.fast.submit(now, job, READ, at, lines.line_bytes, below.events)
            need = needs.following[need]
        return has_dirty

    @method
    def write_dirty(self, now, job, below):
        """Write the dirty sectors of marked lines to the core."""
        self.write_from(now, job, self.lines.jobs.first_need[job], 0, below)

    @method
    def write_from(self, now, job, need, sector, below):
        """Write them from a sector of a line on, until the thread falls asleep."""
        lines, needs = self.lines, self.lines.jobs.needs
        sectors = lines.line_bytes >> SECTOR_SHIFT
        while need != NOTHING:
            if needs.is_marked[need] == 1:
                line = needs.line[need]
                base = needs.core_line[need] * lines.line_bytes
                at = lines.dirty.first(line, 1, sector, sectors)
                while at < sectors:
                    stop = lines.dirty.first(line, 0, at, sectors)
                    length = (stop - at) << SECTOR_SHIFT
                    self.bytes_moved[CLEANED] += length
                    self.lines.jobs.pending[job] += 1
                    to = base + (at << SECTOR_SHIFT)
                    below.slow.submit_background(now, job, WRITE, to, length, below.events)
                    if below.slow.holds_back():
                        self.lines.jobs.pending[job] += 1  # what is not sent yet
                        self.threads.fall_asleep(lines.jobs.thread[job], job, need, stop)
                        return
                    at = lines.dirty.first(line, 1, stop, sectors)
            need = needs.following[need]
            sector = 0

    @method
    def make_clean(self, job):
        """Mark the marked lines of a job as clean."""
        needs = self.lines.jobs.needs
        need = self.lines.jobs.first_need[job]
        while need != NOTHING:
            if needs.is_marked[need] == 1:
                self.lines.make_clean(needs.line[need])
            need = needs.following[need]
