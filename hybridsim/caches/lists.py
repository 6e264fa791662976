"""What caches are made of: pools, queues, lists and hash tables of numbered entries, in arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.jit import kernel, method, state_machine

NOTHING = -1
MULTIPLIER = 0x61C88647  # 2^32 / golden ratio, negated: Knuth's multiplicative hashing
LOW_BITS = 0x7FFFFFFF


@kernel
def taken(free, links):
    """Remove and return the first free entry of a pool; `free` is [first free, number of free]."""
    entry = free[0]
    free[0] = links[entry]
    free[1] -= 1
    return entry


@kernel
def give_back(free, links, entry):
    """Free an entry of a pool."""
    links[entry] = free[0]
    free[0] = entry
    free[1] += 1


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

    def beside(self) -> Chains:
        """Return other empty lists: each entry is in a list here or in one there."""
        ends = np.full((2, len(self.newest)), NOTHING, np.int64)
        return self._replace(newest=ends[0], oldest=ends[1])

    @method
    def add(self, which, entry):
        """Add an entry to a list as the newest."""
        newest = self.newest[which]
        self.newer[entry] = NOTHING
        self.older[entry] = newest
        if newest == NOTHING:
            self.oldest[which] = entry
        else:
            self.newer[newest] = entry
        self.newest[which] = entry

    @method
    def add_before(self, which, entry, mark):
        """Add an entry to a list as the next older of another one; NOTHING: as the newest."""
        if mark == NOTHING:
            self.add(which, entry)
            return
        older = self.older[mark]
        self.older[entry] = older
        self.newer[entry] = mark
        self.older[mark] = entry
        if older == NOTHING:
            self.oldest[which] = entry
        else:
            self.newer[older] = entry

    @method
    def remove(self, which, entry):
        """Remove an entry from its list."""
        newer, older = self.newer[entry], self.older[entry]
        if newer == NOTHING:
            self.newest[which] = older
        else:
            self.older[newer] = older
        if older == NOTHING:
            self.oldest[which] = newer
        else:
            self.newer[older] = newer

    @method
    def renew(self, which, entry):
        """Make an entry of a list the newest."""
        if self.newest[which] != entry:
            self.remove(which, entry)
            self.add(which, entry)


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
        entry = self.first[self.bucket(number)]
        while entry != NOTHING and self.number[entry] != number:
            entry = self.following[entry]
        return entry

    @method
    def insert(self, entry, number):
        """Map a number without an entry to an entry."""
        bucket = self.bucket(number)
        self.number[entry] = number
        self.following[entry] = self.first[bucket]
        self.first[bucket] = entry

    @method
    def remove(self, entry):
        """Remove an entry and its number."""
        bucket = self.bucket(self.number[entry])
        at = self.first[bucket]
        if at == entry:
            self.first[bucket] = self.following[entry]
            return
        while self.following[at] != entry:
            at = self.following[at]
        self.following[at] = self.following[entry]

    @method
    def bucket(self, number):
        """Return the bucket of a number; products stay within 63 bits."""
        mixed = ((number ^ (number >> 31)) & LOW_BITS) * MULTIPLIER
        return (mixed >> 20) & (len(self.first) - 1)
