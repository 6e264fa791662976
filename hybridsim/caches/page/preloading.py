"""Loading of the list: pages are read from the disks in large pieces while the disks are idle."""

from __future__ import annotations

from hybridsim.caches.page.dirty import LAST_NS
from hybridsim.caches.page.fills import write_fill
from hybridsim.caches.page.names import (
    FILLING,
    NOTHING,
    PRELOAD_READ,
    PRELOADED,
    READ,
)
from hybridsim.caches.page.preload import FIRST, PENDING, POSITION, PRELOAD_BYTES, PRELOAD_READS
from hybridsim.caches.page.slots import free_slot
from hybridsim.jit import kernel
from hybridsim.jit.events import CACHE
from hybridsim.jit.limits import READS

PRELOAD_TIMER = 100  # distinct from the cleaner's timers


@kernel
def go_on_preloading(cache, now, below):
    """Start the next round if it may start; else set a timer for the next check."""
    preload = cache.preload
    quiet_ns = cache.dirty.state[LAST_NS] + preload.idle_ns
    if quiet_ns <= now and below.slow.is_idle():
        begin_round(cache, now, below)
        return
    if preload.has_rate and preload.rate.free_ns(now, 0, READS) <= now:
        length = begin_round(cache, now, below)
        if length > 0:
            preload.rate.admit(now, 0, READS, length)
        return
    again_ns = quiet_ns if quiet_ns > now else now + preload.idle_ns
    if preload.has_rate:
        again_ns = min(again_ns, preload.rate.free_ns(now, 0, READS))
    below.events.push(again_ns, CACHE, PRELOAD_TIMER)


@kernel
def begin_round(cache, now, below):
    """Start up to `reads_max` reads; return their length in bytes.

    If there are no pages or no free slots left, preloading has ended.
    """
    preload = cache.preload
    preload.state[FIRST] = preload.state[POSITION]
    total = 0
    for _ in range(preload.reads_max):
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
    below.slow.submit(now, PRELOAD_READ, READ, start, length, below.events)
    return length


@kernel
def joins(cache, first, last, number):
    """Return whether a page can be read in one request with the pages `first` to `last`."""
    return (
        number > last
        and (number - last - 1) * cache.page_bytes <= cache.preload.gap_bytes
        and (number + 1 - first) * cache.page_bytes <= cache.preload.chunk_bytes
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
    table.state[page] = FILLING
    table.filling[place] = table.all_of(page, below)
    table.fill_parts[place] = 1
    table.fill_for[place] = PRELOADED
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
            if table.fill_parts[place] != 0 and table.fill_for[place] == PRELOADED:
                write_fill(cache, now, page, below)
    go_on_preloading(cache, now, below)
