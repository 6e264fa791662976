"""The index of bcache: it maps ranges of the backing device to places in the cache.

A key is one such range; it is a number, the index of the arrays of Keys.  A placeholder is a key
without data: it marks a range that a fill (an "insert", by number) is about to write.  A B+ tree
leads from the start of a key to its number: nodes are filled in order and split in half; an empty
node is removed, others are not merged: keys are added and removed in equal numbers here, so that
balancing costs more than it saves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import (
    Bytes,
    Int32s,
    Ints,
    free_list,
    grown_pool,
    longer,
    pool_of,
)
from hybridsim.foundation.codes import Reason
from hybridsim.jit import method, state_machine
from hybridsim.jit.instructions import along
from hybridsim.jit.lists import NOTHING, Chains, give_back, taken

FAN = 32  # entries of a node
LEVELS_MAX = 16

ROOT, LEVELS = range(2)


@state_machine
class Tree(NamedTuple):
    """Entry i of node k is at k * FAN + i; nodes are leaves at level 0."""

    begin: Ints  # in a leaf: start of the key; above: lower bound of the keys below
    ref: Int32s  # number of the key; above: the node below
    entries: Int32s  # by node: number of entries
    path_node: Int32s  # by level: the path of the last descent
    path_entry: Int32s
    state: Ints  # [ROOT, LEVELS]
    following: Int32s  # by node: the free list
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls, capacity: int) -> Tree:
        """Return an empty tree with room for `capacity` nodes."""
        return cls(
            np.zeros(capacity * FAN, np.int64),
            np.zeros(capacity * FAN, np.int32),
            np.zeros(capacity, np.int32),
            np.zeros(LEVELS_MAX, np.int32),
            np.zeros(LEVELS_MAX, np.int32),
            np.array([0, 1]),  # node 0 is the root, an empty leaf
            free_list(capacity),
            np.array([1, capacity - 1]),
        )

    def grown(self, capacity: int) -> Tree:
        """Return the same tree with room for `capacity` nodes."""
        tree = grown_pool(self, capacity, ("entries",))
        begin, ref = longer(self.begin, capacity * FAN), longer(self.ref, capacity * FAN)
        return tree._replace(begin=begin, ref=ref)

    @method
    def near(self, begin):
        """Return the last key that starts at or before `begin`, or else the first one of its leaf.

        Returns -1 if there are no keys.
        """
        node = self.state[ROOT]
        for _ in range(1, self.state[LEVELS]):
            node = self.ref[node * FAN + self.search(node, begin)]
        if self.entries[node] == 0:
            return NOTHING
        return self.ref[node * FAN + self.search(node, begin)]

    @method
    def search(self, node, begin):
        """Return the last entry of a node that is not after `begin`, or else the first one."""
        first = node * FAN
        low, high = 0, self.entries[node]
        while high - low > 1:
            middle = (low + high) >> 1
            if self.begin[first + middle] <= begin:
                low = middle
            else:
                high = middle
        return low

    @method
    def descend(self, begin):
        """Record the path to the leaf to which a key belongs."""
        node = self.state[ROOT]
        for level in range(self.state[LEVELS] - 1, -1, -1):
            entry = self.search(node, begin)
            self.path_node[level] = node
            self.path_entry[level] = entry
            node = self.ref[node * FAN + entry]

    @method
    def add(self, begin, ref):
        """Add a key."""
        self.descend(begin)
        leaf = self.path_node[0]
        entry = self.path_entry[0]
        if self.entries[leaf] > 0 and self.begin[leaf * FAN + entry] <= begin:
            entry += 1
        level = 0
        while True:
            node = self.path_node[level]
            if self.entries[node] < FAN:
                self.insert(node, entry, begin, ref)
                return
            right = self.split(node)
            if entry > FAN // 2:
                self.insert(right, entry - FAN // 2, begin, ref)
            else:
                self.insert(node, entry, begin, ref)
            begin = self.begin[right * FAN]
            ref = right
            level += 1
            if level == self.state[LEVELS]:
                self.raise_root(node, begin, right)
                return
            entry = self.path_entry[level] + 1

    @method
    def insert(self, node, entry, begin, ref):
        """Insert an entry into a node that has room."""
        first = node * FAN
        for i in range(first + self.entries[node], first + entry, -1):
            self.begin[i] = self.begin[i - 1]
            self.ref[i] = self.ref[i - 1]
        self.begin[first + entry] = begin
        self.ref[first + entry] = ref
        self.entries[node] += 1

    @method
    def split(self, node):
        """Move the upper half of a full node to a new one; return the new one."""
        right = taken(self)
        half = FAN // 2
        for i in range(half):
            self.begin[right * FAN + i] = self.begin[node * FAN + half + i]
            self.ref[right * FAN + i] = self.ref[node * FAN + half + i]
        self.entries[node] = half
        self.entries[right] = FAN - half
        return right

    @method
    def raise_root(self, left, begin, right):
        """Create a new root above the two halves of the old one."""
        root = taken(self)
        self.entries[root] = 0
        self.insert(root, 0, self.begin[left * FAN], left)
        self.insert(root, 1, begin, right)
        self.state[ROOT] = root
        self.state[LEVELS] += 1

    @method
    def remove(self, begin):
        """Remove the key that starts at `begin`."""
        self.descend(begin)
        level = 0
        while True:
            node = self.path_node[level]
            first = node * FAN
            self.entries[node] -= 1
            for i in range(first + self.path_entry[level], first + self.entries[node]):
                self.begin[i] = self.begin[i + 1]
                self.ref[i] = self.ref[i + 1]
            if self.entries[node] > 0 or level == self.state[LEVELS] - 1:
                break
            give_back(self, node)
            level += 1
        while self.state[LEVELS] > 1 and self.entries[self.state[ROOT]] == 1:
            root = self.state[ROOT]
            self.state[ROOT] = self.ref[root * FAN]
            self.state[LEVELS] -= 1
            give_back(self, root)


REGION_BYTES = 64 * 1024  # for each region the reason of the last data loss is kept

LIVE_BYTES, DIRTY_BYTES = range(2)  # positions in Keys.state
COLUMNS = ("begin", "end", "place", "is_dirty")  # by key, and zero at first


@state_machine
class Keys(NamedTuple):
    """Keys, linked in order of address and by bucket, with a search tree over their begins."""

    bucket_bytes: int
    tree: Tree
    begin: Ints  # byte of the backing device
    end: Ints  # the byte after the last
    place: Ints  # byte of the cache; of a placeholder -1 - the number of its insert
    is_dirty: Bytes
    order: Chains  # in order of address: the first key is the newest, `older` leads to the next
    of_bucket: Chains  # by bucket: its keys
    live: Ints  # by bucket: bytes that keys have in it
    dirty: Ints  # by bucket: those of dirty keys
    lost: Ints  # by region, modulo their number: region * 2 + 1 if overwritten; -1: no loss
    state: Ints  # [LIVE_BYTES, DIRTY_BYTES]
    following: Int32s  # the free list
    free: Ints  # [first free, number of free]

    @classmethod
    def new(cls, bucket_bytes: int, buckets: int, room: int) -> Keys:
        """Return an empty index, with room for `room` keys."""
        regions = max(2 * buckets * bucket_bytes // REGION_BYTES, 1)
        return pool_of(
            cls,
            room,
            bucket_bytes=bucket_bytes,
            tree=Tree.new(room),
            order=Chains.new(room),
            of_bucket=Chains.new(room, buckets),
            live=np.zeros(buckets, np.int64),
            dirty=np.zeros(buckets, np.int64),
            lost=np.full(1 << (regions - 1).bit_length(), NOTHING, np.int64),
            state=np.zeros(2, np.int64),
        )

    def grown(self, room: int) -> Keys:
        """Return the same keys with room for `room` keys."""
        parts = {name: getattr(self, name).grown(room) for name in ("tree", "order", "of_bucket")}
        return grown_pool(self._replace(**parts), room, COLUMNS)

    @method
    def room(self):
        """Return how many more keys can be inserted; each may split another, so it may need two."""
        return min(self.free[1] // 2, self.tree.free[1] // 4)

    @method
    def number(self):
        """Return the number of keys."""
        return len(self.begin) - self.free[1]

    # Look-up.

    @method
    def last_until(self, begin):
        """Return the last key that begins at or before a byte, or -1."""
        key = self.tree.near(begin)
        if key != NOTHING and self.begin[key] > begin:
            key = self.order.newer[key]
        return key

    @method
    def first_beyond(self, byte):
        """Return the first key that ends beyond a byte, or -1."""
        key = self.last_until(byte)
        if key == NOTHING:
            return self.order.newest[0]
        return key if self.end[key] > byte else self.order.older[key]

    @method
    def why_missing(self, byte):
        """Return the reason why a byte is not cached."""
        key = self.first_beyond(byte)
        if key != NOTHING and self.begin[key] <= byte:
            return Reason.FILLING
        region = byte // REGION_BYTES
        lost = self.lost[region & (len(self.lost) - 1)]
        if lost >> 1 != region:
            return Reason.COLD
        return Reason.OVERWRITTEN if lost & 1 == 1 else Reason.EVICTED

    # Changes.

    @method
    def enter(self, begin, end, place, is_dirty):
        """Map [begin, end) to a place, in a new or an extended key; remove what it overlaps."""
        match = self.first_beyond(begin)
        merges = self.continues(begin, place, is_dirty)
        is_same = match != NOTHING and self.begin[match] == begin and self.end[match] == end
        if is_same and not merges:  # for example when a placeholder becomes data
            self.leave_bucket(match)
            self.place[match] = place
            self.is_dirty[match] = is_dirty
            self.join_bucket(match)
            return
        self.erase(begin, end, NOTHING)
        last = self.last_until(begin)
        if merges:
            self.end[last] = end
            self.count_in(last, end - begin)
            return
        self.add(last, begin, end, place, is_dirty)

    @method
    def continues(self, begin, place, is_dirty):
        """Return whether data at `begin` would continue the key that ends there."""
        if place < 0:
            return False
        last = self.last_until(begin - 1)
        if last == NOTHING or self.end[last] < begin or self.place[last] < 0:
            return False
        next_place = self.place[last] + begin - self.begin[last]
        return (
            next_place == place
            and next_place // self.bucket_bytes == self.place[last] // self.bucket_bytes
            and self.is_dirty[last] == is_dirty
        )

    @method
    def erase(self, begin, end, overwritten):
        """Remove a range from all keys; `overwritten` 1: record it as the reason of the loss."""
        for key in along(self.first_beyond(begin), self.order.older):
            if self.begin[key] >= end:
                break
            start, stop = max(begin, self.begin[key]), min(end, self.end[key])
            if overwritten == 1 and self.place[key] >= 0:
                self.note_lost(start, stop, 1)
            if start > self.begin[key]:
                if stop < self.end[key]:
                    self.split(key, stop)
                self.count_in(key, start - self.end[key])
                self.end[key] = start
            elif stop < self.end[key]:
                self.count_in(key, start - stop)
                self.tree.remove(start)
                if self.place[key] >= 0:
                    self.place[key] += stop - start
                self.begin[key] = stop
                self.tree.add(stop, key)
            else:
                self.drop(key)

    @method
    def split(self, key, at):
        """Split a key in two."""
        place = self.place[key]
        if place >= 0:
            place += at - self.begin[key]
        end = self.end[key]
        self.count_in(key, at - end)
        self.end[key] = at
        self.add(key, at, end, place, self.is_dirty[key])

    @method
    def add(self, last, begin, end, place, is_dirty):
        """Add a key after the key `last` (-1: before all), in a range without keys."""
        key = taken(self)
        self.begin[key] = begin
        self.end[key] = end
        self.place[key] = place
        self.is_dirty[key] = is_dirty
        self.order.add_before(0, key, last)
        self.tree.add(begin, key)
        self.join_bucket(key)

    @method
    def drop(self, key):
        """Remove a key."""
        self.tree.remove(self.begin[key])
        self.leave_bucket(key)
        self.order.remove(0, key)
        give_back(self, key)

    @method
    def drop_placeholder(self, insert, begin, end):
        """Remove the remaining parts of a placeholder."""
        for key in along(self.first_beyond(begin), self.order.older):
            if self.begin[key] >= end:
                break
            if self.place[key] == -1 - insert:
                self.drop(key)

    def drop_placeholders(self) -> None:
        """Remove all placeholders: the cache stops."""
        for key in along(self.order.newest[0], self.order.older):
            if self.place[key] < 0:
                self.drop(key)

    @method
    def empty(self, bucket):
        """Drop all keys of a bucket; return whether there were any."""
        if self.of_bucket.newest[bucket] == NOTHING:
            return False
        while self.of_bucket.newest[bucket] != NOTHING:
            key = self.of_bucket.newest[bucket]
            self.note_lost(self.begin[key], self.end[key], 0)
            self.drop(key)
        return True

    @method
    def note_lost(self, begin, end, overwritten):
        """Record why data was lost."""
        mask = len(self.lost) - 1
        for region in range(begin // REGION_BYTES, (end - 1) // REGION_BYTES + 1):
            self.lost[region & mask] = region << 1 | overwritten

    # Content of buckets.

    @method
    def count_in(self, key, size):
        """Add bytes of a key to the counts of its bucket; those that it loses are negative."""
        if self.place[key] < 0:
            return
        bucket = self.place[key] // self.bucket_bytes
        self.live[bucket] += size
        self.state[LIVE_BYTES] += size
        if self.is_dirty[key] == 1:
            self.dirty[bucket] += size
            self.state[DIRTY_BYTES] += size

    @method
    def join_bucket(self, key):
        """Count the bytes of a key in its bucket, and link it to the others there."""
        if self.place[key] >= 0:
            self.count_in(key, self.end[key] - self.begin[key])
            self.of_bucket.add(self.place[key] // self.bucket_bytes, key)

    @method
    def leave_bucket(self, key):
        """Undo what `join_bucket` does."""
        if self.place[key] >= 0:
            self.count_in(key, self.begin[key] - self.end[key])
            self.of_bucket.remove(self.place[key] // self.bucket_bytes, key)
