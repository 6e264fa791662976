"""What enters bcache: which requests bypass it, and inserts of the data of others.

Long sequential streams bypass it, and more when the cache device is slow.  The data of an insert is
written to the open buckets, and then its keys are added to the index.
"""

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
    SECTOR_BYTES,
    TO_GC,
    WAITING,
    Buckets,
    Draws,
)
from hybridsim.caches.bcache.journal import BITS, PIECE, RESUME, STATISTICS, Pieces
from hybridsim.foundation.arrays import Ints, filled, longer, pool_of
from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import Op, Reason
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.instructions import along
from hybridsim.jit.jiffies import JIFFY_NS
from hybridsim.jit.lists import NOTHING, Chains, Fifos, Index, give_back

RECENT = 128  # streams
EXPIRY_JIFFIES = 1250
BYTES_MAX = 1 << 32
CONGESTED_MAX = 1024

SLOWNESS, STAMP = range(2)


@state_machine
class Bypass(NamedTuple):
    """The most recent streams, stream lengths by task, and the slowness of the cache device."""

    sequential_cutoff_bytes: int
    congested_read_us: int  # congested_read_threshold_us
    congested_write_us: int
    draws: Draws
    end: Ints  # by stream
    run: Ints  # bytes
    expiry: Ints  # jiffies
    used: Chains  # streams in order of use
    tasks: Index
    sequential: Ints  # by task: bytes of its current stream
    average: Ints
    state: Ints  # [SLOWNESS, STAMP]

    @classmethod
    def new(cls, parameters: BcacheParameters | Bypass, draws: Draws, room: int) -> Bypass:
        """Return an empty table, with room for `room` tasks (a power of two)."""
        sequential, average = np.zeros((2, room), np.int64)
        return filled(
            cls,
            RECENT,
            parameters,
            draws=draws,
            end=np.full(RECENT, NOTHING, np.int64),
            used=Chains.of_all(RECENT),
            tasks=Index.new(room),
            sequential=sequential,
            average=average,
            state=np.zeros(2, np.int64),
        )

    def grown(self, room: int) -> Bypass:
        """Return the same with room for `room` tasks (a power of two)."""
        return self._replace(
            tasks=self.tasks.grown(room),
            sequential=longer(self.sequential, room),
            average=longer(self.average, room),
        )

    @method
    def why(self, now, task, offset, length):
        """Return why a cacheable request bypasses the cache, or NONE; update its stream."""
        congested = self.congestion(now)
        if congested == 0 and self.sequential_cutoff_bytes == 0:
            return Reason.NONE
        number = self.tasks.find(task)
        if number == NOTHING:
            number = self.tasks.add(task)
        jiffies = now // JIFFY_NS
        stream = self.find(offset, jiffies)
        if stream == NOTHING:
            stream = self.used.oldest[0]
            self.run[stream] = 0
            total = self.average[number] * 7 + self.sequential[number]
            self.average[number] = total % BYTES_MAX // 8
        if self.run[stream] + length < BYTES_MAX:
            self.run[stream] += length
        self.end[stream] = offset + length
        self.expiry[stream] = jiffies + EXPIRY_JIFFIES
        self.sequential[number] = self.run[stream]
        self.used.renew(0, stream)
        sectors = max(self.run[stream], self.average[number]) // SECTOR_BYTES
        if (
            self.sequential_cutoff_bytes > 0
            and sectors >= self.sequential_cutoff_bytes // SECTOR_BYTES
        ):
            return Reason.SEQUENTIAL
        return Reason.CONGESTED if congested > 0 and sectors >= congested else Reason.NONE

    @method
    def find(self, offset, jiffies):
        """Return the stream that ends there and has not expired, the newest of several; or -1."""
        match = NOTHING
        number = 0
        for i in range(RECENT):
            if self.end[i] == offset and jiffies < self.expiry[i]:
                match = i
                number += 1
        if number > 1:
            match = self.used.newest[0]
            while self.end[match] != offset or jiffies >= self.expiry[match]:
                match = self.used.older[match]
        return match

    # Congestion.

    @method
    def on_completion(self, now, issued, is_write):
        """Record how long a request to the cache device took."""
        threshold = self.congested_write_us if is_write else self.congested_read_us
        if threshold == 0:
            return
        state = self.state
        took = (now - issued) >> 10
        if took > threshold:
            state[STAMP] = now >> 10
            state[SLOWNESS] -= min(took >> 10, CONGESTED_MAX + state[SLOWNESS])
        elif state[SLOWNESS] < 0:
            state[SLOWNESS] += 1

    @method
    def congestion(self, now):
        """Return the sectors from which on requests bypass a slow device; 0: no request does."""
        if self.congested_read_us == 0 and self.congested_write_us == 0:
            return 0
        state = self.state
        limit = ((now >> 10) - state[STAMP]) // 1024 + state[SLOWNESS]
        if limit >= 0:
            return 0
        limit += CONGESTED_MAX
        if limit > 0:
            limit = ((64 + limit % 64) << (limit // 64)) >> 6
        for _ in range(2):
            bits = self.draws.draw() & 0xFFFF
            while bits > 0:
                limit -= bits & 1
                bits >>= 1
        return max(limit, 1)


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
        end_ns = (now // INTERVAL_NS + 1) * INTERVAL_NS
        below.events.push_once(self.is_timed, 0, end_ns, CACHE, STATISTICS)

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
        for candidate in along(self.used.newest[0], self.used.older):
            if self.open_end[candidate] == begin:
                return candidate
            if self.open_task[candidate] == task:
                of_task = candidate
        return self.used.oldest[0] if of_task == NOTHING else of_task

    # Waiting for a bucket.

    @method
    def holds(self, task):
        """Return whether an insert of a task waits for a bucket."""
        jobs = self.buckets.journal.jobs
        job = self.waiting.first[0]
        while job != NOTHING and jobs.task[job] != task:
            job = jobs.following[job]
        return job != NOTHING

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
            below.events.push_once(waits, RESUMING, now, CACHE, RESUME)

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
        for piece in along(jobs.first[job], pieces.following):
            begin, end, place = pieces.begin[piece], pieces.end[piece], pieces.place[piece]
            if jobs.kind[job] == FILL:
                end = self.placeholder_end(job, begin, end)
            if end > begin:
                buckets.enter(now, begin, end, place, is_dirty, below)
                jobs.keys[job] += 1
            else:
                collides = True
            buckets.pins[place // self.bucket_bytes] -= 1
            give_back(pieces, piece)
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
