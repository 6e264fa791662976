"""The buckets of bcache: age and content of each, the free lists, the choice of victims.

The allocator fills the lists, collects garbage, and accounts for the index's buckets and writes.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache import journal as tags
from hybridsim.caches.bcache.journal import Journal
from hybridsim.caches.bcache.keys import Keys
from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled
from hybridsim.foundation.cache_parameters import BcacheParameters
from hybridsim.foundation.codes import FUA, Kernel, Op, Reuse
from hybridsim.jit import method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.jiffies import expiry_ns
from hybridsim.jit.lists import NOTHING
from hybridsim.jit.mixing import mixed


@state_machine
class Victims(NamedTuple):
    """A heap in the kernel's tie order; the highest rank is on top, or after `turn` the lowest."""

    bucket: Ints
    rank: Ints  # negated by `turn`
    number: Ints  # [number of entries]

    @classmethod
    def new(cls, room: int) -> Victims:
        """Return an empty heap with room for `room` buckets."""
        return cls(np.zeros(room, np.int64), np.zeros(room, np.int64), np.zeros(1, np.int64))

    @method
    def offer(self, bucket, rank):
        """Add a bucket, if there is room or a bucket of higher rank."""
        i = self.number[0]
        if i == len(self.bucket):
            if rank < self.rank[0]:
                self.bucket[0] = bucket
                self.rank[0] = rank
                self.sift(0)
            return
        self.number[0] += 1
        self.bucket[i] = bucket
        self.rank[i] = rank
        while i > 0 and self.rank[i] >= self.rank[(i - 1) // 2]:
            self.swap(i, (i - 1) // 2)
            i = (i - 1) // 2
        self.sift(i)

    @method
    def turn(self):
        """Rebuild the heap with the lowest rank on top."""
        for i in range(self.number[0]):
            self.rank[i] = -self.rank[i]
        for i in range(self.number[0] // 2 - 1, -1, -1):
            self.sift(i)

    @method
    def pop(self):
        """Remove and return the bucket on top."""
        bucket = self.bucket[0]
        self.number[0] -= 1
        self.swap(0, self.number[0])
        self.sift(0)
        return bucket

    @method
    def sift(self, i):
        """Move an entry down to its place."""
        while 2 * i + 1 < self.number[0]:
            child = 2 * i + 1
            if child + 1 < self.number[0] and self.rank[child] < self.rank[child + 1]:
                child += 1
            if self.rank[child] < self.rank[i]:
                return
            self.swap(i, child)
            i = child

    @method
    def swap(self, i, j):
        """Swap two entries."""
        bucket, rank = self.bucket[i], self.rank[i]
        self.bucket[i] = self.bucket[j]
        self.rank[i] = self.rank[j]
        self.bucket[j] = bucket
        self.rank[j] = rank


SECTOR_BYTES = 512
JOURNAL_MIN, JOURNAL_MAX = 2, 256  # buckets
PRIORITY_BYTES = 3  # per bucket, on the medium
BTREE_RESERVE = 8
INITIAL_PRIO, BTREE_PRIO = 32_768, 65_535
USED_MAX = 8191 * SECTOR_BYTES  # maximum of a field of 13 bits

EMPTY, CLEAN, DIRTY, METADATA = range(4)
# Lists of free buckets, in the order in which they are filled; INCOMING is their source.
PRIO, BTREE, NONE, INCOMING = range(4)


class Layout(NamedTuple):
    """The number of buckets for each purpose."""

    journal: int
    priorities: int
    unused: int  # the moving gc's reserve
    free: int
    incoming: int

    @classmethod
    def of(cls, bucket_bytes: int, buckets: int) -> Layout:
        """Return the layout of a cache."""
        journal = min(max(buckets // 128, JOURNAL_MIN), JOURNAL_MAX)
        share = max((1 << (buckets - 1).bit_length()) // 1024, 1)
        priorities = -(-PRIORITY_BYTES * buckets // bucket_bytes)
        return cls(journal, priorities, share, _list_size(share), _list_size(4 * share))

    @property
    def metadata(self) -> int:
        """Number of buckets for superblock, journal, uuids, index root and priorities."""
        return 3 + self.journal + self.priorities

    @property
    def withheld(self) -> int:
        """Number of buckets without data at first."""
        lists = self.priorities + BTREE_RESERVE + self.free + self.incoming
        return self.metadata + self.unused + lists


def _list_size(wanted: int) -> int:
    """Return the capacity of one of the kernel's lists."""
    return wanted if wanted <= 4 else (1 << (wanted + 1).bit_length() - 1) - 1


@state_machine
class Draws(NamedTuple):
    """Random numbers, the same in each run."""

    seed: int
    number: Ints  # [number of draws so far]

    @classmethod
    def new(cls, seed: int) -> Draws:
        """Return the numbers of a seed."""
        return cls(seed, np.zeros(1, np.int64))

    @method
    def draw(self):
        """Return the next random number."""
        self.number[0] += 1
        return mixed(mixed(self.seed) ^ (self.number[0] - 1))


KEY_BYTES = 24
NODE_BYTES_MAX = 256 * 1024
APPEND_BYTES = 4 * 1024  # one append to a node
APPEND_KEYS = 180  # keys per such write: measured
GC_SLEEP_NS = 100_000_000

(AVAIL, IN_USE, MIN_PRIO, RESCALE, LAST, INVALIDATIONS, IS_MARKING, IS_WRITTEN, IS_WRITING,
 GC_WANTED, GC_WOKEN, GC_RUNNING, HAS_CHANGED, TO_GC, NODES, INDEX_ENTRIES, APPENDS, WAITING,
 RESUMING, PRIORITIES_LEFT, GCS) = range(21)  # fmt: skip


@state_machine
class Buckets(NamedTuple):
    """All buckets of the cache device."""

    bucket_bytes: int
    number: int
    replacement: int  # codes.Reuse
    node_bytes: int
    node_keys: int  # keys in a node of average fill
    root_keys: int  # keys in a root that has no other nodes, before it splits
    block_bytes: int
    root: int  # bucket of the index's root
    kernel: int  # codes.Kernel
    gc_nodes: int  # that a gc looks through before it rests
    draws: Draws
    journal: Journal
    priorities: Ints  # the buckets that hold the priorities, then those being written
    keys: Keys
    prio: Int32s
    pins: Int32s  # reasons to keep it: in a list, open, being written
    mark: Bytes  # EMPTY, CLEAN, DIRTY, METADATA
    used: Ints  # bytes, as found by the last gc
    generation: Int32s
    was_reusable: Bytes  # 1: when the gc under way began
    listed: Ints  # rings of buckets, one after the other
    list_start: Int32s  # by list: where its ring begins
    list_room: Int32s
    list_first: Ints  # by list: the oldest entry
    list_count: Ints
    victims: Victims
    state: Ints  # [AVAIL ... GCS]

    @classmethod
    def new(cls, parameters: BcacheParameters, room: int) -> Buckets:
        """Return the buckets of an empty cache, with full lists."""
        p, bucket_bytes, count = parameters, parameters.bucket_bytes, parameters.buckets
        layout = Layout.of(bucket_bytes, count)
        node_bytes = min(bucket_bytes, NODE_BYTES_MAX)
        priorities = np.zeros(2 * layout.priorities, np.int64)
        priorities[: layout.priorities] = range(layout.journal + 3, layout.metadata)
        prio, pins = np.zeros((2, count), np.int32)
        mark = np.full(count, EMPTY, np.uint8)
        prio[: layout.metadata], mark[: layout.metadata] = BTREE_PRIO, METADATA
        prio[layout.metadata : layout.withheld] = INITIAL_PRIO
        pins[layout.metadata : layout.withheld] = 1
        sizes = [layout.priorities, BTREE_RESERVE, layout.free, layout.incoming]
        avail = count - layout.metadata
        state = np.zeros(21, np.int64)
        state[AVAIL], state[IN_USE] = avail, (count - avail) * 100 // count
        state[[LAST, IS_WRITTEN, NODES]] = 1
        state[TO_GC] = count * bucket_bytes // 16
        return filled(
            cls,
            count,
            p,
            number=count,
            node_bytes=node_bytes,
            node_keys=node_bytes * 6 // 10 // KEY_BYTES,
            root_keys=node_bytes * 4 // 5 // KEY_BYTES,
            root=layout.journal + 2,
            draws=Draws.new(p.seed),
            journal=Journal.new(bucket_bytes, layout.journal * bucket_bytes, p.block_bytes, room),
            priorities=priorities,
            keys=Keys.new(bucket_bytes, count, room),
            prio=prio,
            pins=pins,
            mark=mark,
            listed=np.arange(layout.metadata + layout.unused, layout.withheld),
            list_start=np.cumsum([0, *sizes[:-1]]).astype(np.int32),
            list_room=np.array(sizes, np.int32),
            list_first=np.zeros(4, np.int64),
            list_count=np.array(sizes, np.int64),
            victims=Victims.new(8 * layout.unused),
            state=state,
        )

    def restarted(self, room: int) -> Buckets:
        """Return the same buckets with nothing in progress: the listed and the reserve pinned."""
        number = len(self.priorities) // 2
        if self.state[IS_WRITING] == 1:  # the new priorities are taken to be complete
            for i in range(number):
                self.free_metadata(self.priorities[i])
            self.priorities[:number] = self.priorities[number:]
        self.state[[IS_WRITING, GC_WANTED, GC_WOKEN, GC_RUNNING, WAITING, RESUMING]] = 0
        self.state[IS_WRITTEN] = 1
        journal = Journal.new(self.journal.begin, self.journal.size, self.block_bytes, room)
        for which in (tags.CURSOR, tags.JOURNAL_ENTRIES):
            journal.state[which] = self.journal.state[which]
        self.keys.drop_placeholders()
        layout = Layout.of(self.bucket_bytes, self.number)
        self.pins[:] = 0
        self.pins[layout.metadata : layout.metadata + layout.unused] = 1
        for which in range(len(self.list_count)):
            for i in range(int(self.list_count[which])):
                at = (self.list_first[which] + i) % self.list_room[which]
                self.pins[self.listed[self.list_start[which] + at]] = 1
        return self._replace(journal=journal)

    # Lists.

    @method
    def push(self, which, bucket):
        """Add a bucket to a list that has room."""
        at = (self.list_first[which] + self.list_count[which]) % self.list_room[which]
        self.listed[self.list_start[which] + at] = bucket
        self.list_count[which] += 1

    @method
    def pop(self, which):
        """Remove and return the oldest bucket of a list; -1 if there is none."""
        if self.list_count[which] == 0:
            return NOTHING
        bucket = self.listed[self.list_start[which] + self.list_first[which]]
        self.list_first[which] = (self.list_first[which] + 1) % self.list_room[which]
        self.list_count[which] -= 1
        return bucket

    @method
    def has_room(self, which):
        """Return whether a list is not full."""
        return self.list_count[which] < self.list_room[which]

    @method
    def take_for_data(self, now, below):
        """Return a free bucket, pinned; -1 if there is none."""
        bucket = self.pop(NONE)
        if bucket != NOTHING:
            self.taken(bucket, CLEAN, INITIAL_PRIO)
            self.go_on(now, below)
        return bucket

    @method
    def take_for_metadata(self, reserve):
        """Return a free bucket, from a reserve if needed; -1 if there is none."""
        bucket = self.pop(NONE)
        if bucket == NOTHING:
            bucket = self.pop(reserve)
        if bucket != NOTHING:
            self.taken(bucket, METADATA, BTREE_PRIO)
            self.pins[bucket] = 0
        return bucket

    @method
    def taken(self, bucket, mark, prio):
        """Mark a bucket as used."""
        self.mark[bucket] = mark
        self.prio[bucket] = prio
        self.used[bucket] = min(self.bucket_bytes, USED_MAX)
        if self.state[AVAIL] > 0:
            self.avail(self.state[AVAIL] - 1)

    @method
    def free_metadata(self, bucket):
        """Make a bucket that held metadata available."""
        self.mark[bucket] = EMPTY
        self.used[bucket] = 0
        if self.state[AVAIL] < self.number:
            self.avail(self.state[AVAIL] + 1)

    @method
    def avail(self, number):
        """Set the number of buckets that could be reused."""
        self.state[AVAIL] = number
        self.state[IN_USE] = (self.number - number) * 100 // self.number

    # Victims.

    @method
    def is_reusable(self, bucket):
        """Return whether the content of a bucket may be dropped."""
        return self.mark[bucket] <= CLEAN and self.pins[bucket] == 0

    @method
    def can_be_dropped(self, bucket):
        """Return whether a bucket may be reused now; while a gc runs, only if it could before."""
        is_known = self.state[IS_MARKING] == 0 or self.was_reusable[bucket] == 1
        return is_known and self.is_reusable(bucket)

    @method
    def invalidate(self):
        """Fill the incoming list with victims; return whether it is full."""
        if not self.has_room(INCOMING):
            return True
        if self.replacement == Reuse.LRU:
            self.invalidate_oldest()
        else:
            self.invalidate_any()
        return not self.has_room(INCOMING)

    @method
    def invalidate_oldest(self):
        """Invalidate buckets of lowest priority times use; ties as in the kernel."""
        victims = self.victims
        victims.number[0] = 0
        base = (INITIAL_PRIO - self.state[MIN_PRIO]) // 8 - self.state[MIN_PRIO]
        for bucket in range(self.number):
            if self.can_be_dropped(bucket):
                rank = (self.prio[bucket] + base) * (self.used[bucket] // SECTOR_BYTES)
                victims.offer(bucket, rank)
        victims.turn()
        while self.has_room(INCOMING) and victims.number[0] > 0:
            bucket = victims.pop()
            self.invalidate_one(bucket)
            self.push(INCOMING, bucket)

    @method
    def invalidate_any(self):
        """Invalidate the next buckets, by number or at random."""
        tries = self.number if self.replacement == Reuse.FIFO else self.number // 2
        for _ in range(tries):
            if not self.has_room(INCOMING):
                return
            if self.replacement == Reuse.FIFO:
                bucket = self.state[LAST]
                self.state[LAST] = 1 + bucket % (self.number - 1)
            else:
                bucket = 1 + self.draws.draw() % (self.number - 1)
            if self.can_be_dropped(bucket):
                self.invalidate_one(bucket)
                self.push(INCOMING, bucket)

    @method
    def invalidate_one(self, bucket):
        """Drop the content of a bucket."""
        self.prio[bucket] = INITIAL_PRIO
        self.pins[bucket] += 1
        self.generation[bucket] += 1
        if self.keys.empty(bucket):
            self.state[INVALIDATIONS] += 1

    # Age, and garbage collection.

    @method
    def age(self, length):
        """Count bytes of requests; periodically increase the age of all buckets."""
        state = self.state
        state[RESCALE] -= length // SECTOR_BYTES
        if state[RESCALE] >= 0:
            return
        state[RESCALE] += self.number * (self.bucket_bytes // SECTOR_BYTES) // 1024
        lowest = BTREE_PRIO
        for bucket in range(self.number):
            prio = self.prio[bucket]
            if prio != 0 and prio != BTREE_PRIO and self.pins[bucket] == 0:
                self.prio[bucket] = prio - 1
                lowest = min(lowest, prio - 1)
        if lowest < BTREE_PRIO:
            state[MIN_PRIO] = lowest

    @method
    def mark_again(self):
        """Update the content of each bucket."""
        self.state[IS_MARKING] = 0
        keys = self.keys
        reusable = 0
        for bucket in range(self.number):
            if self.mark[bucket] == METADATA:
                continue
            live, dirty = keys.live[bucket], keys.dirty[bucket]
            if self.pins[bucket] == 0:
                self.used[bucket] = min(live, USED_MAX)
                self.mark[bucket] = CLEAN if live > 0 else EMPTY
            else:
                self.used[bucket] = min(self.used[bucket] + live, USED_MAX)
            if dirty > 0:
                self.mark[bucket] = DIRTY
            if self.is_reusable(bucket):
                reusable += 1
        self.avail(reusable)

    # The allocator.

    @method
    def go_on(self, now, below):
        """Fill the lists of free buckets as far as possible."""
        state = self.state
        while state[IS_WRITTEN] == 1 and self.list_count[INCOMING] > 0:
            which = PRIO
            while which < INCOMING and not self.has_room(which):
                which += 1
            if which == INCOMING:
                break
            self.push(which, self.pop(INCOMING))
        if state[WAITING] > 0 and self.list_count[NONE] > 0:
            below.events.push_once(state, RESUMING, now, CACHE, tags.RESUME)
        if self.list_count[INCOMING] > 0 and state[IS_WRITTEN] == 1:
            return
        state[IS_WRITTEN] = 0
        if state[IS_WRITING] == 1 or state[GC_WANTED] == 1:
            return
        if state[GC_RUNNING] == 1 and self.kernel < Kernel.LINUX_6_12:
            return
        number = len(self.priorities) // 2
        available = self.list_count[PRIO] + self.list_count[NONE]
        if self.invalidate() and available >= number:
            state[IS_WRITING] = 1
            for i in range(number):
                self.priorities[number + i] = self.take_for_metadata(PRIO)
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
        size = self.bucket_bytes
        at = self.priorities[len(self.priorities) - left] * size
        below.fast.submit(now, tags.PRIORITIES, Op.WRITE, at, size, below.events)

    @method
    def priorities_written(self, now, below):
        """Free the buckets of the previous priorities; the invalidated buckets can be used now."""
        number = len(self.priorities) // 2
        for i in range(number):
            self.free_metadata(self.priorities[i])
            self.priorities[i] = self.priorities[number + i]
        self.state[IS_WRITING] = 0
        self.state[IS_WRITTEN] = 1
        self.go_on(now, below)

    # Garbage collection.

    @method
    def wake_gc(self, now, below):
        """Schedule a collection, if there is a reason for one."""
        state = self.state
        if state[GC_WOKEN] == 1 or state[GC_RUNNING] == 1:
            return
        if state[TO_GC] < 0 or state[GC_WANTED] == 1:
            state[GC_WOKEN] = 1
            is_vain = state[TO_GC] >= 0 and state[HAS_CHANGED] == 0
            below.events.push(now + GC_SLEEP_NS if is_vain else now, CACHE, tags.GC)

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
        state[TO_GC] = self.number * self.bucket_bytes // 16
        state[GC_RUNNING] = 1
        rests = state[NODES] // max(self.gc_nodes, state[NODES] // 100)
        if state[NODES] > 1 and rests > 0:
            state[IS_MARKING] = 1
            for bucket in range(self.number):
                self.was_reusable[bucket] = 1 if self.is_reusable(bucket) else 0
            each_ns = expiry_ns(0, GC_SLEEP_NS)
            end_ns = expiry_ns(now, GC_SLEEP_NS) + (rests - 1) * each_ns
            below.events.push(end_ns, CACHE, tags.GC_END)
        else:
            self.end_gc(now, below)

    @method
    def end_gc(self, now, below):
        """Update the content of each bucket, and continue allocation."""
        self.mark_again()
        self.state[GC_WANTED] = self.state[GC_RUNNING] = 0
        self.state[GCS] += 1
        self.go_on(now, below)
        self.wake_gc(now, below)

    # Entries.

    @method
    def enter(self, now, begin, end, place, is_dirty, below):
        """Insert a key."""
        self.keys.enter(begin, end, place, is_dirty)
        self.entered(now, below)

    @method
    def erase(self, now, begin, end, below):
        """Remove the keys of a range that a request overwrites or discards."""
        self.keys.erase(begin, end, 1)
        self.entered(now, below)

    @method
    def entered(self, now, below):
        """Account for an insert: append to nodes, and split them."""
        state = self.state
        state[INDEX_ENTRIES] += 1
        if state[INDEX_ENTRIES] % APPEND_KEYS == 0:
            at = state[APPENDS] * APPEND_BYTES % self.bucket_bytes
            at += self.root * self.bucket_bytes
            state[APPENDS] += 1
            below.fast.submit(now, tags.NODE, Op.WRITE | FUA, at, APPEND_BYTES, below.events)
        while self.keys.number() > (
            self.root_keys if state[NODES] == 1 else state[NODES] * self.node_keys
        ):
            bucket = self.take_for_metadata(BTREE)
            if bucket == NOTHING:
                break
            state[NODES] += 1
            length = self.node_bytes * 4 // 5 // self.block_bytes * self.block_bytes
            at = bucket * self.bucket_bytes
            below.fast.submit(now, tags.NODE, Op.WRITE | FUA, at, length, below.events)
            self.go_on(now, below)
        state[HAS_CHANGED] = 1
