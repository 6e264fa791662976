"""The page cache: fixed pages, any admission policy with any replacement policy.

Reads that miss go to the disks; a page that the admission policy wants is then read whole and
written to the SSD in the background.  Writes always go to the disks (DESIGN.md 2.3).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from hybridsim.arrays import Bytes, Int32s, Ints, longer
from hybridsim.caches.index import Index
from hybridsim.caches.streams import Streams
from hybridsim.codes import Mode, Op, Path, Reason
from hybridsim.jit import method, state_machine

NOTHING = -1
ABSENT, FILLING, DOOMED, PRESENT = range(4)

# A tier request's tag is number << 2 | one of these; number is a request's slot or a page.
PART, FILL_READ, FILL_WRITE = range(3)

FILLS, FILLS_STARTED, FILLS_DONE, FILLS_DOOMED, EVICTIONS, PAGES_PRESENT, SLOTS_USED, SLOTS_FREE = (
    range(8)
)

READ, WRITE, DISCARD, FLUSH = int(Op.READ), int(Op.WRITE), int(Op.DISCARD), int(Op.FLUSH)
READ_ONLY = int(Mode.READ_ONLY)
HIT, MISS, BYPASS = int(Path.HIT), int(Path.MISS), int(Path.BYPASS)
NONE, COLD, NOT_HOT = int(Reason.NONE), int(Reason.COLD), int(Reason.NOT_HOT)
WAS_BUSY, IS_FILLING = int(Reason.BUSY), int(Reason.FILLING)
EVICTED, OVERWRITTEN = int(Reason.EVICTED), int(Reason.OVERWRITTEN)
SEQUENTIAL, WRITTEN = int(Reason.SEQUENTIAL), int(Reason.WRITE)
FLUSHED, DISCARDED, NO_CACHE = int(Reason.FLUSH), int(Reason.DISCARD), int(Reason.NO_CACHE)


@state_machine
class PageCache(NamedTuple):
    """Pages by id (given at the first access), slots by number."""

    page_bytes: int
    pages: int  # capacity
    mode: int
    cutoff_bytes: int
    fills_max: int
    ids: Index
    state: Bytes  # by page: ABSENT, FILLING, DOOMED, PRESENT
    why_absent: Bytes  # by page: Reason
    slot: Ints  # by page; 64 bits, as it is multiplied to an address
    promoted_next: Int32s  # by page: the next one reserved by the same request
    free_slots: Ints  # stack of slots given back
    counts: Ints  # [FILLS ... SLOTS_FREE]
    streams: Streams
    admission: Any
    replacement: Any

    @classmethod
    def new(
        cls,
        page_bytes: int,
        pages: int,
        mode: int,
        cutoff_bytes: int,
        fills_max: int,
        admission: Any,
        replacement: Any,
        ids: int,
    ) -> PageCache:
        """Make an empty cache; the policies have room for `ids` (a power of two) pages."""
        return cls(
            page_bytes,
            pages,
            mode,
            cutoff_bytes,
            fills_max,
            Index.new(ids),
            np.zeros(ids, np.uint8),
            np.full(ids, COLD, np.uint8),
            np.full(ids, NOTHING, np.int64),
            np.full(ids, NOTHING, np.int32),
            np.zeros(pages, np.int64),
            np.zeros(8, np.int64),
            Streams.new(),
            admission,
            replacement,
        )

    def grown(self, ids: int) -> PageCache:
        """Return the same cache with room for `ids` (a power of two) pages."""
        return self._replace(
            ids=self.ids.grown(ids),
            state=longer(self.state, ids),
            why_absent=longer(self.why_absent, ids, COLD),
            slot=longer(self.slot, ids, NOTHING),
            promoted_next=longer(self.promoted_next, ids, NOTHING),
            admission=self.admission.grown(ids),
            replacement=self.replacement.grown(ids),
        )

    def size(self) -> int:
        """Return how many pages there is room for in all."""
        return len(self.state)

    def demand(self, longest_bytes: int) -> int:
        """Return how many pages a request of that length can touch."""
        return longest_bytes // self.page_bytes + 2

    def totals(self) -> dict[str, int]:
        """Return what the cache has done so far, by name."""
        names = ("fills_started", "fills_done", "fills_doomed", "evictions", "pages_present")
        return dict(
            zip(names, self.counts[FILLS_STARTED : PAGES_PRESENT + 1].tolist(), strict=True)
        )

    @method
    def room(self):
        """Return how many pages can still be met for the first time."""
        return self.ids.room()

    @method
    def submit(self, now, slot, requests, below):
        """Take a request."""
        op = requests.op[slot]
        offset = requests.offset[slot]
        length = requests.length[slot]
        requests.path[slot] = BYPASS
        if op == FLUSH or length == 0:
            requests.reason[slot] = FLUSHED
            self.send(now, slot, FLUSH, 0, 0, requests, below)
            return
        if self.pages > 0:
            first = offset // self.page_bytes
            last = (offset + length - 1) // self.page_bytes
            requests.pages[slot] = last - first + 1
            if op == READ:
                self.read(now, slot, first, last, requests, below)
                return
            self.invalidate_or_update(now, slot, first, last, requests, below)
        if op == DISCARD:
            requests.reason[slot] = DISCARDED
        elif self.pages == 0:
            requests.reason[slot] = NO_CACHE
        else:
            requests.reason[slot] = WRITTEN
        self.send(now, slot, op | requests.flags[slot], offset, length, requests, below)

    @method
    def complete(self, now, tag, requests, below):
        """Hear a tier's completion; return the slot of a request that is complete, or -1."""
        what = tag & 3
        number = tag >> 2
        if what == PART:
            requests.pending[number] -= 1
            return number if requests.pending[number] == 0 else NOTHING
        if what == FILL_READ:
            self.write_fill(now, number, below)
        else:
            self.end_fill(number)
        return NOTHING

    @method
    def finished(self, now, slot, requests, below):
        """Fill the pages that a completed request has reserved."""
        start = requests.offset[slot]
        end = start + requests.length[slot]
        page = requests.promoted[slot]
        while page != NOTHING:
            begin = self.ids.number[page] * self.page_bytes
            if start <= begin and begin + self.page_bytes <= end:
                self.write_fill(now, page, below)  # its data are in hand
            else:
                length = min(self.page_bytes, below.slow.capacity_bytes - begin)
                below.slow.submit(now, page << 2 | FILL_READ, READ, begin, length, below.events)
            page = self.promoted_next[page]

    @method
    def wake(self, now, number, requests, below):
        """Schedule nothing, hear nothing."""
        return NOTHING

    @method
    def send(self, now, slot, op, offset, length, requests, below):
        """Send a part of a request to the slow tier."""
        requests.pending[slot] += 1
        below.slow.submit(now, slot << 2 | PART, op, offset, length, below.events)

    @method
    def send_fast(self, now, slot, op, page, start, end, requests, below):
        """Send the part of a request that lies in a present page to the fast tier."""
        begin = self.ids.number[page] * self.page_bytes
        start = max(start, begin)
        length = min(end, begin + self.page_bytes) - start
        at = self.slot[page] * self.page_bytes + (start - begin)
        requests.pending[slot] += 1
        below.fast.submit(now, slot << 2 | PART, op, at, length, below.events)

    @method
    def read(self, now, slot, first, last, requests, below):
        """Read each page from where it is."""
        start = requests.offset[slot]
        end = start + requests.length[slot]
        sequential = self.is_sequential(start, end - start)
        self.admission.request(start, end - start, False)
        missing_from = NOTHING
        reason = NONE
        hits = 0
        for number in range(first, last + 1):
            page = self.ids.find(number)
            if page != NOTHING and self.state[page] == PRESENT:
                hits += 1
                if missing_from != NOTHING:
                    upto = number * self.page_bytes
                    self.send(now, slot, READ, missing_from, upto - missing_from, requests, below)
                    missing_from = NOTHING
                self.admission.consider(now, page, False, self.is_full())
                self.replacement.touch(page)
                self.send_fast(now, slot, READ, page, start, end, requests, below)
                continue
            if missing_from == NOTHING:
                missing_from = max(start, number * self.page_bytes)
            if reason == NONE:
                reason = self.why(page)
            if not sequential:
                self.consider_absent(now, slot, page, number, False, requests)
        if missing_from != NOTHING:
            self.send(now, slot, READ, missing_from, end - missing_from, requests, below)
        requests.pages_hit[slot] = hits
        if hits == last - first + 1:
            requests.path[slot] = HIT
            requests.reason[slot] = NONE
        elif sequential:
            requests.reason[slot] = SEQUENTIAL
        else:
            requests.path[slot] = MISS
            requests.reason[slot] = reason

    @method
    def invalidate_or_update(self, now, slot, first, last, requests, below):
        """Keep the cache true to what a write or discard does on the disks."""
        op = requests.op[slot]
        start = requests.offset[slot]
        end = start + requests.length[slot]
        sequential = op == WRITE and self.is_sequential(start, end - start)
        if op == WRITE:
            self.admission.request(start, end - start, True)
        for number in range(first, last + 1):
            page = self.ids.find(number)
            state = ABSENT if page == NOTHING else self.state[page]
            if state == FILLING:
                self.state[page] = DOOMED
                self.counts[FILLS_DOOMED] += 1
            elif state == PRESENT and (op == DISCARD or self.mode == READ_ONLY):
                self.replacement.remove(page)
                self.drop(page)
            elif state == PRESENT:
                self.admission.consider(now, page, True, self.is_full())
                self.replacement.touch(page)
                self.send_fast(now, slot, WRITE, page, start, end, requests, below)
            elif state == ABSENT and op == WRITE and self.mode != READ_ONLY and not sequential:
                self.consider_absent(now, slot, page, number, True, requests)

    @method
    def is_sequential(self, offset, length):
        """Note a request's place; tell whether it continues a long run."""
        stream = self.streams.extend(offset, length)
        return self.cutoff_bytes > 0 and self.streams.run_bytes[stream] >= self.cutoff_bytes

    @method
    def why(self, page):
        """Return why a page is not present."""
        if page == NOTHING:
            return COLD
        if self.state[page] != ABSENT:
            return IS_FILLING
        return self.why_absent[page]

    @method
    def consider_absent(self, now, slot, page, number, write, requests):
        """Ask the admission policy about a page that is not cached; reserve it if it is wanted."""
        if page == NOTHING:
            page = self.ids.add(number)
        if self.state[page] != ABSENT:
            return
        if self.admission.consider(now, page, write, self.is_full()):
            self.reserve(slot, page, requests)
        elif self.why_absent[page] < EVICTED:
            self.why_absent[page] = NOT_HOT

    @method
    def reserve(self, slot, page, requests):
        """Find the page a place, if one is to be had, and remember it with the request."""
        place = NOTHING
        if self.counts[FILLS] < self.fills_max:
            self.replacement.missed(page)
            place = self.take_slot()
        if place == NOTHING:
            self.why_absent[page] = WAS_BUSY
            return
        self.counts[FILLS] += 1
        self.counts[FILLS_STARTED] += 1
        self.state[page] = FILLING
        self.slot[page] = place
        self.promoted_next[page] = NOTHING
        if requests.promoted[slot] == NOTHING:
            requests.promoted[slot] = page
        else:
            self.promoted_next[requests.last_promoted[slot]] = page
        requests.last_promoted[slot] = page

    @method
    def is_full(self):
        """Tell whether every slot has been used: the first filling is over."""
        return self.counts[SLOTS_USED] == self.pages

    @method
    def take_slot(self):
        """Return a free slot, evicting a page if there is none; -1 if none can leave."""
        if self.counts[SLOTS_FREE] > 0:
            self.counts[SLOTS_FREE] -= 1
            return self.free_slots[self.counts[SLOTS_FREE]]
        if self.counts[SLOTS_USED] < self.pages:
            self.counts[SLOTS_USED] += 1
            return self.counts[SLOTS_USED] - 1
        victim = self.replacement.evict()
        if victim == NOTHING:
            return NOTHING
        self.admission.evicted(victim)
        self.state[victim] = ABSENT
        self.why_absent[victim] = EVICTED
        self.counts[EVICTIONS] += 1
        self.counts[PAGES_PRESENT] -= 1
        return self.slot[victim]

    @method
    def drop(self, page):
        """Forget a page that was overwritten on the disks; its slot is free."""
        if self.state[page] == PRESENT:
            self.counts[PAGES_PRESENT] -= 1
        self.state[page] = ABSENT
        self.why_absent[page] = OVERWRITTEN
        self.free_slots[self.counts[SLOTS_FREE]] = self.slot[page]
        self.counts[SLOTS_FREE] += 1

    @method
    def write_fill(self, now, page, below):
        """Write a whole page to its slot."""
        at = self.slot[page] * self.page_bytes
        tag = page << 2 | FILL_WRITE
        below.fast.submit(now, tag, WRITE, at, self.page_bytes, below.events)

    @method
    def end_fill(self, page):
        """Let a page that is filled be present, unless it was overwritten meanwhile."""
        self.counts[FILLS] -= 1
        if self.state[page] == DOOMED:
            self.drop(page)
            return
        self.counts[FILLS_DONE] += 1
        self.counts[PAGES_PRESENT] += 1
        self.state[page] = PRESENT
        self.replacement.admit(page)
