"""The page cache: fixed pages, any admission policy with any replacement policy.

Reads that miss go to the disks; a page that the admission policy admits is filled from there.
Writes go around the cache, through it, or into it and to the disks later (DESIGN.md 2.3).
"""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.page import names
from hybridsim.caches.page.fills import (
    COLD_START,
    PRELOAD_TIMER,
    Preload,
    WarmStart,
    begin_fills,
    clean_was_read,
    continue_fill,
    end_clean,
    fill_was_written,
    go_on_cleaning,
    go_on_preloading,
    preload_was_read,
)
from hybridsim.caches.page.requests import discard, read, write_around_or_through, write_back
from hybridsim.caches.page.table import DIRTY_COUNTERS, LAST_NS, Dirty, Table
from hybridsim.caches.streams import Streams
from hybridsim.foundation.arrays import Ints, filled, grown_together
from hybridsim.foundation.cache_parameters import CacheParameters
from hybridsim.foundation.codes import FUA, PREFLUSH, FillWhen, Mode, Op, Reason
from hybridsim.foundation.machine_parameters import LimitParameters
from hybridsim.jit import fitting, loop, method, state_machine
from hybridsim.jit.events import CACHE, Events
from hybridsim.jit.instructions import along
from hybridsim.jit.limits import Limits
from hybridsim.jit.lists import NOTHING

FILL_BURST_NS = 100_000_000  # fills saved up at fill_rate: those of this time
# Pages of warm starts with the same policies: fewer are in place before a loop is compiled.
KEPT_COMPILED = 1 << 15
_kept: Counter[tuple[type, type]] = Counter()  # so far


@state_machine
class PageCache(NamedTuple):
    """The state of a page cache, and its handling of requests.

    The engine calls `submit` for a request, `complete` for each part that a tier has completed,
    `finished` for a completed request, and `wake` for a timer.  `slot` is a request's index in
    `requests`; `below` has the two tiers (`slow`: the disks, `fast`: the SSDs) and the events.
    """

    page_bytes: int
    pages: int  # capacity
    mode: int  # codes.Mode
    writes_back: int  # 1 if pages may be dirty
    sequential_cutoff_bytes: int  # sequential runs of this length bypass the cache; 0: none do
    max_fills: int  # in progress at a time
    fill: int  # codes.Fill
    fill_when: int  # codes.FillWhen
    sub_page: int  # 1 if single granules of a page are filled
    discards: int  # 1 if the fast tier receives a discard of a freed slot
    fill_piece_bytes: int  # maximum length of one read
    fill_rate: Limits
    table: Table
    dirty: Dirty
    preload: Preload
    counts: Ints  # names.COUNTERS
    streams: Streams
    admission: Any
    replacement: Any

    @classmethod
    def new(
        cls,
        parameters: CacheParameters,
        admission: Any,
        replacement: Any,
        ids: int,
        warm: WarmStart = COLD_START,
    ) -> PageCache:
        """Return a cache; the policies have room for `ids` (a power of two) pages.

        The cache is empty except for the pages that `warm` keeps; `ids` must be large enough for
        them.
        """
        p = parameters
        writes_back = p.mode == Mode.WRITE_BACK and p.pages > 0
        fills = [LimitParameters([Op.READ], 1, p.fill_rate, FILL_BURST_NS)] if p.fill_rate else []
        cache = filled(
            cls,
            len(names.COUNTERS),
            p,
            writes_back=int(writes_back),
            fill_piece_bytes=p.fill_piece_bytes or p.page_bytes,
            fill_rate=Limits.new(1, fills),
            table=Table.new(p.page_bytes, p.granule_bytes or p.page_bytes, p.pages, ids),
            dirty=Dirty.new(p.pages if writes_back else 0, p),
            preload=Preload.new(p.pages, warm, p),
            streams=Streams.new(),
            admission=admission,
            replacement=replacement,
        )
        cache.keep(warm)
        return cache

    def keep(self, warm: WarmStart) -> None:
        """Pre-populate an empty cache; the last page is the most recently used.

        Raises ValueError for slots that the cache does not have, or that two pages have.
        """
        slots = np.arange(len(warm.kept)) if warm.slots is None else warm.slots
        pages_in = np.bincount(slots)
        holes, used = np.flatnonzero(pages_in == 0), len(pages_in)
        if used > self.pages or used - len(holes) != len(warm.kept):
            raise ValueError("two pages in a slot, or a slot that the device does not have")
        for number in warm.memory.numbers.tolist() if warm.memory else []:
            self.table.ids.add(number)
        policies = type(self.admission), type(self.replacement)
        _kept[policies] += len(warm.kept)
        fitting(_keep, self, interpreted=_kept[policies] < KEPT_COMPILED)(
            self, np.ascontiguousarray(warm.kept, np.int64),
            np.ascontiguousarray(warm.valid, np.int64),
            np.ascontiguousarray(slots, np.int64),
        )  # fmt: skip
        self.table.free_slots[: len(holes)] = holes
        self.counts[[names.SLOTS_USED, names.SLOTS_FREE]] = used, len(holes)
        self.counts[names.PAGES_PRESENT] = len(warm.kept)

    def emptied(self, at_first: PageCache) -> PageCache:
        """Return the cache as it was `at_first`, empty; the counters continue (DESIGN.md 2.17)."""
        cache = deepcopy(at_first)
        cache.counts[: names.PAGES_PRESENT] = self.counts[: names.PAGES_PRESENT]
        return cache

    def start(self, events: Events) -> None:
        """Schedule the start of a preload, if there is one."""
        if len(self.preload.numbers):
            events.push(self.preload.preload_idle_ns, CACHE, PRELOAD_TIMER)

    def grown(self, ids: int) -> PageCache:
        """Return the same cache with room for `ids` (a power of two) pages."""
        admission, replacement = grown_together(self.admission, self.replacement, ids)
        table = self.table.grown(ids)
        return self._replace(table=table, admission=admission, replacement=replacement)

    def size(self) -> int:
        """Return the number of page ids that there is room for."""
        return len(self.table.state)

    def demand(self, longest_bytes: int) -> int:
        """Return the maximum number of parts that one step can need for a request of that length.

        A step touches the pages of the request, and each may need several parts: if pages have
        granules, every other granule may be on another tier.  All cleans may start in one step.
        """
        parts = self.table.granules // 2 + 1
        pages = longest_bytes // self.page_bytes + 2
        cleaned = self.dirty.max_cleans * self.dirty.clean_merge_pages * self.writes_back
        return (pages + cleaned + self.preload.demand(self.page_bytes)) * parts

    def totals(self) -> dict[str, int]:
        """Return the counters so far, by name."""
        done = zip(names.COUNTERS[: names.PAGES_PRESENT + 1], self.counts.tolist(), strict=False)
        back = zip(DIRTY_COUNTERS, self.dirty.counts.tolist(), strict=True)
        return dict(done) | (dict(back) if self.writes_back else {}) | self.preload.totals()

    def dirty_bytes(self) -> int:
        """Return how much is dirty."""
        return int(self.dirty_ranges()[:, 1].sum())

    def dirty_ranges(self) -> Ints:
        """Return the offset and the length of each dirty granule, one row each."""
        slots = np.flatnonzero(self.dirty.granules)
        words = self.dirty.granules[slots].view(np.uint64)
        pages = self.table.ids.number[self.dirty.page[slots]] * self.page_bytes
        size, ranges = self.table.granule_bytes, [np.zeros((0, 2), np.int64)]
        for granule in range(self.table.granules):
            is_dirty = (words >> np.uint64(granule)) & np.uint64(1) == 1
            begin = pages[is_dirty] + granule * size
            length = np.full(len(begin), min(size, self.page_bytes - granule * size))
            ranges.append(np.stack([begin, length], axis=1))
        result: Ints = np.concatenate(ranges)
        return result[np.argsort(result[:, 0])]

    @method
    def room(self):
        """Return how many more pages can be added to the table."""
        return self.table.ids.room()

    @method
    def submit(self, now, slot, requests, below):
        """Start a request of the host."""
        op = requests.op[slot]
        offset = requests.offset[slot]
        length = requests.length[slot]
        if op == Op.FLUSH or length == 0:
            self.flush(now, slot, requests, below)
        elif self.pages == 0:
            if op != Op.DISCARD:
                requests.reason[slot] = Reason.NO_CACHE
            self.send(now, slot, op | requests.flags[slot], offset, length, requests, below)
        else:
            first = offset // self.page_bytes
            last = (offset + length - 1) // self.page_bytes
            requests.pages[slot] = last - first + 1
            self.dirty.state[LAST_NS] = now
            if op == Op.READ:
                read(self, now, slot, first, last, requests, below)
            else:
                self.write_or_discard(now, slot, first, last, requests, below)

    @method
    def write_or_discard(self, now, slot, first, last, requests, below):
        """Start a write or a discard that touches the pages `first` to `last`."""
        op = requests.op[slot]
        if op == Op.DISCARD:
            discard(self, now, slot, first, last, requests, below)
        elif self.writes_back:
            if requests.flags[slot] & PREFLUSH != 0:
                self.flush(now, slot, requests, below)
            else:
                write_back(self, now, slot, requests, below)
            return
        else:
            write_around_or_through(self, now, slot, first, last, requests, below)
        offset, length = requests.offset[slot], requests.length[slot]
        self.send(now, slot, op | requests.flags[slot], offset, length, requests, below)

    @method
    def complete(self, now, tag, requests, below):
        """Continue after a part has completed; return the slot of a complete request, or -1."""
        number, what = tag >> names.TAG_BITS, tag & names.TAG_MASK  # of a request, page or clean
        if what == names.PART:
            requests.pending[number] -= 1
            if requests.pending[number] > 0:
                return NOTHING
            if self.writes_back or self.fill_when == FillWhen.FOREGROUND:
                return self.end_parts(now, number, requests, below)
            return number
        if what == names.FILL_READ or what == names.FILL_WRITE:
            return self.go_on_filling(now, number, what, requests, below)
        if what == names.PRELOAD_READ:
            preload_was_read(self, now, below)
        elif what == names.CLEAN_READ or what == names.CLEAN_WRITE:
            self.dirty.pending[number] -= 1
            if self.dirty.pending[number] == 0:
                if what == names.CLEAN_READ:
                    clean_was_read(self, now, number, below)
                else:
                    end_clean(self, now, number, below)
        return NOTHING

    @method
    def end_parts(self, now, slot, requests, below):
        """Start the next phase of a request; return its slot if there is none, else -1."""
        is_write = requests.op[slot] == Op.WRITE and requests.length[slot] > 0
        if self.writes_back and is_write and requests.flags[slot] & PREFLUSH != 0:
            requests.flags[slot] &= FUA
            write_back(self, now, slot, requests, below)
            return NOTHING
        page = requests.promoted[slot]
        if self.fill_when != FillWhen.FOREGROUND or page == NOTHING:
            return slot
        for _ in along(page, self.table.promoted_next):
            requests.pending[slot] += 1
        requests.pending[slot] -= begin_fills(self, now, slot, True, requests, below)
        requests.promoted[slot] = NOTHING
        return slot if requests.pending[slot] == 0 else NOTHING

    @method
    def go_on_filling(self, now, page, what, requests, below):
        """Continue a fill after a read or write; return the slot of a complete request, or -1."""
        slot = self.table.fill_for[self.table.slot[page]]
        if what == names.FILL_READ:
            has_ended = continue_fill(self, now, page, below) == 1
        else:
            has_ended = fill_was_written(self, now, page, below)
        if not has_ended or slot < 0:
            return NOTHING
        requests.pending[slot] -= 1
        return slot if requests.pending[slot] == 0 else NOTHING

    @method
    def finished(self, now, slot, requests, below):
        """Start the fills that a completed request has reserved."""
        if requests.promoted[slot] != NOTHING:
            begin_fills(self, now, slot, False, requests, below)

    @method
    def wake(self, now, number, requests, below):
        """Run a timer of the preloader or of the cleaner."""
        if number == PRELOAD_TIMER:
            go_on_preloading(self, now, below)
        else:
            self.dirty.state[number] = 0
            go_on_cleaning(self, now, below)
        return NOTHING

    @method
    def flush(self, now, slot, requests, below):
        """Flush the slow tier, and the fast tier if it may hold dirty data."""
        self.send(now, slot, Op.FLUSH, 0, 0, requests, below)
        if self.writes_back:
            requests.pending[slot] += 1
            below.fast.submit(
                now, slot << names.TAG_BITS | names.PART, Op.FLUSH, 0, 0, below.events
            )

    @method
    def send(self, now, slot, op, offset, length, requests, below):
        """Send a part of a request to the slow tier."""
        requests.pending[slot] += 1
        below.slow.submit(
            now, slot << names.TAG_BITS | names.PART, op, offset, length, below.events
        )

    @method
    def send_fast(self, now, slot, op, page, start, end, requests, below):
        """Send a range of the volume that lies in a cached page to the fast tier."""
        at = self.table.slot[page] * self.page_bytes + (start - self.table.start(page))
        requests.pending[slot] += 1
        below.fast.submit(
            now, slot << names.TAG_BITS | names.PART, op, at, end - start, below.events
        )

    @method
    def is_full(self):
        """Return whether every slot has been used, that is, the first filling is over."""
        return self.counts[names.SLOTS_USED] == self.pages


@loop
def _keep(cache, numbers, valid, slots):
    """Put pages into slots, and use them in this order."""
    for i in range(len(numbers)):
        slot, page = slots[i], cache.table.ids.find(numbers[i])
        if page == NOTHING:
            page = cache.table.ids.add(numbers[i])
        cache.table.state[page] = names.PRESENT
        cache.table.slot[page] = slot
        cache.table.valid[slot] = valid[i]
        cache.preload.fresh[slot] = 1
        cache.replacement.missed(page)
        cache.replacement.admit(page)
