"""Which pages a cache holds: no devices, no time, an admitted page is present at once.

The same admission and replacement policies as in the full simulation, page by page, for commands
that need only hits and misses.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from hybridsim.caches.streams import Streams
from hybridsim.foundation.arrays import Bytes, Ints, grown_together, longer
from hybridsim.jit import loop, method, state_machine
from hybridsim.jit.instructions import prefetch

# counts: the first four by direction, reads before writes
PAGES, PAGE_HITS, REQUESTS, REQUEST_HITS = 0, 2, 4, 6
ADMITTED, EVICTED, RE_READ, HELD = 8, 9, 10, 11
# the first victim that the cache did not hold: 1, its page id, the page that was to be cached, and
# the position of the access to that page in its part of the trace
IS_WRONG, WRONG_VICTIM, WRONG_FOR, WRONG_AT = 12, 13, 14, 15
AHEAD = 16  # accesses: a fetch from memory takes dozens of instructions


@state_machine
class Nowhere(NamedTuple):
    """The state by place of policies that have none."""

    @method
    def fetch(self, offset):
        """Fetch nothing."""


@state_machine
class Residency(NamedTuple):
    """A cache of `pages` pages (at least 1) with an admission and a replacement policy."""

    pages: int
    page_bytes: int
    cutoff_bytes: int  # longer sequential runs are not admitted; 0: no cutoff
    present: Bytes  # by page id
    by_page: tuple[Any, ...]  # state by page id that each access reads
    by_place: Any  # what fetches the state by place that each request reads
    counts: Ints
    streams: Streams
    admission: Any
    replacement: Any

    @classmethod
    def new(
        cls,
        pages: int,
        page_bytes: int,
        cutoff_bytes: int,
        admission: Any,
        replacement: Any,
        ids: int,
    ) -> Residency:
        """Return an empty cache; the policies have room for `ids` pages."""
        present, counts = np.zeros(ids, np.uint8), np.zeros(16, np.int64)
        return cls(
            pages, page_bytes, cutoff_bytes, present, _by_page(present, admission, replacement),
            _by_place(admission), counts, Streams.new(), admission, replacement,
        )  # fmt: skip

    def grown(self, ids: int) -> Residency:
        """Return the same cache with room for `ids` pages."""
        admission, replacement = grown_together(self.admission, self.replacement, ids)
        present = longer(self.present, ids)
        by_page = _by_page(present, admission, replacement)
        return self._replace(
            present=present, by_page=by_page, by_place=_by_place(admission),
            admission=admission, replacement=replacement,
        )  # fmt: skip

    @method
    def access(self, now, page, write, sequential, whole, at):
        """Use a page, access `at` of this part; return 1 if the cache held it, else 0."""
        if self.present[page]:
            self.admission.consider(now, page, write, self.counts[HELD] == self.pages)
            self.replacement.touch(page)
            return 1
        if not sequential:
            if self.admission.consider(now, page, write, self.counts[HELD] == self.pages):
                self.take_in(page, at)
                self.counts[RE_READ] += not whole
        return 0

    @method
    def take_in(self, page, at):
        """Cache a page at access `at`, and evict another if the cache is full.

        After a wrong victim no page is cached, as the state of the policy cannot be trusted.
        """
        if self.counts[IS_WRONG]:
            return
        self.replacement.missed(page)
        if self.counts[HELD] == self.pages:
            victim = self.replacement.evict()
            if (
                victim is None
                or victim < 0
                or victim >= len(self.present)
                or not self.present[victim]
            ):
                self.counts[IS_WRONG] = 1
                self.counts[WRONG_VICTIM] = -1 if victim is None else victim
                self.counts[WRONG_FOR] = page
                self.counts[WRONG_AT] = at
                return
            self.present[victim] = 0
            self.counts[EVICTED] += 1
            self.admission.evicted(victim)
        else:
            self.counts[HELD] += 1
        self.replacement.admit(page)
        self.present[page] = 1
        self.counts[ADMITTED] += 1

    @method
    def note(self, write, pages, page_hits, requests, request_hits):
        """Count requests of a direction and their pages."""
        counts = self.counts
        counts[PAGES + write] += pages
        counts[PAGE_HITS + write] += page_hits
        counts[REQUESTS + write] += requests
        counts[REQUEST_HITS + write] += request_hits


# What accesses read is fetched from memory early: waiting for it would be most of the time.


def _by_page(present: Bytes, *policies: Any) -> tuple[Any, ...]:
    """Return the arrays by page id that accesses read, each of them once (jit/instructions.py)."""
    arrays = [present]
    for each in _parts(policies):
        arrays += [getattr(each, name) for name in getattr(type(each), "BY_PAGE", ())]
    return tuple({id(array): array for array in arrays}.values())


def _by_place(admission: Any) -> Any:
    """Return the part of a policy that has `fetch(offset)`: state of places."""
    return next((part for part in _parts((admission,)) if hasattr(part, "fetch")), Nowhere())


def _parts(machines: Iterable[Any]) -> Iterator[Any]:
    """Yield state machines, and all parts of them."""
    for each in machines:
        yield each
        if isinstance(each, tuple):
            yield from _parts(part for part in each if isinstance(part, tuple))


@loop
def run_pages(cache, ids, reads, first):
    """Read single pages by their ids; `first` is the number of the first access."""
    numbers, page_bytes, last = reads.numbers, reads.page_bytes, len(ids) - 1
    hits = 0
    for at in range(len(ids)):
        ahead = min(at + AHEAD, last)
        prefetch(cache.by_page, ids[ahead])
        cache.by_place.fetch(numbers[ahead] * page_bytes)
        offset = numbers[at] * page_bytes
        cache.admission.request(offset, page_bytes, 0)
        sequential = cache.streams.is_long(offset, page_bytes, cache.cutoff_bytes)
        hits += cache.access(first + at, ids[at], 0, sequential, True, at)
    cache.note(0, len(ids), hits, len(ids), hits)


@loop
def run(cache, ids, requests, next_use):
    """Access the pages of requests, by their ids.

    `next_use` of each access is given to the replacement policy before it, unless it is None.
    """
    ends, last = requests.ends, len(ids) - 1
    start = 0
    for i in range(len(ends)):
        cache.by_place.fetch(requests.offset[min(i + AHEAD, len(ends) - 1)])
        write = np.int64(requests.write[i])
        offset, length = requests.offset[i], requests.length[i]
        now = requests.arrival_ns[i]
        cache.admission.request(offset, length, write)
        sequential = cache.streams.is_long(offset, length, cache.cutoff_bytes)
        hits, begin = 0, offset // cache.page_bytes * cache.page_bytes
        for at in range(start, ends[i]):
            prefetch(cache.by_page, ids[min(at + AHEAD, last)])
            if next_use is not None:
                cache.replacement.upcoming[ids[at]] = next_use[at]
            whole = begin >= offset and begin + cache.page_bytes <= offset + length
            hits += cache.access(now, ids[at], write, sequential, whole, at)
            begin += cache.page_bytes
        pages = ends[i] - start
        cache.note(write, pages, hits, 1, hits == pages)
        start = ends[i]
