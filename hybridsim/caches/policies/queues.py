"""Queues in which a page can be located, renewed and dropped: the basis of most policies.

A queue is a log: a page is put at its newest end by appending it.  Only the latest entry of a page
is valid; the others are skipped when their turn comes, and removed when the log has grown to
several times its valid entries.  So renewing a page takes two writes, and its neighbours in the
queue are never touched, as they would be in a linked list, which is slow in large caches.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, filled, longer
from hybridsim.jit import method, state_machine
from hybridsim.jit.instructions import by_page, prefetch

NOWHERE = -1
SPARE = 1024  # entries of a log beyond LOG_PER_PAGE times the valid ones
LOG_PER_PAGE = 4
AHEAD = 12  # entries: a fetch from memory takes dozens of instructions


@by_page("place")
@state_machine
class Queues(NamedTuple):
    """Some queues, oldest page first; a page is in one of them, or in none."""

    bits: int  # of an entry's number within its log: 2 ** bits is more than twice the ids
    log: Int32s  # pages, one log after the other
    place: Int32s  # by page: its entry in `log`, or NOWHERE
    head: Ints  # by queue: the first entry that may be valid
    tail: Ints  # by queue: one past the last entry
    limit: Ints  # by queue: the tail at which invalid entries are removed
    length: Ints  # by queue: number of pages

    @classmethod
    def new(cls, queues: int, ids: int) -> Queues:
        """Return empty queues with room for `ids` pages."""
        bits = (2 * ids + SPARE).bit_length()
        start = np.arange(queues, dtype=np.int64) << bits
        log = np.zeros((queues << bits) + AHEAD, np.int32)
        place = np.full(ids, NOWHERE, np.int32)
        ends = {"head": start, "tail": start.copy(), "limit": start + SPARE}
        return filled(cls, queues, bits=bits, log=log, place=place, **ends)

    def grown(self, ids: int) -> Queues:
        """Return the same queues with room for `ids` pages."""
        new = Queues.new(len(self.length), ids)
        moved = new.head - (np.arange(len(new.head)) << self.bits)
        for queue, by in enumerate(moved):
            used = slice(int(self.head[queue]), int(self.tail[queue]))
            new.log[used.start + by : used.stop + by] = self.log[used]
        place = longer(self.place, ids, NOWHERE)
        queued = place >= 0
        place[queued] += moved[place[queued] >> self.bits].astype(np.int32)
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
        """Make a page the newest of its queue."""
        if self.log[self.tail[queue] - 1] != page:
            self.append(queue, page)

    @method
    def move(self, page, queue):
        """Move a page to the newest end of another queue."""
        self.length[self.where(page)] -= 1
        self.push(queue, page)

    @method
    def drop(self, page):
        """Remove a page from its queue."""
        self.length[self.where(page)] -= 1
        self.place[page] = NOWHERE

    @method
    def pop(self, queue):
        """Remove and return the oldest page of a queue, or -1 if it is empty."""
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
        entry = self.first_valid(self.head[queue], queue)
        prefetch(self.place, self.log[entry + AHEAD])
        self.head[queue] = entry
        return self.log[entry] if entry < self.tail[queue] else -1

    @method
    def newer(self, page):
        """Return the next newer page of its queue, or -1 if it is the newest."""
        queue = self.where(page)
        entry = self.first_valid(self.place[page] + 1, queue)
        prefetch(self.place, self.log[entry + AHEAD])
        return self.log[entry] if entry < self.tail[queue] else -1

    @method
    def first_valid(self, entry, queue):
        """Return the first valid entry from this one on, or the tail."""
        tail = self.tail[queue]
        while entry < tail and self.place[self.log[entry]] != entry:
            entry += 1
            prefetch(self.place, self.log[entry + AHEAD])
        return entry

    @method
    def append(self, queue, page):
        """Append an entry for a page and make it valid."""
        if self.tail[queue] == self.limit[queue]:
            self.clear_away(queue)
        entry = self.tail[queue]
        self.log[entry] = page
        self.place[page] = entry
        self.tail[queue] = entry + 1

    @method
    def clear_away(self, queue):
        """Move the valid entries to the start of the log."""
        start = queue << self.bits
        kept = start
        for entry in range(self.head[queue], self.tail[queue]):
            prefetch(self.place, self.log[entry + AHEAD])
            page = self.log[entry]
            place = self.place[page]
            is_valid = place == entry
            self.log[kept] = page  # without a branch, which the processor would mispredict
            self.place[page] = kept if is_valid else place
            kept += is_valid
        self.head[queue] = start
        self.tail[queue] = kept
        limit = LOG_PER_PAGE * (kept - start) + SPARE
        self.limit[queue] = start + min(limit, 1 << self.bits)
