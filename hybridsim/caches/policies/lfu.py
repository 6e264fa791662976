"""Least frequently used: evict the page with the fewest uses, of equals the least recently used.

Constant time per step, with a group of pages for each number of uses: K. Shah, A. Mitra,
D. Matani, "An O(1) algorithm for implementing the LFU cache eviction scheme", 2010.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.foundation.arrays import Int32s, Ints, grown_pool, longer, pool_of
from hybridsim.jit import method
from hybridsim.jit.instructions import by_page
from hybridsim.jit.lists import NOTHING, Chains, give_back, taken


@by_page("group")
@policy
class LFU(NamedTuple):
    """Groups in order of uses; the pages of a group are a list in order of use."""

    group: Int32s  # by page
    pages: Chains  # by group
    lowest: Ints  # [group]
    uses: Ints  # by group
    lower: Int32s  # by group: the group with fewer uses
    following: Int32s  # by group: the group with more uses; of a free group: the next free group
    free: Ints  # [first free group, number of free groups]

    @classmethod
    def new(cls, ids: int, pages: int) -> LFU:
        """Return an empty structure, with room for `ids` pages and one group more."""
        group, chains = np.full(ids, NOTHING, np.int32), Chains.new(ids, ids + 1)
        return pool_of(cls, ids + 1, group=group, pages=chains, lowest=np.array([NOTHING]))

    def grown(self, ids: int) -> LFU:
        """Return the same groups with room for `ids` pages."""
        group, pages = longer(self.group, ids, NOTHING), self.pages.grown(ids, ids + 1)
        return grown_pool(self._replace(group=group, pages=pages), ids + 1, ("uses", "lower"))

    @method
    def admit(self, page):
        """Add a page as used once."""
        lowest = self.lowest[0]
        if lowest == NOTHING or self.uses[lowest] != 1:
            self.add_group(1, NOTHING)
        self.append(self.lowest[0], page)

    @method
    def touch(self, page):
        """Count a use."""
        group = self.group[page]
        uses = self.uses[group] + 1
        above = self.following[group]
        alone = self.pages.oldest[group] == self.pages.newest[group]
        if above != NOTHING and self.uses[above] == uses:
            self.remove(page)
            self.append(above, page)
        elif alone:
            self.uses[group] = uses
        else:
            self.remove(page)
            self.append(self.add_group(uses, group), page)

    @method
    def remove(self, page):
        """Remove a page, and its group if that becomes empty."""
        group = self.group[page]
        self.pages.remove(group, page)
        if self.pages.oldest[group] == NOTHING:
            self.join(self.lower[group], self.following[group])
            give_back(self, group)

    @method
    def evict(self):
        """Remove and return the least recently used page of those with the fewest uses, or -1."""
        lowest = self.lowest[0]
        if lowest == NOTHING:
            return NOTHING
        page = self.pages.oldest[lowest]
        self.remove(page)
        return page

    @method
    def append(self, group, page):
        """Put a page at the newest end of a group."""
        self.group[page] = group
        self.pages.add(group, page)

    @method
    def add_group(self, uses, below):
        """Return a new group above the group `below`, or the lowest group if that is NOTHING."""
        group = taken(self)
        above = self.following[below] if below != NOTHING else self.lowest[0]
        self.uses[group] = uses
        self.join(below, group)
        self.join(group, above)
        return group

    @method
    def join(self, below, above):
        """Make two groups neighbours; NOTHING stands for the ends."""
        if above != NOTHING:
            self.lower[above] = below
        if below != NOTHING:
            self.following[below] = above
        else:
            self.lowest[0] = above
