"""What Open CAS lets past the cache: long streams, and what was not missed often (2.13.2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.dmcache.table import Table
from hybridsim.caches.opencas.lists import LAST, Chain
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.jit import method, state_machine

NOTHING = -1
NEW_STREAMS, ESTABLISHED_STREAMS, ESTABLISHING_REQUESTS = 64, 128, 8
ENTERED = 0


@state_machine
class Streams(NamedTuple):
    """Some streams of requests that follow each other; the least recently used is replaced."""

    table: Table  # where it ends, and its direction -> stream
    recent: Chain  # unused streams are the oldest
    length: Ints
    requests: Ints  # 0: unused

    @classmethod
    def new(cls, count: int) -> Streams:
        """Have `count` unused streams."""
        streams = cls(
            Table.new(count), Chain.new(count), np.zeros(count, np.int64), np.zeros(count, np.int64)
        )
        for stream in range(count):
            streams.recent.add(stream)
        return streams

    @method
    def extend(self, stream, key, length):
        """Add a request to a stream that ends at `key` then."""
        self.table.remove(stream)
        self.recent.remove(stream)
        self.enter(stream, key, self.length[stream] + length, self.requests[stream] + 1)

    @method
    def replace(self, key, length, requests):
        """Have a stream instead of the least recently used."""
        stream = self.recent.ends[LAST]
        if self.requests[stream] > 0:
            self.table.remove(stream)
        self.recent.remove(stream)
        self.enter(stream, key, length, requests)

    @method
    def enter(self, stream, key, length, requests):
        """Enter a stream, as the most recently used."""
        self.length[stream] = length
        self.requests[stream] = requests
        self.table.insert(stream, key)
        self.recent.add(stream)

    @method
    def forget(self, stream):
        """Have a stream unused."""
        self.table.remove(stream)
        self.requests[stream] = 0
        self.recent.remove(stream)
        self.recent.add_oldest(stream)


@state_machine
class SequentialCutoff(NamedTuple):
    """Finds long streams: those that are new, and those that have proved to be streams."""

    policy: int
    cutoff_bytes: int
    margin_lines: int
    fresh: Streams
    established: Streams

    @classmethod
    def new(cls, policy: int, cutoff_bytes: int, margin_lines: int) -> SequentialCutoff:
        """Know of no stream."""
        streams = Streams.new(NEW_STREAMS), Streams.new(ESTABLISHED_STREAMS)
        return cls(policy, cutoff_bytes, margin_lines, *streams)

    @method
    def is_long(self, op, offset, length):
        """Note a request; tell whether its stream has reached the cutoff with it."""
        fresh, established = self.fresh, self.established
        begins = offset << 1 | op
        ends = (offset + length) << 1 | op
        stream = fresh.table.find(begins)
        if stream != NOTHING:
            fresh.extend(stream, ends, length)
            total = fresh.length[stream]
            requests = fresh.requests[stream]
            if total >= self.cutoff_bytes or requests >= ESTABLISHING_REQUESTS:
                fresh.forget(stream)
                established.replace(ends, total, requests)
            return total >= self.cutoff_bytes
        stream = established.table.find(begins)
        if stream != NOTHING:
            established.extend(stream, ends, length)
            return established.length[stream] >= self.cutoff_bytes
        fresh.replace(ends, length, 1)
        return False


@state_machine
class Nhit(NamedTuple):
    """Counts the misses of core lines that are not cached, of the last that were missed."""

    threshold: int
    trigger_lines: int
    table: Table  # core line -> entry
    misses: Int32s  # by entry
    state: Ints  # [ENTERED]: so far

    @classmethod
    def new(cls, threshold: int, trigger_lines: int, entries: int) -> Nhit:
        """Have counted nothing; with room for so many core lines."""
        table, misses = Table.new(entries), np.zeros(entries, np.int32)
        return cls(threshold, trigger_lines, table, misses, np.zeros(1, np.int64))

    @method
    def passes(self, core_line):
        """Count a miss; tell whether it was one of many."""
        entry = self.table.find(core_line)
        if entry != NOTHING:
            self.misses[entry] += 1
            return self.misses[entry] >= self.threshold
        entry = self.state[ENTERED] % len(self.misses)
        if self.state[ENTERED] >= len(self.misses):
            self.table.remove(entry)
        self.state[ENTERED] += 1
        self.table.insert(entry, core_line)
        self.misses[entry] = 1
        return False

    @method
    def forget(self, core_line):
        """Count a core line from the beginning again."""
        entry = self.table.find(core_line)
        if entry != NOTHING:
            self.misses[entry] = 0
