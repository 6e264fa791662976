"""What a cache holds at the beginning of a minute that is kept in full, as the sample says.

The sampled requests run through a cache that is scaled down to the sample, from the start of the
capture on.  Before each minute with sampled requests it is counted which of the pages that the
minute accesses are cached: by how often it accesses them, and by the direction of the first
request and its length within their region.  Of a minute in full, sampled pages are cached if they
are in that cache; others are drawn with the shares that were counted in the minutes around it, and
as much together within a region, and from one region to the next, as the sampled ones are.  The
rest of the cache is filled with pages that the minute does not access.

Of a large cache only a part is simulated.  A minute takes in no more pages than it accesses, so
only so many of the least valuable pages can leave the cache; of those above them, the ones that
the minute does not access are left out.  That is exact for policies that evict in the order in
which pages are kept.  Others divide the cache into shares, and a large margin is left to these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybridsim.caches.page.fills import WarmStart
from hybridsim.foundation.arrays import Ints
from hybridsim.requests.pages import Accesses, Ids, accesses
from hybridsim.requests.rows import Requests
from hybridsim.studies.batches import Sent
from hybridsim.studies.estimate.minutes import Floats, capture_of
from hybridsim.studies.hits import Cache
from hybridsim.studies.page_sampling import Sampled
from hybridsim.traces.thinned.thinner import MINUTE_NS
from hybridsim.traces.trace import Trace

Bools = NDArray[np.bool_]

OFTEN, LONG = 4, 3  # classes by number of accesses (1, 2, 3, 4 and more) and by length
CLASSES = OFTEN * LONG * 2
WINDOW = 3000  # pages of minutes that are counted around a minute, at least
PRIOR = 20.0  # pages: weight of the whole capture's share of a class in that of a window
# Places of a cache that are simulated, for each page access of a minute.
IN_ORDER = (("always", "lru"), ("always", "fifo"))
SPARE, SPARE_OF_OTHERS = 1, 100


class Touched(NamedTuple):
    """The distinct pages that a minute accesses."""

    numbers: Ints
    classes: Ints

    @classmethod
    def of(cls, part: Accesses, page_bytes: int, region_bytes: int) -> Touched:
        """Return the pages of accesses, with their classes.

        A length is that within the region of the page: samples have requests cut to regions.
        """
        numbers, first, count = np.unique(part.numbers, return_index=True, return_counts=True)
        request = np.searchsorted(part.ends, first, "right")
        region = numbers * page_bytes // region_bytes * region_bytes
        begin = np.maximum(part.offset[request], region)
        end = np.minimum(part.offset[request] + part.length[request], region + region_bytes)
        length = end - begin
        long = (length >= page_bytes).astype(np.int64) + (length >= 4 * page_bytes)
        often = np.minimum(count, OFTEN) - 1
        return cls(numbers, (often * LONG + long) * 2 + part.write[request])


def by_minute(trace: Trace, page_bytes: int) -> Iterator[tuple[int, Accesses]]:
    """Yield the sampled accesses of each minute that has some."""
    held: list[Accesses] = []
    number = -1
    for part in accesses(Sampled(trace), page_bytes):
        assert isinstance(part, Accesses)
        minute = part.arrival_ns // MINUTE_NS
        edges = [0, *(np.flatnonzero(np.diff(minute)) + 1).tolist(), len(minute)]
        for start, stop in pairwise(edges):
            if int(minute[start]) != number:
                if held:
                    yield number, _joined(held)
                held, number = [], int(minute[start])
            held.append(part.between(start, stop))
    if held:
        yield number, _joined(held)


def _joined(parts: Sequence[Accesses]) -> Accesses:
    if len(parts) == 1:
        return parts[0]
    begins = np.cumsum([0, *(len(each.numbers) for each in parts[:-1])])
    ends = np.concatenate([each.ends + begin for each, begin in zip(parts, begins)])
    columns = [np.concatenate(column) for column in zip(*parts)]
    return Accesses(columns[0], ends, *columns[2:])


class Kept(NamedTuple):
    """What is known of the caches before a minute that is kept in full."""

    numbers: Ints  # sampled pages that it accesses
    cached: list[Bools]  # by cache
    held: list[int]  # pages in the scaled-down cache


class Contents:
    """What each of some caches holds, minute by minute."""

    def __init__(
        self, trace: Trace, page_bytes: int, wanted: set[int], caches: list[Cache]
    ) -> None:
        """Run the sample through scaled-down caches; `wanted` are the minutes kept in full."""
        self.capture = capture_of(trace)
        self.page_bytes = page_bytes
        self._spare = [
            SPARE if (each.admission, each.replacement) in IN_ORDER else SPARE_OF_OTHERS
            for each in caches
        ]
        self._kept: dict[int, Kept] = {}
        self._total = np.zeros((1 + len(caches), CLASSES), np.int64)  # pages; cached, by cache
        self._within, self._across = np.zeros((2, len(caches), 2))  # by cache: see `_count`
        minutes, tallies, served = [], [], []
        ids, first, hits_before = Ids(), 0, np.zeros(len(caches), np.int64)
        for number, part in by_minute(trace, self.page_bytes):
            touched = self.touched(part)
            known = ids.of(touched.numbers)
            cached = [each.holds(known) > 0 for each in caches]
            if number in wanted:
                held = [int(each.held) for each in caches]
                self._kept[number] = Kept(touched.numbers, cached, held)
            tallies.append(self._count(touched, cached))
            page_ids = ids.of(part.numbers)
            for each in caches:
                each.take(page_ids, part, first, ids.capacity)
            first += len(page_ids)
            hits = np.array([each.served()[1] for each in caches])
            served.append([len(page_ids), *(hits - hits_before)])
            hits_before = hits
            minutes.append(number)
        self._minutes = np.array(minutes)
        self._served = np.array(served).reshape(-1, 1 + len(caches))
        # Share of the accesses that are the first ones to their pages in a minute.
        self.first_share = float(self._total[0].sum() / max(self._served[:, 0].sum(), 1))
        self._until = np.cumsum(np.array(tallies), axis=0)  # by minute, row and class

    def touched(self, part: Accesses) -> Touched:
        """Return the pages of accesses, with their classes."""
        return Touched.of(part, self.page_bytes, self.capture.settings.region_bytes)

    def _count(self, touched: Touched, cached: list[Bools]) -> Ints:
        """Count the pages of a minute by class; return its counts."""
        counts = np.array([
            np.bincount(touched.classes[rows], minlength=CLASSES)
            for rows in (np.ones(len(touched.classes), bool), *cached)
        ])  # fmt: skip
        self._total += counts
        region = self._regions(touched.numbers)
        begins = np.flatnonzero(np.diff(region, prepend=-1))  # pages are in order
        last = begins[1:] - 1
        last = last[touched.numbers[last + 1] == touched.numbers[last] + 1]
        for which, each in enumerate(cached):
            share = self._total[1 + which] / np.maximum(self._total[0], 1)
            expected = share[touched.classes]
            off, spread = each - expected, np.sqrt(expected * (1 - expected))
            for value, at in ((off, 0), (spread, 1)):
                together = np.add.reduceat(value, begins)
                alone = np.add.reduceat(value**2, begins)
                self._within[which, at] += float((together**2 - alone).sum())
                self._across[which, at] += float((value[last] * value[last + 1]).sum())
        return counts

    def _regions(self, numbers: Ints) -> Ints:
        return numbers * self.page_bytes // self.capture.settings.region_bytes

    def together(self, which: int) -> tuple[float, float]:
        """Return the correlation of pages being cached, within a region and across a border.

        The latter is of the pages on both sides of the border between two regions.
        """
        within, across = (
            min(max(off / most, 0.0), 1.0) if most > 0 else 0.0
            for off, most in (self._within[which].tolist(), self._across[which].tolist())
        )
        return within, across

    def _drawn(
        self, which: int, numbers: Ints, share: Floats, known: Bools, cached: Bools,
        random: np.random.Generator,
    ) -> Floats:  # fmt: skip
        """Draw a number of 0 to 1 for each page, in order: it is cached if that is below its share.

        The numbers are as much alike as pages are together.  Where some of these are `known`, they
        are those with which the first of them would be cached, or not.
        """
        within, across = self.together(which)
        within = max(within, across)
        joins = across / within if within else 0.0
        regions, place = np.unique(self._regions(numbers), return_inverse=True)
        joined = (np.diff(regions, prepend=-2) == 1) & (random.random(len(regions)) < joins)
        group = (np.cumsum(~joined) - 1)[place]
        of_group = random.random(len(regions))
        at = np.flatnonzero(known)
        groups, first = np.unique(group[at], return_index=True)
        one = at[first]
        low, high = np.where(cached[one], 0.0, share[one]), np.where(cached[one], share[one], 1.0)
        of_group[groups] = low + of_group[groups] * (high - low)
        alike = random.random(len(numbers)) < math.sqrt(within)
        return np.where(alike, of_group[group], random.random(len(numbers)))

    def hits(self, which: int, numbers: Ints) -> Floats:
        """Return the share of page accesses that hit in the hour of each minute."""
        hour = self._minutes // 60
        low, high = (np.searchsorted(hour, numbers // 60, side) for side in ("left", "right"))
        sums = np.vstack([np.zeros((1, self._served.shape[1])), np.cumsum(self._served, axis=0)])
        both = sums[high] - sums[low]
        whole = sums[-1, 1 + which] / max(sums[-1, 0], 1)
        ratio = both[:, 1 + which] / np.maximum(both[:, 0], 1)
        return np.asarray(np.where(both[:, 0] > 0, ratio, whole))

    def shares(self, which: int, minute: int) -> Floats:
        """Return the share of pages that are cached before a minute, by class."""
        at = int(np.searchsorted(self._minutes, minute))
        reach, last = 1, len(self._minutes) - 1
        while True:
            low, high = max(at - reach, 0), min(at + reach, last)
            counts = self._until[high] - (self._until[low - 1] if low else 0)
            if counts[0].sum() >= WINDOW or (low == 0 and high == last):
                break
            reach *= 2
        of_all = self._total[1 + which] / np.maximum(self._total[0], 1)
        usual = float((counts[0] * of_all).sum())
        level = float(counts[1 + which].sum()) / usual if usual else 1.0
        prior = np.clip(of_all * level, 0.0, 1.0)
        return np.asarray((counts[1 + which] + PRIOR * prior) / (counts[0] + PRIOR))

    def filled(
        self,
        which: int,
        pages: int,
        rows: Requests,
        minute: int,
        end_bytes: int,
        granules: int,
        fewer: float = 0.0,
        led_by: int = 0,
    ) -> tuple[int, WarmStart]:
        """Return the capacity and the contents of a cache of `pages` pages before a minute.

        Of a large cache they are those of the part that is simulated.  The first `led_by` of the
        requests run before the minute, and access other pages, for which there are places of their
        own.  A page has `granules`, all valid.  `fewer` lowers the shares of pages that are cached.
        """
        part = accesses_of(rows, self.page_bytes)
        touched = self.touched(part)
        earlier = int(part.ends[led_by - 1]) if led_by else 0  # accesses
        is_earlier = np.isin(touched.numbers, part.numbers[:earlier])
        random = np.random.default_rng([minute, 26])
        share = self.shares(which, minute)[touched.classes]
        known = self._kept.get(minute)
        held = pages
        is_known = is_cached = np.zeros(len(share), bool)
        if known is not None:
            is_known = np.isin(touched.numbers, known.numbers)
            is_cached = np.isin(touched.numbers, known.numbers[known.cached[which]])
            held = min(round(known.held[which] / self.capture.rate), pages)
        drawn = self._drawn(which, touched.numbers, share, is_known, is_cached, random)
        cached = np.where(is_known, is_cached, drawn < share - fewer)
        of_earlier = int((is_earlier & ~cached).sum())  # places
        mine = random.permutation(touched.numbers[cached])[:pages]
        end = -(-end_bytes // self.page_bytes)
        others = max(min(held, end) - len(mine), 0)
        spare = self._spare[which] * (len(part.numbers) - earlier)
        top = 0  # of `mine`, those that stay
        if pages - len(mine) > spare:
            free = min(pages - len(mine) - others, spare)
            leaving = spare - free
            if leaving:
                top = len(mine) - random.binomial(len(mine), leaving / (len(mine) + others))
            others = max(leaving - (len(mine) - top), 0)
            pages = len(mine) + others + free
        # In place where it can be: a large cache has a hundred million pages.
        free_pages = np.ones(min(others + len(touched.numbers), end), bool)
        free_pages[touched.numbers[touched.numbers < len(free_pages)]] = False
        kept = np.concatenate([mine[top:], np.flatnonzero(free_pages)[:others], mine[:top]])
        random.shuffle(kept[: len(kept) - top])
        valid = np.full(len(kept), (1 << granules) - 1)
        return pages + of_earlier, WarmStart(kept=kept, valid=valid)


def accesses_of(rows: Requests, page_bytes: int) -> Accesses:
    """Return the page accesses of requests in full."""
    found = accesses(Sent("the minute", rows), page_bytes)
    parts = [part for part in found if isinstance(part, Accesses)]
    none = np.zeros(0, np.int64)
    return _joined(parts or [Accesses(none, none, np.zeros(0, np.uint8), none, none, none)])
