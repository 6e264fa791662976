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
NOP, ALRU, ACP = int(Cleaning.NOP), int(Cleaning.ALRU), int(Cleaning.ACP)
DIRTY, IS_AWAKE = range(2)


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
    dirty: Marks  # ACP, by core line
    state: Ints  # [DIRTY, IS_AWAKE]

    @classmethod
    def new(cls, parameters: OpenCasParameters, origin_bytes: int) -> Dirt:
        """Return no dirty lines."""
        policy, line_bytes = int(parameters.cleaning), parameters.line_bytes
        aged = parameters.lines if policy == ALRU else 1
        mapped = origin_bytes if policy == ACP else 1
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
            np.zeros(-(-mapped // CHUNK_BYTES), np.int32),
            Marks.new(-(-mapped // line_bytes)),
            np.zeros(2, np.int64),
        )

    def restarted(self) -> Dirt:
        """Return the same dirty lines; the cleaner sleeps."""
        return self._replace(state=np.array([self.state[DIRTY], 0]))

    def emptied(self) -> Dirt:
        """Return no dirty lines."""
        return self._replace(
            written_ns=np.zeros_like(self.written_ns),
            by_age=Chain.new(len(self.written_ns)),
            dirty_in_chunk=np.zeros_like(self.dirty_in_chunk),
            dirty=Marks.new(8 * len(self.dirty.eights)),
            state=np.zeros(2, np.int64),
        )

    def recover(self, now_ns: int, line: int, core_line: int) -> None:
        """Add a line that is dirty when the cache starts."""
        self.add(line, core_line)
        if self.policy == ALRU:
            self.written_ns[line] = now_ns

    def resume(self, now_ns: int, events: Events) -> None:
        """Run the cleaner of a restarted cache at once if anything is dirty."""
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

    @method
    def written(self, now, line, events):
        """Record a write of a dirty line, and wake the cleaner."""
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
        """Return the chunk with the highest share of dirty lines, in tenths (ACP)."""
        best, highest = NOTHING, NOTHING
        for chunk in range(len(self.dirty_in_chunk)):
            lines = self.dirty_in_chunk[chunk]
            bucket = BUCKETS * lines // self.lines_per_chunk
            if lines > 0 and bucket > highest:
                best, highest = chunk, bucket
        return best
