"""Buckets: age and content of each, the free lists, and the choice of victims."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache.keys import Keys
from hybridsim.caches.bcache.victims import Victims
from hybridsim.foundation.arrays import Bytes, Int32s, Ints
from hybridsim.foundation.codes import Reuse
from hybridsim.jit import method, state_machine
from hybridsim.jit.mixing import mixed

NOTHING = -1
SECTOR_BYTES = 512
JOURNAL_MIN, JOURNAL_MAX = 2, 256  # buckets
PRIORITY_BYTES = 3  # per bucket, on the medium
BTREE_RESERVE = 8
INITIAL_PRIO, BTREE_PRIO = 32_768, 65_535
USED_MAX = 8191 * SECTOR_BYTES  # maximum of a field of 13 bits

EMPTY, CLEAN, DIRTY, METADATA = range(4)
# Lists of free buckets, in the order in which they are filled; INCOMING is their source.
PRIO, BTREE, NONE, INCOMING = range(4)
LRU, FIFO = int(Reuse.LRU), int(Reuse.FIFO)

AVAIL, IN_USE, MIN_PRIO, RESCALE, LAST, DRAWS, INVALIDATIONS, IS_MARKING = range(8)


def roundup_pow2(number: int) -> int:
    """Return the smallest power of two that is at least `number`."""
    return 1 << (number - 1).bit_length()


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
        share = max(roundup_pow2(buckets) // 1024, 1)
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
class Buckets(NamedTuple):
    """All buckets of the cache device."""

    bucket_bytes: int
    buckets: int
    replacement: int  # codes.Reuse
    seed: int
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
    state: Ints  # [AVAIL ... IS_MARKING]

    @classmethod
    def new(
        cls, bucket_bytes: int, buckets: int, replacement: int, seed: int, room: int
    ) -> Buckets:
        """Return the buckets of an empty cache, with full lists."""
        layout = Layout.of(bucket_bytes, buckets)
        prio, pins = np.zeros(buckets, np.int32), np.zeros(buckets, np.int32)
        mark = np.full(buckets, EMPTY, np.uint8)
        prio[: layout.metadata], mark[: layout.metadata] = BTREE_PRIO, METADATA
        prio[layout.metadata : layout.withheld] = INITIAL_PRIO
        pins[layout.metadata : layout.withheld] = 1
        sizes = [layout.priorities, BTREE_RESERVE, layout.free, layout.incoming]
        starts = np.cumsum([0, *sizes[:-1]])
        avail = buckets - layout.metadata
        return cls(
            bucket_bytes,
            buckets,
            replacement,
            seed,
            Keys.new(bucket_bytes, buckets, room),
            prio,
            pins,
            mark,
            np.zeros(buckets, np.int64),
            np.zeros(buckets, np.int32),
            np.zeros(buckets, np.uint8),
            np.arange(layout.metadata + layout.unused, layout.withheld),
            starts.astype(np.int32),
            np.array(sizes, np.int32),
            np.zeros(4, np.int64),
            np.array(sizes, np.int64),
            Victims.new(8 * layout.unused),
            np.array([avail, (buckets - avail) * 100 // buckets, 0, 0, 1, 0, 0, 0]),
        )

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

    def restarted(self) -> Buckets:
        """Return the same buckets, with only the listed ones and the reserve pinned."""
        self.keys.drop_placeholders()
        layout = Layout.of(self.bucket_bytes, self.buckets)
        self.pins[:] = 0
        self.pins[layout.metadata : layout.metadata + layout.unused] = 1
        for which in range(len(self.list_count)):
            for i in range(int(self.list_count[which])):
                at = (self.list_first[which] + i) % self.list_room[which]
                self.pins[self.listed[self.list_start[which] + at]] = 1
        return self

    @method
    def has_room(self, which):
        """Return whether a list is not full."""
        return self.list_count[which] < self.list_room[which]

    @method
    def take_for_data(self):
        """Return a free bucket, pinned; -1 if there is none."""
        bucket = self.pop(NONE)
        if bucket != NOTHING:
            self.taken(bucket, CLEAN, INITIAL_PRIO)
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
        if self.state[AVAIL] < self.buckets:
            self.avail(self.state[AVAIL] + 1)

    @method
    def avail(self, number):
        """Set the number of buckets that could be reused."""
        self.state[AVAIL] = number
        self.state[IN_USE] = (self.buckets - number) * 100 // self.buckets

    # Victims.

    @method
    def touch(self, bucket):
        """Reset the age of a bucket that was read."""
        self.prio[bucket] = INITIAL_PRIO

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
        if self.replacement == LRU:
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
        for bucket in range(self.buckets):
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
        tries = self.buckets if self.replacement == FIFO else self.buckets // 2
        for _ in range(tries):
            if not self.has_room(INCOMING):
                return
            if self.replacement == FIFO:
                bucket = self.state[LAST]
                self.state[LAST] = 1 + bucket % (self.buckets - 1)
            else:
                bucket = 1 + self.draw() % (self.buckets - 1)
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

    @method
    def draw(self):
        """Return the next random number."""
        self.state[DRAWS] += 1
        return mixed(mixed(self.seed) ^ (self.state[DRAWS] - 1))

    # Age, and garbage collection.

    @method
    def age(self, length):
        """Count bytes of requests; periodically increase the age of all buckets."""
        state = self.state
        state[RESCALE] -= length // SECTOR_BYTES
        if state[RESCALE] >= 0:
            return
        state[RESCALE] += self.buckets * (self.bucket_bytes // SECTOR_BYTES) // 1024
        lowest = BTREE_PRIO
        for bucket in range(self.buckets):
            prio = self.prio[bucket]
            if prio != 0 and prio != BTREE_PRIO and self.pins[bucket] == 0:
                self.prio[bucket] = prio - 1
                lowest = min(lowest, prio - 1)
        if lowest < BTREE_PRIO:
            state[MIN_PRIO] = lowest

    @method
    def begin_marking(self):
        """Note which buckets are reusable as a gc begins."""
        self.state[IS_MARKING] = 1
        for bucket in range(self.buckets):
            self.was_reusable[bucket] = 1 if self.is_reusable(bucket) else 0

    @method
    def mark_again(self):
        """Update the content of each bucket."""
        self.state[IS_MARKING] = 0
        keys = self.keys
        reusable = 0
        for bucket in range(self.buckets):
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
