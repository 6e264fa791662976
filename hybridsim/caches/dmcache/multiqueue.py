"""The multiqueue of smq: 64 lists, in which an entry rises with its uses (DESIGN.md 2.14.5).

An entry that is hit is exchanged with the oldest of the list that it rises to, so that lists keep
their lengths; a periodic redistribution makes all lists equally long again.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.jit import method, state_machine

NOTHING = -1
LEVELS = 64
SIZE, TARGETS_FOR = 0, 1


@state_machine
class Links(NamedTuple):
    """The links of nodes: entries first, then sentinels, which mark places in lists."""

    entries: int
    level: Ints
    older: Int32s
    newer: Int32s

    @classmethod
    def new(cls, entries: int, sentinels: int = 0) -> Links:
        """Return nodes that are in no list."""
        nodes = entries + sentinels
        older, newer = (np.full(nodes, NOTHING, np.int32) for _ in range(2))
        return cls(entries, np.zeros(nodes, np.int64), older, newer)


@state_machine
class MultiQueue(NamedTuple):
    """Lists over nodes; the oldest node of a list is its head."""

    top_levels: int  # number of levels that share
    in_top: int  #   this number of entries
    nodes: Links
    head: Int32s  # by level
    tail: Int32s
    filled: Ints  # entries, without sentinels
    target: Ints
    state: Ints  # [SIZE, TARGETS_FOR]

    @classmethod
    def new(cls, nodes: Links, top_levels: int = 0, in_top: int = 0) -> MultiQueue:
        """Return empty lists."""
        head, tail = (np.full(LEVELS, NOTHING, np.int32) for _ in range(2))
        filled, target = (np.zeros(LEVELS, np.int64) for _ in range(2))
        return cls(top_levels, in_top, nodes, head, tail, filled, target, np.zeros(2, np.int64))

    @method
    def push(self, node):
        """Append a node to the list of its level."""
        nodes = self.nodes
        level = nodes.level[node]
        last = self.tail[level]
        nodes.older[node] = last
        nodes.newer[node] = NOTHING
        self.tail[level] = node
        if last == NOTHING:
            self.head[level] = node
        else:
            nodes.newer[last] = node
        self.add(node, 1)

    @method
    def push_before(self, mark, node):
        """Insert a node before another one of its level."""
        nodes = self.nodes
        before = nodes.older[mark]
        nodes.older[node] = before
        nodes.newer[node] = mark
        nodes.older[mark] = node
        if before == NOTHING:
            self.head[nodes.level[node]] = node
        else:
            nodes.newer[before] = node
        self.add(node, 1)

    @method
    def push_first(self, node):
        """Make a node the oldest of its level."""
        oldest = self.head[self.nodes.level[node]]
        if oldest == NOTHING:
            self.push(node)
        else:
            self.push_before(oldest, node)

    @method
    def remove(self, node):
        """Remove a node from its list."""
        nodes = self.nodes
        older = nodes.older[node]
        newer = nodes.newer[node]
        if older == NOTHING:
            self.head[nodes.level[node]] = newer
        else:
            nodes.newer[older] = newer
        if newer == NOTHING:
            self.tail[nodes.level[node]] = older
        else:
            nodes.older[newer] = older
        self.add(node, -1)

    @method
    def add(self, node, number):
        """Add to the counts of entries; sentinels are not counted."""
        if node < self.nodes.entries:
            self.filled[self.nodes.level[node]] += number
            self.state[SIZE] += number

    @method
    def oldest(self, level):
        """Return the oldest entry of a level, or -1."""
        node = self.head[level]
        while node >= self.nodes.entries:
            node = self.nodes.newer[node]
        return node

    @method
    def newest(self, level):
        """Return the newest entry of a level, or -1."""
        node = self.tail[level]
        while node >= self.nodes.entries:
            node = self.nodes.older[node]
        return node

    @method
    def peek(self, levels, crosses):
        """Return the oldest entry of the lowest level below `levels` that has one, or -1.

        With `crosses` False only entries before the first sentinel of each level count.
        """
        for level in range(levels):
            if self.filled[level] == 0:
                continue
            node = self.head[level]
            if node < self.nodes.entries:
                return node
            if crosses:
                return self.oldest(level)
        return NOTHING

    @method
    def requeue(self, entry, up, first_mark, second_mark):
        """Raise an entry by `up` levels, as the newest of its level.

        The oldest of that level moves to the entry's old level: with marks, before the mark that
        has as many sentinels before it; else as the newest.
        """
        nodes = self.nodes
        level = nodes.level[entry]
        risen = min(LEVELS - 1, level + up)
        if risen > level:
            passed = 0
            other = self.head[risen]
            while other >= nodes.entries:
                passed += 1
                other = nodes.newer[other]
            if other != NOTHING:
                self.remove(other)
                nodes.level[other] = level
                if first_mark != NOTHING and passed == 0:
                    self.push_before(first_mark, other)
                elif first_mark != NOTHING and passed == 1:
                    self.push_before(second_mark, other)
                else:
                    self.push(other)
        self.remove(entry)
        nodes.level[entry] = risen
        self.push(entry)

    @method
    def move(self, entry, level):
        """Append an entry to the list of another level."""
        self.remove(entry)
        self.nodes.level[entry] = level
        self.push(entry)

    @method
    def redistribute(self):
        """Move entries until every level has its target length, from the lowest up."""
        self.set_targets()
        above = 0  # all levels between `level` and `above` are empty
        for level in range(LEVELS - 1):
            above = max(above, level + 1)
            while self.filled[level] < self.target[level]:
                while above < LEVELS and self.filled[above] == 0:
                    above += 1
                if above == LEVELS:
                    break
                self.move(self.oldest(above), level)
            while self.filled[level] > self.target[level]:
                self.move(self.newest(level), level + 1)
                above = level + 1

    @method
    def set_targets(self):
        """Set target lengths, separately for the top levels; only if the size has changed."""
        size = self.state[SIZE]
        if self.state[TARGETS_FOR] == size:
            return
        self.state[TARGETS_FOR] = size
        cut = LEVELS - self.top_levels
        if self.top_levels > 0:
            self.spread(self.in_top, cut, LEVELS)
        self.spread(max(0, size - self.in_top), 0, cut)

    @method
    def spread(self, number, begin, end):
        """Distribute a number over levels begin..end-1; the lowest get one more of the rest."""
        each = number // (end - begin)
        more = number % (end - begin)
        for level in range(begin, end):
            self.target[level] = each + (1 if level - begin < more else 0)
