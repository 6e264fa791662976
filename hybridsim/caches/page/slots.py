"""Slots of the page cache: admission, invalidation, release and eviction."""

from __future__ import annotations

from hybridsim.caches.page.names import (
    ABSENT,
    DISCARD,
    DROPPED,
    EVICTED,
    EVICTIONS,
    FILLING,
    NOT_HOT,
    NOTHING,
    OVERWRITTEN,
    PAGES_PRESENT,
    PRESENT,
    SLOTS_FREE,
    SLOTS_USED,
)
from hybridsim.jit import kernel


@kernel
def is_wanted(cache, now, page, write):
    """Return whether the admission policy admits an absent page; record a refusal."""
    if cache.admission.consider(now, page, write, cache.is_full()):
        return True
    if cache.table.why_absent[page] < EVICTED:
        cache.table.why_absent[page] = NOT_HOT
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
    cache.counts[PAGES_PRESENT] += 1
    cache.table.state[page] = PRESENT
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
    if table.state[page] == PRESENT and table.valid[place] == 0:
        cache.replacement.remove(page)
        cache.counts[PAGES_PRESENT] -= 1
        table.state[page] = FILLING
        release_slot(cache, now, page, below)


@kernel
def is_movable(cache, place):
    """Return whether a page can leave its slot now."""
    if cache.table.fill_parts[place] != 0:
        return False
    return not cache.writes_back or cache.dirty.is_settled(place)


@kernel
def release_slot(cache, now, page, below):
    """Free the slot of a page without valid data, unless an operation on it is in progress."""
    table = cache.table
    place = table.slot[page]
    if table.state[page] != FILLING or not is_movable(cache, place):
        return
    table.state[page] = ABSENT
    table.why_absent[page] = OVERWRITTEN
    if cache.preload.is_on:
        cache.preload.fresh[place] = 0
    table.free_slots[cache.counts[SLOTS_FREE]] = place
    cache.counts[SLOTS_FREE] += 1
    if cache.discards:
        at = place * table.page_bytes
        below.fast.submit(now, DROPPED, DISCARD, at, table.page_bytes, below.events)


@kernel
def free_slot(cache):
    """Return a free slot, or NOTHING."""
    counts = cache.counts
    if counts[SLOTS_FREE] > 0:
        counts[SLOTS_FREE] -= 1
        return cache.table.free_slots[counts[SLOTS_FREE]]
    if counts[SLOTS_USED] < cache.pages:
        counts[SLOTS_USED] += 1
        return counts[SLOTS_USED] - 1
    return NOTHING


@kernel
def evict(cache, page):
    """Take the slot from a page that replacement has chosen as the victim; return the slot."""
    table = cache.table
    if not cache.preload.is_on or not cache.preload.on_evict(table.slot[page]):
        cache.admission.evicted(page)
    table.state[page] = ABSENT
    table.why_absent[page] = EVICTED
    table.valid[table.slot[page]] = 0
    cache.counts[EVICTIONS] += 1
    cache.counts[PAGES_PRESENT] -= 1
    return table.slot[page]
