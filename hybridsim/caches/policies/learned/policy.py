"""Learned admission and replacement, from one quantity: the reads of disks that a page will save.

An access belongs to a class by what is known at that moment (habits.py).  It is learned for each
class after how long its pages are touched again (reuse.py), and what follows from that for a place
in the cache (worth.py).  The least worthy of some pages drawn has to leave, and only for a worthier
one, if what that one is to bring, less the rent of its room, is worth a fill (DESIGN.md 2.4.1).
While places lie idle, whatever comes is taken in: so soon nothing is known yet of what is worth it.
A cache that begins full takes in as many pages at their second touch.

It serves as admission alone, beside any replacement, as replacement alone, and as both: then the
two are one object.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.learned.companions import GONE_STAMP, TOGETHER, Companions
from hybridsim.caches.policies.learned.habits import (
    CLASS_MAX,
    CLASSES,
    CLOCK_AT,
    COUNT_AT,
    SAMPLED_AT,
    class_again,
    first_class,
    habit,
    parents,
)
from hybridsim.caches.policies.learned.halfoctaves import age_of
from hybridsim.caches.policies.learned.regions import REST, Regions
from hybridsim.caches.policies.learned.reuse import Reuse
from hybridsim.caches.policies.learned.worth import USUAL_BYTES, Worth
from hybridsim.foundation.arrays import Floats, Int32s, Ints, longer
from hybridsim.jit import method, state_machine
from hybridsim.jit.mixing import mixed

DRAWN = 32
DRAW_BITS = 31
PRICE_ONE = 1000
NONE = -1
CLOCK, DRAWS, HELD, VICTIM, MISSED, HIT, TAKEN = range(7)


@state_machine
class Learned(NamedTuple):
    """What is known of each page, who is cached, and what was learned."""

    admits: int
    is_alone: int  # admission, beside another replacement
    page_bytes: int
    regions: Regions
    companions: Companions
    reuse: Reuse
    stamp: Ints  # by page: of the last access, clock, mean gap, accesses, class; NONE never
    position: Int32s  # by page: in `held`, or NONE
    held: Int32s  # cached pages, in any order
    held_stamp: Ints  # theirs: what a draw looks at lies in one array
    drawn: Ints  # positions that are compared
    promised: Floats  # by these
    state: Ints  # [CLOCK, DRAWS, HELD, VICTIM; MISSED, HIT of the request; TAKEN in on trust]

    @classmethod
    def new(
        cls,
        ids: int,
        pages: int,
        write_price_per_thousand: int = PRICE_ONE // 2,
        admits: bool = True,
        replaces: bool = True,
        page_bytes: int = USUAL_BYTES,
    ) -> Learned:
        """Know nothing; be admission, replacement or both."""
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
            np.array([0, 0, 0, NONE, 0, 0, 0]),
        )

    def grown(self, ids: int) -> Learned:
        """Return the same knowledge with room for `ids` pages."""
        return self._replace(
            reuse=self.reuse.grown(ids),
            companions=self.companions.grown(ids),
            stamp=longer(self.stamp, ids, NONE),
            position=longer(self.position, ids, NONE),
        )

    @method
    def request(self, offset, length, write):
        """Hear of a request before its pages."""
        self.companions.request()
        self.reuse.settle(self.state[MISSED], self.state[HIT])
        self.state[MISSED] = self.state[HIT] = 0
        self.regions.request(offset, length, self.state[CLOCK])
        self.reuse.worth.prices(offset, offset + length, self.page_bytes)

    @method
    def consider(self, now, page, write, full):
        """Learn from an access; tell whether the page, if absent, is wanted."""
        is_new, is_held = self.stamp[page] == NONE, self.position[page] != NONE
        group = self.hear(page, write)
        self.state[VICTIM] = NONE
        worth = self.reuse.worth
        if not full or (self.state[TAKEN] < len(self.held) and not is_new and not is_held):
            self.state[TAKEN] += not is_held
            return True
        if is_held or worth.sure[group] < worth.price():
            return False
        if self.state[HELD] == 0:
            return True
        victim = self.choose()
        self.state[VICTIM] = self.held[victim]
        promise = self.promise(self.held_stamp[victim])
        worth.rents(promise)
        return worth.density[group, 0] >= promise

    @method
    def evicted(self, page):
        """Learn from an eviction how long pages stay, and what room is worth if others choose."""
        self.reuse.evicted(self.state[CLOCK] - (self.stamp[page] >> CLOCK_AT))
        if self.is_alone:
            self.reuse.worth.rents(self.promise(self.stamp[page]))

    @method
    def missed(self, page):
        """Learn from a miss, if the page was not considered."""
        self.companions.missed(page, self.state[CLOCK])
        if not self.admits:
            self.hear(page, 0)

    @method
    def touch(self, page):
        """Learn from a hit, if the page was not considered."""
        if not self.admits:
            self.hear(page, 0)
        self.held_stamp[self.position[page]] = self.stamp[page]

    @method
    def admit(self, page):
        """Take in a page."""
        at = self.state[HELD]
        self.state[HELD] += 1
        self.position[page] = at
        self.held[at] = page
        self.held_stamp[at] = self.stamp[page]
        if self.stamp[page] == NONE:  # it was there before the first request, or preloaded
            self.held_stamp[at] = self.state[CLOCK] << CLOCK_AT

    @method
    def remove(self, page):
        """Forget a page: the last one takes its position."""
        self.state[HELD] -= 1
        last, at = self.state[HELD], self.position[page]
        self.held[at] = self.held[last]
        self.held_stamp[at] = self.held_stamp[last]
        self.position[self.held[at]] = at
        self.position[page] = NONE

    @method
    def evict(self):
        """Give up the page chosen when it was considered for whom, or else draw; -1 if none."""
        if self.state[HELD] == 0:
            return -1
        page = self.state[VICTIM]
        if page == NONE or self.position[page] == NONE:
            page = np.int64(self.held[self.choose()])
        self.state[VICTIM] = NONE
        self.companions.gone(page, self.held_stamp[self.position[page]], self.state[CLOCK])
        self.remove(page)
        if not self.admits and self.stamp[page] != NONE:
            self.evicted(page)
        return page

    @method
    def choose(self):
        """Return the position of the page to leave: a companion of the last one, or one drawn."""
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
        """Return the position of the least promising of some pages drawn.

        Of equals it is the one untouched for longest.  First all are looked up, then compared: so
        memory is waited for once, and not before each comparison.
        """
        draws, held = self.state[DRAWS], self.state[HELD]
        for draw in range(DRAWN):
            at = mixed(draws + draw) * held >> DRAW_BITS
            self.drawn[draw] = at
            self.promised[draw] = self.promise(self.held_stamp[at])
        self.state[DRAWS] += DRAWN
        victim, least = self.drawn[0], self.promised[0]
        for draw in range(1, DRAWN):
            promise = self.promised[draw]
            if promise <= least:
                at = self.drawn[draw]
                if promise < least or self.held_stamp[at] < self.held_stamp[victim]:
                    victim, least = at, promise
        return victim

    @method
    def promise(self, stamp):
        """Return the density of hits that a page has ahead."""
        age = age_of(self.state[CLOCK] - (stamp >> CLOCK_AT))
        return self.reuse.worth.density[stamp & CLASS_MAX, age]

    @method
    def hear(self, page, write):
        """Learn from an access; return its class."""
        self.companions.hear(page)
        clock, before = self.state[CLOCK], self.stamp[page]
        known = self.regions.page()
        if before == NONE:
            group, habits = first_class(write, known), 1
        else:
            habits = habit(before, clock)
            group = class_again(before, habits, write, self.regions.state[REST], clock)
        is_held = int(self.position[page] != NONE)
        self.state[HIT] += is_held
        self.state[MISSED] += 1 - is_held
        was_sampled = before >> SAMPLED_AT & 1
        is_sampled = self.reuse.hear(page, group, clock, is_held, was_sampled)
        self.stamp[page] = (clock << 1 | is_sampled) << SAMPLED_AT | habits << COUNT_AT | group
        self.state[CLOCK] = clock + 1
        return group
