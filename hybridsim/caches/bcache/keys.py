"""The index of bcache: it maps ranges of the backing device to places in the cache.

A key is one such range; it is a number, the index of the arrays of Keys.  A placeholder is a key
without data: it marks a range that a fill (an "insert", by number) is about to write.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.bcache.tree import NODES_FREE, Tree
from hybridsim.foundation.arrays import Bytes, Int32s, Ints, extended_free_list, free_list, longer
from hybridsim.foundation.codes import Reason
from hybridsim.jit import method, state_machine

NOTHING = -1
REGION_BYTES = 64 * 1024  # for each region the reason of the last data loss is kept

COLD, FILLING = int(Reason.COLD), int(Reason.FILLING)
EVICTED, OVERWRITTEN = int(Reason.EVICTED), int(Reason.OVERWRITTEN)

FIRST, FIRST_FREE, KEYS_FREE, LIVE_BYTES, DIRTY_BYTES = range(5)  # positions in Keys.state


@state_machine
class Keys(NamedTuple):
    """Keys, linked in order of address and by bucket, with a search tree over their begins."""

    bucket_bytes: int
    tree: Tree
    begin: Ints  # byte of the backing device
    end: Ints  # the byte after the last
    place: Ints  # byte of the cache; of a placeholder -1 - the number of its insert
    is_dirty: Bytes
    before: Int32s  # list in order of address
    after: Int32s  # list in order of address, or the free list
    bucket_before: Int32s  # list of the keys of the same bucket
    bucket_after: Int32s
    first: Int32s  # by bucket: the first key of its list
    live: Ints  # by bucket: bytes that keys have in it
    dirty: Ints  # by bucket: those of dirty keys
    lost: Ints  # by region, modulo their number: region * 2 + 1 if overwritten; -1: no loss
    state: Ints  # [FIRST ... DIRTY_BYTES]

    @classmethod
    def new(cls, bucket_bytes: int, buckets: int, room: int) -> Keys:
        """Return an empty index, with room for `room` keys."""
        regions = max(2 * buckets * bucket_bytes // REGION_BYTES, 1)
        return cls(
            bucket_bytes,
            Tree.new(room),
            begin=np.zeros(room, np.int64),
            end=np.zeros(room, np.int64),
            place=np.zeros(room, np.int64),
            is_dirty=np.zeros(room, np.uint8),
            before=np.zeros(room, np.int32),
            after=free_list(room),
            bucket_before=np.zeros(room, np.int32),
            bucket_after=np.zeros(room, np.int32),
            first=np.full(buckets, NOTHING, np.int32),
            live=np.zeros(buckets, np.int64),
            dirty=np.zeros(buckets, np.int64),
            lost=np.full(1 << (regions - 1).bit_length(), NOTHING, np.int64),
            state=np.array([NOTHING, 0, room, 0, 0]),
        )

    def grown(self, room: int) -> Keys:
        """Return the same keys with room for `room` keys."""
        state = self.state.copy()
        links, head = extended_free_list(self.after, int(state[FIRST_FREE]), room)
        state[FIRST_FREE] = head
        state[KEYS_FREE] += room - len(self.begin)
        return self._replace(
            tree=self.tree.grown(room),
            begin=longer(self.begin, room),
            end=longer(self.end, room),
            place=longer(self.place, room),
            is_dirty=longer(self.is_dirty, room),
            before=longer(self.before, room),
            after=links,
            bucket_before=longer(self.bucket_before, room),
            bucket_after=longer(self.bucket_after, room),
            state=state,
        )

    @method
    def room(self):
        """Return how many more keys can be inserted; each may split another, so it may need two."""
        return min(self.state[KEYS_FREE] // 2, self.tree.state[NODES_FREE] // 4)

    @method
    def number(self):
        """Return the number of keys."""
        return len(self.begin) - self.state[KEYS_FREE]

    # Look-up.

    @method
    def last_until(self, begin):
        """Return the last key that begins at or before a byte, or -1."""
        key = self.tree.near(begin)
        if key != NOTHING and self.begin[key] > begin:
            key = self.before[key]
        return key

    @method
    def first_beyond(self, byte):
        """Return the first key that ends beyond a byte, or -1."""
        key = self.last_until(byte)
        if key == NOTHING:
            return self.state[FIRST]
        return key if self.end[key] > byte else self.after[key]

    @method
    def first_data_beyond(self, byte):
        """Return the first key with data that ends beyond a byte, or -1."""
        key = self.first_beyond(byte)
        while key != NOTHING and self.place[key] < 0:
            key = self.after[key]
        return key

    @method
    def why_missing(self, byte):
        """Return the reason why a byte is not cached."""
        key = self.first_beyond(byte)
        if key != NOTHING and self.begin[key] <= byte:
            return FILLING
        region = byte // REGION_BYTES
        lost = self.lost[region & (len(self.lost) - 1)]
        if lost >> 1 != region:
            return COLD
        return OVERWRITTEN if lost & 1 == 1 else EVICTED

    # Changes.

    @method
    def enter(self, begin, end, place, is_dirty):
        """Map [begin, end) to a place, in a new or an extended key; remove what it overlaps."""
        match = self.first_beyond(begin)
        merges = self.continues(begin, place, is_dirty)
        is_same = match != NOTHING and self.begin[match] == begin and self.end[match] == end
        if is_same and not merges:  # for example when a placeholder becomes data
            self.count_off(match, end - begin)
            self.leave_bucket(match)
            self.place[match] = place
            self.is_dirty[match] = is_dirty
            self.count_in(match, end - begin)
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
        key = self.first_beyond(begin)
        while key != NOTHING and self.begin[key] < end:
            after = self.after[key]
            start, stop = max(begin, self.begin[key]), min(end, self.end[key])
            if overwritten == 1 and self.place[key] >= 0:
                self.note_lost(start, stop, 1)
            if start > self.begin[key]:
                if stop < self.end[key]:
                    self.split(key, stop)
                self.count_off(key, self.end[key] - start)
                self.end[key] = start
            elif stop < self.end[key]:
                self.count_off(key, stop - start)
                self.tree.remove(start)
                if self.place[key] >= 0:
                    self.place[key] += stop - start
                self.begin[key] = stop
                self.tree.add(stop, key)
            else:
                self.drop(key)
            key = after

    @method
    def split(self, key, at):
        """Split a key in two."""
        place = self.place[key]
        if place >= 0:
            place += at - self.begin[key]
        end = self.end[key]
        self.count_off(key, end - at)
        self.end[key] = at
        self.add(key, at, end, place, self.is_dirty[key])

    @method
    def add(self, last, begin, end, place, is_dirty):
        """Add a key after the key `last` (-1: before all), in a range without keys."""
        state = self.state
        key = state[FIRST_FREE]
        state[FIRST_FREE] = self.after[key]
        state[KEYS_FREE] -= 1
        self.begin[key] = begin
        self.end[key] = end
        self.place[key] = place
        self.is_dirty[key] = is_dirty
        after = state[FIRST] if last == NOTHING else self.after[last]
        self.before[key] = last
        self.after[key] = after
        if last == NOTHING:
            state[FIRST] = key
        else:
            self.after[last] = key
        if after != NOTHING:
            self.before[after] = key
        self.tree.add(begin, key)
        self.count_in(key, end - begin)
        self.join_bucket(key)

    @method
    def drop(self, key):
        """Remove a key."""
        state = self.state
        self.tree.remove(self.begin[key])
        self.count_off(key, self.end[key] - self.begin[key])
        self.leave_bucket(key)
        before, after = self.before[key], self.after[key]
        if before == NOTHING:
            state[FIRST] = after
        else:
            self.after[before] = after
        if after != NOTHING:
            self.before[after] = before
        self.after[key] = state[FIRST_FREE]
        state[FIRST_FREE] = key
        state[KEYS_FREE] += 1

    @method
    def drop_placeholder(self, insert, begin, end):
        """Remove the remaining parts of a placeholder."""
        key = self.first_beyond(begin)
        while key != NOTHING and self.begin[key] < end:
            after = self.after[key]
            if self.place[key] == -1 - insert:
                self.drop(key)
            key = after

    def drop_placeholders(self) -> None:
        """Remove all placeholders: the cache stops."""
        key = int(self.state[FIRST])
        while key != NOTHING:
            after = int(self.after[key])
            if self.place[key] < 0:
                self.drop(key)
            key = after

    @method
    def empty(self, bucket):
        """Drop all keys of a bucket; return whether there were any."""
        if self.first[bucket] == NOTHING:
            return False
        while self.first[bucket] != NOTHING:
            key = self.first[bucket]
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
        """Add bytes of a key to the counts of its bucket."""
        if self.place[key] < 0:
            return
        bucket = self.place[key] // self.bucket_bytes
        self.live[bucket] += size
        self.state[LIVE_BYTES] += size
        if self.is_dirty[key] == 1:
            self.dirty[bucket] += size
            self.state[DIRTY_BYTES] += size

    @method
    def count_off(self, key, size):
        """Subtract bytes of a key from the counts of its bucket."""
        self.count_in(key, -size)

    @method
    def join_bucket(self, key):
        """Link a key to the others of its bucket."""
        if self.place[key] < 0:
            return
        bucket = self.place[key] // self.bucket_bytes
        following = self.first[bucket]
        self.bucket_before[key] = NOTHING
        self.bucket_after[key] = following
        if following != NOTHING:
            self.bucket_before[following] = key
        self.first[bucket] = key

    @method
    def leave_bucket(self, key):
        """Unlink a key from the others of its bucket."""
        if self.place[key] < 0:
            return
        before, after = self.bucket_before[key], self.bucket_after[key]
        if before == NOTHING:
            self.first[self.place[key] // self.bucket_bytes] = after
        else:
            self.bucket_after[before] = after
        if after != NOTHING:
            self.bucket_before[after] = before
