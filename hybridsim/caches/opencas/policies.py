"""The policies of Open CAS: sequential cutoff and promotion by misses (DESIGN.md 2.13.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, filled
from hybridsim.foundation.cache_parameters import OpenCasParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.lists import NOTHING, Chains, Table

NEW_STREAMS, ESTABLISHED_STREAMS, ESTABLISHING_REQUESTS = 64, 128, 8
ENTERED = 0


@state_machine
class Streams(NamedTuple):
    """Streams of consecutive requests; the least recently used one is replaced."""

    table: Table  # end of the stream, with its direction -> stream
    recent: Chains  # unused streams are the oldest
    length: Ints
    requests: Ints  # 0: unused

    @classmethod
    def new(cls, count: int) -> Streams:
        """Return `count` unused streams."""
        return cls(Table.new(count), Chains.of_all(count), *np.zeros((2, count), np.int64))

    @method
    def extend(self, stream, key, length):
        """Add a request to a stream, which then ends at `key`."""
        self.table.remove(stream)
        self.recent.remove(0, stream)
        self.enter(stream, key, self.length[stream] + length, self.requests[stream] + 1)

    @method
    def replace(self, key, length, requests):
        """Replace the least recently used stream."""
        stream = self.recent.oldest[0]
        if self.requests[stream] > 0:
            self.table.remove(stream)
        self.recent.remove(0, stream)
        self.enter(stream, key, length, requests)

    @method
    def enter(self, stream, key, length, requests):
        """Insert a stream as the most recently used."""
        self.length[stream] = length
        self.requests[stream] = requests
        self.table.insert(stream, key)
        self.recent.add(0, stream)

    @method
    def forget(self, stream):
        """Mark a stream as unused."""
        self.table.remove(stream)
        self.requests[stream] = 0
        self.recent.remove(0, stream)
        self.recent.add_before(0, stream, self.recent.oldest[0])


@state_machine
class SequentialCutoff(NamedTuple):
    """Detects long streams, in a table of new streams and one of established streams."""

    sequential_cutoff_policy: int
    sequential_cutoff_bytes: int
    margin_lines: int
    fresh: Streams
    established: Streams

    @classmethod
    def new(cls, parameters: OpenCasParameters | SequentialCutoff) -> SequentialCutoff:
        """Return a detector without streams."""
        fresh, established = Streams.new(NEW_STREAMS), Streams.new(ESTABLISHED_STREAMS)
        return filled(cls, 0, parameters, fresh=fresh, established=established)

    @method
    def is_long(self, op, offset, length):
        """Record a request; return whether its stream has reached the cutoff with it."""
        fresh, established = self.fresh, self.established
        begins = offset << 1 | op
        ends = (offset + length) << 1 | op
        stream = fresh.table.find(begins)
        if stream != NOTHING:
            fresh.extend(stream, ends, length)
            total = fresh.length[stream]
            requests = fresh.requests[stream]
            if total >= self.sequential_cutoff_bytes or requests >= ESTABLISHING_REQUESTS:
                fresh.forget(stream)
                established.replace(ends, total, requests)
            return total >= self.sequential_cutoff_bytes
        stream = established.table.find(begins)
        if stream != NOTHING:
            established.extend(stream, ends, length)
            return established.length[stream] >= self.sequential_cutoff_bytes
        fresh.replace(ends, length, 1)
        return False


@state_machine
class Nhit(NamedTuple):
    """Counts the misses of the core lines that were missed most recently and are not cached."""

    insertion_threshold: int
    trigger_threshold_lines: int
    table: Table  # core line -> entry
    misses: Int32s  # by entry
    state: Ints  # [ENTERED: number of entries made so far]

    @classmethod
    def new(cls, parameters: OpenCasParameters | Nhit, entries: int) -> Nhit:
        """Return counters of 0, for `entries` core lines."""
        state = np.zeros(1, np.int64)
        return filled(cls, entries, parameters, table=Table.new(entries), state=state)

    @method
    def passes(self, core_line):
        """Count a miss; return whether the threshold is reached."""
        entry = self.table.find(core_line)
        if entry != NOTHING:
            self.misses[entry] += 1
            return self.misses[entry] >= self.insertion_threshold
        entry = self.state[ENTERED] % len(self.misses)
        if self.state[ENTERED] >= len(self.misses):
            self.table.remove(entry)
        self.state[ENTERED] += 1
        self.table.insert(entry, core_line)
        self.misses[entry] = 1
        return False

    @method
    def forget(self, core_line):
        """Reset the count of a core line."""
        entry = self.table.find(core_line)
        if entry != NOTHING:
            self.misses[entry] = 0
