"""Fills: copying missed pages to the fast tier (DESIGN.md 2.3.2)."""

from __future__ import annotations

from hybridsim.caches.page.cleaning import begin_clean
from hybridsim.caches.page.names import (
    FILL_READ,
    FILL_WRITE,
    FILLING,
    FILLS,
    FILLS_DONE,
    FILLS_DOOMED,
    FILLS_OVER_RATE,
    FILLS_STARTED,
    IS_WRONG,
    NOTHING,
    PAGES_PRESENT,
    PIGGYBACK,
    PRELOADED,
    PRESENT,
    READ,
    STALLS,
    TAG_BITS,
    WAS_BUSY,
    WRITE,
    WRONG_AT,
    WRONG_FOR,
    WRONG_VICTIM,
)
from hybridsim.caches.page.preload import PAGES_PRELOADED, PRELOADS_DOOMED
from hybridsim.caches.page.slots import become_present, evict, free_slot, is_movable, release_slot
from hybridsim.jit import kernel
from hybridsim.jit.limits import READS

DRAWS_MAX = 8  # maximum number of victims tried


@kernel
def take_slot(cache, now, page, number, below):
    """Return a slot for an absent page, evicting another page if needed; NOTHING if impossible.

    `number` is that of the request that needs it.  After a wrong victim there is no slot, as the
    state of the policy cannot be trusted.
    """
    if cache.counts[IS_WRONG]:
        return NOTHING
    cache.replacement.missed(page)
    place = free_slot(cache)
    if place != NOTHING:
        return place
    for _ in range(DRAWS_MAX):
        victim = cache.replacement.evict()
        if not is_victim(cache, victim, page, number):
            return NOTHING
        if is_movable(cache, cache.table.slot[victim]):
            return evict(cache, victim)
        clean_at_once(cache, now, cache.table.slot[victim], below)
        cache.replacement.missed(victim)
        cache.replacement.admit(victim)
    cache.counts[STALLS] += 1
    return NOTHING


@kernel
def is_victim(cache, victim, page, number):
    """Return whether the victim chosen for a page is present; record one that is not."""
    table, counts = cache.table, cache.counts
    if victim is None:
        victim = NOTHING
    if victim >= 0 and victim < len(table.state) and table.state[victim] == PRESENT:
        return True
    if victim != NOTHING or counts[PAGES_PRESENT] > 0:
        counts[IS_WRONG] = 1
        counts[WRONG_VICTIM] = victim
        counts[WRONG_FOR] = page
        counts[WRONG_AT] = number
    return False


@kernel
def clean_at_once(cache, now, place, below):
    """Start a clean of a page that blocks an eviction, if it waits for one."""
    if cache.writes_back and cache.dirty.is_waiting[place] == 1 and cache.dirty.can_clean():
        begin_clean(cache, now, place, below)


@kernel
def may_fill(cache, now, granules):
    """Return whether a fill for a number of touched granules may start; charge the fill rate."""
    if cache.counts[FILLS] >= cache.max_fills:
        return False
    if cache.fill_rate.free_ns(now, 0, READS) > now:
        cache.counts[FILLS_OVER_RATE] += 1
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
        cache.table.why_absent[page] = WAS_BUSY
        return
    cache.table.slot[page] = place
    cache.table.state[page] = FILLING
    expect_fill(cache, slot, page, first, last, requests, below)


@kernel
def complete_page(cache, now, slot, page, first, last, requests, below):
    """Schedule a fill of the missing part of a present page, if a fill may start."""
    is_filled = cache.table.fill_parts[cache.table.slot[page]] != 0
    if not is_filled and may_fill(cache, now, last - first + 1):
        expect_fill(cache, slot, page, first, last, requests, below)


@kernel
def expect_fill(cache, slot, page, first, last, requests, below):
    """Record what to fill; the fill starts when the request is complete."""
    table = cache.table
    place = table.slot[page]
    wanted = table.bits(first, last) if cache.sub_page else table.all_of(page, below)
    table.filling[place] = wanted & ~table.valid[place]
    table.fill_parts[place] = 1
    cache.counts[FILLS] += 1
    cache.counts[FILLS_STARTED] += 1
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
    page = requests.promoted[slot]
    ended = 0
    while page != NOTHING:
        following = table.promoted_next[page]
        table.fill_for[table.slot[page]] = slot if waits else NOTHING
        ended += begin_fill(cache, now, slot, page, requests, below)
        page = following
    return ended


@kernel
def begin_fill(cache, now, slot, page, requests, below):
    """Start a fill, without a read if the request has all the data; return 1 if it ended."""
    table = cache.table
    filling = table.filling[table.slot[page]]
    is_read = cache.fill == PIGGYBACK and requests.op[slot] == READ
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
    tag = page << TAG_BITS | FILL_READ
    below.slow.submit(now, tag, READ, start, length, below.events)
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
    tag = page << TAG_BITS | FILL_WRITE
    first = table.first_of(filling, 0)
    while first < table.granules:
        behind = table.first_not_of(filling, first)
        start = table.offset(first)
        table.fill_parts[place] += 1
        at = place * table.page_bytes + start
        below.fast.submit(now, tag, WRITE, at, table.offset(behind) - start, below.events)
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
    table.fill_parts[place] = 0
    table.filling[place] = 0
    if table.fill_for[place] == PRELOADED:
        table.fill_for[place] = NOTHING
        cache.preload.counts[PRELOADS_DOOMED if filling == 0 else PAGES_PRELOADED] += 1
    else:
        cache.counts[FILLS] -= 1
        cache.counts[FILLS_DOOMED if filling == 0 else FILLS_DONE] += 1
    if filling == 0:
        release_slot(cache, now, page, below)
        return
    table.valid[place] |= filling
    if table.state[page] == FILLING:
        become_present(cache, page)
