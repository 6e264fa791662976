"""What a page cache begins with: pages that it kept, and a list of those to be loaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.jit import method, state_machine
from hybridsim.jit.limits import READS, Limit, Limits

if TYPE_CHECKING:
    from hybridsim.caches.policies.memory import Memory

NO_PAGES = np.zeros(0, np.int64)
COUNTERS = (
    "pages_kept", "preload_reads", "preload_bytes", "pages_preloaded", "preloads_doomed",
    "warm_pages_used",
)  # fmt: skip
(PAGES_KEPT, PRELOAD_READS, PRELOAD_BYTES, PAGES_PRELOADED, PRELOADS_DOOMED,
 WARM_PAGES_USED) = range(len(COUNTERS))  # fmt: skip
POSITION, FIRST, PENDING = range(3)  # in the list: what is next, where the round began; its reads


class WarmStart(NamedTuple):
    """Numbers of pages, none twice in a column."""

    kept: Ints = NO_PAGES  # on the SSD already, the least worth first; no more than it holds
    valid: Ints = NO_PAGES  # their granules, as bits
    preload: Ints = NO_PAGES  # to be read from the disks, in this order
    memory: Memory | None = None  # what a learned policy knew; its pages get the first ids


COLD_START = WarmStart()


@state_machine
class Preload(NamedTuple):
    """The list, how far it is loaded, and which pages nobody has used since they were."""

    is_on: int
    idle_ns: int
    gap_bytes: int
    chunk_bytes: int
    reads_max: int  # of a round
    rate: Limits  # beside the load
    has_rate: int
    numbers: Ints
    fresh: Bytes  # by slot: 1 from when a page is kept or taken to be loaded until it is used
    state: Ints  # [POSITION, FIRST, PENDING]
    counts: Ints  # COUNTERS

    @classmethod
    def new(cls, slots: int, warm: WarmStart, parameters: Mapping[str, int]) -> Preload:
        """Make a list of which nothing is loaded; `parameters` are those of DESIGN.md 2.3.5."""
        is_on = len(warm.kept) + len(warm.preload) > 0
        rate = parameters["preload_rate"]
        counts = np.zeros(len(COUNTERS), np.int64)
        counts[PAGES_KEPT] = len(warm.kept)
        return cls(
            int(is_on),
            parameters["preload_idle_ns"],
            parameters["preload_gap_bytes"],
            parameters["preload_chunk_bytes"],
            parameters["preload_reads"],
            Limits.new(1, [Limit(READS, 1, rate, 0)] if rate else []),
            int(rate > 0),
            warm.preload.astype(np.int64),
            np.zeros(slots if is_on else 0, np.uint8),
            np.zeros(3, np.int64),
            counts,
        )

    def demand(self, page_bytes: int) -> int:
        """Return how many pages one round can take."""
        each = self.chunk_bytes // page_bytes + 1
        return self.reads_max * each if len(self.numbers) else 0

    def totals(self) -> dict[str, int]:
        """Return what was kept, loaded and used so far, by name; nothing where that is off."""
        return dict(zip(COUNTERS, self.counts.tolist(), strict=True)) if self.is_on else {}

    @method
    def has_used(self, slot):
        """Note that the page in a slot is used."""
        self.counts[WARM_PAGES_USED] += self.fresh[slot]
        self.fresh[slot] = 0

    @method
    def has_left(self, slot):
        """Note that a page leaves its slot; tell whether it was never used."""
        was_fresh = self.fresh[slot] == 1
        self.fresh[slot] = 0
        return was_fresh
