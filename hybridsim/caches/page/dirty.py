"""The dirty pages, oldest first, and the cleans in progress."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.page.names import NOTHING
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.foundation.cache_parameters import CacheParameters
from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import LimitParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.limits import Limits

COUNTERS = ("dirty_pages", "write_backs", "cleaned_bytes", "writes_limited")
DIRTY_PAGES, WRITE_BACKS, CLEANED_BYTES, WRITES_LIMITED = range(len(COUNTERS))
(OLDEST, NEWEST, WAITING, LIMITED, LAST_NS, POSITION, FREE_CLEANS,
 IDLE_TIMER, RATE_TIMER) = range(9)  # fmt: skip


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
    older: Int32s  # list of waiting pages, from the oldest to the newest
    newer: Int32s
    is_waiting: Int32s
    first: Ints  # by clean: its first page's number
    pages: Ints  # by clean
    pending: Ints  # by clean: its requests that the tiers have not completed
    free_cleans: Ints  # stack
    state: Ints  # [OLDEST ... RATE_TIMER]
    counts: Ints  # COUNTERS

    @classmethod
    def new(cls, slots: int, parameters: CacheParameters) -> Dirty:
        """Return no dirty pages; `slots` 0 if unused."""
        p = parameters
        rate, cleans = p.clean_rate, p.max_cleans
        state = np.zeros(9, np.int64)
        state[[OLDEST, NEWEST]] = NOTHING
        state[FREE_CLEANS] = cleans
        return cls._make([
            p.dirty_high,
            p.dirty_low,
            p.clean_above,
            p.clean_idle_ns,
            p.max_cleans,
            p.clean_merge_pages,
            p.clean_window,
            Limits.new(1, [LimitParameters([Op.WRITE], 1, rate)] if rate else []),
            *np.zeros((2, slots), np.int64),
            *np.full((4, slots), NOTHING, np.int32),
            np.zeros(slots, np.int32),
            *np.zeros((3, cleans), np.int64),
            np.arange(cleans, dtype=np.int64),
            state,
            np.zeros(len(COUNTERS), np.int64),
        ])  # fmt: skip

    @method
    def is_settled(self, slot):
        """Return whether nothing in a slot is dirty or being cleaned."""
        return self.granules[slot] == 0 and self.clean[slot] == NOTHING

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
        newest = self.state[NEWEST]
        self.state[WAITING] += 1
        self.is_waiting[slot] = 1
        self.older[slot] = newest
        self.newer[slot] = NOTHING
        if newest == NOTHING:
            self.state[OLDEST] = slot
        else:
            self.newer[newest] = slot
        self.state[NEWEST] = slot

    @method
    def leave(self, slot):
        """Remove a page from the list of waiting pages."""
        older, newer = self.older[slot], self.newer[slot]
        self.state[WAITING] -= 1
        self.is_waiting[slot] = 0
        if older == NOTHING:
            self.state[OLDEST] = newer
        else:
            self.newer[older] = newer
        if newer == NOTHING:
            self.state[NEWEST] = older
        else:
            self.older[newer] = older

    @method
    def can_clean(self):
        """Return whether a page waits and another clean may start."""
        return self.state[OLDEST] != NOTHING and self.state[FREE_CLEANS] > 0

    @method
    def has_reason(self, now):
        """Return whether cleaning is due: many pages wait, or the tiers are idle."""
        is_idle = now - self.state[LAST_NS] >= self.clean_idle_ns
        return is_idle or self.state[WAITING] > self.clean_above

    @method
    def choose(self, ids):
        """Return the next slot in disk order (elevator) among the oldest waiting pages."""
        slot = self.state[OLDEST]
        chosen, ahead = slot, NOTHING
        lowest, lowest_ahead = ids.number[self.page[slot]], NOTHING
        looked_at = 0
        while slot != NOTHING and looked_at < self.clean_window:
            number = ids.number[self.page[slot]]
            if number < lowest:
                chosen, lowest = slot, number
            if number >= self.state[POSITION] and (ahead == NOTHING or number < lowest_ahead):
                ahead, lowest_ahead = slot, number
            slot = self.newer[slot]
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

    @method
    def give_clean(self, clean):
        """Free a clean that has ended."""
        self.free_cleans[self.state[FREE_CLEANS]] = clean
        self.state[FREE_CLEANS] += 1
