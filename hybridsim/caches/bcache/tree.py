"""An ordered index in arrays: a B+ tree from the start of a key to its number.

Nodes are filled in order and split in half; an empty node is removed, others are not merged: keys
are added and removed in equal numbers here, so that balancing costs more than it saves.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Int32s, Ints, extended_free_list, free_list, longer
from hybridsim.jit import method, state_machine

NOTHING = -1
FAN = 32  # entries of a node
LEVELS_MAX = 16

ROOT, LEVELS, FIRST_FREE, NODES_FREE = range(4)


@state_machine
class Tree(NamedTuple):
    """Entry i of node k is at k * FAN + i; nodes are leaves at level 0."""

    begin: Ints  # in a leaf: start of the key; above: lower bound of the keys below
    ref: Int32s  # number of the key; above: the node below
    entries: Int32s  # by node: number of entries
    following: Int32s  # by node: the free list
    path_node: Int32s  # by level: the path of the last descent
    path_entry: Int32s
    state: Ints  # [ROOT ... NODES_FREE]

    @classmethod
    def new(cls, capacity: int) -> Tree:
        """Return an empty tree with room for `capacity` nodes."""
        return cls(
            np.zeros(capacity * FAN, np.int64),
            np.zeros(capacity * FAN, np.int32),
            np.zeros(capacity, np.int32),
            free_list(capacity),
            np.zeros(LEVELS_MAX, np.int32),
            np.zeros(LEVELS_MAX, np.int32),
            np.array([0, 1, 1, capacity - 1]),  # node 0 is the root, an empty leaf
        )

    def grown(self, capacity: int) -> Tree:
        """Return the same tree with room for `capacity` nodes."""
        state = self.state.copy()
        links, head = extended_free_list(self.following, int(state[FIRST_FREE]), capacity)
        state[FIRST_FREE] = head
        state[NODES_FREE] += capacity - len(self.entries)
        return self._replace(
            begin=longer(self.begin, capacity * FAN),
            ref=longer(self.ref, capacity * FAN),
            entries=longer(self.entries, capacity),
            following=links,
            state=state,
        )

    @method
    def near(self, begin):
        """Return the last key that starts at or before `begin`, or else the first one of its leaf.

        Returns -1 if there are no keys.
        """
        node = self.state[ROOT]
        for _ in range(1, self.state[LEVELS]):
            node = self.ref[node * FAN + self.search(node, begin)]
        if self.entries[node] == 0:
            return NOTHING
        return self.ref[node * FAN + self.search(node, begin)]

    @method
    def search(self, node, begin):
        """Return the last entry of a node that is not after `begin`, or else the first one."""
        first = node * FAN
        low, high = 0, self.entries[node]
        while high - low > 1:
            middle = (low + high) >> 1
            if self.begin[first + middle] <= begin:
                low = middle
            else:
                high = middle
        return low

    @method
    def descend(self, begin):
        """Record the path to the leaf to which a key belongs."""
        node = self.state[ROOT]
        for level in range(self.state[LEVELS] - 1, -1, -1):
            entry = self.search(node, begin)
            self.path_node[level] = node
            self.path_entry[level] = entry
            node = self.ref[node * FAN + entry]

    @method
    def add(self, begin, ref):
        """Add a key."""
        self.descend(begin)
        leaf = self.path_node[0]
        entry = self.path_entry[0]
        if self.entries[leaf] > 0 and self.begin[leaf * FAN + entry] <= begin:
            entry += 1
        level = 0
        while True:
            node = self.path_node[level]
            if self.entries[node] < FAN:
                self.insert(node, entry, begin, ref)
                return
            right = self.split(node)
            if entry > FAN // 2:
                self.insert(right, entry - FAN // 2, begin, ref)
            else:
                self.insert(node, entry, begin, ref)
            begin = self.begin[right * FAN]
            ref = right
            level += 1
            if level == self.state[LEVELS]:
                self.raise_root(node, begin, right)
                return
            entry = self.path_entry[level] + 1

    @method
    def insert(self, node, entry, begin, ref):
        """Insert an entry into a node that has room."""
        first = node * FAN
        for i in range(first + self.entries[node], first + entry, -1):
            self.begin[i] = self.begin[i - 1]
            self.ref[i] = self.ref[i - 1]
        self.begin[first + entry] = begin
        self.ref[first + entry] = ref
        self.entries[node] += 1

    @method
    def split(self, node):
        """Move the upper half of a full node to a new one; return the new one."""
        right = self.take()
        half = FAN // 2
        for i in range(half):
            self.begin[right * FAN + i] = self.begin[node * FAN + half + i]
            self.ref[right * FAN + i] = self.ref[node * FAN + half + i]
        self.entries[node] = half
        self.entries[right] = FAN - half
        return right

    @method
    def raise_root(self, left, begin, right):
        """Create a new root above the two halves of the old one."""
        root = self.take()
        self.entries[root] = 0
        self.insert(root, 0, self.begin[left * FAN], left)
        self.insert(root, 1, begin, right)
        self.state[ROOT] = root
        self.state[LEVELS] += 1

    @method
    def remove(self, begin):
        """Remove the key that starts at `begin`."""
        self.descend(begin)
        level = 0
        while True:
            node = self.path_node[level]
            first = node * FAN
            self.entries[node] -= 1
            for i in range(first + self.path_entry[level], first + self.entries[node]):
                self.begin[i] = self.begin[i + 1]
                self.ref[i] = self.ref[i + 1]
            if self.entries[node] > 0 or level == self.state[LEVELS] - 1:
                break
            self.release(node)
            level += 1
        while self.state[LEVELS] > 1 and self.entries[self.state[ROOT]] == 1:
            root = self.state[ROOT]
            self.state[ROOT] = self.ref[root * FAN]
            self.state[LEVELS] -= 1
            self.release(root)

    @method
    def take(self):
        """Allocate a node."""
        node = self.state[FIRST_FREE]
        self.state[FIRST_FREE] = self.following[node]
        self.state[NODES_FREE] -= 1
        return node

    @method
    def release(self, node):
        """Free a node."""
        self.following[node] = self.state[FIRST_FREE]
        self.state[FIRST_FREE] = node
        self.state[NODES_FREE] += 1
