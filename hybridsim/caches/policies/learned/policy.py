"""Learned admission and replacement by one quantity: the disk reads that a page will save.

An access belongs to a class by what is known at that moment (habits.py).  For each class the policy
learns whether and when its pages are touched again (reuse.py), and from that the value of caching
them (worth.py).  The victim is the least worthy of some pages drawn at random; a page is admitted
if it is worthier than the victim, and if its expected saving, less the rent of its space, is worth
a fill (DESIGN.md 2.4.1).  While the cache has free space, every page is admitted: nothing has been
learned yet.  A cache that starts full admits as many pages at their second touch.

It can be used for admission only, with any replacement, for replacement only, and for both: then
the two are one object.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.learned.companions import GONE_STAMP, TOGETHER, Companions
from hybridsim.caches.policies.learned.habits import (
    CLASS_MAX,
    CLASSES,
    CLOCK_AT,
    SAMPLED_AT,
    SIZE_AT,
    SIZE_BITS,
    class_again,
    first_class,
    habit,
    parents,
    size_of,
    stamped,
)
from hybridsim.caches.policies.learned.halfoctaves import age_of
from hybridsim.caches.policies.learned.regions import PACE, Regions
from hybridsim.caches.policies.learned.reuse import Reuse
from hybridsim.caches.policies.learned.worth import USUAL_BYTES, Worth
from hybridsim.foundation.arrays import Floats, Int32s, Ints, longer
from hybridsim.foundation.cache_parameters import WRITE_PRICE
from hybridsim.jit import method, state_machine
from hybridsim.jit.mixing import mixed

DRAWN = 32
DRAW_BITS = 31
PRICE_ONE = 1000
NONE = -1
SIZE_MAX = (1 << SIZE_BITS) - 1
CLOCK, DRAWS, HELD, VICTIM, MISSED, HIT, TAKEN, SIZE = range(8)


@state_machine
class Learned(NamedTuple):
    """The stamp of each page, the cached pages, and the learned state."""

    admits: int
    is_alone: int  # 1: admission only, with another replacement policy
    page_bytes: int
    regions: Regions
    companions: Companions
    reuse: Reuse
    stamp: Ints  # by page: its last access (habits.py says what is in it); NONE if never
    position: Int32s  # by page: in `held`, or NONE
    held: Int32s  # cached pages, in any order
    held_stamp: Ints  # their stamps: one array for all that a draw reads
    drawn: Ints  # positions that are compared
    promised: Floats  # densities at these positions
    # [CLOCK, DRAWS, HELD, VICTIM; MISSED, HIT of the request; TAKEN without evidence; SIZE of the
    # request]
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
            Companions.new(ids),
            Reuse.new(ids, pages, parents(), CLASSES, Worth.new(CLASSES, price, page_bytes)),
            np.full(ids, NONE, np.int64),
            np.full(ids, NONE, np.int32),
            np.zeros(max(pages, 1), np.int32),
            np.zeros(max(pages, 1), np.int64),
            np.zeros(DRAWN, np.int64),
            np.zeros(DRAWN),
            np.array([0, 0, 0, NONE, 0, 0, 0, 0]),
        )

    def grown(self, ids: int) -> Learned:
        """Return the same policy with room for `ids` pages."""
        return self._replace(
            reuse=self.reuse.grown(ids),
            companions=self.companions.grown(ids),
            stamp=longer(self.stamp, ids, NONE),
            position=longer(self.position, ids, NONE),
        )

    @method
    def request(self, offset, length, write):
        """Take a request before its pages."""
        self.companions.request()
        self.reuse.settle(self.state[MISSED], self.state[HIT])
        self.state[MISSED] = self.state[HIT] = 0
        self.regions.request(offset, length, self.state[CLOCK])
        end = offset + length
        pages = (end - 1) // self.page_bytes - offset // self.page_bytes + 1
        self.state[SIZE] = size_of(pages)
        self.reuse.request(pages)
        self.reuse.worth.prices(offset, end, self.page_bytes)

    @method
    def consider(self, now, page, write, full):
        """Learn from an access; return whether to admit the page if it is absent."""
        is_new, is_held = self.stamp[page] == NONE, self.position[page] != NONE
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
        self.state[VICTIM] = self.held[victim]
        promise = self.promise(self.held_stamp[victim])
        worth.rents(promise)
        return worth.density[group, 0] * part >= promise

    @method
    def evicted(self, page):
        """Learn how long pages stay, and, with another replacement policy, the rent of space."""
        self.reuse.evicted(self.state[CLOCK] - (self.stamp[page] >> CLOCK_AT))
        if self.is_alone:
            self.reuse.worth.rents(self.promise(self.stamp[page]))

    @method
    def missed(self, page):
        """Learn from a miss, if the page was not considered."""
        self.companions.missed(page, self.state[CLOCK])
        if not self.admits:
            self.on_access(page, 0)

    @method
    def touch(self, page):
        """Learn from a hit, if the page was not considered."""
        if not self.admits:
            self.on_access(page, 0)
        self.held_stamp[self.position[page]] = self.stamp[page]

    @method
    def admit(self, page):
        """Add a page."""
        at = self.state[HELD]
        self.state[HELD] += 1
        self.position[page] = at
        self.held[at] = page
        self.held_stamp[at] = self.stamp[page]
        if self.stamp[page] == NONE:  # it was cached before the first request, or preloaded
            self.held_stamp[at] = self.state[CLOCK] << CLOCK_AT

    @method
    def remove(self, page):
        """Remove a page: the last one takes its position."""
        self.state[HELD] -= 1
        last, at = self.state[HELD], self.position[page]
        self.held[at] = self.held[last]
        self.held_stamp[at] = self.held_stamp[last]
        self.position[self.held[at]] = at
        self.position[page] = NONE

    @method
    def evict(self):
        """Remove and return the victim chosen in `consider`, or else a new one; -1 if none."""
        if self.state[HELD] == 0:
            return -1
        page = self.state[VICTIM]
        if page == NONE or self.position[page] == NONE:
            page = np.int64(self.held[self.choose()])
        self.state[VICTIM] = NONE
        self.companions.on_evict(page, self.held_stamp[self.position[page]], self.state[CLOCK])
        self.remove(page)
        if not self.admits and self.stamp[page] != NONE:
            self.evicted(page)
        return page

    @method
    def choose(self):
        """Return the position of the victim: a companion of the last victim, or a page drawn."""
        page = self.companions.next()
        if page != NONE and self.position[page] != NONE:
            at = np.int64(self.position[page])
            stamp, gone = self.held_stamp[at], self.companions.state[GONE_STAMP]
            apart = abs((stamp >> CLOCK_AT) - (gone >> CLOCK_AT))
            if apart < TOGETHER and self.promise(stamp) <= self.promise(gone):
                return at
        return self.draw()

    @method
    def draw(self):
        """Return the position of the page of lowest density among some drawn at random.

        Of equals it is the least recently used.  First all are looked up, then compared: so the
        memory accesses overlap.
        """
        draws, held = self.state[DRAWS], self.state[HELD]
        for draw in range(DRAWN):
            at = mixed(draws + draw) * held >> DRAW_BITS
            self.drawn[draw] = at
            self.promised[draw] = self.promise(self.held_stamp[at])
        self.state[DRAWS] += DRAWN
        victim, lowest = self.drawn[0], self.promised[0]
        for draw in range(1, DRAWN):
            promise = self.promised[draw]
            if promise <= lowest:
                at = self.drawn[draw]
                if promise < lowest or self.held_stamp[at] < self.held_stamp[victim]:
                    victim, lowest = at, promise
        return victim

    @method
    def promise(self, stamp):
        """Return the density of the page with that stamp at its present age."""
        age = age_of(self.state[CLOCK] - (stamp >> CLOCK_AT))
        worth = self.reuse.worth
        return worth.density[stamp & CLASS_MAX, age] * worth.part[stamp >> SIZE_AT & SIZE_MAX]

    @method
    def on_access(self, page, write):
        """Learn from an access; return its class."""
        self.companions.on_access(page)
        clock, before, size = self.state[CLOCK], self.stamp[page], self.state[SIZE]
        region = self.regions.page()
        if before == NONE:
            group, habits = first_class(write, region), 1
        else:
            habits = habit(before, clock)
            group = class_again(before, habits, write, self.regions.state[PACE], clock)
        is_held = int(self.position[page] != NONE)
        self.state[HIT] += is_held
        self.state[MISSED] += 1 - is_held
        was_sampled = before >> SAMPLED_AT & 1
        is_sampled = self.reuse.on_access(page, group, size, clock, is_held, was_sampled)
        self.stamp[page] = stamped(group, habits, size, is_sampled, clock)
        self.state[CLOCK] = clock + 1
        return group
