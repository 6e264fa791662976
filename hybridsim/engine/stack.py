"""The depth of each access in the stack of recently used pages: the hits of LRU for all sizes.

R. L. Mattson et al., "Evaluation techniques for storage hierarchies", IBM Systems Journal 9(2),
1970: an access hits in LRU caches of at least as many pages as were touched since the page's last
use, itself included.  Each page has a mark at the time of its last use; marks are counted by blocks
in a Fenwick tree (P. M. Fenwick, Software: Practice and Experience 24(3), 1994) small enough for
the processor's cache, and one by one within a block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Int32s, Ints, filled, longer
from hybridsim.jit import loop, method, state_machine
from hybridsim.jit.instructions import prefetch

BLOCK_BITS = 6
BLOCK = 1 << BLOCK_BITS
NEVER = -1
AHEAD = 12
CLOCK, MARKS = 0, 1


@state_machine
class Stack(NamedTuple):
    """Marks over moments; when all moments are used, the marks are compacted."""

    last: Int32s  # by page: the moment of its last use
    page: Int32s  # by moment: the page used then
    marked: Bytes  # by moment: whether it is the last use of its page
    tree: Int32s  # Fenwick tree of the marks in each block, from entry 1 on
    state: Ints  # [CLOCK: next moment, MARKS: marked pages]

    @classmethod
    def new(cls, ids: int) -> Stack:
        """Return an empty stack with room for `ids` pages, a multiple of the block."""
        last, tree = np.full(ids, NEVER, np.int32), _tree(2 * ids)
        return filled(cls, 2 * ids, last=last, tree=tree, state=np.zeros(2, np.int64))

    def grown(self, ids: int) -> Stack:
        """Return the same stack with room for `ids` pages."""
        last, tree = longer(self.last, ids, NEVER), _tree(2 * ids)
        page, marked = (longer(each, 2 * ids) for each in (self.page, self.marked))
        grown = Stack(last, page, marked, tree, self.state)
        _regrow(grown)
        return grown

    @method
    def depth(self, page):
        """Use a page; return its depth, from 1, or 0 at its first use."""
        if self.state[CLOCK] == len(self.page):
            self.move_together()
        before = self.last[page]
        depth = 0
        if before != NEVER:
            depth = self.state[MARKS] - self.marks_before(before)
            self.marked[before] = 0
            self.add(before >> BLOCK_BITS, -1)
        else:
            self.state[MARKS] += 1
        now = self.state[CLOCK]
        self.state[CLOCK] = now + 1
        self.last[page] = now
        self.page[now] = page
        self.marked[now] = 1
        self.add(now >> BLOCK_BITS, 1)
        return depth

    @method
    def marks_before(self, moment):
        """Count the marks before a moment."""
        block = moment >> BLOCK_BITS
        count = 0
        for each in range(block << BLOCK_BITS, moment):
            count += self.marked[each]
        while block > 0:
            count += self.tree[block]
            block &= block - 1
        return count

    @method
    def add(self, block, change):
        """Change the count of a block."""
        at = block + 1
        while at < len(self.tree):
            self.tree[at] += change
            at += at & -at

    @method
    def move_together(self):
        """Move the marks to the first moments, in order, and count them again."""
        kept = 0
        for moment in range(self.state[CLOCK]):
            page = self.page[moment]
            is_last = self.marked[moment]
            self.marked[moment] = 0
            if is_last:
                self.page[kept] = page
                self.marked[kept] = 1
                self.last[page] = kept
                kept += 1
        self.state[CLOCK] = kept
        self.count_anew()

    @method
    def count_anew(self):
        """Build the tree from the marks."""
        blocks = len(self.tree) - 1
        for block in range(blocks):
            count = 0
            for moment in range(block << BLOCK_BITS, (block + 1) << BLOCK_BITS):
                count += self.marked[moment]
            self.tree[block + 1] = count
        for at in range(1, blocks + 1):
            above = at + (at & -at)
            if above <= blocks:
                self.tree[above] += self.tree[at]


def _tree(moments: int) -> Int32s:
    return np.zeros((moments >> BLOCK_BITS) + 1, np.int32)


@loop
def _regrow(stack):
    stack.count_anew()


@loop
def count_depths(stack, ids, hits):
    """Use pages; count accesses at depth d in hits[d] and first uses in hits[0]."""
    last = len(ids) - 1
    for i in range(len(ids)):
        prefetch(stack.last, ids[min(i + AHEAD, last)])
        hits[stack.depth(ids[i])] += 1


@loop
def weigh_depths(stack, ids, weight, per_octave, hits):
    """Use sampled pages; add `weight` to the bin of a sampled depth times `weight`.

    hits[0] counts first uses; hits[1 + b] counts depths from 2^(b / per_octave) on.
    """
    for i in range(len(ids)):
        depth = stack.depth(ids[i])
        into = 0
        if depth > 0:
            into = 1 + int(np.log2(depth * weight) * per_octave)
        hits[into] += weight


@loop
def in_order_of_use(stack, keep, order):
    """Write the pages to keep into `order`, least recently used first; return their number."""
    kept = 0
    for moment in range(stack.state[CLOCK]):
        if stack.marked[moment] and keep[stack.page[moment]]:
            order[kept] = stack.page[moment]
            kept += 1
    return kept
