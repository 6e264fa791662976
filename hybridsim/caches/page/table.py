"""The pages of the page cache, the slots that cached pages have, and the content of the slots.

Granules are bits of a word.  Words are built from a table, never by shifts: a page may have as many
granules as a word has bits, and the top bit is the sign.  Dirty pages wait, oldest first, for a
clean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.page.names import ABSENT
from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled, longer
from hybridsim.foundation.cache_parameters import CacheParameters
from hybridsim.foundation.codes import Op, Reason
from hybridsim.foundation.machine_parameters import LimitParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.limits import Limits
from hybridsim.jit.lists import NOTHING, Chains, Index

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
        return filled(
            cls,
            pages,
            page_bytes=page_bytes,
            granule_bytes=granule_bytes,
            granules=granules,
            ids=Index.new(ids),
            state=np.zeros(ids, np.uint8),
            why_absent=np.full(ids, Reason.COLD, np.uint8),
            slot=np.full(ids, NOTHING, np.int64),
            promoted_next=np.full(ids, NOTHING, np.int32),
            up_to=np.array(words, np.uint64).view(np.int64),
        )

    def grown(self, ids: int) -> Table:
        """Return the same table with room for `ids` (a power of two) pages."""
        return self._replace(
            ids=self.ids.grown(ids),
            state=longer(self.state, ids),
            why_absent=longer(self.why_absent, ids, Reason.COLD),
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


DIRTY_COUNTERS = ("dirty_pages", "write_backs", "cleaned_bytes", "writes_limited")
DIRTY_PAGES, WRITE_BACKS, CLEANED_BYTES, WRITES_LIMITED = range(len(DIRTY_COUNTERS))
WAITING, LIMITED, LAST_NS, POSITION, FREE_CLEANS, IDLE_TIMER, RATE_TIMER = range(7)


@state_machine
class Dirty(NamedTuple):
    """Dirty data, by slot except for the fields marked `by clean`."""

    dirty_high: int  # pages
    dirty_low: int
    clean_above: int
    clean_idle_ns: int
    max_cleans: int
    clean_merge_pages: int
    clean_window: int
    rate: Limits
    granules: Ints  # dirty granules
    flying: Ints  # those of them that are being cleaned
    clean: Int32s  # the clean in progress, or NOTHING
    page: Int32s
    is_waiting: Int32s
    order: Chains  # of the waiting pages
    first: Ints  # by clean: its first page's number
    pages: Ints  # by clean
    pending: Ints  # by clean: its requests that the tiers have not completed
    free_cleans: Ints  # stack
    state: Ints  # [WAITING ... RATE_TIMER]
    counts: Ints  # DIRTY_COUNTERS

    @classmethod
    def new(cls, slots: int, parameters: CacheParameters) -> Dirty:
        """Return no dirty pages; `slots` 0 if unused."""
        p = parameters
        rate, cleans = p.clean_rate, p.max_cleans
        state = np.zeros(7, np.int64)
        state[FREE_CLEANS] = cleans
        first, pages, pending = np.zeros((3, cleans), np.int64)
        return filled(
            cls,
            slots,
            p,
            rate=Limits.new(1, [LimitParameters([Op.WRITE], 1, rate)] if rate else []),
            clean=np.full(slots, NOTHING, np.int32),
            order=Chains.new(slots),
            first=first,
            pages=pages,
            pending=pending,
            free_cleans=np.arange(cleans, dtype=np.int64),
            state=state,
            counts=np.zeros(len(DIRTY_COUNTERS), np.int64),
        )

    @method
    def is_limited(self):
        """Return whether no more pages may become dirty."""
        return self.state[LIMITED] == 1

    @method
    def add(self, page, slot, granules):
        """Mark granules as dirty."""
        if self.granules[slot] == 0:
            self.page[slot] = page
            self.counts[DIRTY_PAGES] += 1
            if self.counts[DIRTY_PAGES] >= self.dirty_high:
                self.state[LIMITED] = 1
            if self.clean[slot] == NOTHING:
                self.wait(slot)
        self.granules[slot] |= granules

    @method
    def remove(self, slot, granules):
        """Mark granules as clean."""
        if self.granules[slot] == 0:
            return
        self.granules[slot] &= ~granules
        self.flying[slot] &= ~granules
        if self.granules[slot] != 0:
            return
        if self.is_waiting[slot] == 1:
            self.leave(slot)
        self.counts[DIRTY_PAGES] -= 1
        if self.counts[DIRTY_PAGES] <= self.dirty_low:
            self.state[LIMITED] = 0

    @method
    def wait(self, slot):
        """Append a page to the list of pages waiting for a clean."""
        self.state[WAITING] += 1
        self.is_waiting[slot] = 1
        self.order.add(0, slot)

    @method
    def leave(self, slot):
        """Remove a page from the list of waiting pages."""
        self.state[WAITING] -= 1
        self.is_waiting[slot] = 0
        self.order.remove(0, slot)

    @method
    def can_clean(self):
        """Return whether a page waits and another clean may start."""
        return self.state[WAITING] > 0 and self.state[FREE_CLEANS] > 0

    @method
    def has_reason(self, now):
        """Return whether cleaning is due: many pages wait, or the tiers are idle."""
        is_idle = now - self.state[LAST_NS] >= self.clean_idle_ns
        return is_idle or self.state[WAITING] > self.clean_above

    @method
    def choose(self, ids):
        """Return the next slot in disk order (elevator) among the oldest waiting pages."""
        slot = self.order.oldest[0]
        chosen, ahead = slot, NOTHING
        lowest, lowest_ahead = ids.number[self.page[slot]], NOTHING
        looked_at = 0
        while slot != NOTHING and looked_at < self.clean_window:
            number = ids.number[self.page[slot]]
            if number < lowest:
                chosen, lowest = slot, number
            if number >= self.state[POSITION] and (ahead == NOTHING or number < lowest_ahead):
                ahead, lowest_ahead = slot, number
            slot = self.order.newer[slot]
            looked_at += 1
        return chosen if ahead == NOTHING else ahead

    @method
    def take_clean(self, first, pages):
        """Allocate a clean for `pages` pages from page number `first` on."""
        self.state[FREE_CLEANS] -= 1
        clean = self.free_cleans[self.state[FREE_CLEANS]]
        self.first[clean] = first
        self.pages[clean] = pages
        self.pending[clean] = 0
        self.state[POSITION] = first + pages
        return clean
