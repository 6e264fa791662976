"""The order in which the cleaner of Open CAS cleans lines (DESIGN.md 2.13.4)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.opencas.bits import Marks
from hybridsim.caches.opencas.jobs import CLEANER
from hybridsim.caches.opencas.lists import LAST, Chain
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.cache_parameters import OpenCasParameters
from hybridsim.foundation.codes import Cleaning
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE, Events
from hybridsim.jit.jiffies import expiry_ns

NOTHING = -1
SECOND_NS = 1_000_000_000
CHUNK_BYTES = 100 * 2**20
BUCKETS = 10
ASLEEP = (0, 0, NOTHING, 0, -1, 0)  # the state of a cleaner without dirty lines
NOP, ALRU, ACP = int(Cleaning.NOP), int(Cleaning.ALRU), int(Cleaning.ACP)
DIRTY, IS_AWAKE, CHUNK, NEXT, FIRST_PLACE, LAST_PLACE = range(6)


@state_machine
class Dirt(NamedTuple):
    """Dirty lines in the order of the cleaning policy."""

    policy: int
    wake_up_ns: int
    staleness_time_ns: int
    activity_threshold_ns: int
    flush_max_buffers: int  # per batch
    stats_interval_ns: int  # interval of casadm's reads of the counters; 0: none
    stats_start_ns: int  # time of the first of them
    lines_per_chunk: int
    written_ns: Ints  # ALRU, by line: when a sector was last made dirty
    by_age: Chain  # ALRU
    dirty_in_chunk: Int32s  # ACP, by chunk of the core
    bucket_of: Int32s  # ACP, by chunk: that in which it stands; none is cleaned in bucket 0
    place: Ints  # ACP, by chunk: among those of its bucket, ascending
    dirty: Marks  # ACP, by core line
    state: Ints  # [DIRTY, IS_AWAKE, CHUNK being cleaned or -1, NEXT core line of it, ...]

    @classmethod
    def new(cls, parameters: OpenCasParameters, origin_bytes: int) -> Dirt:
        """Return no dirty lines."""
        policy, line_bytes = int(parameters.cleaning), parameters.line_bytes
        aged = parameters.lines if policy == ALRU else 1
        mapped = origin_bytes if policy == ACP else 1
        chunks = -(-mapped // CHUNK_BYTES)
        return cls(
            policy,
            parameters.wake_up_ns,
            parameters.staleness_time_ns,
            parameters.activity_threshold_ns,
            parameters.flush_max_buffers,
            parameters.stats_interval_ns,
            parameters.stats_start_ns,
            CHUNK_BYTES // line_bytes,
            np.zeros(aged, np.int64),
            Chain.new(aged),
            np.zeros(chunks, np.int32),
            np.zeros(chunks, np.int32),
            np.zeros(chunks, np.int64),
            Marks.new(-(-mapped // line_bytes)),
            np.array(ASLEEP, np.int64),
        )

    def restarted(self) -> Dirt:
        """Return the same dirty lines; the cleaner sleeps."""
        return self._replace(state=np.array([self.state[DIRTY], *ASLEEP[1:]]))

    def emptied(self) -> Dirt:
        """Return no dirty lines."""
        return self._replace(
            written_ns=np.zeros_like(self.written_ns),
            by_age=Chain.new(len(self.written_ns)),
            dirty_in_chunk=np.zeros_like(self.dirty_in_chunk),
            bucket_of=np.zeros_like(self.bucket_of),
            place=np.zeros_like(self.place),
            dirty=Marks.new(8 * len(self.dirty.eights)),
            state=np.array(ASLEEP, np.int64),
        )

    def recover(self, now_ns: int, line: int, core_line: int) -> None:
        """Add a line that is dirty when the cache starts."""
        self.add(line, core_line)
        if self.policy == ALRU:
            self.written_ns[line] = now_ns

    def resume(self, now_ns: int, events: Events) -> None:
        """Run the cleaner of a restarted cache at once if anything is dirty."""
        if self.policy == ACP:  # buckets are counted anew, and round the other way
            chunks = len(self.place)
            self.bucket_of[:] = BUCKETS * self.dirty_in_chunk // self.lines_per_chunk
            self.place[:] = np.arange(chunks)
            self.state[FIRST_PLACE], self.state[LAST_PLACE] = -1, chunks
        if self.policy != NOP and self.state[DIRTY] > 0:
            self.state[IS_AWAKE] = 1
            events.push(now_ns, CACHE, CLEANER)

    @method
    def add(self, line, core_line):
        """Add a line that becomes dirty."""
        self.state[DIRTY] += 1
        if self.policy == ALRU:
            self.by_age.add(line)
        elif self.policy == ACP:
            self.dirty.set(core_line)
            self.dirty_in_chunk[core_line // self.lines_per_chunk] += 1
            self.settle(core_line // self.lines_per_chunk)

    @method
    def settle(self, chunk):
        """Move a chunk to the next bucket if its number of dirty lines asks for it (ACP)."""
        lines = BUCKETS * self.dirty_in_chunk[chunk]
        bucket = self.bucket_of[chunk]
        if lines > bucket * self.lines_per_chunk:
            self.bucket_of[chunk] = bucket + 1
            self.place[chunk] = self.state[LAST_PLACE]
            self.state[LAST_PLACE] += 1
        elif bucket > 0 and lines <= (bucket - 1) * self.lines_per_chunk:
            self.bucket_of[chunk] = bucket - 1
            self.place[chunk] = self.state[FIRST_PLACE]
            self.state[FIRST_PLACE] -= 1

    @method
    def written(self, now, line, core_line, events):
        """Record a write of a dirty line, and wake the cleaner."""
        if self.policy == ACP:
            self.settle(core_line // self.lines_per_chunk)
        if self.policy == ALRU:
            self.by_age.remove(line)
            self.by_age.add(line)
            self.written_ns[line] = now
        if self.policy != NOP and self.state[IS_AWAKE] == 0:
            self.state[IS_AWAKE] = 1
            period = expiry_ns(0, self.wake_up_ns if self.policy == ALRU else SECOND_NS)
            events.push((now // period + 1) * period, CACHE, CLEANER)

    @method
    def remove(self, line, core_line):
        """Remove a line that becomes clean."""
        self.state[DIRTY] -= 1
        if self.policy == ALRU:
            self.by_age.remove(line)
        elif self.policy == ACP:
            self.dirty.clear(core_line)
            self.dirty_in_chunk[core_line // self.lines_per_chunk] -= 1
            self.settle(core_line // self.lines_per_chunk)

    @method
    def oldest(self):
        """Return the line that was not written for the longest time, or -1 (ALRU)."""
        return self.by_age.ends[LAST]

    @method
    def older_than(self, line, now):
        """Return whether a line is old enough to be cleaned (ALRU)."""
        stale_s = (now - self.staleness_time_ns) // SECOND_NS
        return self.written_ns[line] // SECOND_NS < stale_s

    @method
    def queries(self, now):
        """Return how often casadm has read the counters up to now."""
        if self.stats_interval_ns == 0 or now < self.stats_start_ns:
            return 0
        return (now - self.stats_start_ns) // self.stats_interval_ns + 1

    @method
    def densest_chunk(self):
        """Return the first chunk of the highest bucket, or -1 (ACP)."""
        best, highest = NOTHING, 0
        for chunk in range(len(self.bucket_of)):
            bucket = self.bucket_of[chunk]
            if bucket > highest or (
                bucket == highest and best != NOTHING and self.place[chunk] < self.place[best]
            ):
                best, highest = chunk, bucket
        return best
