"""What visits have in common: where they begin, their requests, which come together."""

from __future__ import annotations

from typing import Any

import numpy as np

from hybridsim.workloads.draws import Floats, Ints
from hybridsim.workloads.standin.classes import GROUPS, PAGE_BYTES, class_of, histogram
from hybridsim.workloads.standin.lives import Lives
from hybridsim.workloads.standin.objects import Objects, Visits

LAGS = 16  # visits back to one that began at the same place
NEW, ON = 0, 1  # how a visit begins: somewhere, or where the last one ended; from 2 on: the lag
PAUSE_EDGES = np.array([64, 1024, 16384])  # requests
SHAPES = 48  # lengths of requests that are told by themselves
ALIGNS = [512 << power for power in range(8)]
SOUND = 0.95  # of the visits of a length that begin at multiples of its alignment
RUN_EDGES = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 256, 512, 1024, 4096])
OFTEN = 16  # visits
WHOLE = 99  # class of how many requests: as many as the object takes
NEAR = 64  # requests: two visits that come together
REGION_PAGES = 16


def starts(visits: Visits, life: Lives) -> tuple[list[list[int]], list[float]]:
    """Return how often a visit begins as told by NEW, ON or a lag, and then is as long, by group.

    The first are rows of: group, visits before, class of the pause before it, how, number; the
    second is of visits of one request.
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
    """Return the share of visits that come with one to the most visited neighbour.

    What comes by chance is not counted: it is told by the same visits an odd time later.
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
    """Return for each object the most visited one that begins in the same REGION_PAGES."""
    region = page // REGION_PAGES
    order = np.lexsort((np.arange(len(page)), -visits, region))
    _, begins, which = np.unique(region[order], return_index=True, return_inverse=True)
    found = np.empty(len(page), np.int64)
    found[order] = order[begins][which]
    return found


def nearest_distance(keys: Ints | Floats, wanted: Ints | Floats) -> Any:
    """Return how far the nearest of sorted keys is."""
    after = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    before = np.maximum(after - 1, 0)
    return np.minimum(np.abs(keys[after] - wanted), np.abs(keys[before] - wanted))


def pause_class(pause: Ints | Floats, nth: Ints) -> Ints:
    """Return the class of the pauses before visits; the first of an object has none."""
    return np.where(nth > 0, np.searchsorted(PAUSE_EDGES, pause, "right"), 0).astype(np.int64)


def from_begin(visits: Visits, life: Lives) -> list[list[float]]:
    """Return the share of first and later visits that begin with the object, by group."""
    at_begin = visits.start < 4096
    return [
        [
            float(f"{at_begin[mine].mean():.4g}") if mine.any() else 1.0
            for mine in ((life.group == group) & ((life.nth > 0) == later) for later in (0, 1))
        ]
        for group in range(GROUPS)
    ]


def shapes(visits: Visits, life: Lives, objects: Objects) -> list[list[int]]:
    """Return how often visits have a length of requests, and so many of them.

    Rows of: class as of shape_class, length, alignment, class of how many, number.
    """
    length = np.rint(visits.bytes / visits.requests / 512).astype(np.int64) * 512
    length = np.maximum(np.where(visits.requests == 1, visits.length, length), 1)
    room = objects.pages[life.number] * PAGE_BYTES
    amount = class_of(visits.requests, RUN_EDGES)
    amount[(life.group > 0) & (visits.bytes * 16 >= room * 15)] = WHOLE
    classes = shape_class(life.group, life.nth, life.visits[life.number], visits.is_write)
    found = []
    for each in np.unique(classes):
        mine = np.flatnonzero(classes == each)
        nearest = _commonest(length[mine])
        for value in np.unique(nearest):
            these = mine[nearest == value]
            align = _alignment(visits.start[these])
            for how_many, number in zip(*np.unique(amount[these], return_counts=True)):
                found.append([int(each), int(value), align, int(how_many), int(number)])
    return found


def shape_class(group: Ints, nth: Ints, visits: Ints, is_write: Any) -> Ints:
    """Return a class by group, visits of the object, if it is the first of them, if it writes."""
    found: Ints = ((group * 2 + (visits >= OFTEN)) * 2 + (nth > 0)) * 2 + is_write
    return found


def _commonest(length: Ints) -> Ints:
    """Return for each length the nearest of the commonest."""
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
    """Return a histogram of requests from one of a visit to the next, in one page and in more."""
    long = visits.requests > 1
    gap = (visits.last - visits.first)[long] / (visits.requests[long] - 1)
    return [histogram(gap[(life.group[long] > 0) == larger]) for larger in (0, 1)]
