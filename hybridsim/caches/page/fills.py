"""Fills and cleans of pages, and loading a list of them (DESIGN.md 2.3.2, 2.3.4, 2.3.5).

Fills copy missed pages to the fast tier; dirty pages are chosen, read from the SSD, and written to
the disks.  Pages of a list are read from the disks in large pieces while the disks are idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hybridsim.caches.page import names
from hybridsim.caches.page.table import (
    CLEANED_BYTES,
    FREE_CLEANS,
    IDLE_TIMER,
    LAST_NS,
    RATE_TIMER,
    WRITE_BACKS,
)
from hybridsim.foundation.arrays import Bytes, Ints, filled
from hybridsim.foundation.cache_parameters import CacheParameters
from hybridsim.foundation.codes import Fill, Op, Reason
from hybridsim.foundation.machine_parameters import LimitParameters
from hybridsim.jit import kernel, method, state_machine
from hybridsim.jit.events import CACHE
from hybridsim.jit.instructions import along
from hybridsim.jit.limits import READS, WRITES, Limits
from hybridsim.jit.lists import NOTHING

if TYPE_CHECKING:
    from hybridsim.caches.policies.memory import Memory


@kernel
def is_wanted(cache, now, page, write):
    """Return whether the admission policy admits an absent page; record a refusal."""
    if cache.admission.consider(now, page, write, cache.is_full()):
        return True
    if cache.table.why_absent[page] < Reason.EVICTED:
        cache.table.why_absent[page] = Reason.NOT_HOT
    return False


@kernel
def use(cache, now, page, write):
    """Pass an access to a present page on to both policies."""
    cache.admission.consider(now, page, write, cache.is_full())
    cache.replacement.touch(page)
    if cache.preload.is_on:
        cache.preload.on_use(cache.table.slot[page])


@kernel
def become_present(cache, page):
    """Mark a page with a slot as valid."""
    cache.counts[names.PAGES_PRESENT] += 1
    cache.table.state[page] = names.PRESENT
    cache.replacement.admit(page)


@kernel
def invalidate(cache, now, page, granules, below):
    """Invalidate granules of a page with a slot, and the page if none is left."""
    table = cache.table
    place = table.slot[page]
    table.valid[place] &= ~granules
    table.filling[place] &= ~granules
    if cache.writes_back:
        cache.dirty.remove(place, granules)
    if table.state[page] == names.PRESENT and table.valid[place] == 0:
        cache.replacement.remove(page)
        cache.counts[names.PAGES_PRESENT] -= 1
        table.state[page] = names.FILLING
        release_slot(cache, now, page, below)


@kernel
def is_movable(cache, place):
    """Return whether a page can leave its slot now."""
    if cache.table.fill_parts[place] != 0:
        return False
    dirty = cache.dirty
    return not cache.writes_back or (dirty.granules[place] == 0 and dirty.clean[place] == NOTHING)


@kernel
def release_slot(cache, now, page, below):
    """Free the slot of a page without valid data, unless an operation on it is in progress."""
    table = cache.table
    place = table.slot[page]
    if table.state[page] != names.FILLING or not is_movable(cache, place):
        return
    table.state[page] = names.ABSENT
    table.why_absent[page] = Reason.OVERWRITTEN
    if cache.preload.is_on:
        cache.preload.fresh[place] = 0
    table.free_slots[cache.counts[names.SLOTS_FREE]] = place
    cache.counts[names.SLOTS_FREE] += 1
    if cache.discards:
        at = place * table.page_bytes
        below.fast.submit(now, names.DROPPED, Op.DISCARD, at, table.page_bytes, below.events)


@kernel
def free_slot(cache):
    """Return a free slot, or NOTHING."""
    counts = cache.counts
    if counts[names.SLOTS_FREE] > 0:
        counts[names.SLOTS_FREE] -= 1
        return cache.table.free_slots[counts[names.SLOTS_FREE]]
    if counts[names.SLOTS_USED] < cache.pages:
        counts[names.SLOTS_USED] += 1
        return counts[names.SLOTS_USED] - 1
    return NOTHING


@kernel
def evict(cache, page):
    """Take the slot from a page that replacement has chosen as the victim; return the slot."""
    table = cache.table
    if not cache.preload.is_on or not cache.preload.on_evict(table.slot[page]):
        cache.admission.evicted(page)
    table.state[page] = names.ABSENT
    table.why_absent[page] = Reason.EVICTED
    table.valid[table.slot[page]] = 0
    cache.counts[names.EVICTIONS] += 1
    cache.counts[names.PAGES_PRESENT] -= 1
    return table.slot[page]


@kernel
def go_on_cleaning(cache, now, below):
    """Start all cleans that may start now, and set a timer for the next check."""
    dirty = cache.dirty
    free_ns = dirty.rate.free_ns(now, 0, WRITES)
    while dirty.can_clean() and dirty.has_reason(now) and free_ns <= now:
        begin_clean(cache, now, dirty.choose(cache.table.ids), below)
        free_ns = dirty.rate.free_ns(now, 0, WRITES)
    if not dirty.can_clean():
        return
    if dirty.has_reason(now):
        below.events.push_once(dirty.state, RATE_TIMER, free_ns, CACHE, RATE_TIMER)
    else:
        idle_ns = dirty.state[LAST_NS] + dirty.clean_idle_ns
        below.events.push_once(dirty.state, IDLE_TIMER, idle_ns, CACHE, IDLE_TIMER)


@kernel
def begin_clean(cache, now, slot, below):
    """Start a clean of a waiting page and its dirty neighbours: read them from the fast tier."""
    table, dirty = cache.table, cache.dirty
    first = table.ids.number[dirty.page[slot]]
    pages = 1
    while pages < dirty.clean_merge_pages and are_joined(cache, first - 1, first - 1):
        first -= 1
        pages += 1
    while pages < dirty.clean_merge_pages and are_joined(cache, first + pages - 1, first + pages):
        pages += 1
    clean = dirty.take_clean(first, pages)
    granules = 0
    for number in range(first, first + pages):
        place = table.slot[table.ids.find(number)]
        dirty.leave(place)
        dirty.clean[place] = clean
        dirty.flying[place] = dirty.granules[place]
    for number in range(first, first + pages):
        granules += read_flying(cache, now, clean, table.ids.find(number), below)
    dirty.rate.admit(now, 0, WRITES, granules * table.granule_bytes)


@kernel
def are_joined(cache, number, other):
    """Return whether page `other` waits, and `number` and `number` + 1 are dirty where they meet.

    `other` is one of these two pages.
    """
    table, dirty = cache.table, cache.dirty
    page = table.ids.find(other)
    if not table.has_slot(page) or dirty.is_waiting[table.slot[page]] == 0:
        return False
    before, behind = table.ids.find(number), table.ids.find(number + 1)
    last = (table.page_bytes - 1) // table.granule_bytes
    ends_dirty = (dirty.granules[table.slot[before]] >> last) & 1 == 1
    return ends_dirty and dirty.granules[table.slot[behind]] & 1 == 1


@kernel
def read_flying(cache, now, clean, page, below):
    """Read the granules of a page that are being cleaned; return their number."""
    table, dirty = cache.table, cache.dirty
    place = table.slot[page]
    flying = dirty.flying[place]
    length = table.length_of(page, below)
    count = 0
    first = table.first_of(flying, 0)
    while first < table.granules:
        behind = table.first_not_of(flying, first)
        start = table.offset(first)
        end = min(table.offset(behind), length)
        dirty.pending[clean] += 1
        count += behind - first
        at = place * table.page_bytes + start
        tag = clean << names.TAG_BITS | names.CLEAN_READ
        below.fast.submit(now, tag, Op.READ, at, end - start, below.events)
        first = table.first_of(flying, behind)
    return count


@kernel
def clean_was_read(cache, now, clean, below):
    """Write the data that was not overwritten since, in as few requests as possible."""
    table, dirty = cache.table, cache.dirty
    start = end = NOTHING
    first = dirty.first[clean]
    for number in range(first, first + dirty.pages[clean]):
        page = table.ids.find(number)
        flying = dirty.flying[table.slot[page]]
        length = table.length_of(page, below)
        granule = table.first_of(flying, 0)
        while granule < table.granules:
            behind = table.first_not_of(flying, granule)
            begin = table.start(page) + table.offset(granule)
            if begin != end:
                write_clean(cache, now, clean, start, end, below)
                start = begin
            end = table.start(page) + min(table.offset(behind), length)
            granule = table.first_of(flying, behind)
    write_clean(cache, now, clean, start, end, below)
    if dirty.pending[clean] == 0:
        end_clean(cache, now, clean, below)


@kernel
def write_clean(cache, now, clean, start, end, below):
    """Write a range to the slow tier, unless `start` is NOTHING."""
    if start == NOTHING:
        return
    dirty = cache.dirty
    dirty.pending[clean] += 1
    dirty.counts[WRITE_BACKS] += 1
    dirty.counts[CLEANED_BYTES] += end - start
    tag = clean << names.TAG_BITS | names.CLEAN_WRITE
    below.slow.submit(now, tag, Op.WRITE, start, end - start, below.events)


@kernel
def end_clean(cache, now, clean, below):
    """Mark the written granules as clean, except those overwritten since."""
    table, dirty = cache.table, cache.dirty
    first = dirty.first[clean]
    for number in range(first, first + dirty.pages[clean]):
        page = table.ids.find(number)
        place = table.slot[page]
        dirty.clean[place] = NOTHING
        dirty.remove(place, dirty.flying[place])
        dirty.flying[place] = 0
        if dirty.granules[place] != 0:
            dirty.wait(place)
        release_slot(cache, now, page, below)
    dirty.free_cleans[dirty.state[FREE_CLEANS]] = clean
    dirty.state[FREE_CLEANS] += 1
    go_on_cleaning(cache, now, below)


DRAWS_MAX = 8  # maximum number of victims tried


@kernel
def take_slot(cache, now, page, number, below):
    """Return a slot for an absent page, evicting another page if needed; NOTHING if impossible.

    `number` is that of the request that needs it.  After a wrong victim there is no slot, as the
    state of the policy cannot be trusted.
    """
    if cache.counts[names.IS_WRONG]:
        return NOTHING
    cache.replacement.missed(page)
    place = free_slot(cache)
    if place != NOTHING:
        return place
    for _ in range(DRAWS_MAX):
        victim = cache.replacement.evict()
        if not is_victim(cache, victim, page, number):
            return NOTHING
        place = cache.table.slot[victim]
        if is_movable(cache, place):
            return evict(cache, victim)
        if cache.writes_back and cache.dirty.is_waiting[place] == 1 and cache.dirty.can_clean():
            begin_clean(cache, now, place, below)
        cache.replacement.missed(victim)
        cache.replacement.admit(victim)
    cache.counts[names.STALLS] += 1
    return NOTHING


@kernel
def is_victim(cache, victim, page, number):
    """Return whether the victim chosen for a page is present; record one that is not."""
    table, counts = cache.table, cache.counts
    if victim is None:
        victim = NOTHING
    if victim >= 0 and victim < len(table.state) and table.state[victim] == names.PRESENT:
        return True
    if victim != NOTHING or counts[names.PAGES_PRESENT] > 0:
        counts[names.IS_WRONG] = 1
        counts[names.WRONG_VICTIM] = victim
        counts[names.WRONG_FOR] = page
        counts[names.WRONG_AT] = number
    return False


@kernel
def may_fill(cache, now, granules):
    """Return whether a fill for a number of touched granules may start; charge the fill rate."""
    if cache.counts[names.FILLS] >= cache.max_fills:
        return False
    if cache.fill_rate.free_ns(now, 0, READS) > now:
        cache.counts[names.FILLS_OVER_RATE] += 1
        return False
    table = cache.table
    size = granules * table.granule_bytes if cache.sub_page else table.page_bytes
    cache.fill_rate.admit(now, 0, READS, size)
    return True


@kernel
def reserve(cache, now, slot, page, first, last, requests, below):
    """Reserve a slot for an admitted page, if possible, and link the page to the request.

    The request touches the granules from `first` to `last`.
    """
    place = NOTHING
    if may_fill(cache, now, last - first + 1):
        place = take_slot(cache, now, page, requests.number[slot], below)
    if place == NOTHING:
        cache.table.why_absent[page] = Reason.BUSY
        return
    cache.table.slot[page] = place
    cache.table.state[page] = names.FILLING
    expect_fill(cache, slot, page, first, last, requests, below)


@kernel
def expect_fill(cache, slot, page, first, last, requests, below):
    """Record what to fill; the fill starts when the request is complete."""
    table = cache.table
    place = table.slot[page]
    wanted = table.bits(first, last) if cache.sub_page else table.all_of(page, below)
    table.filling[place] = wanted & ~table.valid[place]
    table.fill_parts[place] = 1
    cache.counts[names.FILLS] += 1
    cache.counts[names.FILLS_STARTED] += 1
    table.promoted_next[page] = NOTHING
    if requests.promoted[slot] == NOTHING:
        requests.promoted[slot] = page
    else:
        table.promoted_next[requests.last_promoted[slot]] = page
    requests.last_promoted[slot] = page


@kernel
def begin_fills(cache, now, slot, waits, requests, below):
    """Start the fills that a request has reserved; return how many of them ended at once."""
    table = cache.table
    ended = 0
    for page in along(requests.promoted[slot], table.promoted_next):
        table.fill_for[table.slot[page]] = slot if waits else NOTHING
        ended += begin_fill(cache, now, slot, page, requests, below)
    return ended


@kernel
def begin_fill(cache, now, slot, page, requests, below):
    """Start a fill, without a read if the request has all the data; return 1 if it ended."""
    table = cache.table
    filling = table.filling[table.slot[page]]
    is_read = cache.fill == Fill.PIGGYBACK and requests.op[slot] == Op.READ
    if filling == 0 or is_read:
        return write_fill(cache, now, page, below)
    start = table.start(page) + table.offset(table.first_of(filling, 0))
    offset = requests.offset[slot]
    if offset <= start and fill_end(cache, page, below) <= offset + requests.length[slot]:
        return write_fill(cache, now, page, below)
    table.fill_at[table.slot[page]] = start
    return continue_fill(cache, now, page, below)


@kernel
def fill_end(cache, page, below):
    """Return the end of the range to be filled, in bytes on the slow tier."""
    table = cache.table
    last = table.last_of(table.filling[table.slot[page]])
    return min(table.start(page) + table.offset(last + 1), below.slow.capacity_bytes)


@kernel
def continue_fill(cache, now, page, below):
    """Read the next piece of a fill, or write the data read; return 1 if the fill ended."""
    table = cache.table
    place = table.slot[page]
    start = table.fill_at[place]
    if table.filling[place] == 0 or start >= fill_end(cache, page, below):
        return write_fill(cache, now, page, below)
    length = min(fill_end(cache, page, below) - start, cache.fill_piece_bytes)
    table.fill_at[place] = start + length
    tag = page << names.TAG_BITS | names.FILL_READ
    below.slow.submit(now, tag, Op.READ, start, length, below.events)
    return 0


@kernel
def write_fill(cache, now, page, below):
    """Write the granules that are still to be filled; return 1 if there are none left."""
    table = cache.table
    place = table.slot[page]
    filling = table.filling[place]
    if filling == 0:
        end_fill(cache, now, page, below)
        return 1
    tag = page << names.TAG_BITS | names.FILL_WRITE
    first = table.first_of(filling, 0)
    while first < table.granules:
        behind = table.first_not_of(filling, first)
        start = table.offset(first)
        table.fill_parts[place] += 1
        at = place * table.page_bytes + start
        below.fast.submit(now, tag, Op.WRITE, at, table.offset(behind) - start, below.events)
        first = table.first_of(filling, behind)
    return 0


@kernel
def fill_was_written(cache, now, page, below):
    """Take the completion of a fill's write; return whether it was the last one."""
    place = cache.table.slot[page]
    cache.table.fill_parts[place] -= 1
    if cache.table.fill_parts[place] > 1:
        return False
    end_fill(cache, now, page, below)
    return True


@kernel
def end_fill(cache, now, page, below):
    """Mark the filled granules as valid, except those overwritten meanwhile."""
    table = cache.table
    place = table.slot[page]
    filling = table.filling[place]
    table.fill_parts[place] = table.filling[place] = 0
    if table.fill_for[place] == names.PRELOADED:
        table.fill_for[place] = NOTHING
        cache.preload.counts[PRELOADS_DOOMED if filling == 0 else PAGES_PRELOADED] += 1
    else:
        cache.counts[names.FILLS] -= 1
        cache.counts[names.FILLS_DOOMED if filling == 0 else names.FILLS_DONE] += 1
    if filling == 0:
        release_slot(cache, now, page, below)
        return
    table.valid[place] |= filling
    if table.state[page] == names.FILLING:
        become_present(cache, page)


# The start of a warm cache: pages that it kept, and a list of pages to be loaded.

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
    slots: Ints | None = None  # of the kept pages; None: the first ones


COLD_START = WarmStart()


@state_machine
class Preload(NamedTuple):
    """The list of pages, the progress of loading, and the pages not used since they were loaded."""

    is_on: int
    preload_idle_ns: int
    preload_gap_bytes: int
    preload_chunk_bytes: int
    preload_reads: int  # at most, per round
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
        return filled(
            cls,
            slots if is_on else 0,
            parameters,
            is_on=int(is_on),
            rate=Limits.new(1, [LimitParameters([Op.READ], 1, rate)] if rate else []),
            has_rate=int(rate > 0),
            numbers=warm.preload.astype(np.int64),
            state=np.zeros(3, np.int64),
            counts=counts,
        )

    def demand(self, page_bytes: int) -> int:
        """Return the maximum number of pages in one round."""
        each = self.preload_chunk_bytes // page_bytes + 1
        return self.preload_reads * each if len(self.numbers) else 0

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


PRELOAD_TIMER = 100  # distinct from the cleaner's timers


@kernel
def go_on_preloading(cache, now, below):
    """Start the next round if it may start; else set a timer for the next check."""
    preload = cache.preload
    quiet_ns = cache.dirty.state[LAST_NS] + preload.preload_idle_ns
    if quiet_ns <= now and below.slow.is_idle():
        begin_round(cache, now, below)
        return
    if preload.has_rate and preload.rate.free_ns(now, 0, READS) <= now:
        length = begin_round(cache, now, below)
        if length > 0:
            preload.rate.admit(now, 0, READS, length)
        return
    again_ns = quiet_ns if quiet_ns > now else now + preload.preload_idle_ns
    if preload.has_rate:
        again_ns = min(again_ns, preload.rate.free_ns(now, 0, READS))
    below.events.push(again_ns, CACHE, PRELOAD_TIMER)


@kernel
def begin_round(cache, now, below):
    """Start up to `preload_reads` reads; return their length in bytes.

    If there are no pages or no free slots left, preloading has ended.
    """
    preload = cache.preload
    preload.state[FIRST] = preload.state[POSITION]
    total = 0
    for _ in range(preload.preload_reads):
        length = begin_read(cache, now, below)
        if length == 0:
            break
        total += length
    return total


@kernel
def begin_read(cache, now, below):
    """Read the next pages of the list that have no slot; return the length in bytes."""
    preload = cache.preload
    at = preload.state[POSITION]
    first = last = NOTHING
    while at < len(preload.numbers):
        number = preload.numbers[at]
        if not cache.table.has_slot(cache.table.ids.find(number)):
            if first != NOTHING and not joins(cache, first, last, number):
                break
            place = free_slot(cache)
            if place == NOTHING:
                break
            take(cache, number, place, below)
            first = number if first == NOTHING else first
            last = number
        at += 1
    preload.state[POSITION] = at
    if first == NOTHING:
        return 0
    start = first * cache.page_bytes
    length = min((last + 1) * cache.page_bytes, below.slow.capacity_bytes) - start
    preload.state[PENDING] += 1
    preload.counts[PRELOAD_READS] += 1
    preload.counts[PRELOAD_BYTES] += length
    below.slow.submit(now, names.PRELOAD_READ, Op.READ, start, length, below.events)
    return length


@kernel
def joins(cache, first, last, number):
    """Return whether a page can be read in one request with the pages `first` to `last`."""
    return (
        number > last
        and (number - last - 1) * cache.page_bytes <= cache.preload.preload_gap_bytes
        and (number + 1 - first) * cache.page_bytes <= cache.preload.preload_chunk_bytes
    )


@kernel
def take(cache, number, place, below):
    """Assign a slot to a page of the list; the read about to start fills it."""
    table = cache.table
    page = table.ids.find(number)
    if page == NOTHING:
        page = table.ids.add(number)
    cache.replacement.missed(page)
    table.slot[page] = place
    table.state[page] = names.FILLING
    table.filling[place] = table.all_of(page, below)
    table.fill_parts[place] = 1
    table.fill_for[place] = names.PRELOADED
    cache.preload.fresh[place] = 1


@kernel
def preload_was_read(cache, now, below):
    """After the round's last read, write to the slots what was not overwritten, and continue."""
    table, preload = cache.table, cache.preload
    preload.state[PENDING] -= 1
    if preload.state[PENDING] > 0:
        return
    for at in range(preload.state[FIRST], preload.state[POSITION]):
        page = table.ids.find(preload.numbers[at])
        if table.has_slot(page):
            place = table.slot[page]
            if table.fill_parts[place] != 0 and table.fill_for[place] == names.PRELOADED:
                write_fill(cache, now, page, below)
    go_on_preloading(cache, now, below)
