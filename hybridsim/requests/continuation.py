"""How a load goes on after a capture, if it goes on as it did in the capture's second half.

What a cache will gain depends on what the load does next: how much it comes back to, how much is
new, and for how long.  Formulas for that know neither the policy nor when its dirty data reach a
limit; a simulation of the continued load does.

The continuation repeats the second half of the requests, with their order, arrivals, lengths and
directions, at other addresses.  The class of a region of REGION_BYTES is what the window before did
with it: how often it touched it, and how often to write.  What the second half did with a region of
a class, a repetition does with a region that has this class by then.  So popular data stay popular
only as long as they did in the capture, and data grow cold and warm as they did there.  Exchanges
keep the order of the addresses, so that neighbours stay neighbours and the disks' arms move about
as far.  Within a region, pages that the window before had touched take the places of such pages,
and others those of others: caches differ in the size of their pages.  All that requests touch is
exchanged, not only where they begin: else those of several pages would overlap.

What a stream touches moves as one, by the same distance, also where something else had touched a
part of it: else it would break up.  A stream that lasts, from the first half to the end, goes on
where it was by then.

Regions that the window before had not touched are new ones or such that come back after a longer
time.  How many are new follows from the number of different regions in an eighth, a quarter, half
and all of the capture: the growth from one doubling of the requests to the next goes on to fall as
it fell.  What is only read, what is only written and what is both are counted each by itself and
take places of their own kind: a log grows for ever, and nobody reads it where others read.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.foundation.arrays import Ints, distinct, runs
from hybridsim.foundation.codes import Op
from hybridsim.requests.rows import Requests, joined

REGION_BYTES = 1 << 16
PAGE_BYTES = 1 << 12  # of the smallest pages of caches; regions are those of larger ones
PAGES = REGION_BYTES // PAGE_BYTES
MOST_BYTES = 1 << 26  # of one request that are counted
READS_ONLY, WRITES_ONLY = 0.05, 0.95  # shares of writes that tell classes apart
STREAMS = 1024  # requests between two of a stream, at most
STEPS = 8  # of a stream that lasts, at least, in a repetition
KINDS = 3  # of regions: hardly written, some of both, hardly anything but written


class Window(NamedTuple):
    """The regions that some requests touch, ascending, and the class of each."""

    region: Ints
    level: Ints  # logarithm to base 2 of the number of touches, rounded down
    writes: Ints  # 0: hardly any, 1: some, 2: hardly anything else


class Spans(NamedTuple):
    """The pages that requests touch: the first and the last of each run, ascending, disjoint."""

    first: Ints
    last: Ints

    def has(self, page: Ints) -> npt.NDArray[np.bool_]:
        """Return whether each page is among them."""
        at = np.searchsorted(self.first, page, side="right") - 1
        return (at >= 0) & (self.last[np.maximum(at, 0)] >= page)


class Places(NamedTuple):
    """What the requests of the repeated half touch: regions and pages, each once, ascending.

    Pages only of regions in which a request begins: others move with their requests.
    """

    region: Ints
    level: Ints  # of the window before; -1: it had not touched the region
    writes: Ints
    page: Ints
    of_page: Ints  # index into `region`, by page
    is_known: npt.NDArray[np.bool_]  # by page: the window before had touched it
    of_request: Ints  # index into `page`, by request: where it begins


def continuation(rows: Requests, more: int, seed: int = 0, end_bytes: int = 1 << 62) -> Requests:
    """Return `more` requests that may follow a capture's `rows`, none beyond `end_bytes`.

    The rows are in order of arrival; each half has a request with data.  Deterministic for a seed.
    """
    draws = np.random.default_rng(seed)
    half = rows.rows // 2
    repeated = rows.between(half, rows.rows)
    places = _places(repeated, rows.between(0, half))
    streams = _streams(rows, half, places.region)
    whole = window(rows)
    seen, kind = whole.region, kinds(whole)
    mine = kind[np.searchsorted(seen, places.region)]
    different = growth(rows, whole)
    end = (end_bytes - int(rows.length_bytes.max())) // REGION_BYTES
    span_ns = int(rows.arrival_ns[-1] - rows.arrival_ns[half])
    span_ns += max(span_ns // max(repeated.rows - 1, 1), 1)  # until the next repetition begins
    current, before, made = repeated, window(repeated), 0
    parts: list[Requests] = []
    while made < more:
        target = _kept(places, before, draws)
        others = np.flatnonzero(target < 0)
        asked = 1 + made / rows.rows, 1 + (made + repeated.rows) / rows.rows
        is_asleep = ~np.isin(seen, before.region, assume_unique=True)
        for each, known in enumerate(different):
            new = _later(known, asked[1]) - _later(known, asked[0])
            share = min(new / max(known[-1] - known[-2], 1), 1.0)
            want, asleep = others[mine[others] == each], seen[is_asleep & (kind == each)]
            back = min(len(want) - round(len(want) * share), len(asleep))
            target[_some(want, back, draws)] = _some(asleep, back, draws)
        fresh = others[target[others] < 0]
        target[fresh] = _untouched(places.region[fresh], seen)
        ahead_bytes = (len(parts) + 1) * streams.ahead_bytes
        target = _in_one(streams, places.region, target)
        target = np.where(ahead_bytes > 0, places.region + ahead_bytes // REGION_BYTES + 1, target)
        stays = target >= end  # the volume has no more room: at the same address again
        stays = np.bincount(streams.piece, stays)[streams.piece] > 0
        target[stays] = places.region[stays]
        ahead_bytes[stays] = 0
        shift = (_moved(places, target, current) - places.page) * PAGE_BYTES
        as_one = np.where(ahead_bytes > 0, ahead_bytes, (target - places.region) * REGION_BYTES)
        is_one = stays | streams.is_joined | (ahead_bytes > 0)
        shift = np.where(is_one[places.of_page], as_one[places.of_page], shift)
        shift = np.where(repeated.length_bytes > 0, shift[places.of_request], 0)
        current = repeated._replace(offset_bytes=repeated.offset_bytes + shift)
        current = current.later((len(parts) + 1) * span_ns)
        before = window(current)
        is_new = ~np.isin(before.region, seen, assume_unique=True)
        order = np.argsort(np.append(seen, before.region[is_new]))
        seen = np.append(seen, before.region[is_new])[order]
        kind = np.append(kind, kinds(before)[is_new])[order]
        parts.append(current)
        made += current.rows
    return joined(parts).between(0, more)


def window(rows: Requests) -> Window:
    """Return the regions that requests touch, with their classes."""
    touched, is_write = _touches(rows)
    each = np.sort(touched * 2 + is_write)  # several times faster than the order of `touched`
    is_first = np.ones(len(each), np.bool_)
    is_first[1:] = each[1:] >> 1 != each[:-1] >> 1
    first = np.flatnonzero(is_first)
    region, count = each[first] >> 1, np.diff(first, append=len(each))
    share = np.add.reduceat(each & 1, first) / count if len(each) else np.zeros(0)
    level = np.floor(np.log2(count)).astype(np.int64)
    return Window(region, level, np.digitize(share, (READS_ONLY, WRITES_ONLY)))


def kinds(of: Window) -> Ints:
    """Return how much each region is written: as `Window.writes`, of all that is in one piece.

    A stream that reads here and writes there is one piece, and stays one.
    """
    piece = np.cumsum(np.diff(of.region, prepend=of.region[:1]) > 1)
    share = np.bincount(piece, of.writes) / np.bincount(piece) / (KINDS - 1)
    result: Ints = np.digitize(share, (READS_ONLY, WRITES_ONLY))[piece]
    return result


def growth(rows: Requests, whole: Window) -> list[list[int]]:
    """Return how many different regions an eighth, a quarter, half and all requests touch, by kind.

    That is what the `whole` of the requests does with them: hardly write, write too, only write.
    """
    kind, parts = kinds(whole), [rows.between(0, rows.rows // part) for part in (8, 4, 2, 1)]
    at = [np.searchsorted(whole.region, distinct(_touches(each)[0])) for each in parts]
    counts = [np.bincount(kind[each], minlength=KINDS) for each in at]
    of_kinds: list[list[int]] = np.maximum(np.transpose(counts), 1).tolist()
    return of_kinds


def _later(different: list[int], times: float) -> float:
    """Return how many different regions `times` as many requests as the capture's touch.

    Of a fixed set that is touched at random the growth falls faster from doubling to doubling, of a
    scan not at all.
    """
    slopes = np.diff(np.log(different))
    falls = [
        min(later / sooner, 1.0) if sooner > 0 else float(later > 0)
        for sooner, later in pairwise(slopes)
    ]
    faster = min(falls[1] / falls[0], 1.0) if falls[0] > 0 else 1.0
    result, doublings, slope, fall = math.log(different[-1]), math.log2(times), slopes[-1], falls[1]
    while doublings > 0:
        fall *= faster
        slope *= fall
        result += float(slope) * min(doublings, 1.0)
        doublings -= 1
    return math.exp(result)


def _units(rows: Requests, unit_bytes: int) -> tuple[Ints, Ints]:
    """Return the first region (or page) of each request, and how many it touches."""
    first = rows.offset_bytes // unit_bytes
    last = (rows.offset_bytes + rows.length_bytes - 1) // unit_bytes
    return first, np.minimum(last - first + 1, MOST_BYTES // unit_bytes)


def _with_data(rows: Requests) -> Requests:
    return rows.where(rows.length_bytes > 0)


def _touches(rows: Requests) -> tuple[Ints, Ints]:
    """Return the regions that requests touch, in their order, and whether to write."""
    rows = _with_data(rows)
    first, count = _units(rows, REGION_BYTES)
    is_write = (rows.op != Op.READ).astype(np.int64)
    return runs(first, count), np.repeat(is_write, count)


def _spans(rows: Requests) -> Spans:
    first, count = _units(_with_data(rows), PAGE_BYTES)
    order = np.argsort(first, kind="stable")
    first, reach = first[order], np.maximum.accumulate((first + count - 1)[order])
    begins = np.ones(len(first), np.bool_)
    begins[1:] = first[1:] > reach[:-1]
    ends = np.roll(begins, -1)  # the last of a run is before the first of the next
    return Spans(first[begins], reach[ends])


def _places(repeated: Requests, first: Requests) -> Places:
    before, region = window(first), window(repeated).region
    has_data = repeated.length_bytes > 0
    begins = repeated.offset_bytes[has_data] // PAGE_BYTES
    page = _pages_of(distinct(begins // PAGES)).ravel()
    page = page[_spans(repeated).has(page)]
    of_request = np.zeros(repeated.rows, np.int64)
    of_request[has_data] = np.searchsorted(page, begins)
    level, writes = np.full(len(region), -1, np.int64), np.zeros(len(region), np.int64)
    _, here, there = np.intersect1d(region, before.region, assume_unique=True, return_indices=True)
    level[here], writes[here] = before.level[there], before.writes[there]
    of_page, is_known = np.searchsorted(region, page // PAGES), _spans(first).has(page)
    return Places(region, level, writes, page, of_page, is_known, of_request)


class Streams(NamedTuple):
    """Of the regions that the repeated half touches: which of them a stream joins."""

    piece: Ints  # number, by region: what a stream touches is one piece, other regions are alone
    is_joined: npt.NDArray[np.bool_]  # by region: with others
    ahead_bytes: Ints  # by region: how far its stream gets in a repetition, one that lasts; 0: none


def _streams(rows: Requests, half: int, region: Ints) -> Streams:
    """Return the streams of the requests from `half` on, which touch `region`.

    A stream are three requests or more of one direction, each of which begins where one of a few
    before it ended.  It lasts if it comes from the first half and reaches the last requests.
    """
    half = int((rows.length_bytes[:half] > 0).sum())
    rows = _with_data(rows)
    count, is_write = rows.rows, (rows.op != Op.READ).astype(np.int64)
    ends = rows.offset_bytes + rows.length_bytes
    both = np.concatenate([rows.offset_bytes * 2 + is_write, ends * 2 + is_write])
    begin, end = np.unique(both, return_inverse=True)[1].reshape(2, count)
    end = end * count + np.arange(count)  # in order of the place, then of time
    order = np.argsort(end)
    before = order[np.searchsorted(end[order], begin * count + np.arange(count)) - 1]
    follows = (before < np.arange(count)) & (end[before] // count == begin)
    reach = min(STREAMS, (count - half) // STEPS)
    follows &= np.arange(count) - before <= reach
    is_third = follows & follows[before]
    third = np.flatnonzero(is_third & (before[before] >= half))
    first = rows.offset_bytes[before[before[third]]] // REGION_BYTES
    last = (ends[third] - 1) // REGION_BYTES
    inside = np.bincount(np.searchsorted(region, first), minlength=len(region) + 1)
    inside = np.cumsum(inside - np.bincount(np.searchsorted(region, last), minlength=len(inside)))
    piece = np.cumsum(np.concatenate([[0], inside[: len(region) - 1] == 0]))
    root = np.where(follows & (before >= half), before, np.arange(count))
    while (root[root] != root).any():
        root = root[root]
    latest = np.zeros(count, np.int64)
    np.maximum.at(latest, root, np.arange(count))
    lasts = (root == np.arange(count)) & follows & (np.arange(count) >= half)
    lasts &= is_third[latest] & (latest >= count - reach)
    ahead_bytes = np.zeros(piece[-1] + 1 if len(piece) else 0, np.int64)
    where = piece[np.searchsorted(region, rows.offset_bytes[lasts] // REGION_BYTES)]
    np.maximum.at(ahead_bytes, where, ends[latest[lasts]] - rows.offset_bytes[lasts])
    return Streams(piece, np.bincount(piece)[piece] > 1, ahead_bytes[piece])


def _pages_of(region: Ints) -> Ints:
    """Return the pages of regions (regions, PAGES)."""
    return region[:, None] * PAGES + np.arange(PAGES)


def _kept(places: Places, before: Window, draws: np.random.Generator) -> Ints:
    """Return the regions that take the places of those that the window before had touched.

    -1 for the other places.  A place gets a region of its own class; where these are too few, one
    of the most popular that are left.
    """
    target = np.full(len(places.region), -1, np.int64)
    free = np.ones(len(before.region), np.bool_)
    known = places.level >= 0
    for level in np.unique(places.level[known])[::-1]:
        for writes in range(KINDS):
            want = np.flatnonzero((places.level == level) & (places.writes == writes))
            have = np.flatnonzero((before.level == level) & (before.writes == writes))
            count = min(len(want), len(have))
            chosen = _some(have, count, draws)
            free[chosen] = False
            target[_some(want, count, draws)] = before.region[chosen]
    want, have = np.flatnonzero(known & (target < 0)), np.flatnonzero(free)
    want = want[np.argsort(-places.level[want], kind="stable")]
    have = have[np.argsort(-before.level[have], kind="stable")]
    count = min(len(want), len(have))
    target[want[:count]] = before.region[have[:count]]
    return target


def _in_one(streams: Streams, region: Ints, target: Ints) -> Ints:
    """Return where regions go if each piece moves as one: as far as its regions in the median."""
    shift = target - region
    order = np.lexsort((shift, streams.piece))
    size = np.bincount(streams.piece)
    first = np.cumsum(size) - size
    far = np.maximum(shift[order][first + size // 2], -region[first])
    result: Ints = region + far[streams.piece]
    return result


def _some(of: Ints, count: int, draws: np.random.Generator) -> Ints:
    """Return `count` neighbours of a sorted array, from a place that is drawn."""
    start = int(draws.integers(len(of) - count + 1))
    return of[start : start + count]


def _untouched(wanted: Ints, seen: Ints) -> Ints:
    """Return a region outside of `seen` for each of `wanted`, at or above it; all ascending."""
    before = seen - np.arange(len(seen))  # untouched ones below each that was touched
    nth = wanted - np.searchsorted(seen, wanted)
    nth = np.maximum.accumulate(nth - np.arange(len(nth))) + np.arange(len(nth))  # each only once
    return nth + np.searchsorted(before, nth, side="right")


def _moved(places: Places, target: Ints, before: Requests) -> Ints:
    """Return the pages that take the places of those of the repeated half.

    `target` are their regions.  In each, pages that the window before had touched take the places
    of such pages, and others those of others, in order.
    """
    regions, row = np.unique(target[places.of_page], return_inverse=True)
    touched = _spans(before).has(_pages_of(regions))
    order = np.argsort(touched, axis=1, kind="stable")  # those not touched, then the others
    known = touched.sum(axis=1)[row]
    room = np.where(places.is_known, known, PAGES - known)
    first, count, nth = _ranks(places.of_page * 2 + places.is_known)
    start = np.minimum(places.page[first] % PAGES, room - count)
    rank = np.where(room >= count, np.where(places.is_known, 0, start) + nth, nth * room // count)
    # A page for which the region has none of its kind takes any.
    rank = np.where(room > 0, rank + np.where(places.is_known, PAGES - known, 0), nth % PAGES)
    return target[places.of_page] * PAGES + order[row, rank]


def _ranks(group: Ints) -> tuple[Ints, Ints, Ints]:
    """Return of each the first of its group, how many these are, and the rank among them."""
    _, first, place, count = np.unique(
        group, return_index=True, return_inverse=True, return_counts=True
    )
    nth = np.empty(len(group), np.int64)
    nth[np.argsort(place, kind="stable")] = runs(np.zeros_like(count), count)
    return first[place], count[place], nth
