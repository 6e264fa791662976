"""The table of pages, the slots that cached pages have, and the content of the slots.

Granules are bits of a word.  Words are built from a table, never by shifts: a page may have as many
granules as a word has bits, and the top bit is the sign.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.page.names import ABSENT, COLD, NOTHING
from hybridsim.foundation.arrays import Bytes, Int32s, Ints, longer
from hybridsim.jit import method, state_machine
from hybridsim.jit.index import Index

GRANULES_MAX = 64


@state_machine
class Table(NamedTuple):
    """Pages by id (assigned at the first access), slots by number."""

    page_bytes: int
    granule_bytes: int
    granules: int
    ids: Index
    state: Bytes  # by page: ABSENT, FILLING, PRESENT
    why_absent: Bytes  # by page: Reason
    slot: Ints  # by page; 64 bits, as it is multiplied to an address
    promoted_next: Int32s  # by page: the next page reserved by the same request
    valid: Ints  # by slot: valid granules
    filling: Ints  # by slot: granules that a fill will add
    fill_parts: Int32s  # by slot: 0 without a fill, else 1 plus its writes in progress
    fill_at: Ints  # by slot: start of the next piece of its fill on the slow tier
    fill_for: Int32s  # by slot: the request that waits for its fill, NOTHING or PRELOADED
    free_slots: Ints  # stack of free slots
    up_to: Ints  # by number: a word with that many low bits set

    @classmethod
    def new(cls, page_bytes: int, granule_bytes: int, pages: int, ids: int) -> Table:
        """Return an empty table with room for `ids` (a power of two) pages."""
        granules = -(-page_bytes // granule_bytes)
        if granules > GRANULES_MAX:
            raise ValueError(f"a page has at most {GRANULES_MAX} granules, not {granules}")
        words = [(1 << bits) - 1 for bits in range(GRANULES_MAX + 1)]
        return cls(
            page_bytes=page_bytes,
            granule_bytes=granule_bytes,
            granules=granules,
            ids=Index.new(ids),
            state=np.zeros(ids, np.uint8),
            why_absent=np.full(ids, COLD, np.uint8),
            slot=np.full(ids, NOTHING, np.int64),
            promoted_next=np.full(ids, NOTHING, np.int32),
            valid=np.zeros(pages, np.int64),
            filling=np.zeros(pages, np.int64),
            fill_parts=np.zeros(pages, np.int32),
            fill_at=np.zeros(pages, np.int64),
            fill_for=np.zeros(pages, np.int32),
            free_slots=np.zeros(pages, np.int64),
            up_to=np.array(words, np.uint64).view(np.int64),
        )

    def grown(self, ids: int) -> Table:
        """Return the same table with room for `ids` (a power of two) pages."""
        return self._replace(
            ids=self.ids.grown(ids),
            state=longer(self.state, ids),
            why_absent=longer(self.why_absent, ids, COLD),
            slot=longer(self.slot, ids, NOTHING),
            promoted_next=longer(self.promoted_next, ids, NOTHING),
        )

    @method
    def start(self, page):
        """Return the first byte of a page in the volume."""
        return self.ids.number[page] * self.page_bytes

    @method
    def has_slot(self, page):
        """Return whether a page (or NOTHING) has a slot."""
        return page != NOTHING and self.state[page] != ABSENT

    @method
    def bits(self, first, last):
        """Return granules `first` to `last` as bits; none if `last` is before `first`."""
        return self.up_to[last + 1] & ~self.up_to[first]

    @method
    def touched(self, start, end):
        """Return the granules that contain a byte of a range within a page."""
        return self.bits(start // self.granule_bytes, (end - 1) // self.granule_bytes)

    @method
    def covered(self, start, end, limit):
        """Return the granules that lie completely in a range of a page of `limit` bytes."""
        first = -(-start // self.granule_bytes)
        last = (end - 1) // self.granule_bytes if end >= limit else end // self.granule_bytes - 1
        return self.bits(first, last) if first <= last else self.up_to[0]

    @method
    def storable(self, start, end, valid, limit):
        """Shrink a range to its valid or covered granules; an empty range ends before it starts."""
        kept = valid | self.covered(start, end, limit)
        first = start // self.granule_bytes
        last = (end - 1) // self.granule_bytes
        if (kept >> first) & 1 == 0:
            start = (first + 1) * self.granule_bytes
        if (kept >> last) & 1 == 0:
            end = last * self.granule_bytes
        return start, end

    @method
    def first_of(self, granules, since):
        """Return the first granule of a set from `since` on; `granules` if there is none."""
        while since < self.granules and (granules >> since) & 1 == 0:
            since += 1
        return since

    @method
    def first_not_of(self, granules, since):
        """Return the first granule from `since` on that is not in a set, or `granules`."""
        while since < self.granules and (granules >> since) & 1 == 1:
            since += 1
        return since

    @method
    def last_of(self, granules):
        """Return the last granule of a non-empty set."""
        last = self.granules - 1
        while (granules >> last) & 1 == 0:
            last -= 1
        return last

    @method
    def offset(self, granule):
        """Return the first byte of a granule in its page, or the page size after the last."""
        return min(granule * self.granule_bytes, self.page_bytes)

    @method
    def length_of(self, page, below):
        """Return how many bytes of a page exist on the slow tier."""
        return min(self.page_bytes, below.slow.capacity_bytes - self.start(page))

    @method
    def all_of(self, page, below):
        """Return the granules of a page that exist on the slow tier."""
        if self.granules == 1:
            return self.up_to[1]
        return self.up_to[(self.length_of(page, below) - 1) // self.granule_bytes + 1]
