"""The page cache without simulated devices: it says what to read and write, and others do it.

The same state machine as in a simulation.  What it submits to its tiers is recorded as orders, in
the order of submission; `complete` is called when one has been carried out (hybridsim/serving).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.page import PageCache
from hybridsim.caches.page.names import (
    FILL_READ,
    FILL_WRITE,
    IS_WRONG,
    PART,
    TAG_BITS,
    TAG_MASK,
)
from hybridsim.caches.page.requests import discard
from hybridsim.engine.machine import Below
from hybridsim.foundation.arrays import Ints, doubled
from hybridsim.jit import fitting, loop, method, of_these_types, state_machine
from hybridsim.jit.events import Events
from hybridsim.jit.instructions import along
from hybridsim.jit.lists import NOTHING
from hybridsim.requests.inflight import InFlight

SLOW, FAST = range(2)  # the tier of an order
TIER, TAG, OP, OFFSET, LENGTH = range(5)  # columns of an order
NOW_NS, REQUEST, DONE = range(3)  # of a step; REQUEST: a slot or a tag


@state_machine
class Orders(NamedTuple):
    """A tier that records what it is to do; both tiers of a cache share the list."""

    tier: int
    capacity_bytes: int
    rows: Ints  # TIER ... LENGTH of each
    used: Ints  # [number of orders]

    @method
    def submit(self, now, tag, op, offset, length, events):
        """Append an order."""
        row = self.used[0]
        self.used[0] = row + 1
        if row < len(self.rows):
            self.rows[row, TIER] = self.tier
            self.rows[row, TAG] = tag
            self.rows[row, OP] = op
            self.rows[row, OFFSET] = offset
            self.rows[row, LENGTH] = length

    @method
    def is_idle(self):
        """Return True: only preloading asks, and nothing is preloaded here."""
        return True


@loop
def submit(cache: Any, requests: Any, below: Any, step: Ints) -> None:
    """Start the request in a slot."""
    cache.submit(step[NOW_NS], step[REQUEST], requests, below)


@loop
def complete(cache: Any, requests: Any, below: Any, step: Ints) -> None:
    """Continue after an order; DONE is the slot of a request that is complete then, or -1."""
    slot = cache.complete(step[NOW_NS], step[REQUEST], requests, below)
    step[DONE] = slot
    if slot >= 0:
        cache.finished(step[NOW_NS], slot, requests, below)


@loop
def drop(cache: Any, requests: Any, below: Any, step: Ints) -> None:
    """Take the pages in the range of a slot out of the cache."""
    slot = step[REQUEST]
    first = requests.offset[slot] // cache.page_bytes
    last = (requests.offset[slot] + requests.length[slot] - 1) // cache.page_bytes
    discard(cache, step[NOW_NS], slot, first, last, requests, below)


class Order(NamedTuple):
    """A read, write, flush or discard of a tier that is to be carried out."""

    tier: int
    tag: int
    op: int  # codes.Op, with the flag FUA
    offset: int  # on the tier
    length: int
    at: int  # the byte of the volume

    @property
    def slot(self) -> int:
        """The slot of the request that it is a part of, or -1: it is a part of a fill."""
        return self.tag >> TAG_BITS if self.tag & TAG_MASK == PART else NOTHING

    @property
    def page(self) -> int:
        """The id of the page that it fills, or -1."""
        return self.tag >> TAG_BITS if self.tag & TAG_MASK in (FILL_READ, FILL_WRITE) else NOTHING


class Decisions:
    """A page cache in the caller's time.  Not for several threads at once.

    Requests are in slots below `slots`; the caller chooses a free one.  Read-only or write-through.
    """

    def __init__(self, cache: PageCache, volume_bytes: int, slots: int, longest_bytes: int) -> None:
        """Take an empty or warm cache of whole pages, without preloading and write-back.

        No request is longer than `longest_bytes`.
        """
        if cache.writes_back or cache.table.granules > 1 or len(cache.preload.numbers):
            raise ValueError("only whole pages, without write-back and preloading, can be served")
        self.cache = cache
        self.page_bytes = cache.page_bytes
        self._spare = slots  # the slot of ranges that are dropped
        self._requests = InFlight.new(slots + 1)
        self._demand = cache.demand(longest_bytes)
        rows = np.zeros((2 * self._demand + 16, 5), np.int64)
        self._used = np.zeros(1, np.int64)
        slow, fast = (Orders(tier, volume_bytes, rows, self._used) for tier in (SLOW, FAST))
        self._below = Below(slow, fast, Events.new(16))
        self._step = np.zeros(3, np.int64)
        self.numbers = np.full(max(cache.pages, 1), NOTHING, np.int64)  # by slot of the fast tier
        used = cache.table.slot != NOTHING
        self.numbers[cache.table.slot[used]] = cache.table.ids.number[used]
        machine = cache, self._requests, self._below, self._step
        self._loops = [
            of_these_types(fitting(each, cache), *machine) for each in (submit, complete, drop)
        ]

    def submit(self, now_ns: int, slot: int, number: int, op: int, flags: int, offset: int,
               length: int) -> list[Order]:  # fmt: skip
        """Start a request, numbered for errors; return what is to be done for it now."""
        room = int(self.cache.room())
        if room < self._demand:
            self.cache = self.cache.grown(doubled(self.cache.size(), room, self._demand))
        requests = self._requests
        requests.put(slot, number, op | flags, offset, length)
        self._run(0, now_ns, slot)
        orders = self._orders()  # before a page that is evicted now loses its place
        for page in along(requests.promoted[slot], self.cache.table.promoted_next):
            self.numbers[self.cache.table.slot[page]] = self.cache.table.ids.number[page]
        return orders

    def complete(self, now_ns: int, tag: int) -> tuple[int, list[Order]]:
        """Continue after an order; return the slot of a request complete then or -1, and orders."""
        self._run(1, now_ns, tag)
        return int(self._step[DONE]), self._orders()

    def drop(self, now_ns: int, offset: int, length: int) -> None:
        """Take the pages of a range out of the cache, as after an error."""
        self._requests.offset[self._spare], self._requests.length[self._spare] = offset, length
        self._run(2, now_ns, self._spare)
        self._orders()

    def path(self, slot: int) -> int:
        """Return the way that a request took (codes.Path): HIT if the fast tier had all of it."""
        return int(self._requests.path[slot])

    def is_wrong(self) -> bool:
        """Return whether the replacement policy has chosen an impossible victim."""
        return bool(self.cache.counts[IS_WRONG])

    def _run(self, which: int, now_ns: int, request: int) -> None:
        self._step[:] = now_ns, request, NOTHING
        self._used[0] = 0
        self._loops[which](self.cache, self._requests, self._below, self._step)

    def _orders(self) -> list[Order]:
        """Return the orders of a step, each with the byte of the volume that it concerns."""
        used = int(self._used[0])
        rows = self._below.slow.rows
        if used > len(rows):
            raise AssertionError(f"a step of {used} orders, though at most {len(rows)} can be")
        return [self._order(*row) for row in rows[:used].tolist()]

    def _order(self, tier: int, tag: int, op: int, offset: int, length: int) -> Order:
        at = offset
        if tier == FAST:
            number = int(self.numbers[offset // self.page_bytes])
            if tag & TAG_MASK == FILL_WRITE:
                number = int(self.cache.table.ids.number[tag >> TAG_BITS])
            at = number * self.page_bytes + offset % self.page_bytes
        return Order(tier, tag, op, offset, length, at)
