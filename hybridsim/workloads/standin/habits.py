"""Distributions of visits: start, requests, pace, and visits that occur together."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridsim.workloads.draws import Floats, Ints
from hybridsim.workloads.standin.classes import GROUPS, PAGE_BYTES, class_of, histogram
from hybridsim.workloads.standin.lives import Lives
from hybridsim.workloads.standin.objects import Objects, Visits

LAGS = 16  # how many visits back a repeated start may lie
NEW, ON = 0, 1  # start of a visit: new, at the end of the last visit; ON + lag: repeated
PAUSE_EDGES = np.array([64, 1024, 16384])  # requests
SHAPES = 48  # number of request lengths that are kept exactly
ALIGNS = [512 << power for power in range(8)]
SOUND = 0.95  # minimum share of visits that fit an alignment
RUN_EDGES = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024, 4096])
OFTEN = 16  # visits
WHOLE = 99  # class of the number of requests: the whole object
NEAR = 64  # requests between two visits that occur together
REGION_PAGES = 16


def starts(visits: Visits, life: Lives) -> tuple[list[list[int]], list[float]]:
    """Return how visits start, and by group how often a repeated start has the same length.

    The first result has rows of: group, number of earlier visits, class of the preceding pause,
    start (NEW, ON, ON + lag), number; the second one covers visits of one request.
    """
    how = np.zeros(len(visits.first), np.int64)
    end = visits.start + visits.bytes
    on = np.append(False, visits.start[1:] == end[:-1]) & (life.nth > 0)
    for lag in range(min(LAGS, len(how) - 1), 0, -1):
        again = np.append(np.zeros(lag, np.bool_), visits.start[lag:] == visits.start[:-lag])
        how[again & (life.nth >= lag)] = ON + lag
    how[on & (how == NEW)] = ON
    pause = np.diff(visits.first, prepend=0)
    columns = np.stack([life.group, np.minimum(life.nth, LAGS), pause_class(pause, life.nth), how])
    rows, number = np.unique(columns, axis=1, return_counts=True)
    later = np.flatnonzero(how > ON)
    before = later - (how[later] - ON)
    alone = (visits.requests[later] == 1) & (visits.requests[before] == 1)
    group = life.group[later[alone]]
    as_long = (visits.length[later] == visits.length[before])[alone]
    shares = np.bincount(group, as_long, GROUPS) / np.maximum(np.bincount(group, None, GROUPS), 1)
    return np.vstack([rows, number]).T.tolist(), [float(f"{each:.4g}") for each in shares]


def together(visits: Visits, objects: Objects, life: Lives, accesses: int) -> float:
    """Return the share of visits that occur together with one to the most visited neighbour.

    Coincidences are subtracted; they are estimated with the same visits shifted in time.
    """
    anchor = anchors(objects.page, life.visits)[life.number]
    mine = anchor != life.number
    if not mine.any():
        return 0.0
    key = life.number * (2 * accesses) + visits.first
    shares = []
    for late in (0, accesses // 7):
        time = (visits.first[mine] + late) % accesses
        wanted = anchor[mine] * (2 * accesses) + time
        shares.append(float((nearest_distance(key, wanted) <= NEAR).mean()))
    return float(f"{max(shares[0] - shares[1], 0) / max(1 - shares[1], 1e-9):.4g}")


def anchors(page: Ints, visits: Ints) -> Ints:
    """Return for each object the most visited one in the same REGION_PAGES."""
    region = page // REGION_PAGES
    order = np.lexsort((np.arange(len(page)), -visits, region))
    _, begins, which = np.unique(region[order], return_index=True, return_inverse=True)
    anchor = np.empty(len(page), np.int64)
    anchor[order] = order[begins][which]
    return anchor


def nearest_distance(keys: Ints | Floats, wanted: Ints | Floats) -> Any:
    """Return the distance from each wanted value to the nearest of the sorted keys."""
    after = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    before = np.maximum(after - 1, 0)
    return np.minimum(np.abs(keys[after] - wanted), np.abs(keys[before] - wanted))


def pause_class(pause: Ints | Floats, nth: Ints) -> Ints:
    """Return the class of the pause before each visit; 0 for the first visit of an object."""
    return np.where(nth > 0, np.searchsorted(PAUSE_EDGES, pause, "right"), 0).astype(np.int64)


def from_begin(visits: Visits, life: Lives) -> list[list[float]]:
    """Return by group the share of first and of later visits that start at the object's begin."""
    at_begin = visits.start < 4096
    return [
        [
            float(f"{at_begin[mine].mean():.4g}") if mine.any() else 1.0
            for mine in ((life.group == group) & ((life.nth > 0) == later) for later in (0, 1))
        ]
        for group in range(GROUPS)
    ]


def shapes(visits: Visits, life: Lives, objects: Objects) -> list[list[int]]:
    """Return the joint distribution of request lengths and numbers of requests of visits.

    Rows of: class (shape_class), length, alignment, class of the number of requests, number.
    """
    length = np.rint(visits.bytes / visits.requests / 512).astype(np.int64) * 512
    length = np.maximum(np.where(visits.requests == 1, visits.length, length), 1)
    room = objects.pages[life.number] * PAGE_BYTES
    amount = class_of(visits.requests, RUN_EDGES)
    amount[(life.group > 0) & (visits.bytes * 16 >= room * 15)] = WHOLE
    classes = shape_class(life.group, life.nth, life.visits[life.number], visits.is_write)
    rows = []
    for each in np.unique(classes):
        mine = np.flatnonzero(classes == each)
        nearest = _commonest(length[mine])
        for value in np.unique(nearest):
            these = mine[nearest == value]
            align = _alignment(visits.start[these])
            for how_many, number in zip(*np.unique(amount[these], return_counts=True)):
                rows.append([int(each), int(value), align, int(how_many), int(number)])
    return rows


def shape_class(group: Ints, nth: Ints, visits: Ints, is_write: Any) -> Ints:
    """Return the class by group, frequent object or not, first visit or not, and write or not."""
    classes: Ints = ((group * 2 + (visits >= OFTEN)) * 2 + (nth > 0)) * 2 + is_write
    return classes


def _commonest(length: Ints) -> Ints:
    """Return the nearest of the SHAPES most frequent lengths for each length."""
    values, number = np.unique(length, return_counts=True)
    kept = np.sort(values[np.argsort(-number, kind="stable")[:SHAPES]])
    above = np.minimum(np.searchsorted(kept, length), len(kept) - 1)
    below = np.maximum(above - 1, 0)
    is_above = kept[above] - length < length - kept[below]
    return np.where(is_above | (kept[above] == length), kept[above], kept[below])


def _alignment(start: Ints) -> int:
    fitting = [align for align in ALIGNS if (start % align == 0).mean() >= SOUND]
    return max(fitting, default=512)


def pace(visits: Visits, life: Lives) -> list[list[list[int]]]:
    """Return histograms of the requests between two of a visit, for one page and for more."""
    long = visits.requests > 1
    gap = (visits.last - visits.first)[long] / (visits.requests[long] - 1)
    return [histogram(gap[(life.group[long] > 0) == larger]) for larger in (0, 1)]
