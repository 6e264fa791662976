"""The tier requests of Open CAS jobs, and cleaning (DESIGN.md 2.13.1, 2.13.4).

Lines are cleaned for a job, for an eviction without a clean line, and by a policy.
"""

from __future__ import annotations

import numpy as np

from hybridsim.caches.opencas import ways
from hybridsim.caches.opencas.jobs import HIGH, PASSES, SHARED
from hybridsim.caches.opencas.lines import CHUNK, DIRTY, IS_AWAKE, NEXT, SECTOR_SHIFT
from hybridsim.foundation.codes import OP_MASK, Cleaning, Op
from hybridsim.jit import kernel
from hybridsim.jit.events import CACHE
from hybridsim.jit.instructions import along
from hybridsim.jit.jiffies import expiry_ns
from hybridsim.jit.lists import NOTHING, give_back

PAGE_BYTES = 4096


def lines_per_page(line_bytes: int) -> int:
    """Return the number of lines whose metadata fits into a page.

    An estimate: 8 bytes for the core line, 2 for the core, 2 bits a sector.
    """
    return PAGE_BYTES // (10 + line_bytes // 2048)


ROOM_LINES = 32  # lines cleaned when none can be evicted
SECOND_NS = 1_000_000_000
BLOCKED_NS = SECOND_NS  # pause of the cleaner while casadm reads the counters
PIECE_LINES, LARGE_PIECE_LINES, MANY_LINES = 128, 1024, 4096  # of a pass, which goes by pieces
LAST_IO_NS, MAKES_ROOM, BEGAN_NS, EMPTY_S, PIECES, BACKFILLS, IS_BLOCKED = range(7)
IDLE = (0, 0, 0, -(10**9), 0, 0, 0)  # the state at first; the last pass was long ago


@kernel
def to_cache(cas, now, job, op, offset, length, below):
    """Read or write lines."""
    cas.bytes_moved[ways.OF_CACHE + (op & OP_MASK)] += length
    cas.lines.jobs.pending[job] += 1
    below.fast.submit(now, job, op, offset, length, below.events)


@kernel
def flush(cas, now, job, below):
    """Flush both tiers."""
    flush_origin(cas, now, job, below)
    flush_cache(cas, now, job, below)


@kernel
def flush_origin(cas, now, job, below):
    """Flush the core; the thread sleeps while that is held back."""
    cas.lines.jobs.pending[job] += 1
    below.slow.submit_background(now, job, Op.FLUSH, 0, 0, below.events)
    if below.slow.holds_back():
        cas.threads.fall_asleep(cas.lines.jobs.thread[job], NOTHING, NOTHING, 0)


@kernel
def flush_cache(cas, now, job, below):
    """Flush the cache device."""
    cas.lines.jobs.pending[job] += 1
    below.fast.submit(now, job, Op.FLUSH, 0, 0, below.events)


@kernel
def range_to_origin(cas, now, job, op, below):
    """Read or write the range of a job in the core."""
    jobs = cas.lines.jobs
    cas.bytes_moved[ways.OF_ORIGIN + (op & OP_MASK)] += jobs.length[job]
    jobs.pending[job] += 1
    below.slow.submit(now, job, op, jobs.offset[job], jobs.length[job], below.events)


@kernel
def places(cas, now, job, op, but_marked, below):
    """Read or write the range of a job in its lines: each run of adjacent ones at once.

    With `but_marked` not runs that begin at a marked line, unless all its lines are adjacent.
    """
    needs, need = cas.lines.jobs.needs, cas.lines.jobs.first_need[job]
    takes_all = not but_marked or end_of_run(cas, need) == NOTHING
    while need != NOTHING:
        if takes_all or needs.is_marked[need] == 0:
            need = run(cas, now, job, need, op, below)
        else:
            need = np.int64(needs.following[need])


@kernel
def run(cas, now, job, need, op, below):
    """Read or write the lines from a need on that are adjacent; return the need after them."""
    jobs, line_bytes = cas.lines.jobs, cas.lines.line_bytes
    core_line, end = jobs.needs.core_line[need], end_of_run(cas, need)
    begin = max(jobs.offset[job], core_line * line_bytes)
    upto = jobs.offset[job] + jobs.length[job]
    if end != NOTHING:
        upto = jobs.needs.core_line[end] * line_bytes
    at = jobs.needs.line[need] * line_bytes + begin - core_line * line_bytes
    to_cache(cas, now, job, op, at, upto - begin, below)
    return end


@kernel
def end_of_run(cas, need):
    """Return the first need whose line is not adjacent to the one before, or -1."""
    needs = cas.lines.jobs.needs
    line = needs.line[need] + 1
    need = np.int64(needs.following[need])
    while need != NOTHING and needs.line[need] == line:
        line += 1
        need = np.int64(needs.following[need])
    return need


@kernel
def overlay(cas, now, job, below):
    """Read the valid sectors of a job from its lines."""
    lines = cas.lines
    jobs, needs = lines.jobs, lines.jobs.needs
    for need in along(jobs.first_need[job], needs.following):
        if needs.is_there[need] == 1:
            line = needs.line[need]
            start, end = lines.sectors_of(job, needs.core_line[need])
            at = lines.valid.first(line, 1, start, end)
            while at < end:
                stop = lines.valid.first(line, 0, at, end)
                place = line * lines.line_bytes + (at << SECTOR_SHIFT)
                to_cache(cas, now, job, Op.READ, place, (stop - at) << SECTOR_SHIFT, below)
                at = lines.valid.first(line, 1, stop, end)


@kernel
def metadata(cas, now, job, op, below):
    """Write the metadata of the marked lines of a job."""
    first = next_page(cas, job, NOTHING)
    start = cas.lines.capacity * cas.lines.line_bytes
    while first != NOTHING:
        end = first + 1
        following = next_page(cas, job, first)
        while following == end:
            end += 1
            following = next_page(cas, job, end - 1)
        cas.counts[ways.METADATA_WRITES] += 1
        cas.lines.jobs.pending[job] += 1
        at = start + first * PAGE_BYTES
        below.fast.submit(now, job, op, at, (end - first) * PAGE_BYTES, below.events)
        first = following


@kernel
def next_page(cas, job, after):
    """Return the first page after `after` with metadata of a marked line, or -1."""
    needs = cas.lines.jobs.needs
    best = NOTHING
    for need in along(cas.lines.jobs.first_need[job], needs.following):
        if needs.is_marked[need] == 1:
            page = needs.line[need] // cas.lines_per_page
            if page > after and (best == NOTHING or page < best):
                best = page
    return best


# Cleaning, step by step.


@kernel
def clean(cas, now, job, below):
    """Start to clean a job: mark and read its dirty lines; return whether there are any."""
    lines, needs = cas.lines, cas.lines.jobs.needs
    lines.jobs.step[job] = ways.CLEAN_READ
    has_dirty = False
    for need in along(lines.jobs.first_need[job], needs.following):
        line = needs.line[need]
        is_dirty = needs.is_there[need] == 1 and lines.lists.is_dirty(line)
        needs.is_marked[need] = is_dirty
        if is_dirty:
            has_dirty = True
            at = line * lines.line_bytes
            cas.lines.jobs.pending[job] += 1
            below.fast.submit(now, job, Op.READ, at, lines.line_bytes, below.events)
    return has_dirty


@kernel
def write_from(cas, now, job, first, sector, below):
    """Write the dirty sectors of marked lines to the core, from a sector of the first need on.

    That ends when the thread falls asleep.
    """
    lines, needs = cas.lines, cas.lines.jobs.needs
    sectors = lines.line_bytes >> SECTOR_SHIFT
    for need in along(first, needs.following):
        if needs.is_marked[need] == 1:
            line = needs.line[need]
            base = needs.core_line[need] * lines.line_bytes
            at = lines.dirty.first(line, 1, sector, sectors)
            while at < sectors:
                stop = lines.dirty.first(line, 0, at, sectors)
                length = (stop - at) << SECTOR_SHIFT
                cas.bytes_moved[ways.CLEANED] += length
                cas.lines.jobs.pending[job] += 1
                to = base + (at << SECTOR_SHIFT)
                below.slow.submit_background(now, job, Op.WRITE, to, length, below.events)
                if below.slow.holds_back():
                    cas.lines.jobs.pending[job] += 1  # what is not sent yet
                    cas.threads.fall_asleep(lines.jobs.thread[job], job, need, stop)
                    return
                at = lines.dirty.first(line, 1, stop, sectors)
        sector = 0


@kernel
def make_clean(cas, job):
    """Mark the marked lines of a job as clean."""
    needs = cas.lines.jobs.needs
    for need in along(cas.lines.jobs.first_need[job], needs.following):
        if needs.is_marked[need] == 1:
            cas.lines.make_clean(needs.line[need])


# Cleaning as a whole.


@kernel
def clean_on(cas, now, job, below):
    """Start the next step of cleaning; return whether the last step is complete."""
    jobs = cas.lines.jobs
    step: int | np.int64 = np.int64(jobs.step[job])
    if step == ways.CLEAN_READ:
        jobs.step[job] = ways.CLEAN_WRITTEN
        write_from(cas, now, job, jobs.first_need[job], 0, below)
        if jobs.pending[job] > 0:
            return False
        step = ways.CLEAN_WRITTEN  # another job has cleaned them meanwhile
        if cas.threads.defers(jobs, job, ways.GOES_ON, HIGH):
            return False
    if step == ways.CLEAN_WRITTEN:
        jobs.step[job] = ways.CLEAN_FLUSHED
        flush_origin(cas, now, job, below)
    elif step == ways.CLEAN_FLUSHED:
        jobs.step[job] = ways.CLEAN_NOTED
        make_clean(cas, job)
        metadata(cas, now, job, Op.WRITE, below)
    elif step == ways.CLEAN_NOTED:
        jobs.step[job] = ways.CLEAN_STABLE
        flush_cache(cas, now, job, below)
    return step == ways.CLEAN_STABLE


# Batches.


@kernel
def add_to_batch(cas, job, line):
    """Lock a line that is not in use, and add it to a batch."""
    lines = cas.lines
    lines.jobs.enter(line, SHARED)
    lines.jobs.add_in_order(job, lines.table.number[line], line)


@kernel
def make_room(cas, now, thread, below):
    """Clean some lines, so that later requests can evict them."""
    lines = cas.lines
    if cas.state[MAKES_ROOM] == 1:
        return
    line = lines.next_to_clean(True)
    if line == NOTHING:
        return
    cas.state[MAKES_ROOM] = 1
    job = lines.jobs.take(NOTHING, ways.MAKE_ROOM)
    lines.jobs.thread[job] = thread
    chosen = 0
    while line != NOTHING:
        add_to_batch(cas, job, line)
        chosen += 1
        line = lines.next_to_clean(False) if chosen < ROOM_LINES else NOTHING
    clean(cas, now, job, below)


@kernel
def end_batch(cas, now, job, below):
    """End a batch after its last step."""
    jobs, dirt = cas.lines.jobs, cas.lines.dirt
    jobs.give_back(now, job, below.events)
    if jobs.way[job] == ways.MAKE_ROOM:
        cas.state[MAKES_ROOM] = 0
        give_back(jobs, job)
        return
    cas.state[PIECES] -= 1
    if cas.state[PIECES] == 0:
        pause_ns = 0 if dirt.policy == Cleaning.ALRU else dirt.wake_up_ns
        if pause_ns == 0 and dirt.queries(now) > dirt.queries(cas.state[BEGAN_NS]):
            pause_ns = BLOCKED_NS
        below.events.push(expiry_ns(now, pause_ns), CACHE, ways.CLEANER)
    give_back(jobs, job)


@kernel
def run_cleaner(cas, now, below):
    """Clean the lines that the policy chooses, if there are any."""
    jobs, dirt = cas.lines.jobs, cas.lines.dirt
    if dirt.state[DIRTY] == 0:
        dirt.state[IS_AWAKE] = 0
        dirt.state[CHUNK] = NOTHING
        return
    pause_ns = dirt.wake_up_ns
    job = jobs.take(NOTHING, ways.CLEAN)
    chosen = 0
    if dirt.policy == Cleaning.ALRU:
        since_s = now // SECOND_NS - cas.state[EMPTY_S]
        is_idle = now - cas.state[LAST_IO_NS] >= dirt.activity_threshold_ns
        if is_idle and since_s > dirt.wake_up_ns // SECOND_NS:
            chosen = choose_oldest(cas, now, job)
            if jobs.first_need[job] == NOTHING:
                cas.state[EMPTY_S] = now // SECOND_NS
    else:
        chosen = choose_densest(cas, job)
        if chosen == NOTHING:
            pause_ns = SECOND_NS
    if jobs.first_need[job] == NOTHING:
        give_back(jobs, job)
        below.events.push(expiry_ns(now, pause_ns), CACHE, ways.CLEANER)
    else:
        cas.state[BEGAN_NS] = now
        jobs.thread[job] = cas.threads.next(PASSES)
        limit = LARGE_PIECE_LINES if chosen > MANY_LINES else PIECE_LINES
        piece = job
        while piece != NOTHING:
            rest = jobs.cut(piece, limit)
            cas.state[PIECES] += 1
            clean(cas, now, piece, below)
            piece = rest


@kernel
def choose_oldest(cas, now, job):
    """Choose the lines that were not written for longest, and return how many (ALRU)."""
    jobs, dirt = cas.lines.jobs, cas.lines.dirt
    chosen = 0
    stale_s = (now - dirt.staleness_time_ns) // SECOND_NS
    for line in along(dirt.by_age.oldest[0], dirt.by_age.newer):
        if chosen == dirt.flush_max_buffers or dirt.written_ns[line] // SECOND_NS >= stale_s:
            break
        if not jobs.is_in_use(line):
            add_to_batch(cas, job, line)
            chosen += 1
    return chosen


@kernel
def choose_densest(cas, job):
    """Choose the next dirty lines of a chunk, which is cleaned from end to end (ACP).

    Return how many; NOTHING if there is no chunk to clean.
    """
    jobs, dirt = cas.lines.jobs, cas.lines.dirt
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
        line = cas.lines.table.find(core_line)
        if not jobs.is_in_use(line):
            add_to_batch(cas, job, line)
            chosen += 1
        dirt.state[NEXT] = core_line + 1
        core_line = dirt.dirty.next(core_line + 1, end)
    if chosen < dirt.flush_max_buffers or dirt.state[NEXT] == whole:
        dirt.state[CHUNK] = NOTHING
    return chosen
