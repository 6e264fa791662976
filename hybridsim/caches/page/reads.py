"""Reads of a page cache: each part from the tier that has it."""

from __future__ import annotations

from hybridsim.caches.page.fills import complete_page, reserve
from hybridsim.caches.page.names import (
    ABSENT,
    COLD,
    FILLING,
    HIT,
    IS_FILLING,
    MISS,
    NONE,
    NOTHING,
    PIGGYBACK,
    PRESENT,
    READ,
    SEQUENTIAL,
)
from hybridsim.caches.page.slots import is_wanted, use
from hybridsim.jit import kernel


@kernel
def read(cache, now, slot, first, last, requests, below):
    """Read each page from the tier that has it."""
    table = cache.table
    start = requests.offset[slot]
    end = start + requests.length[slot]
    sequential = cache.is_sequential(start, end - start)
    cache.admission.request(start, end - start, False)
    missing_from = missing_upto = NOTHING  # a missing range that is not sent yet
    reason = NONE
    hits = 0
    for number in range(first, last + 1):
        page = table.ids.find(number)
        begin = max(start, number * table.page_bytes)
        upto = min(end, (number + 1) * table.page_bytes)
        if is_here(table, page, begin, upto):
            hits += 1
            if missing_from != NOTHING:
                length = missing_upto - missing_from
                cache.send(now, slot, READ, missing_from, length, requests, below)
                missing_from = NOTHING
            use(cache, now, page, False)
            cache.send_fast(now, slot, READ, page, begin, upto, requests, below)
            continue
        if reason == NONE:
            reason = why(table, page)
        if sequential:
            if page != NOTHING and table.state[page] == PRESENT:
                use(cache, now, page, False)
        else:
            if page == NOTHING:
                page = table.ids.add(number)
            consider_missing(cache, now, slot, page, begin, upto, requests, below)
        if cache.fill != PIGGYBACK and not has_valid(table, page):
            if missing_from == NOTHING:
                missing_from = begin
            missing_upto = upto
        else:
            missing_from, missing_upto = read_page(
                cache, now, slot, page, number, missing_from, missing_upto, requests, below
            )
    if missing_from != NOTHING:
        cache.send(now, slot, READ, missing_from, missing_upto - missing_from, requests, below)
    requests.pages_hit[slot] = hits
    if hits == last - first + 1:
        requests.path[slot] = HIT
        requests.reason[slot] = NONE
    elif sequential:
        requests.reason[slot] = SEQUENTIAL
    else:
        requests.path[slot] = MISS
        requests.reason[slot] = reason


@kernel
def is_here(table, page, begin, upto):
    """Return whether the fast tier has all of a part of a page."""
    if page == NOTHING or table.state[page] != PRESENT:
        return False
    if table.granules == 1:
        return True
    at = table.start(page)
    return table.touched(begin - at, upto - at) & ~table.valid[table.slot[page]] == 0


@kernel
def has_valid(table, page):
    """Return whether a page (or NOTHING) may have a part of the requested data."""
    return table.granules > 1 and page != NOTHING and table.state[page] == PRESENT


@kernel
def why(table, page):
    """Return the reason why a page is not completely cached."""
    if page == NOTHING:
        return COLD
    if table.state[page] == ABSENT:
        return table.why_absent[page]
    if table.state[page] == FILLING or table.fill_parts[table.slot[page]] != 0:
        return IS_FILLING
    return COLD


@kernel
def consider_missing(cache, now, slot, page, begin, upto, requests, below):
    """Schedule a fill of a page with missing data, if it is admitted and a fill may start."""
    table = cache.table
    at = table.start(page)
    first = (begin - at) // table.granule_bytes
    last = (upto - 1 - at) // table.granule_bytes
    if table.state[page] == PRESENT:
        use(cache, now, page, False)
        complete_page(cache, now, slot, page, first, last, requests, below)
    elif table.state[page] == ABSENT and is_wanted(cache, now, page, False):
        reserve(cache, now, slot, page, first, last, requests, below)


@kernel
def read_page(cache, now, slot, page, number, missing_from, missing_upto, requests, below):
    """Read the parts of a page; return the missing range that is not sent yet."""
    table = cache.table
    at = number * table.page_bytes
    begin = max(requests.offset[slot], at)
    upto = min(requests.offset[slot] + requests.length[slot], at + table.page_bytes)
    is_read_whole = cache.fill == PIGGYBACK and is_reserved_now(slot, page, requests)
    if is_read_whole:
        filling = table.filling[table.slot[page]]
        from_here = at + table.offset(table.first_of(filling, 0))
        if missing_from == NOTHING or missing_upto != from_here:
            if missing_from != NOTHING:
                length = missing_upto - missing_from
                cache.send(now, slot, READ, missing_from, length, requests, below)
            missing_from = from_here
        behind = at + table.offset(table.last_of(filling) + 1)
        missing_upto = min(behind, below.slow.capacity_bytes)
    is_present = page != NOTHING and table.state[page] == PRESENT
    valid = table.valid[table.slot[page]] if is_present else table.up_to[0]
    while begin < upto:
        granule = (begin - at) // table.granule_bytes
        if (valid >> granule) & 1 == 1:
            behind = min(at + table.offset(table.first_not_of(valid, granule)), upto)
            if missing_from != NOTHING:
                length = missing_upto - missing_from
                cache.send(now, slot, READ, missing_from, length, requests, below)
                missing_from = NOTHING
            cache.send_fast(now, slot, READ, page, begin, behind, requests, below)
        else:
            behind = min(at + table.offset(table.first_of(valid, granule)), upto)
            if not is_read_whole:
                if missing_from == NOTHING:
                    missing_from = begin
                missing_upto = behind
        begin = behind
    return missing_from, missing_upto


@kernel
def is_reserved_now(slot, page, requests):
    """Return whether this page is the last one that a request has reserved."""
    return requests.promoted[slot] != NOTHING and requests.last_promoted[slot] == page
