"""Queues in which a page can be found, renewed and dropped: what most policies are made of.

A queue is a log: to put a page at its newest end is to append it.  Only the latest entry of a page
counts; the others are passed over when their turn comes, and cleared away when the log has grown
to several times what counts.  So a page is renewed by two writes, and its neighbours in the
queue are never touched, as they would be in a linked list: that is what takes time in large caches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, longer
from hybridsim.jit import method, state_machine
from hybridsim.jit.prefetch import prefetch

NOWHERE = -1
SPARE = 1024  # entries that a log may hold beyond some times what counts
LOG_PER_PAGE = 4
AHEAD = 12  # entries: memory answers after some dozens of instructions


@state_machine
class Queues(NamedTuple):
    """Some queues, oldest page first; a page is in one of them, or in none."""

    bits: int  # of an entry's number within its log: 2 ** bits is more than twice the ids
    log: Int32s  # pages, a log after the other
    place: Int32s  # by page: its entry in `log`, or NOWHERE
    head: Ints  # by queue: the first entry that may count
    tail: Ints  # by queue: behind the last one
    limit: Ints  # by queue: where the tail gives cause to clear away what no longer counts
    length: Ints  # by queue: pages

    @classmethod
    def new(cls, queues: int, ids: int) -> Queues:
        """Make empty queues with room for `ids` pages."""
        bits = (2 * ids + SPARE).bit_length()
        start = np.arange(queues, dtype=np.int64) << bits
        return cls(
            bits,
            np.zeros((queues << bits) + AHEAD, np.int32),
            np.full(ids, NOWHERE, np.int32),
            start,
            start.copy(),
            start + SPARE,
            np.zeros(queues, np.int64),
        )

    def grown(self, ids: int) -> Queues:
        """Return the same queues with room for `ids` pages."""
        new = Queues.new(len(self.length), ids)
        moved = new.head - (np.arange(len(new.head)) << self.bits)
        for queue, by in enumerate(moved):
            used = slice(int(self.head[queue]), int(self.tail[queue]))
            new.log[used.start + by : used.stop + by] = self.log[used]
        place = longer(self.place, ids, NOWHERE)
        found = place >= 0
        place[found] += moved[place[found] >> self.bits].astype(np.int32)
        return new._replace(
            place=place,
            head=self.head + moved,
            tail=self.tail + moved,
            limit=self.limit + moved,
            length=self.length,
        )

    @method
    def push(self, queue, page):
        """Put a page that is in no queue at the newest end of one."""
        self.append(queue, page)
        self.length[queue] += 1

    @method
    def renew(self, queue, page):
        """Make a page of a queue its newest."""
        if self.log[self.tail[queue] - 1] != page:
            self.append(queue, page)

    @method
    def move(self, page, queue):
        """Put a page of some queue at the newest end of another."""
        self.length[self.where(page)] -= 1
        self.push(queue, page)

    @method
    def drop(self, page):
        """Take a page out of its queue."""
        self.length[self.where(page)] -= 1
        self.place[page] = NOWHERE

    @method
    def pop(self, queue):
        """Take out and return the oldest page of a queue, or -1 if it is empty."""
        page = self.oldest(queue)
        if page >= 0:
            self.length[queue] -= 1
            self.place[page] = NOWHERE
        return page

    @method
    def where(self, page):
        """Return the queue of a page, or NOWHERE."""
        return self.place[page] >> self.bits

    @method
    def oldest(self, queue):
        """Return the oldest page of a queue, or -1 if it is empty."""
        entry = self.counting_from(self.head[queue], queue)
        prefetch(self.place, self.log[entry + AHEAD])
        self.head[queue] = entry
        return self.log[entry] if entry < self.tail[queue] else -1

    @method
    def newer(self, page):
        """Return the page next to this one towards the newest end, or -1 if it is the newest."""
        queue = self.where(page)
        entry = self.counting_from(self.place[page] + 1, queue)
        prefetch(self.place, self.log[entry + AHEAD])
        return self.log[entry] if entry < self.tail[queue] else -1

    @method
    def counting_from(self, entry, queue):
        """Return the first entry from this one on that counts, or the tail."""
        tail = self.tail[queue]
        while entry < tail and self.place[self.log[entry]] != entry:
            entry += 1
            prefetch(self.place, self.log[entry + AHEAD])
        return entry

    @method
    def append(self, queue, page):
        """Write an entry for a page, which makes that its place."""
        if self.tail[queue] == self.limit[queue]:
            self.clear_away(queue)
        entry = self.tail[queue]
        self.log[entry] = page
        self.place[page] = entry
        self.tail[queue] = entry + 1

    @method
    def clear_away(self, queue):
        """Move the entries that count to the beginning of the log."""
        start = queue << self.bits
        kept = start
        for entry in range(self.head[queue], self.tail[queue]):
            prefetch(self.place, self.log[entry + AHEAD])
            page = self.log[entry]
            place = self.place[page]
            counts = place == entry
            self.log[kept] = page  # without a branch, which the processor would guess wrongly
            self.place[page] = kept if counts else place
            kept += counts
        self.head[queue] = start
        self.tail[queue] = kept
        most = LOG_PER_PAGE * (kept - start) + SPARE
        self.limit[queue] = start + min(most, 1 << self.bits)
