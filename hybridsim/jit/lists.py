"""Pools, queues, lists and hash tables of numbered entries, in arrays; ids of sparse numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, longer
from hybridsim.jit import kernel, loop, method, state_machine
from hybridsim.jit.instructions import by_page

NOTHING = -1
MULTIPLIER = 0x61C88647  # 2^32 / golden ratio, negated: Knuth's multiplicative hashing
LOW_BITS = 0x7FFFFFFF


@kernel
def taken(pool):
    """Remove and return the first free entry of a pool (foundation/arrays.py)."""
    entry = pool.free[0]
    pool.free[0] = pool.following[entry]
    pool.free[1] -= 1
    return entry


@kernel
def give_back(pool, entry):
    """Free an entry of a pool."""
    pool.following[entry] = pool.free[0]
    pool.free[0] = entry
    pool.free[1] += 1


@state_machine
class Fifos(NamedTuple):
    """Queues of entries; `links`, which the caller has, lead from an entry to the next one."""

    first: Ints  # by queue: an entry, or NOTHING
    last: Ints

    @classmethod
    def new(cls, count: int = 1) -> Fifos:
        """Return empty queues."""
        return cls(*np.full((2, count), NOTHING, np.int64))

    @method
    def is_empty(self, queue):
        """Return whether a queue is empty."""
        return self.first[queue] == NOTHING

    @method
    def append(self, queue, entry, links):
        """Append an entry to a queue."""
        links[entry] = NOTHING
        if self.first[queue] == NOTHING:
            self.first[queue] = entry
        else:
            links[self.last[queue]] = entry
        self.last[queue] = entry

    @method
    def pop(self, queue, links):
        """Remove and return the first entry of a queue, or -1."""
        entry = self.first[queue]
        if entry != NOTHING:
            self.first[queue] = links[entry]
        return entry

    @method
    def remove(self, queue, entry, links):
        """Remove an entry from its queue."""
        before, at = NOTHING, self.first[queue]
        while at != entry:
            before, at = at, np.int64(links[at])
        self.unlink(queue, before, entry, links)

    @method
    def unlink(self, queue, before, entry, links):
        """Remove an entry from its queue; `before` is the one before it, or -1."""
        if before == NOTHING:
            self.first[queue] = links[entry]
        else:
            links[before] = links[entry]
        if self.last[queue] == entry:
            self.last[queue] = before

    @method
    def move_all(self, source, target, links):
        """Move all entries of a queue to the end of another one."""
        if self.first[source] == NOTHING:
            return
        if self.first[target] == NOTHING:
            self.first[target] = self.first[source]
        else:
            links[self.last[target]] = self.first[source]
        self.last[target] = self.last[source]
        self.first[source] = NOTHING


@by_page("newer", "older")
@state_machine
class Chains(NamedTuple):
    """Lists of entries in order of age, from which any can be removed; an entry is in one list."""

    newer: Int32s  # by entry: the next newer one, or NOTHING
    older: Int32s
    newest: Ints  # by list
    oldest: Ints

    @classmethod
    def new(cls, entries: int, lists: int = 1) -> Chains:
        """Return empty lists for up to `entries` entries."""
        links = np.full((2, entries), NOTHING, np.int32)
        return cls(*links, *np.full((2, lists), NOTHING, np.int64))

    @classmethod
    def of_all(cls, entries: int) -> Chains:
        """Return one list of all entries, in which 0 is the oldest."""
        places = np.arange(entries, dtype=np.int32)
        newer = places + 1
        newer[-1] = NOTHING
        return cls(newer, places - 1, np.array([entries - 1]), np.zeros(1, np.int64))

    def grown(self, entries: int, lists: int | None = None) -> Chains:
        """Return the same lists with room for up to `entries` entries, and more lists."""
        links = [longer(each, entries) for each in (self.newer, self.older)]
        room = len(self.newest) if lists is None else lists
        ends = [longer(each, room, NOTHING) for each in (self.newest, self.oldest)]
        return Chains._make(links + ends)

    def beside(self) -> Chains:
        """Return other empty lists: each entry is in a list here or in one there."""
        ends = np.full((2, len(self.newest)), NOTHING, np.int64)
        return self._replace(newest=ends[0], oldest=ends[1])

    @method
    def add(self, which, entry):
        """Add an entry to a list as the newest."""
        self.join(which, self.newest[which], entry)
        self.join(which, entry, NOTHING)

    @method
    def add_before(self, which, entry, mark):
        """Add an entry to a list as the next older of another one; NOTHING: as the newest."""
        self.join(which, self.newest[which] if mark == NOTHING else self.older[mark], entry)
        self.join(which, entry, mark)

    @method
    def remove(self, which, entry):
        """Remove an entry from its list."""
        self.join(which, self.older[entry], self.newer[entry])

    @method
    def join(self, which, older, newer):
        """Make two entries neighbours in a list; NOTHING stands for its ends."""
        if older == NOTHING:
            self.oldest[which] = newer
        else:
            self.newer[older] = newer
        if newer == NOTHING:
            self.newest[which] = older
        else:
            self.older[newer] = older

    @method
    def renew(self, which, entry):
        """Make an entry of a list the newest."""
        if self.newest[which] != entry:
            self.remove(which, entry)
            self.add(which, entry)


@kernel
def scattered(number):
    """Return where in a hash table a number belongs, modulo its length; products have 63 bits."""
    return ((number ^ (number >> 31)) & LOW_BITS) * MULTIPLIER >> 20


@state_machine
class Table(NamedTuple):
    """Number -> entry; the caller allocates the entries."""

    first: Int32s  # by bucket, a power of two of them
    following: Int32s  # by entry: the next one of its bucket
    number: Ints  # by entry

    @classmethod
    def new(cls, entries: int) -> Table:
        """Return an empty table for entries 0..entries-1."""
        buckets = 1 << max(entries - 1, 15).bit_length()
        return cls(
            np.full(buckets, NOTHING, np.int32),
            np.full(entries, NOTHING, np.int32),
            np.zeros(entries, np.int64),
        )

    @method
    def find(self, number):
        """Return the entry of a number, or -1."""
        entry = self.first[scattered(number) & (len(self.first) - 1)]
        while entry != NOTHING and self.number[entry] != number:
            entry = self.following[entry]
        return entry

    @method
    def insert(self, entry, number):
        """Map a number without an entry to an entry."""
        bucket = scattered(number) & (len(self.first) - 1)
        self.number[entry] = number
        self.following[entry] = self.first[bucket]
        self.first[bucket] = entry

    @method
    def remove(self, entry):
        """Remove an entry and its number."""
        bucket = scattered(self.number[entry]) & (len(self.first) - 1)
        at = self.first[bucket]
        if at == entry:
            self.first[bucket] = self.following[entry]
            return
        while self.following[at] != entry:
            at = self.following[at]
        self.following[at] = self.following[entry]


@state_machine
class Index(NamedTuple):
    """Page number -> id, assigned in order of first use: a table that only grows."""

    ids: Int32s  # hash table, a power of two long, at most half full; NOTHING = free
    number: Ints  # by id
    used: Ints  # [number of ids assigned]

    @classmethod
    def new(cls, capacity: int) -> Index:
        """Return an empty index with room for `capacity` ids (a power of two)."""
        table = np.full(2 * capacity, NOTHING, np.int32)
        return cls(table, np.zeros(capacity, np.int64), np.zeros(1, np.int64))

    def grown(self, capacity: int) -> Index:
        """Return the same index with room for `capacity` ids (a power of two)."""
        table = np.full(2 * capacity, NOTHING, np.int32)
        index = Index(table, longer(self.number, capacity), self.used)
        _refill(index)
        return index

    @method
    def room(self):
        """Return how many more ids can be assigned."""
        return len(self.number) - self.used[0]

    @method
    def find(self, number):
        """Return the id of a number, or -1."""
        mask = len(self.ids) - 1
        at = scattered(number) & mask
        while self.ids[at] != NOTHING:
            if self.number[self.ids[at]] == number:
                return self.ids[at]
            at = (at + 1) & mask
        return NOTHING

    @method
    def add(self, number):
        """Assign an id to a number that has none; return it."""
        entry = self.used[0]
        self.used[0] += 1
        self.number[entry] = number
        self.put(entry)
        return entry

    @method
    def put(self, entry):
        """Insert an id into the table."""
        mask = len(self.ids) - 1
        at = scattered(self.number[entry]) & mask
        while self.ids[at] != NOTHING:
            at = (at + 1) & mask
        self.ids[at] = entry


@loop
def _refill(index):
    for entry in range(index.used[0]):
        index.put(entry)
