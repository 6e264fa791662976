"""Decomposition of a capture into runs of requests, objects, and visits to objects."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hybridsim.workloads.draws import Ints
from hybridsim.workloads.standin.classes import PAGE_BYTES

Flags = NDArray[np.bool_]
WINDOW = 256  # largest distance of two requests of a run
LINKED = 0.5  # minimum share of runs that cross into the next page of the same object


class Rows(NamedTuple):
    """The reads and writes of a capture, in order."""

    offset: Ints
    length: Ints
    is_write: Flags


class Visits(NamedTuple):
    """The visits, one per row, in order of their first requests."""

    object: Ints
    first: Ints  # index of the request
    last: Ints
    requests: Ints
    start: Ints  # bytes from the beginning of the object
    bytes: Ints
    length: Ints  # of its first request
    is_write: Flags


class Objects(NamedTuple):
    """The objects, one per row, in order of address."""

    page: Ints  # first page
    pages: Ints


def taken_apart(rows: Rows) -> tuple[Objects, Visits]:
    """Return the objects of a capture and the visits to them."""
    run = runs(rows)
    objects = _objects(rows, run)
    number = np.searchsorted(objects.page, rows.offset // PAGE_BYTES, "right") - 1
    key = run * len(objects.page) + number
    _, first, visit = np.unique(key, return_index=True, return_inverse=True)
    count = len(first)
    last, start = np.zeros(count, np.int64), np.full(count, np.iinfo(np.int64).max)
    np.maximum.at(last, visit, np.arange(len(visit)))
    base = objects.page[number] * PAGE_BYTES
    np.minimum.at(start, visit, rows.offset - base)
    visits = Visits(
        number[first],
        first,
        last,
        np.bincount(visit, minlength=count),
        start,
        np.bincount(visit, rows.length, count).astype(np.int64),
        rows.length[first],
        rows.is_write[first],
    )
    order = np.argsort(visits.first)
    return objects, Visits._make(column[order] for column in visits)


def runs(rows: Rows) -> Ints:
    """Return for each request the first request of its run.

    A request continues a run if one of the same direction, at most WINDOW requests before, ended
    at its offset.
    """
    count = len(rows.offset)
    place = np.concatenate([rows.offset + rows.length, rows.offset])
    is_start = np.repeat([False, True], count)
    number = np.tile(np.arange(count), 2)
    order = np.lexsort((~is_start, number, np.tile(rows.is_write, 2), place))
    end_at = np.where(is_start[order], -1, np.arange(2 * count))
    latest = order[np.maximum(np.maximum.accumulate(end_at), 0)]
    start_at = np.flatnonzero(is_start[order])
    start, before = order[start_at], latest[start_at]
    same = (place[before] == place[start]) & ~is_start[before]
    me, before = start - count, before % count
    same &= (rows.is_write[me] == rows.is_write[before]) & (me > before)
    same &= me - before <= WINDOW
    me, before = me[same], before[same]
    me, before = me[np.argsort(me)], before[np.argsort(me)]
    _, once = np.unique(before, return_index=True)  # the first continuation of each
    first = np.arange(count)
    first[me[once]] = before[once]
    while True:
        further = first[first]
        if (further == first).all():
            return first
        first = further


def _objects(rows: Rows, run: Ints) -> Objects:
    """Join adjacent pages into objects where most runs cross from one to the next."""
    first = rows.offset // PAGE_BYTES
    last = (rows.offset + rows.length - 1) // PAGE_BYTES
    low = np.full(len(run), np.iinfo(np.int64).max)
    high = np.zeros(len(run), np.int64)
    np.minimum.at(low, run, first)
    np.maximum.at(high, run, last)
    heads = np.flatnonzero(run == np.arange(len(run)))
    low, width = low[heads], high[heads] - low[heads] + 1
    begin = np.cumsum(width) - width
    within = np.arange(int(width.sum())) - np.repeat(begin, width)
    touched = np.repeat(low, width) + within
    goes_on = within < np.repeat(width, width) - 1
    page, where = np.unique(touched, return_inverse=True)
    visits = np.bincount(where, minlength=len(page))
    crossings = np.bincount(where, goes_on, len(page))
    linked = np.append(
        (np.diff(page) == 1) & (crossings[:-1] >= LINKED * np.maximum(visits[:-1], visits[1:])),
        False,
    )
    begins = np.flatnonzero(~np.append(False, linked[:-1]))
    sizes = np.diff(np.append(begins, len(page)))
    is_entered = np.zeros(len(begins), np.bool_)  # others are only reached by the tails of requests
    is_entered[np.searchsorted(page[begins], first, "right") - 1] = True
    return Objects(page[begins][is_entered], sizes[is_entered])
