"""Least frequently used: evict the page with the fewest uses, of equals the least recently used.

Constant time per step, with a group of pages for each number of uses: K. Shah, A. Mitra,
D. Matani, "An O(1) algorithm for implementing the LFU cache eviction scheme", 2010.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.foundation.arrays import Int32s, Ints, extended_free_list, free_list, longer
from hybridsim.jit import method
from hybridsim.jit.prefetch import by_page

NOTHING = -1
LOWEST, FREE = 0, 1


@by_page("group", "older", "newer")
@policy
class LFU(NamedTuple):
    """Groups in order of uses; the pages of a group are a linked list in order of use."""

    group: Int32s  # by page
    older: Int32s  # by page, within its group
    newer: Int32s
    uses: Ints  # by group
    lower: Int32s  # by group: the group with fewer uses
    higher: Int32s  # by group: the group with more uses; of a free group: the next free group
    oldest: Int32s  # by group: its first page
    newest: Int32s
    state: Ints  # [LOWEST group, first FREE group]

    @classmethod
    def new(cls, ids: int, pages: int) -> LFU:
        """Return an empty structure, with room for `ids` pages and one group more."""
        page, group = np.full(ids, NOTHING, np.int32), np.full(ids + 1, NOTHING, np.int32)
        return cls(
            group=page,
            older=page.copy(),
            newer=page.copy(),
            uses=np.zeros(ids + 1, np.int64),
            lower=group,
            higher=free_list(ids + 1),
            oldest=group.copy(),
            newest=group.copy(),
            state=np.array([NOTHING, 0]),
        )

    def grown(self, ids: int) -> LFU:
        """Return the same groups with room for `ids` pages."""
        higher, free = extended_free_list(self.higher, int(self.state[FREE]), ids + 1)
        return self._replace(
            group=longer(self.group, ids, NOTHING),
            older=longer(self.older, ids, NOTHING),
            newer=longer(self.newer, ids, NOTHING),
            uses=longer(self.uses, ids + 1),
            lower=longer(self.lower, ids + 1, NOTHING),
            higher=higher,
            oldest=longer(self.oldest, ids + 1, NOTHING),
            newest=longer(self.newest, ids + 1, NOTHING),
            state=np.array([self.state[LOWEST], free]),
        )

    @method
    def admit(self, page):
        """Add a page as used once."""
        lowest = self.state[LOWEST]
        if lowest == NOTHING or self.uses[lowest] != 1:
            self.add_group(1, NOTHING)
        self.append(self.state[LOWEST], page)

    @method
    def touch(self, page):
        """Count a use."""
        group = self.group[page]
        uses = self.uses[group] + 1
        above = self.higher[group]
        alone = self.oldest[group] == self.newest[group]
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
        group, older, newer = self.group[page], self.older[page], self.newer[page]
        if older != NOTHING:
            self.newer[older] = newer
        else:
            self.oldest[group] = newer
        if newer != NOTHING:
            self.older[newer] = older
        else:
            self.newest[group] = older
        if self.oldest[group] == NOTHING:
            self.dissolve(group)

    @method
    def evict(self):
        """Remove and return the least recently used page of those with the fewest uses, or -1."""
        lowest = self.state[LOWEST]
        if lowest == NOTHING:
            return NOTHING
        page = self.oldest[lowest]
        self.remove(page)
        return page

    @method
    def append(self, group, page):
        """Put a page at the newest end of a group."""
        newest = self.newest[group]
        self.group[page] = group
        self.older[page] = newest
        self.newer[page] = NOTHING
        self.newest[group] = page
        if newest != NOTHING:
            self.newer[newest] = page
        else:
            self.oldest[group] = page

    @method
    def add_group(self, uses, below):
        """Return a new group above the group `below`, or the lowest group if that is NOTHING."""
        group = self.state[FREE]
        self.state[FREE] = self.higher[group]
        above = self.higher[below] if below != NOTHING else self.state[LOWEST]
        self.uses[group] = uses
        self.oldest[group] = NOTHING
        self.newest[group] = NOTHING
        self.join(below, group)
        self.join(group, above)
        return group

    @method
    def dissolve(self, group):
        """Free a group."""
        self.join(self.lower[group], self.higher[group])
        self.higher[group] = self.state[FREE]
        self.state[FREE] = group

    @method
    def join(self, below, above):
        """Make two groups neighbours; NOTHING stands for the ends."""
        if above != NOTHING:
            self.lower[above] = below
        if below != NOTHING:
            self.higher[below] = above
        else:
            self.state[LOWEST] = above
