"""Learned admission and replacement by one quantity: the disk reads that a page will save.

An access belongs to a class by what is known at that moment (habits.py).  For each class the policy
learns whether and when its pages are touched again, and from that the value of caching them
(reuse.py).  The victim is the least worthy of some pages drawn at random; a page is admitted if it
is worthier than the victim, and if its expected saving, less the rent of its space, is worth a fill
(DESIGN.md 2.4.1).  While the cache has free space, every page is admitted: nothing has been learned
yet.  A cache that starts full admits as many pages at their second touch.

Pages that were touched together are evicted together: a request waits for its last page.  The pages
of a request are a ring: each links to the page accessed before it, the first page to the last, by
the field `before` of its record.  After a page was evicted, the page before it is the next victim,
if it was not touched since and its density is not higher.

It can be used for admission only, with any replacement, for replacement only, and for both: then
the two are one object.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.learned.habits import (
    CLASSES,
    CLOCK_AT,
    PACE,
    Regions,
    age_of,
    class_again,
    class_of,
    clock_of,
    first_class,
    habit,
    parents,
    size_in,
    size_of,
    stamped,
)
from hybridsim.caches.policies.learned.reuse import USUAL_BYTES, Reuse, Worth
from hybridsim.foundation.arrays import Floats, Int32s, Ints, Records, more_records, records
from hybridsim.foundation.cache_parameters import WRITE_PRICE
from hybridsim.jit import method, state_machine
from hybridsim.jit.instructions import by_page, prefetch
from hybridsim.jit.mixing import mixed

NONE = -1
TOGETHER = 64  # accesses: maximum distance of two pages of a request
DRAWN = 32
DRAW_BITS = 31
PRICE_ONE = 1000
(CLOCK, DRAWS, HELD, VICTIM, MISSED, HIT, TAKEN, SIZE, DRAWN_FROM, VICTIM_AT,
 FIRST, LATEST, GONE, GONE_STAMP, GONE_CLOCK) = range(15)  # fmt: skip

PAGE = np.dtype(
    [
        ("stamp", np.int64),  # its last access (habits.py says what is in it); NONE if never
        ("position", np.int32),  # in `held`, or NONE
        ("before", np.int32),  # the page before it in its last request; for the first, the last
    ],
    align=True,
)


@by_page("pages")
@state_machine
class Learned(NamedTuple):
    """The stamp of each page, the cached pages, and the learned state."""

    admits: int
    is_alone: int  # 1: admission only, with another replacement policy
    page_bytes: int
    regions: Regions
    reuse: Reuse
    pages: Records  # PAGE, by page
    held: Int32s  # cached pages, in any order
    held_stamp: Ints  # their stamps: one array for all that a draw reads
    drawn: Ints  # positions that are compared for the next victim
    promised: Floats  # densities at these positions
    # [CLOCK, DRAWS, HELD, VICTIM; MISSED, HIT of the request; TAKEN without evidence; SIZE of the
    # request; DRAWN_FROM: HELD when `drawn` was drawn; VICTIM_AT: its position when it was chosen;
    # FIRST, LATEST page of the current request; GONE: the last victim, its stamp, the clock then]
    state: Ints

    @classmethod
    def new(
        cls,
        ids: int,
        pages: int,
        write_price_per_thousand: int = round(WRITE_PRICE * PRICE_ONE),
        admits: bool = True,
        replaces: bool = True,
        page_bytes: int = USUAL_BYTES,
    ) -> Learned:
        """Return a policy without samples for admission, replacement or both."""
        price = write_price_per_thousand / PRICE_ONE
        return cls(
            int(admits),
            int(not replaces),
            page_bytes,
            Regions.new(),
            Reuse.new(ids, pages, parents(), CLASSES, Worth.new(CLASSES, price, page_bytes)),
            records(PAGE, ids, stamp=NONE, position=NONE, before=NONE),
            np.zeros(max(pages, 1), np.int32),
            np.zeros(max(pages, 1), np.int64),
            np.zeros(DRAWN, np.int64),
            np.zeros(DRAWN),
            np.array([0, 0, 0, NONE, 0, 0, 0, 0, 0, *[NONE] * 6]),
        )

    def grown(self, ids: int) -> Learned:
        """Return the same policy with room for `ids` pages."""
        return self._replace(
            reuse=self.reuse.grown(ids),
            pages=more_records(self.pages, ids, stamp=NONE, position=NONE, before=NONE),
        )

    @method
    def request(self, offset, length, write):
        """Take a request before its pages."""
        state = self.state
        if state[FIRST] != NONE:  # close the ring of the previous request
            self.pages[state[FIRST]].before = state[LATEST]
        state[FIRST] = state[LATEST] = NONE
        self.reuse.settle(state[MISSED], state[HIT])
        state[MISSED] = state[HIT] = 0
        self.regions.request(offset, length, state[CLOCK])
        end = offset + length
        pages = (end - 1) // self.page_bytes - offset // self.page_bytes + 1
        state[SIZE] = size_of(pages)
        self.reuse.request(pages)
        self.reuse.worth.prices(offset, end, self.page_bytes)

    @method
    def consider(self, now, page, write, full):
        """Learn from an access; return whether to admit the page if it is absent."""
        is_new, is_held = self.pages[page].stamp == NONE, self.pages[page].position != NONE
        group = self.on_access(page, write)
        self.state[VICTIM] = NONE
        worth = self.reuse.worth
        if not full or (self.state[TAKEN] < len(self.held) and not is_new and not is_held):
            self.state[TAKEN] += not is_held
            return True
        part = worth.part[self.state[SIZE]]
        if is_held or worth.sure[group] * part < worth.price():
            return False
        if self.state[HELD] == 0:
            return True
        victim = self.choose()
        self.state[VICTIM], self.state[VICTIM_AT] = self.held[victim], victim
        promise = self.promise(self.held_stamp[victim])
        worth.rents(promise)
        return worth.density[group, 0] * part >= promise

    @method
    def evicted(self, page):
        """Learn how long pages stay, and, with another replacement policy, the rent of space."""
        self.reuse.evicted(self.state[CLOCK] - clock_of(self.pages[page].stamp))
        if self.is_alone:
            self.reuse.worth.rents(self.promise(self.pages[page].stamp))

    @method
    def missed(self, page):
        """Learn from a miss, if the page was not considered."""
        if page == self.state[GONE] and self.state[CLOCK] == self.state[GONE_CLOCK]:
            self.state[GONE] = NONE  # it was just chosen as the victim: its eviction was refused
        if not self.admits:
            self.on_access(page, 0)

    @method
    def touch(self, page):
        """Learn from a hit, if the page was not considered."""
        if not self.admits:
            self.on_access(page, 0)
        self.held_stamp[self.pages[page].position] = self.pages[page].stamp

    @method
    def admit(self, page):
        """Add a page."""
        at = self.state[HELD]
        self.state[HELD] += 1
        self.pages[page].position = at
        self.held[at] = page
        self.held_stamp[at] = self.pages[page].stamp
        if self.pages[page].stamp == NONE:  # it was cached before the first request, or preloaded
            self.held_stamp[at] = self.state[CLOCK] << CLOCK_AT

    @method
    def remove(self, page):
        """Remove a page."""
        self.leave(page, self.pages[page].position)

    @method
    def leave(self, page, at):
        """Remove the page at a position: the last one takes it."""
        self.state[HELD] -= 1
        last = self.state[HELD]
        self.held[at] = self.held[last]
        self.held_stamp[at] = self.held_stamp[last]
        self.pages[self.held[at]].position = at
        self.pages[page].position = NONE

    @method
    def evict(self):
        """Remove and return the victim chosen in `consider`, or else a new one; -1 if none."""
        if self.state[HELD] == 0:
            return -1
        page, at = self.state[VICTIM], self.state[VICTIM_AT]
        if page != NONE and (at >= self.state[HELD] or self.held[at] != page):
            at = np.int64(self.pages[page].position)  # others were removed since it was chosen
        if page == NONE or at == NONE:
            at = self.choose()
            page = np.int64(self.held[at])
        self.state[VICTIM] = NONE
        self.state[GONE] = page
        self.state[GONE_STAMP] = self.held_stamp[at]
        self.state[GONE_CLOCK] = self.state[CLOCK]
        self.leave(page, at)
        if not self.admits and self.pages[page].stamp != NONE:
            self.evicted(page)
        return page

    @method
    def choose(self):
        """Return the position of the victim: a companion of the last victim, or a page drawn."""
        gone = self.state[GONE]
        page = np.int64(self.pages[gone].before) if gone != NONE else NONE
        if page != NONE and self.pages[page].position != NONE:
            at = np.int64(self.pages[page].position)
            stamp, gone = self.held_stamp[at], self.state[GONE_STAMP]
            apart = abs(clock_of(stamp) - clock_of(gone))
            if apart < TOGETHER and self.promise(stamp) <= self.promise(gone):
                return at
        return self.draw()

    @method
    def draw(self):
        """Return the position of the page of lowest density among some drawn at random.

        Of equals it is the least recently used.  First all are looked up, then compared: so the
        memory accesses overlap.
        """
        if self.state[DRAWN_FROM] != self.state[HELD]:
            self.draw_ahead()
        for draw in range(DRAWN):
            self.promised[draw] = self.promise(self.held_stamp[self.drawn[draw]])
        victim, lowest = self.drawn[0], self.promised[0]
        for draw in range(1, DRAWN):
            promise = self.promised[draw]
            if promise <= lowest:
                at = self.drawn[draw]
                if promise < lowest or self.held_stamp[at] < self.held_stamp[victim]:
                    victim, lowest = at, promise
        prefetch(self.pages, self.held[victim])
        self.state[DRAWS] += DRAWN
        self.draw_ahead()
        return victim

    @method
    def draw_ahead(self):
        """Draw the positions for the next victim, and fetch their stamps from memory."""
        draws, held = self.state[DRAWS], self.state[HELD]
        for draw in range(DRAWN):
            self.drawn[draw] = mixed(draws + draw) * held >> DRAW_BITS
        for draw in range(DRAWN):
            prefetch(self.held_stamp, self.drawn[draw])
        self.state[DRAWN_FROM] = held

    @method
    def promise(self, stamp):
        """Return the density of the page with that stamp at its present age."""
        age = age_of(self.state[CLOCK] - clock_of(stamp))
        worth = self.reuse.worth
        return worth.density[class_of(stamp), age] * worth.part[size_in(stamp)]

    @method
    def on_access(self, page, write):
        """Learn from an access; return its class."""
        state = self.state
        if state[FIRST] == NONE:
            state[FIRST] = page
        else:
            self.pages[page].before = state[LATEST]
        state[LATEST] = page
        clock, before, size = state[CLOCK], self.pages[page].stamp, state[SIZE]
        region = self.regions.page()
        if before == NONE:
            group, habits = first_class(write, region), 1
        else:
            habits = habit(before, clock)
            group = class_again(before, habits, write, self.regions.state[PACE], clock)
        is_held = int(self.pages[page].position != NONE)
        state[HIT] += is_held
        state[MISSED] += 1 - is_held
        is_observed = self.reuse.on_access(page, before, group, clock, is_held)
        self.pages[page].stamp = stamped(group, habits, size, is_observed, clock)
        state[CLOCK] = clock + 1
        return group
