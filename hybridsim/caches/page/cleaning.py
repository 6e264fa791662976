"""Write-back of dirty pages: they are chosen, read from the SSD, and written to the disks."""

from __future__ import annotations

from hybridsim.caches.page.dirty import (
    CLEANED_BYTES,
    IDLE_TIMER,
    LAST_NS,
    RATE_TIMER,
    WRITE_BACKS,
)
from hybridsim.caches.page.names import (
    CLEAN_READ,
    CLEAN_WRITE,
    NOTHING,
    READ,
    TAG_BITS,
    WRITE,
)
from hybridsim.caches.page.slots import release_slot
from hybridsim.jit import kernel
from hybridsim.jit.events import CACHE
from hybridsim.jit.limits import WRITES


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
        set_timer(dirty, RATE_TIMER, free_ns, below.events)
    else:
        set_timer(dirty, IDLE_TIMER, dirty.state[LAST_NS] + dirty.clean_idle_ns, below.events)


@kernel
def set_timer(dirty, timer, time_ns, events):
    """Set a timer for that time, unless it is set already."""
    if dirty.state[timer] == 0:
        dirty.state[timer] = 1
        events.push(time_ns, CACHE, timer)


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
        tag = clean << TAG_BITS | CLEAN_READ
        below.fast.submit(now, tag, READ, at, end - start, below.events)
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
    tag = clean << TAG_BITS | CLEAN_WRITE
    below.slow.submit(now, tag, WRITE, start, end - start, below.events)


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
    dirty.give_clean(clean)
    go_on_cleaning(cache, now, below)
