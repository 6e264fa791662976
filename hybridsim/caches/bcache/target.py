"""bcache as Linux runs it: extents of any length in a log of buckets.

Data that a request misses or writes is cached unless it belongs to a long sequential stream, or
the cache device is slow; there is no other admission policy.  Old buckets are emptied as a whole.
Details: DESIGN.md 2.12.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.bcache import journal as tags
from hybridsim.caches.bcache.buckets import (
    AVAIL,
    GC_RUNNING,
    GCS,
    IN_USE,
    INDEX_ENTRIES,
    INITIAL_PRIO,
    INVALIDATIONS,
    SECTOR_BYTES,
    Buckets,
)
from hybridsim.caches.bcache.inserts import (
    BACK,
    BYPASS_HITS,
    BYPASS_MISSES,
    BYPASSED,
    FILL,
    HAS_ENDED,
    HITS,
    HUNG,
    MISSES,
    NO_DATA,
    PARTS,
    THROUGH,
    WRITING,
    Bypass,
    Inserts,
    Statistics,
)
from hybridsim.caches.bcache.keys import DIRTY_BYTES, LIVE_BYTES
from hybridsim.caches.bcache.writeback import (
    HAS_DIRTY,
    IDLE,
    IS_UNLIMITED,
    RATE_NOW,
    WRITERS,
    WRITTEN_BACK,
    WriteBack,
)
from hybridsim.foundation.arrays import Ints, grown_pool
from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import FUA, PREFLUSH, BcacheMode, Kernel, Op, Path, Reason, Restart
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.instructions import along
from hybridsim.jit.lists import NOTHING, Fifos, give_back

PAGE_BYTES = 4096

UNKNOWN = -1  # a task that the trace does not name

FILL_MAX = 1 << 20  # bytes of a hole that are filled, at most
CUTOFF_ADD, CUTOFF_SYNC, CUTOFF_WRITEBACK = 95, 70, 40  # percent in use
OTHERS_MAX = 256  # maximum number of tier requests in a step besides the parts of a request

# The state of a READ in progress, in requests.last_promoted.
HAS_HOLE, IS_BYPASSED, HAS_RACED, IS_READ_AGAIN = 1, 2, 4, 8

RACES, DEMAND, IS_GOING_ON = range(3)  # IS_GOING_ON: an event will submit a request that waits


@state_machine
class Bcache(NamedTuple):
    """The entry point for requests, with all parts of the cache."""

    page_bytes: int  # of a bucket
    block_bytes: int
    mode: int
    bypass: Bypass
    inserts: Inserts
    write_back: WriteBack
    statistics: Statistics
    sleepers: Fifos  # requests that wait, linked by `requests.last_promoted`
    state: Ints  # [RACES, DEMAND, IS_GOING_ON]

    @classmethod
    def new(cls, parameters: BcacheParameters, room: int = 4096) -> Bcache:
        """Attach an empty cache at time 0, with initial room for `room` operations (2^k)."""
        p = parameters
        buckets = Buckets.new(p, room)
        statistics = Statistics.new()
        return cls(
            p.bucket_bytes,
            p.block_bytes,
            int(p.mode),
            Bypass.new(p, buckets.draws, room),
            Inserts.new(buckets, statistics, p.open_buckets, room),
            WriteBack.new(p, buckets),
            statistics,
            Fifos.new(),
            np.zeros(3, np.int64),
        )

    def size(self) -> int:
        """Return the number of pieces there is room for."""
        return len(self.inserts.pieces.owner)

    def demand(self, longest_bytes: int) -> int:
        """Return the maximum number of tier requests in one step."""
        wanted = longest_bytes // SECTOR_BYTES + 2 + OTHERS_MAX
        self.state[DEMAND] = max(int(self.state[DEMAND]), wanted)
        return wanted

    def grown(self, room: int) -> Bcache:
        """Return the same cache with room for one more step; pools with enough room stay."""
        wanted = int(self.state[DEMAND])
        pieces, bypass, buckets = self.inserts.pieces, self.bypass, self.inserts.buckets
        jobs, keys = buckets.journal.jobs, buckets.keys
        if pieces.free[1] < wanted:
            pieces = grown_pool(pieces, room)
        while jobs.free[1] < wanted:
            jobs = grown_pool(jobs, 2 * len(jobs.begin))
        while keys.room() < wanted:
            keys = keys.grown(2 * len(keys.begin))
        while bypass.tasks.room() < wanted:
            bypass = bypass.grown(2 * len(bypass.average))
        journal = buckets.journal._replace(jobs=jobs)
        buckets = buckets._replace(keys=keys, journal=journal)
        return self._replace(
            bypass=bypass,
            inserts=self.inserts._replace(buckets=buckets, pieces=pieces),
            write_back=self.write_back._replace(buckets=buckets),
        )

    # Restarts (DESIGN.md 2.17).

    def restarted(self, now_ns: int, how: Restart) -> Bcache:
        """Return the cache as it starts again: the index and the buckets are kept.

        The journal is replayed, so that a crash loses nothing.  To be detached, the cache bypasses
        all requests, and its write-back has no rate.
        """
        detaches = how == Restart.CLEANER
        old = self.inserts
        room = len(old.pieces.owner)
        buckets = old.buckets.restarted(room)
        inserts = Inserts.new(buckets, self.statistics, len(old.open_bucket), room)
        for which in (PARTS, HUNG):
            inserts.state[which] = old.state[which]
        before = self.write_back
        if detaches:
            before = before._replace(writeback_percent=0, writeback_delay_ns=0)
        write_back = WriteBack.new(before, buckets)
        write_back.state[WRITTEN_BACK] = before.state[WRITTEN_BACK]
        self.statistics.restart()
        self.state[IS_GOING_ON] = 0
        return self._replace(
            mode=BcacheMode.NONE if detaches else self.mode,
            bypass=Bypass.new(self.bypass, buckets.draws, len(self.bypass.average)),
            inserts=inserts,
            write_back=write_back,
            sleepers=Fifos.new(),
        )

    def resume(self, now_ns: int, below: Any) -> None:
        """Start the allocator and, if there is dirty data, the write-back."""
        buckets = self.inserts.buckets
        buckets.mark_again()
        buckets.go_on(now_ns, below)
        buckets.wake_gc(now_ns, below)
        if self.dirty_bytes() > 0:
            self.write_back.on_dirty(now_ns, below)

    def dirty_bytes(self) -> int:
        """Return how much is dirty."""
        return int(self.inserts.buckets.keys.state[DIRTY_BYTES])

    def dirty_ranges(self) -> Ints:
        """Return the offset and the length of each dirty key, one row each."""
        keys = self.inserts.buckets.keys
        ranges = []
        for key in along(keys.order.newest[0], keys.order.older):
            if keys.is_dirty[key] == 1:
                ranges.append((int(keys.begin[key]), int(keys.end[key] - keys.begin[key])))
        return np.array(ranges, np.int64).reshape(-1, 2)

    def totals(self) -> dict[str, int]:
        """Return the counters so far; bytes and sectors unless the name has another unit."""
        inserts, write_back = self.inserts, self.write_back
        buckets = inserts.buckets
        live, dirty = (int(buckets.keys.state[which]) for which in (LIVE_BYTES, DIRTY_BYTES))
        parts = int(inserts.state[PARTS])
        emptied = int(buckets.state[INVALIDATIONS])
        return self.statistics.totals() | {
            "cache_inserts": parts,
            "dirty_data": dirty,
            "cached_data": live,
            "keys": int(buckets.keys.number()),
            "index_entries": int(buckets.state[INDEX_ENTRIES]),
            "cache_available_percent": 100 - int(buckets.state[IN_USE]),
            "available_buckets": int(buckets.state[AVAIL]),
            "writeback_rate": int(write_back.state[RATE_NOW]),
            "written_back": int(write_back.state[WRITTEN_BACK]),
            "journal_writes": int(buckets.journal.state[tags.JOURNAL_ENTRIES]),
            "gc_runs": int(buckets.state[GCS]),
            "hung_writes": int(inserts.state[HUNG]),
            "invalidated_buckets": emptied,
            # Counters that all caches have:
            "fills_started": parts,
            "fills_done": parts,
            "fills_doomed": 0,
            "evictions": emptied,
            "pages_present": live // PAGE_BYTES,
            "cache_read_races": int(self.state[RACES]),
        }

    @method
    def room(self):
        """Return how many more tier requests can be made."""
        buckets = self.inserts.buckets
        room = min(self.inserts.pieces.free[1], buckets.journal.jobs.free[1])
        return min(room, buckets.keys.room(), self.bypass.tasks.room())

    # Requests.

    @method
    def submit(self, now, slot, requests, below):
        """Take a request from the host; it waits while its task sleeps."""
        task = requests.stream[slot]
        if self.must_wait(slot, requests) or self.has_sleeper(task, NOTHING, requests):
            self.sleepers.append(0, slot, requests.last_promoted)
            return
        self.serve(now, slot, requests, below)

    @method
    def must_wait(self, slot, requests):
        """Return whether a request's task sleeps, or has to at its begin."""
        if self.write_back.wants_lock() and is_locking(slot, requests):
            return True
        task = requests.stream[slot]
        return task != UNKNOWN and self.inserts.holds(task)

    @method
    def has_sleeper(self, task, until, requests):
        """Return whether a request of a task waits, before `until` (-1: anywhere)."""
        slot = self.sleepers.first[0]
        while slot != until and task != UNKNOWN:
            if requests.stream[slot] == task:
                return True
            slot = requests.last_promoted[slot]
        return False

    @method
    def next_sleeper(self, requests):
        """Return the first of the requests that wait which need not wait any more, or -1."""
        for slot in along(self.sleepers.first[0], requests.last_promoted):
            if not self.must_wait(slot, requests):
                if not self.has_sleeper(requests.stream[slot], slot, requests):
                    return slot
        return NOTHING

    @method
    def wake_sleepers(self, now, requests, below):
        """Let the next request go on that need not wait any more, by an event."""
        if self.state[IS_GOING_ON] == 0 and self.next_sleeper(requests) != NOTHING:
            self.state[IS_GOING_ON] = 1
            below.events.push(now, CACHE, tags.GO_ON)

    @method
    def go_on(self, now, requests, below):
        """Serve the first request that need not wait any more."""
        self.state[IS_GOING_ON] = 0
        slot = self.next_sleeper(requests)
        if slot != NOTHING:
            self.sleepers.remove(0, slot, requests.last_promoted)
            self.serve(now, slot, requests, below)
            self.wake_sleepers(now, requests, below)

    @method
    def serve(self, now, slot, requests, below):
        """Take a request whose task is awake."""
        op, offset, length = requests.op[slot], requests.offset[slot], requests.length[slot]
        write_back = self.write_back.state
        write_back[IDLE] = 0
        if write_back[IS_UNLIMITED] == 1:
            write_back[IS_UNLIMITED] = 0
            write_back[RATE_NOW] = 1
        if op == Op.FLUSH or length == 0:
            requests.pending[slot] = 1
            self.journal_for(now, slot, 0, below)
            self.to_slow(now, slot, Op.FLUSH, 0, 0, requests, below)
            return
        why = self.why_bypassed(now, slot, op, offset, length, requests, below)
        if why == Reason.NONE:
            self.inserts.buckets.age(length)
        else:
            self.statistics.add(now, BYPASSED, length // SECTOR_BYTES, below)
        if op != Op.DISCARD:
            end = offset + length
            requests.pages[slot] = (end - 1) // SECTOR_BYTES - offset // SECTOR_BYTES + 1
        if op == Op.READ:
            self.read(now, slot, offset, offset + length, why, requests, below)
            return
        write_back[WRITERS] += 1
        self.write(now, slot, op, offset, length, why, requests, below)

    @method
    def why_bypassed(self, now, slot, op, offset, length, requests, below):
        """Return why a request bypasses the cache, or NONE."""
        if op == Op.DISCARD:
            return Reason.BUSY
        buckets = self.inserts.buckets
        if buckets.state[IN_USE] > CUTOFF_ADD:
            if buckets.kernel >= Kernel.LINUX_6_12 and self.write_back.state[HAS_DIRTY] == 0:
                buckets.force_gc(now, below)
            return Reason.BUSY
        if self.mode == BcacheMode.NONE or (self.mode == BcacheMode.WRITEAROUND and op == Op.WRITE):
            return Reason.NO_CACHE
        if offset % self.block_bytes != 0 or length % self.block_bytes != 0:
            return Reason.NO_CACHE
        return self.bypass.why(now, requests.stream[slot], offset, length)

    @method
    def to_slow(self, now, slot, op, offset, length, requests, below):
        """Send a part of a request to the backing device."""
        requests.pending[slot] += 1
        below.slow.submit(now, slot << tags.BITS | tags.PART, op, offset, length, below.events)

    @method
    def journal_for(self, now, slot, keys, below):
        """Make a request wait until its keys, and all earlier ones, are durable."""
        journal = self.inserts.buckets.journal
        job = journal.jobs.take(NO_DATA, 0, 0, 0, slot, 1)
        journal.add_and_wait(now, keys, job, below)

    @method
    def read(self, now, slot, begin, end, why, requests, below):
        """Read each part from the tier that has it; fill the first hole, unless bypassed."""
        keys = self.inserts.buckets.keys
        requests.path[slot] = Path.HIT
        requests.reason[slot] = Reason.NONE
        requests.last_promoted[slot] = 0 if why == Reason.NONE else IS_BYPASSED
        hit_bytes = 0
        while begin < end:
            key = keys.first_beyond(begin)
            while key != NOTHING and keys.place[key] < 0:  # without data
                key = keys.order.older[key]
            if key != NOTHING and keys.begin[key] <= begin:
                stop = min(end, keys.end[key])
                place = keys.place[key] + begin - keys.begin[key]
                self.read_hit(now, slot, begin, stop, place, requests, below)
                hit_bytes += stop - begin
            else:
                stop = end if key == NOTHING else min(end, keys.begin[key])
                if requests.last_promoted[slot] & HAS_HOLE == 0:
                    requests.last_promoted[slot] |= HAS_HOLE
                    requests.path[slot] = Path.MISS if why == Reason.NONE else Path.BYPASS
                    requests.reason[slot] = keys.why_missing(begin) if why == Reason.NONE else why
                    if why == Reason.NONE:
                        stop = min(stop, begin + FILL_MAX)
                        self.fill(now, slot, begin, stop, requests, below)
                self.to_slow(now, slot, Op.READ, begin, stop - begin, requests, below)
            begin = stop
        requests.pages_hit[slot] = hit_bytes // SECTOR_BYTES

    @method
    def read_hit(self, now, slot, begin, end, place, requests, below):
        """Read a part from the cache."""
        buckets, pieces = self.inserts.buckets, self.inserts.pieces
        bucket = place // self.page_bytes
        buckets.prio[bucket] = INITIAL_PRIO
        piece = pieces.take(slot, begin, end, place, now)
        pieces.generation[piece] = buckets.generation[bucket]
        requests.pending[slot] += 1
        tag = piece << tags.BITS | tags.HIT
        below.fast.submit(now, tag, Op.READ, place, end - begin, below.events)

    @method
    def fill(self, now, slot, begin, end, requests, below):
        """Insert a placeholder key to detect racing writes."""
        buckets = self.inserts.buckets
        job = buckets.journal.jobs.take(FILL, begin, end, requests.stream[slot], NOTHING, 0)
        requests.promoted[slot] = job
        buckets.enter(now, begin, end, -1 - job, 0, below)

    @method
    def write(self, now, slot, op, offset, length, why, requests, below):
        """Write to the backing device, to the cache, or to both."""
        flags = requests.flags[slot] if op == Op.WRITE else 0
        waits = 1 if flags & (FUA | PREFLUSH) != 0 else 0
        overlaps = self.write_back.overlaps(offset, offset + length)
        is_back = op == Op.WRITE and (overlaps or self.is_back(slot, why, waits, requests))
        if not is_back:
            self.to_slow(now, slot, op | flags, offset, length, requests, below)
        elif flags & PREFLUSH != 0:
            self.to_slow(now, slot, Op.FLUSH, 0, 0, requests, below)
        buckets = self.inserts.buckets
        if why != Reason.NONE and not is_back:
            buckets.erase(now, offset, offset + length, below)
            if waits == 1:
                requests.pending[slot] += 1
                self.journal_for(now, slot, 1, below)
            else:
                buckets.journal.add(now, 1, below)
            return
        requests.pending[slot] += 1
        kind = BACK if is_back else THROUGH
        if is_back:
            self.write_back.on_dirty(now, below)
        task, end = requests.stream[slot], offset + length
        job = buckets.journal.jobs.take(kind, offset, end, task, slot, waits)
        if self.inserts.start(now, job, below) == HAS_ENDED and waits == 0:
            requests.pending[slot] -= 1

    @method
    def is_back(self, slot, why, is_flush, requests):
        """Return whether a WRITE goes to the cache only, for a later write-back."""
        in_use = self.inserts.buckets.state[IN_USE]
        if self.mode != BcacheMode.WRITEBACK or why != Reason.NONE or in_use > CUTOFF_SYNC:
            return False
        return is_flush == 1 or requests.is_sync[slot] == 1 or in_use <= CUTOFF_WRITEBACK

    @method
    def complete(self, now, tag, requests, below):
        """Take a tier's completion; return the slot of a request that is complete, or -1."""
        what = tag & tags.MASK
        number = tag >> tags.BITS
        buckets = self.inserts.buckets
        if what == tags.PART:
            return self.end_part(now, number, requests, below)
        if what == tags.HIT:
            return self.end_hit(now, number, requests, below)
        if what == tags.PIECE:
            return self.end_piece(now, number, requests, below)
        if what == tags.JOURNAL:
            is_waking = buckets.journal.on_commit()
            if buckets.journal.state[tags.PRIORITIES_WRITTEN] == 1:
                buckets.priorities_written(now, below)
            if is_waking:
                below.events.push(now, CACHE, tags.WAKE)
            buckets.journal.write(now, below)
        elif what == tags.PRIORITIES:
            buckets.write_priorities(now, below)
        elif what == tags.BACK_READ:
            self.write_back.read(now, number, below)
        elif what == tags.BACK_WRITE:
            self.write_back.written(now, number, below)
        return NOTHING

    @method
    def end_hit(self, now, piece, requests, below):
        """Take the completion of a read from the cache."""
        pieces, buckets = self.inserts.pieces, self.inserts.buckets
        self.bypass.on_completion(now, pieces.issue_ns[piece], False)
        slot = pieces.owner[piece]
        bucket = pieces.place[piece] // self.page_bytes
        if pieces.generation[piece] != buckets.generation[bucket]:
            requests.last_promoted[slot] |= HAS_RACED
        give_back(pieces, piece)
        return self.end_part(now, slot, requests, below)

    @method
    def end_piece(self, now, piece, requests, below):
        """Take the completion of a write to the cache."""
        jobs = self.inserts.buckets.journal.jobs
        job = self.inserts.pieces.owner[piece]
        self.bypass.on_completion(now, self.inserts.pieces.issue_ns[piece], True)
        jobs.pending[job] -= 1
        self.inserts.state[WRITING] -= 1
        if jobs.pending[job] > 0 or jobs.done[job] < jobs.end[job]:
            return NOTHING
        slot, waits, kind = jobs.request[job], jobs.waits[job], jobs.kind[job]
        self.inserts.end(now, job, below)
        if kind == FILL or waits == 1:
            return NOTHING
        return self.end_part(now, slot, requests, below)

    @method
    def end_part(self, now, slot, requests, below):
        """Count a completed part; return the request's slot if it was the last, else -1."""
        requests.pending[slot] -= 1
        if requests.pending[slot] > 0:
            return NOTHING
        progress = requests.last_promoted[slot]
        is_read = requests.op[slot] == Op.READ and requests.length[slot] > 0
        if not is_read or progress & IS_READ_AGAIN != 0:
            return slot
        if progress & IS_BYPASSED == 0:
            self.statistics.add(now, MISSES if progress & HAS_HOLE != 0 else HITS, 1, below)
        else:
            which = BYPASS_MISSES if progress & HAS_HOLE != 0 else BYPASS_HITS
            self.statistics.add(now, which, 1, below)
        if progress & HAS_RACED == 0:
            return slot
        self.state[RACES] += 1
        requests.last_promoted[slot] |= IS_READ_AGAIN
        if requests.promoted[slot] != NOTHING:
            self.inserts.cancel(requests.promoted[slot])
            requests.promoted[slot] = NOTHING
        offset, length = requests.offset[slot], requests.length[slot]
        self.to_slow(now, slot, Op.READ, offset, length, requests, below)
        return NOTHING

    @method
    def finished(self, now, slot, requests, below):
        """Start the fill of a completed read; count the end of a WRITE."""
        if is_locking(slot, requests):
            self.write_back.ends(now, below)
        if requests.promoted[slot] != NOTHING:
            self.inserts.start(now, requests.promoted[slot], below)

    @method
    def wake(self, now, number, requests, below):
        """Run an event of the cache; return the slot of a request that is complete, or -1."""
        buckets = self.inserts.buckets
        if number == tags.WAKE:
            return self.wake_waiter(now, requests, below)
        if number == tags.GC or number == tags.GC_END:
            if number == tags.GC:
                buckets.begin_gc(now, below)
            else:
                buckets.end_gc(now, below)
            if buckets.state[GC_RUNNING] == 0:
                self.end_standstill(now, requests, below)
        elif number == tags.JOURNAL_TIMER:
            buckets.journal.on_timer(now, below)
        elif number == tags.RESUME:
            self.inserts.resume(now, below)
            self.wake_sleepers(now, requests, below)
        elif number == tags.WRITE_BACK:
            self.write_back.wake(now, below)
            self.wake_sleepers(now, requests, below)
        elif number == tags.GO_ON:
            self.go_on(now, requests, below)
        elif number == tags.RATE:
            self.write_back.update_rate(now, below)
        elif number == tags.STATISTICS:
            self.statistics.show()
        return NOTHING

    @method
    def end_standstill(self, now, requests, below):
        """After a gc: let an insert give way if no bucket will ever be free (2.12.2)."""
        if not self.inserts.is_exhausted() or not self.write_back.wants_lock():
            return
        jobs = self.inserts.buckets.journal.jobs
        job = self.inserts.waiting.first[0]
        slot, begin, length = jobs.request[job], jobs.done[job], jobs.end[job] - jobs.done[job]
        op = Op.WRITE | (requests.flags[slot] & FUA)
        self.to_slow(now, slot, op, begin, length, requests, below)
        if jobs.waits[job] == 0:
            requests.pending[slot] -= 1  # that of the insert
        self.inserts.give_way(now, below)
        self.wake_sleepers(now, requests, below)

    @method
    def wake_waiter(self, now, requests, below):
        """Continue the next request that waited for the journal."""
        journal = self.inserts.buckets.journal
        job = journal.waiting.pop(tags.DURABLE, journal.jobs.following)
        if not journal.waiting.is_empty(tags.DURABLE):
            below.events.push(now, CACHE, tags.WAKE)
        slot = journal.jobs.request[job]
        give_back(journal.jobs, job)
        return self.end_part(now, slot, requests, below)


@kernel
def is_locking(slot, requests):
    """Return whether a request takes write-back's lock: any with data that is no READ."""
    op = requests.op[slot]
    return (op == Op.WRITE or op == Op.DISCARD) and requests.length[slot] > 0
