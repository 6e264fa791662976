"""Requests to a page cache: reads take each part from the tier that has it (DESIGN.md 2.3).

Writes go around the cache, through it, or into it with write-back.
"""

from __future__ import annotations

from hybridsim.caches.page import names
from hybridsim.caches.page.fills import (
    become_present,
    expect_fill,
    go_on_cleaning,
    invalidate,
    is_wanted,
    may_fill,
    reserve,
    take_slot,
    use,
)
from hybridsim.caches.page.table import WRITES_LIMITED
from hybridsim.foundation.codes import FUA, Fill, Mode, Op, Path, Reason
from hybridsim.jit import kernel
from hybridsim.jit.lists import NOTHING


@kernel
def read(cache, now, slot, first, last, requests, below):
    """Read each page from the tier that has it."""
    table = cache.table
    start = requests.offset[slot]
    end = start + requests.length[slot]
    sequential = cache.streams.is_long(start, end - start, cache.sequential_cutoff_bytes)
    cache.admission.request(start, end - start, False)
    missing_from = missing_upto = NOTHING  # a missing range that is not sent yet
    reason = Reason.NONE
    hits = 0
    for number in range(first, last + 1):
        page = table.ids.find(number)
        begin = max(start, number * table.page_bytes)
        upto = min(end, (number + 1) * table.page_bytes)
        if is_here(table, page, begin, upto):
            hits += 1
            if missing_from != NOTHING:
                length = missing_upto - missing_from
                cache.send(now, slot, Op.READ, missing_from, length, requests, below)
                missing_from = NOTHING
            use(cache, now, page, False)
            cache.send_fast(now, slot, Op.READ, page, begin, upto, requests, below)
            continue
        if reason == Reason.NONE:
            reason = why(table, page)
        if sequential:
            if page != NOTHING and table.state[page] == names.PRESENT:
                use(cache, now, page, False)
        else:
            if page == NOTHING:
                page = table.ids.add(number)
            consider_missing(cache, now, slot, page, begin, upto, requests, below)
        is_whole = table.granules == 1 or page == NOTHING or table.state[page] != names.PRESENT
        if cache.fill != Fill.PIGGYBACK and is_whole:
            if missing_from == NOTHING:
                missing_from = begin
            missing_upto = upto
        else:
            missing_from, missing_upto = read_page(
                cache, now, slot, page, number, missing_from, missing_upto, requests, below
            )
    if missing_from != NOTHING:
        cache.send(now, slot, Op.READ, missing_from, missing_upto - missing_from, requests, below)
    requests.pages_hit[slot] = hits
    if hits == last - first + 1:
        requests.path[slot] = Path.HIT
        requests.reason[slot] = Reason.NONE
    elif sequential:
        requests.reason[slot] = Reason.SEQUENTIAL
    else:
        requests.path[slot] = Path.MISS
        requests.reason[slot] = reason


@kernel
def is_here(table, page, begin, upto):
    """Return whether the fast tier has all of a part of a page."""
    if page == NOTHING or table.state[page] != names.PRESENT:
        return False
    if table.granules == 1:
        return True
    at = table.start(page)
    return table.touched(begin - at, upto - at) & ~table.valid[table.slot[page]] == 0


@kernel
def why(table, page):
    """Return the reason why a page is not completely cached."""
    if page == NOTHING:
        return Reason.COLD
    if table.state[page] == names.ABSENT:
        return table.why_absent[page]
    if table.state[page] == names.FILLING or table.fill_parts[table.slot[page]] != 0:
        return Reason.FILLING
    return Reason.COLD


@kernel
def consider_missing(cache, now, slot, page, begin, upto, requests, below):
    """Schedule a fill of a page with missing data, if it is admitted and a fill may start."""
    table = cache.table
    at = table.start(page)
    first = (begin - at) // table.granule_bytes
    last = (upto - 1 - at) // table.granule_bytes
    if table.state[page] == names.PRESENT:
        use(cache, now, page, False)
        is_filled = table.fill_parts[table.slot[page]] != 0
        if not is_filled and may_fill(cache, now, last - first + 1):
            expect_fill(cache, slot, page, first, last, requests, below)
    elif table.state[page] == names.ABSENT and is_wanted(cache, now, page, False):
        reserve(cache, now, slot, page, first, last, requests, below)


@kernel
def read_page(cache, now, slot, page, number, missing_from, missing_upto, requests, below):
    """Read the parts of a page; return the missing range that is not sent yet."""
    table = cache.table
    at = number * table.page_bytes
    begin = max(requests.offset[slot], at)
    upto = min(requests.offset[slot] + requests.length[slot], at + table.page_bytes)
    is_reserved = requests.promoted[slot] != NOTHING and requests.last_promoted[slot] == page
    is_read_whole = cache.fill == Fill.PIGGYBACK and is_reserved
    if is_read_whole:
        filling = table.filling[table.slot[page]]
        from_here = at + table.offset(table.first_of(filling, 0))
        if missing_from == NOTHING or missing_upto != from_here:
            if missing_from != NOTHING:
                length = missing_upto - missing_from
                cache.send(now, slot, Op.READ, missing_from, length, requests, below)
            missing_from = from_here
        behind = at + table.offset(table.last_of(filling) + 1)
        missing_upto = min(behind, below.slow.capacity_bytes)
    is_present = page != NOTHING and table.state[page] == names.PRESENT
    valid = table.valid[table.slot[page]] if is_present else table.up_to[0]
    while begin < upto:
        granule = (begin - at) // table.granule_bytes
        if (valid >> granule) & 1 == 1:
            behind = min(at + table.offset(table.first_not_of(valid, granule)), upto)
            if missing_from != NOTHING:
                length = missing_upto - missing_from
                cache.send(now, slot, Op.READ, missing_from, length, requests, below)
                missing_from = NOTHING
            cache.send_fast(now, slot, Op.READ, page, begin, behind, requests, below)
        else:
            behind = min(at + table.offset(table.first_of(valid, granule)), upto)
            if not is_read_whole:
                if missing_from == NOTHING:
                    missing_from = begin
                missing_upto = behind
        begin = behind
    return missing_from, missing_upto


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
    sequential = cache.streams.is_long(start, end - start, cache.sequential_cutoff_bytes)
    cache.admission.request(start, end - start, True)
    for number in range(first, last + 1):
        page = table.ids.find(number)
        at = number * table.page_bytes
        begin, upto = max(start - at, 0), min(end - at, table.page_bytes)
        if cache.mode == Mode.READ_ONLY:
            if table.has_slot(page):
                invalidate(cache, now, page, table.touched(begin, upto), below)
        elif not table.has_slot(page):
            if not sequential:
                if page == NOTHING:
                    page = table.ids.add(number)
                if is_wanted(cache, now, page, True):
                    head, tail = begin // table.granule_bytes, (upto - 1) // table.granule_bytes
                    reserve(cache, now, slot, page, head, tail, requests, below)
        elif table.state[page] == names.FILLING:
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
    sequential = cache.streams.is_long(start, end - start, cache.sequential_cutoff_bytes)
    cache.admission.request(start, end - start, True)
    through_from = start  # start of the range for the slow tier that is not sent yet
    for number in range(start // table.page_bytes, (end - 1) // table.page_bytes + 1):
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
                if table.state[page] == names.FILLING:
                    become_present(cache, page)
                store(cache, now, slot, page, begin, upto, requests, below)
                stored = table.touched(kept, kept_end)
                cache.dirty.add(page, table.slot[page], stored)
                through_from = at + kept_end
            else:
                table.filling[table.slot[page]] &= ~table.touched(begin, upto)
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
        if table.state[page] == names.PRESENT:
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
        table.why_absent[page] = Reason.BUSY
        return NOTHING
    table.slot[page] = place
    table.state[page] = names.FILLING
    return page


@kernel
def send_through(cache, now, slot, start, end, requests, below):
    """Write a range to the slow tier."""
    op = Op.WRITE | (requests.flags[slot] & FUA)
    cache.send(now, slot, op, start, end - start, requests, below)


@kernel
def store(cache, now, slot, page, begin, upto, requests, below):
    """Write the storable part of a range of a page to the fast tier."""
    table = cache.table
    place = table.slot[page]
    touched = table.touched(begin, upto)
    table.filling[place] &= ~touched
    op = Op.WRITE
    if cache.writes_back:
        cache.dirty.flying[place] &= ~touched
        op = Op.WRITE | (requests.flags[slot] & FUA)
    begin, upto = table.storable(begin, upto, table.valid[place], table.length_of(page, below))
    if begin < upto:
        at = table.start(page)
        cache.send_fast(now, slot, op, page, at + begin, at + upto, requests, below)
        table.valid[place] |= table.touched(begin, upto)
