"""Writes of a page cache: around it, through it, or into it with write-back (DESIGN.md 2.3)."""

from __future__ import annotations

from hybridsim.caches.page.cleaning import go_on_cleaning
from hybridsim.caches.page.dirty import WRITES_LIMITED
from hybridsim.caches.page.fills import reserve, take_slot
from hybridsim.caches.page.names import (
    FILLING,
    NOTHING,
    PRESENT,
    READ_ONLY,
    WAS_BUSY,
    WRITE,
)
from hybridsim.caches.page.slots import become_present, invalidate, is_wanted, use
from hybridsim.foundation.codes import FUA
from hybridsim.jit import kernel


@kernel
def discard(cache, now, slot, first, last, requests, below):
    """Drop discarded granules; dirty ones only if they are covered completely."""
    table = cache.table
    start = requests.offset[slot]
    end = start + requests.length[slot]
    for number in range(first, last + 1):
        page = table.ids.find(number)
        if not table.has_slot(page):
            continue
        at = number * table.page_bytes
        begin, upto = max(start - at, 0), min(end - at, table.page_bytes)
        gone = table.touched(begin, upto)
        if cache.writes_back:
            dirty = cache.dirty.granules[table.slot[page]]
            gone &= ~(dirty & ~table.covered(begin, upto, table.length_of(page, below)))
        invalidate(cache, now, page, gone, below)


@kernel
def write_around_or_through(cache, now, slot, first, last, requests, below):
    """Update or invalidate the cached pages of a write to the disks; reserve pages to fill."""
    table = cache.table
    start = requests.offset[slot]
    end = start + requests.length[slot]
    sequential = cache.is_sequential(start, end - start)
    cache.admission.request(start, end - start, True)
    for number in range(first, last + 1):
        page = table.ids.find(number)
        at = number * table.page_bytes
        begin, upto = max(start - at, 0), min(end - at, table.page_bytes)
        if cache.mode == READ_ONLY:
            if table.has_slot(page):
                invalidate(cache, now, page, table.touched(begin, upto), below)
        elif not table.has_slot(page):
            if not sequential:
                if page == NOTHING:
                    page = table.ids.add(number)
                if is_wanted(cache, now, page, True):
                    head, tail = begin // table.granule_bytes, (upto - 1) // table.granule_bytes
                    reserve(cache, now, slot, page, head, tail, requests, below)
        elif table.state[page] == FILLING:
            table.filling[table.slot[page]] &= ~table.touched(begin, upto)
        else:
            use(cache, now, page, True)
            store(cache, now, slot, page, begin, upto, requests, below)


@kernel
def write_back(cache, now, slot, requests, below):
    """Write the parts that may be dirty to the fast tier, and the others to the slow tier."""
    table = cache.table
    start = requests.offset[slot]
    end = start + requests.length[slot]
    sequential = cache.is_sequential(start, end - start)
    cache.admission.request(start, end - start, True)
    through_from = start  # start of the range for the slow tier that is not sent yet
    number = start // table.page_bytes
    while number * table.page_bytes < end:
        at = number * table.page_bytes
        begin, upto = max(start - at, 0), min(end - at, table.page_bytes)
        page = place_to_dirty(cache, now, slot, number, begin, upto, sequential, requests, below)
        if page == NOTHING:
            if cache.dirty.is_limited() and not sequential:
                cache.dirty.counts[WRITES_LIMITED] += 1
        else:
            valid = table.valid[table.slot[page]]
            limit = table.length_of(page, below)
            kept, kept_end = table.storable(begin, upto, valid, limit)
            if kept < kept_end:
                if through_from < at + kept:
                    send_through(cache, now, slot, through_from, at + kept, requests, below)
                if table.state[page] == FILLING:
                    become_present(cache, page)
                store(cache, now, slot, page, begin, upto, requests, below)
                stored = table.touched(kept, kept_end)
                cache.dirty.add(page, table.slot[page], stored)
                through_from = at + kept_end
            else:
                table.filling[table.slot[page]] &= ~table.touched(begin, upto)
        number += 1
    if through_from < end:
        send_through(cache, now, slot, through_from, end, requests, below)
    go_on_cleaning(cache, now, below)


@kernel
def place_to_dirty(cache, now, slot, number, begin, upto, sequential, requests, below):
    """Return the page if a part of it may be stored dirty, now with a slot; else NOTHING."""
    table = cache.table
    page = table.ids.find(number)
    goes_through = sequential or cache.dirty.is_limited()
    if table.has_slot(page):
        if table.state[page] == PRESENT:
            use(cache, now, page, True)
            if goes_through and cache.dirty.granules[table.slot[page]] == 0:
                store(cache, now, slot, page, begin, upto, requests, below)
                return NOTHING
        elif goes_through:
            table.filling[table.slot[page]] &= ~table.touched(begin, upto)
            return NOTHING
        return page
    if goes_through:
        return NOTHING
    if page == NOTHING:
        page = table.ids.add(number)
    limit = table.length_of(page, below)
    kept, kept_end = table.storable(begin, upto, table.up_to[0], limit)
    if not is_wanted(cache, now, page, True) or kept >= kept_end:
        return NOTHING
    place = take_slot(cache, now, page, requests.number[slot], below)
    if place == NOTHING:
        table.why_absent[page] = WAS_BUSY
        return NOTHING
    table.slot[page] = place
    table.state[page] = FILLING
    return page


@kernel
def send_through(cache, now, slot, start, end, requests, below):
    """Write a range to the slow tier."""
    op = WRITE | (requests.flags[slot] & FUA)
    cache.send(now, slot, op, start, end - start, requests, below)


@kernel
def store(cache, now, slot, page, begin, upto, requests, below):
    """Write the storable part of a range of a page to the fast tier."""
    table = cache.table
    place = table.slot[page]
    touched = table.touched(begin, upto)
    table.filling[place] &= ~touched
    op = WRITE
    if cache.writes_back:
        cache.dirty.flying[place] &= ~touched
        op = WRITE | (requests.flags[slot] & FUA)
    begin, upto = table.storable(begin, upto, table.valid[place], table.length_of(page, below))
    if begin < upto:
        at = table.start(page)
        cache.send_fast(now, slot, op, page, at + begin, at + upto, requests, below)
        table.valid[place] |= table.touched(begin, upto)
