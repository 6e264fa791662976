"""The start of a warm cache: pages that it kept, and a list of pages to be loaded."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Bytes, Ints
from hybridsim.foundation.cache_parameters import CacheParameters
from hybridsim.foundation.codes import Op
from hybridsim.foundation.machine_parameters import LimitParameters
from hybridsim.jit import method, state_machine
from hybridsim.jit.limits import Limits

if TYPE_CHECKING:
    from hybridsim.caches.policies.memory import Memory

NO_PAGES = np.zeros(0, np.int64)
COUNTERS = (
    "pages_kept", "preload_reads", "preload_bytes", "pages_preloaded", "preloads_doomed",
    "warm_pages_used",
)  # fmt: skip
(PAGES_KEPT, PRELOAD_READS, PRELOAD_BYTES, PAGES_PRELOADED, PRELOADS_DOOMED,
 WARM_PAGES_USED) = range(len(COUNTERS))  # fmt: skip
POSITION, FIRST, PENDING = range(3)  # next place in the list; start of the round; its reads


class WarmStart(NamedTuple):
    """Page numbers, distinct within each column."""

    kept: Ints = NO_PAGES  # on the SSD already, the least valuable first; at most its capacity
    valid: Ints = NO_PAGES  # their valid granules, as bits
    preload: Ints = NO_PAGES  # to be read from the disks, in this order
    memory: Memory | None = None  # state of a learned policy; its pages get the first ids


COLD_START = WarmStart()


@state_machine
class Preload(NamedTuple):
    """The list of pages, the progress of loading, and the pages not used since they were loaded."""

    is_on: int
    idle_ns: int
    gap_bytes: int
    chunk_bytes: int
    reads_max: int  # per round
    rate: Limits  # while there is load
    has_rate: int
    numbers: Ints
    fresh: Bytes  # by slot: 1 from when a page is kept or scheduled to be loaded until its use
    state: Ints  # [POSITION, FIRST, PENDING]
    counts: Ints  # COUNTERS

    @classmethod
    def new(cls, slots: int, warm: WarmStart, parameters: CacheParameters) -> Preload:
        """Return the list with nothing loaded."""
        is_on = len(warm.kept) + len(warm.preload) > 0
        rate = parameters.preload_rate
        counts = np.zeros(len(COUNTERS), np.int64)
        counts[PAGES_KEPT] = len(warm.kept)
        return cls(
            int(is_on),
            parameters.preload_idle_ns,
            parameters.preload_gap_bytes,
            parameters.preload_chunk_bytes,
            parameters.preload_reads,
            Limits.new(1, [LimitParameters([Op.READ], 1, rate)] if rate else []),
            int(rate > 0),
            warm.preload.astype(np.int64),
            np.zeros(slots if is_on else 0, np.uint8),
            np.zeros(3, np.int64),
            counts,
        )

    def demand(self, page_bytes: int) -> int:
        """Return the maximum number of pages in one round."""
        each = self.chunk_bytes // page_bytes + 1
        return self.reads_max * each if len(self.numbers) else 0

    def totals(self) -> dict[str, int]:
        """Return the counters so far, by name; empty if there was no warm start."""
        return dict(zip(COUNTERS, self.counts.tolist(), strict=True)) if self.is_on else {}

    @method
    def on_use(self, slot):
        """Count the first use of a page that was kept or loaded."""
        self.counts[WARM_PAGES_USED] += self.fresh[slot]
        self.fresh[slot] = 0

    @method
    def on_evict(self, slot):
        """Record that a page leaves its slot; return whether it was never used."""
        was_fresh = self.fresh[slot] == 1
        self.fresh[slot] = 0
        return was_fresh
