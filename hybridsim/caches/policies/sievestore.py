"""SieveStore: admit a page after several uses within a sliding window.

T. Pritchett, M. Thottethodi, "SieveStore: a highly-selective, ensemble-level disk cache for cost-
performance", ISCA 2010, the continuous variant.  The original puts a table of hashed counters
before the exact one to save memory, and its window is hours; here each page has its counters, and
the window is some cache sizes of accesses, so that it works the same with and without times.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hybridsim.caches.policies.defaults import policy
from hybridsim.foundation.arrays import Int32s, Ints
from hybridsim.jit import method
from hybridsim.jit.instructions import by_page

PARTS = 4  # of the window, each with its own counter
COUNTER_BITS, COUNT_MAX = 4, 15
ALL_PARTS = (1 << PARTS * COUNTER_BITS) - 1
WANTED = 3  # uses within the window that admit a page
PART_MIN = 64  # accesses in a part, at least


@by_page("counters", "part")
@policy
class SieveStore(NamedTuple):
    """Four counters for each page: for the current part of the window and those before."""

    part_accesses: int
    counters: Int32s  # by page: the current part in the lowest bits
    part: Int32s  # by page: part of its latest use
    accesses: Ints  # [number of accesses so far]

    @classmethod
    def new(cls, ids: int, pages: int) -> SieveStore:
        """Return counters of 0; a part of the window is as many accesses as the cache has pages."""
        counters, part = np.zeros(ids, np.int32), np.zeros(ids, np.int32)
        return cls(max(pages, PART_MIN), counters, part, np.zeros(1, np.int64))

    @method
    def consider(self, now, page, write, full):
        """Count a use; admit the page after enough recent uses."""
        part = self.accesses[0] // self.part_accesses
        self.accesses[0] += 1
        passed = min(part - self.part[page], PARTS)
        counters = (self.counters[page] << passed * COUNTER_BITS) & ALL_PARTS
        if counters & COUNT_MAX < COUNT_MAX:
            counters += 1
        self.counters[page] = counters
        self.part[page] = part
        uses = 0
        for _ in range(PARTS):
            uses += counters & COUNT_MAX
            counters >>= COUNTER_BITS
        return uses >= WANTED
