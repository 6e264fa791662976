"""Inserts: data is written to the open buckets, and then its keys are added to the index."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache.buckets import (
    AVAIL,
    DIRTY,
    GC_WANTED,
    HAS_CHANGED,
    NONE,
    RESUMING,
    TO_GC,
    WAITING,
    Buckets,
)
from hybridsim.caches.bcache.journal import BITS, PIECE, RESUME, STATISTICS, Pieces
from hybridsim.foundation.arrays import Ints, filled, pool_of
from hybridsim.foundation.codes import Op
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.lists import NOTHING, Chains, Fifos, give_back

INTERVAL_NS = 3409 * 4_000_000  # 300 s / 22 in whole jiffies
MODULUS = 65_536  # sysfs shows the count of each interval modulo this

COUNTERS = (
    "cache_hits", "cache_misses", "cache_bypass_hits", "cache_bypass_misses",
    "cache_miss_collisions", "bypassed_sectors",
)  # fmt: skip
HITS, MISSES, BYPASS_HITS, BYPASS_MISSES, COLLISIONS, BYPASSED = range(len(COUNTERS))


@state_machine
class Statistics(NamedTuple):
    """True counts, those of the current interval, and those shown."""

    counted: Ints
    gathered: Ints
    shown: Ints
    is_timed: Ints  # [1: an event for the end of the interval is scheduled]

    @classmethod
    def new(cls) -> Statistics:
        """Return counters of 0."""
        columns = (np.zeros(len(COUNTERS), np.int64) for _ in range(3))
        return cls._make([*columns, np.zeros(1, np.int64)])

    def totals(self) -> dict[str, int]:
        """Return the true counts by name, and those that sysfs shows."""
        true = dict(zip(COUNTERS, self.counted.tolist(), strict=True))
        names = [f"sysfs_{name}" for name in COUNTERS]
        return true | dict(zip(names, self.shown.tolist(), strict=True))

    def restart(self) -> None:
        """Start again; what was not shown yet is never shown."""
        self.gathered[:] = 0
        self.is_timed[0] = 0

    @method
    def add(self, now, which, number, below):
        """Add a number to a counter."""
        self.counted[which] += number
        self.gathered[which] += number
        if self.is_timed[0] == 0:
            self.is_timed[0] = 1
            below.events.push((now // INTERVAL_NS + 1) * INTERVAL_NS, CACHE, STATISTICS)

    @method
    def show(self):
        """End an interval: add its counts to those shown."""
        self.is_timed[0] = 0
        for which in range(len(self.counted)):
            self.shown[which] += self.gathered[which] % MODULUS
            self.gathered[which] = 0


FILL, THROUGH, BACK, NO_DATA = range(4)

PARTS, WRITING, HUNG = range(3)
# The result of a step of an insert.
WAITS, IS_UNDER_WAY, HAS_ENDED = range(3)


@state_machine
class Inserts(NamedTuple):
    """The inserts in progress."""

    bucket_bytes: int
    block_bytes: int
    buckets: Buckets
    open_bucket: Ints  # the open buckets, to which new data is written, by place
    open_left: Ints  # bytes
    open_end: Ints  # of the last range written to it
    open_task: Ints  # the last task that used it: data of one task or stream is kept together
    used: Chains  # open buckets in order of use
    pieces: Pieces
    statistics: Statistics
    waiting: Fifos  # for a bucket
    state: Ints  # [PARTS, WRITING, HUNG]

    @classmethod
    def new(cls, buckets: Buckets, statistics: Statistics, open_buckets: int, room: int) -> Inserts:
        """Return no inserts, with room for `room` of them, and no open bucket."""
        return filled(
            cls,
            open_buckets,
            buckets,
            buckets=buckets,
            open_bucket=np.full(open_buckets, NOTHING, np.int64),
            open_end=np.full(open_buckets, NOTHING, np.int64),
            open_task=np.full(open_buckets, -(1 << 40), np.int64),  # of no task
            used=Chains.of_all(open_buckets),
            pieces=pool_of(Pieces, room),
            statistics=statistics,
            waiting=Fifos.new(),
            state=np.zeros(3, np.int64),
        )

    @method
    def start(self, now, job, below):
        """Start an insert; if there is no bucket for a write-back insert, it waits for one."""
        jobs = self.buckets.journal.jobs
        self.buckets.state[TO_GC] -= jobs.end[job] - jobs.begin[job]
        self.buckets.wake_gc(now, below)
        becomes = self.go_on(now, job, below)
        if becomes == WAITS:
            self.waiting.append(0, job, jobs.following)
            self.buckets.state[WAITING] += 1
        return becomes

    @method
    def go_on(self, now, job, below):
        """Write as much as there is space for."""
        jobs = self.buckets.journal.jobs
        while jobs.done[job] < jobs.end[job]:
            begin, end = jobs.done[job], jobs.end[job]
            place, length = self.find_space(now, begin, end - begin, jobs.task[job], below)
            if place != NOTHING:
                self.write(now, job, begin, place, length, below)
                continue
            if jobs.kind[job] == BACK:
                return WAITS
            if jobs.kind[job] == THROUGH:
                self.erase_rest(now, job, below)
            jobs.done[job] = end
        if jobs.pending[job] > 0:
            return IS_UNDER_WAY
        self.end(now, job, below)
        return HAS_ENDED

    @method
    def erase_rest(self, now, job, below):
        """Erase what is left of a write for which there is no bucket."""
        jobs = self.buckets.journal.jobs
        jobs.keys[job] += 1
        self.buckets.erase(now, jobs.done[job], jobs.end[job], below)

    @method
    def write(self, now, job, begin, place, length, below):
        """Write a part to its place."""
        jobs, pieces = self.buckets.journal.jobs, self.pieces
        if jobs.kind[job] == BACK:
            self.buckets.mark[place // self.bucket_bytes] = DIRTY
        piece = pieces.take(job, begin, begin + length, place, now)
        if jobs.first[job] == NOTHING:
            jobs.first[job] = piece
        else:
            pieces.following[jobs.last[job]] = piece
        jobs.last[job] = piece
        jobs.pending[job] += 1
        jobs.done[job] = begin + length
        self.state[PARTS] += 1
        self.state[WRITING] += 1
        below.fast.submit(now, piece << BITS | PIECE, Op.WRITE, place, length, below.events)

    # The place of new data.

    @method
    def find_space(self, now, begin, length, task, below):
        """Return place and length of the space for the start of a range; -1, 0: there is none."""
        open_bucket = self.choose(begin, task)
        if self.open_left[open_bucket] == 0:
            bucket = self.buckets.take_for_data(now, below)
            if bucket == NOTHING:
                return NOTHING, 0
            self.open_bucket[open_bucket] = bucket
            self.open_left[open_bucket] = self.bucket_bytes
        bucket, left = self.open_bucket[open_bucket], self.open_left[open_bucket]
        length = min(length, left)
        place = (bucket + 1) * self.bucket_bytes - left
        self.open_end[open_bucket] = begin + length
        self.open_task[open_bucket] = task
        self.used.renew(0, open_bucket)
        left -= length
        if left < self.block_bytes:
            left = 0
        else:
            self.buckets.pins[bucket] += 1
        self.open_left[open_bucket] = left
        return place, length

    @method
    def choose(self, begin, task):
        """Return the open bucket for a range."""
        of_task = NOTHING
        candidate = self.used.newest[0]
        while candidate != NOTHING:
            if self.open_end[candidate] == begin:
                return candidate
            if self.open_task[candidate] == task:
                of_task = candidate
            candidate = self.used.older[candidate]
        return self.used.oldest[0] if of_task == NOTHING else of_task

    # Waiting for a bucket.

    @method
    def holds(self, task):
        """Return whether an insert of a task waits for a bucket."""
        jobs = self.buckets.journal.jobs
        job = self.waiting.first[0]
        while job != NOTHING:
            if jobs.task[job] == task:
                return True
            job = jobs.following[job]
        return False

    @method
    def resume(self, now, below):
        """Continue the insert that has waited longest."""
        waits = self.buckets.state
        if self.go_on(now, self.waiting.first[0], below) == WAITS:
            waits[RESUMING] = 0
            return
        self.waiting.pop(0, self.buckets.journal.jobs.following)
        waits[WAITING] -= 1
        waits[RESUMING] = 0
        if waits[WAITING] > 0 and self.buckets.list_count[NONE] > 0:
            waits[RESUMING] = 1
            below.events.push(now, CACHE, RESUME)

    @method
    def is_exhausted(self):
        """Return whether an insert waits, none is being written, and a gc found no bucket."""
        buckets, waits = self.buckets, self.buckets.state
        if waits[WAITING] == 0 or waits[RESUMING] == 1 or buckets.list_count[NONE] > 0:
            return False
        return waits[GC_WANTED] == 1 and buckets.state[AVAIL] == 0 and self.state[WRITING] == 0

    @method
    def give_way(self, now, below):
        """End the write-back that has waited longest without a bucket for the rest of it."""
        job = self.waiting.pop(0, self.buckets.journal.jobs.following)
        self.buckets.state[WAITING] -= 1
        self.state[HUNG] += 1
        self.erase_rest(now, job, below)
        self.buckets.journal.jobs.done[job] = self.buckets.journal.jobs.end[job]
        self.end(now, job, below)

    # The end.

    @method
    def end(self, now, job, below):
        """Add the keys of an insert to the index."""
        pieces, buckets = self.pieces, self.buckets
        jobs = buckets.journal.jobs
        is_dirty = 1 if jobs.kind[job] == BACK else 0
        collides = False
        piece = jobs.first[job]
        while piece != NOTHING:
            begin, end, place = pieces.begin[piece], pieces.end[piece], pieces.place[piece]
            if jobs.kind[job] == FILL:
                end = self.placeholder_end(job, begin, end)
            if end > begin:
                buckets.enter(now, begin, end, place, is_dirty, below)
                jobs.keys[job] += 1
            else:
                collides = True
            buckets.pins[place // self.bucket_bytes] -= 1
            following = pieces.following[piece]
            give_back(pieces, piece)
            piece = following
        if jobs.kind[job] == FILL:
            buckets.keys.drop_placeholder(job, jobs.begin[job], jobs.end[job])
            if collides:
                self.statistics.add(now, COLLISIONS, 1, below)
        elif jobs.waits[job] == 1:
            buckets.journal.add_and_wait(now, jobs.keys[job], job, below)
            buckets.state[HAS_CHANGED] = 1
            return
        else:
            buckets.journal.add(now, jobs.keys[job], below)
        buckets.state[HAS_CHANGED] = 1
        give_back(jobs, job)

    @method
    def placeholder_end(self, job, begin, end):
        """Return the end of the part of a fill's placeholder that is still there."""
        keys = self.buckets.keys
        key = keys.first_beyond(begin)
        while key != NOTHING and keys.begin[key] <= begin and begin < end:
            if keys.place[key] != -1 - job:
                break
            begin = min(keys.end[key], end)
            key = keys.order.older[key]
        return begin

    @method
    def cancel(self, job):
        """Cancel a fill that has not started."""
        jobs = self.buckets.journal.jobs
        self.buckets.keys.drop_placeholder(job, jobs.begin[job], jobs.end[job])
        give_back(jobs, job)
