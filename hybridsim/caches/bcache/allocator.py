"""bcache's allocator, its garbage collection, and the index's use of buckets and writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache.buckets import (
    BTREE,
    INCOMING,
    NONE,
    PRIO,
    Buckets,
    Layout,
)
from hybridsim.caches.bcache.journal import CURSOR, Journal
from hybridsim.caches.bcache.journal import ENTRIES as JOURNAL_ENTRIES
from hybridsim.caches.bcache.tags import GC, GC_END, NODE, PRIORITIES, RESUME
from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import FUA, Kernel, Op
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import expiry_ns

NOTHING = -1
WRITE = int(Op.WRITE)
LINUX_6_12 = int(Kernel.LINUX_6_12)

KEY_BYTES = 24
NODE_BYTES_MAX = 256 * 1024
APPEND_BYTES = 4 * 1024  # one append to a node
APPEND_KEYS = 180  # keys per such write: measured
GC_SLEEP_NS = 100_000_000

(IS_WRITTEN, IS_WRITING, GC_WANTED, GC_WOKEN, GC_RUNNING, HAS_CHANGED, TO_GC, NODES, ENTRIES,
 APPENDS, WAITING, RESUMING, PRIORITIES_LEFT, GCS) = range(14)  # fmt: skip


@state_machine
class Allocator(NamedTuple):
    """Allocates and frees buckets."""

    node_bytes: int
    node_keys: int  # keys in a node of average fill
    root_keys: int  # keys in a root that has no other nodes, before it splits
    block_bytes: int
    root: int  # bucket of the index's root
    kernel: int  # codes.Kernel
    gc_nodes: int  # that a gc looks through before it rests
    buckets: Buckets
    journal: Journal
    priorities: Ints  # the buckets that hold the priorities, then those being written
    state: Ints  # [IS_WRITTEN ... GCS]

    @classmethod
    def new(cls, parameters: BcacheParameters, room: int) -> Allocator:
        """Return the allocator of an empty cache."""
        p, bucket_bytes = parameters, parameters.bucket_bytes
        layout = Layout.of(bucket_bytes, p.buckets)
        node_bytes = min(bucket_bytes, NODE_BYTES_MAX)
        area = (bucket_bytes, layout.journal * bucket_bytes)
        state = np.zeros(14, np.int64)
        state[IS_WRITTEN] = state[NODES] = 1
        state[TO_GC] = p.buckets * bucket_bytes // 16
        priorities = np.zeros(2 * layout.priorities, np.int64)
        priorities[: layout.priorities] = range(layout.journal + 3, layout.metadata)
        return cls(
            node_bytes,
            node_bytes * 6 // 10 // KEY_BYTES,
            node_bytes * 4 // 5 // KEY_BYTES,
            p.block_bytes,
            layout.journal + 2,
            int(p.kernel),
            p.gc_nodes,
            Buckets.new(bucket_bytes, p.buckets, int(p.replacement), p.seed, room),
            Journal.new(*area, p.block_bytes, room),
            priorities,
            state,
        )

    def restarted(self, room: int) -> Allocator:
        """Return the allocator of the same buckets, with nothing in progress."""
        buckets, number = self.buckets.restarted(), len(self.priorities) // 2
        if self.state[IS_WRITING] == 1:  # the new priorities are taken to be complete
            for i in range(number):
                buckets.free_metadata(self.priorities[i])
            self.priorities[:number] = self.priorities[number:]
        self.state[[IS_WRITING, GC_WANTED, GC_WOKEN, GC_RUNNING, WAITING, RESUMING]] = 0
        self.state[IS_WRITTEN] = 1
        journal = Journal.new(self.journal.begin, self.journal.size, self.block_bytes, room)
        for which in (CURSOR, JOURNAL_ENTRIES):
            journal.state[which] = self.journal.state[which]
        return self._replace(buckets=buckets, journal=journal)

    # Buckets.

    @method
    def take_for_data(self, now, below):
        """Return a free bucket, pinned; -1 if there is none."""
        bucket = self.buckets.take_for_data()
        if bucket != NOTHING:
            self.go_on(now, below)
        return bucket

    @method
    def go_on(self, now, below):
        """Fill the lists of free buckets as far as possible."""
        buckets, state = self.buckets, self.state
        while state[IS_WRITTEN] == 1 and buckets.list_count[INCOMING] > 0:
            which = PRIO
            while which < INCOMING and not buckets.has_room(which):
                which += 1
            if which == INCOMING:
                break
            buckets.push(which, buckets.pop(INCOMING))
        if state[WAITING] > 0 and state[RESUMING] == 0 and buckets.list_count[NONE] > 0:
            state[RESUMING] = 1
            below.events.push(now, CACHE, RESUME)
        if buckets.list_count[INCOMING] > 0 and state[IS_WRITTEN] == 1:
            return
        state[IS_WRITTEN] = 0
        if state[IS_WRITING] == 1 or state[GC_WANTED] == 1:
            return
        if state[GC_RUNNING] == 1 and self.kernel < LINUX_6_12:
            return
        number = len(self.priorities) // 2
        available = buckets.list_count[PRIO] + buckets.list_count[NONE]
        if buckets.invalidate() and available >= number:
            state[IS_WRITING] = 1
            for i in range(number):
                self.priorities[number + i] = buckets.take_for_metadata(PRIO)
            state[PRIORITIES_LEFT] = number
            self.write_priorities(now, below)
        else:
            state[GC_WANTED] = 1
            self.wake_gc(now, below)

    @method
    def write_priorities(self, now, below):
        """Write the next bucket of priorities; after the last one wait for the journal."""
        left = self.state[PRIORITIES_LEFT]
        if left == 0:
            self.journal.add_and_wait(now, 0, NOTHING, below)
            return
        self.state[PRIORITIES_LEFT] = left - 1
        size = self.buckets.bucket_bytes
        at = self.priorities[len(self.priorities) - left] * size
        below.fast.submit(now, PRIORITIES, WRITE, at, size, below.events)

    @method
    def priorities_written(self, now, below):
        """Free the buckets of the previous priorities; the invalidated buckets can be used now."""
        number = len(self.priorities) // 2
        for i in range(number):
            self.buckets.free_metadata(self.priorities[i])
            self.priorities[i] = self.priorities[number + i]
        self.state[IS_WRITING] = 0
        self.state[IS_WRITTEN] = 1
        self.go_on(now, below)

    # Garbage collection.

    @method
    def insert_begins(self, now, length, below):
        """Count bytes towards the next collection."""
        self.state[TO_GC] -= length
        self.wake_gc(now, below)

    @method
    def changed(self):
        """Record that a collection may free something."""
        self.state[HAS_CHANGED] = 1

    @method
    def wake_gc(self, now, below):
        """Schedule a collection, if there is a reason for one."""
        state = self.state
        if state[GC_WOKEN] == 1 or state[GC_RUNNING] == 1:
            return
        if state[TO_GC] < 0 or state[GC_WANTED] == 1:
            state[GC_WOKEN] = 1
            is_vain = state[TO_GC] >= 0 and state[HAS_CHANGED] == 0
            below.events.push(now + GC_SLEEP_NS if is_vain else now, CACHE, GC)

    @method
    def force_gc(self, now, below):
        """Start a collection, unless one is under way."""
        if self.state[GC_RUNNING] == 0:
            self.state[TO_GC] = -1
            self.wake_gc(now, below)

    @method
    def begin_gc(self, now, below):
        """Start a collection; that of an index of one node ends at once."""
        state = self.state
        state[GC_WOKEN] = 0
        state[HAS_CHANGED] = 0
        state[TO_GC] = self.buckets.buckets * self.buckets.bucket_bytes // 16
        state[GC_RUNNING] = 1
        rests = state[NODES] // max(self.gc_nodes, state[NODES] // 100)
        if state[NODES] > 1 and rests > 0:
            self.buckets.begin_marking()
            each_ns = expiry_ns(0, GC_SLEEP_NS)
            end_ns = expiry_ns(now, GC_SLEEP_NS) + (rests - 1) * each_ns
            below.events.push(end_ns, CACHE, GC_END)
        else:
            self.end_gc(now, below)

    @method
    def end_gc(self, now, below):
        """Update the content of each bucket, and continue allocation."""
        self.buckets.mark_again()
        self.state[GC_WANTED] = 0
        self.state[GC_RUNNING] = 0
        self.state[GCS] += 1
        self.go_on(now, below)
        self.wake_gc(now, below)

    # Entries.

    @method
    def enter(self, now, begin, end, place, is_dirty, below):
        """Insert a key."""
        self.buckets.keys.enter(begin, end, place, is_dirty)
        self.entered(now, below)

    @method
    def erase(self, now, begin, end, below):
        """Remove the keys of a range that a request overwrites or discards."""
        self.buckets.keys.erase(begin, end, 1)
        self.entered(now, below)

    @method
    def keys_before_a_split(self):
        """Return how many keys fit into the nodes that there are."""
        nodes = self.state[NODES]
        return self.root_keys if nodes == 1 else nodes * self.node_keys

    @method
    def entered(self, now, below):
        """Account for an insert: append to nodes, and split them."""
        state = self.state
        state[ENTRIES] += 1
        if state[ENTRIES] % APPEND_KEYS == 0:
            at = state[APPENDS] * APPEND_BYTES % self.buckets.bucket_bytes
            at += self.root * self.buckets.bucket_bytes
            state[APPENDS] += 1
            below.fast.submit(now, NODE, WRITE | FUA, at, APPEND_BYTES, below.events)
        while self.keys_before_a_split() < self.buckets.keys.number():
            bucket = self.buckets.take_for_metadata(BTREE)
            if bucket == NOTHING:
                break
            state[NODES] += 1
            length = self.node_bytes * 4 // 5 // self.block_bytes * self.block_bytes
            at = bucket * self.buckets.bucket_bytes
            below.fast.submit(now, NODE, WRITE | FUA, at, length, below.events)
            self.go_on(now, below)
        self.changed()
