"""Split requests into pieces, one per member of an assumed array, in order of service.

A member serves one request at a time.  So requests complete in the order of their service, and each
service begins when the request has arrived and the previous one is complete.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.answers.fitting.observed import Floats, Ints, Observed

NO_DISTANCE = -1.0  # the position of the arm is unknown
USUAL_DISTANCE = 1 / 3  # of the stroke: the mean over random pairs of positions
QUEUE_MAX = 256  # waiting requests of a member that are examined


class Layout(NamedTuple):
    """A layout of a volume on its disks."""

    members: int
    chunk_bytes: int

    def __str__(self) -> str:
        return f"{self.members} x {self.chunk_bytes // 1024} KiB"


class Pieces(NamedTuple):
    """One row per member that a request touches; rows of one request follow each other."""

    first: Ints  # row of each request's first piece
    entered_ns: Floats
    before_ns: Floats  # completion of the member's previous service
    complete_ns: Floats
    length_bytes: Floats
    share: Floats  # bytes that the arm passed over, as a share of those of the stroke
    middle: Floats  # of the places that it moved between, as a share of the stroke
    place: Floats  # where it begins, as a share of the stroke
    is_next: npt.NDArray[np.bool_]  # begins where the previous piece ended
    is_write: npt.NDArray[np.bool_]
    waiting: Ints  # other requests that the member could have served instead
    passed: npt.NDArray[np.bool_]  # an older one was among them
    is_whole: npt.NDArray[np.bool_]  # the only piece of its request: its completion is known
    is_timed: npt.NDArray[np.bool_]  # it is known when its service began and ended


def pieces(observed: Observed, entered_ns: Ints, layout: Layout) -> Pieces:
    """Return the pieces of all requests under this layout."""
    order = np.lexsort((observed.dispatch_ns, observed.complete_ns, observed.stretch))
    request, member, place, length = _cut(observed, order, layout)
    group = observed.stretch[request] * layout.members + member
    served = np.lexsort((np.arange(len(group)), group))
    same = np.zeros(len(group), np.bool_)
    same[1:] = group[served][1:] == group[served][:-1]
    stroke = max(-(-observed.end_bytes // layout.members), 1)
    complete = observed.complete_ns[request].astype(np.float64)
    entered = entered_ns[request].astype(np.float64)
    before, distance, middle, is_next = _before(served, same, place, length, complete)
    is_known = distance >= 0
    share = np.where(is_known, np.minimum(distance / stroke, 1.0), USUAL_DISTANCE)
    middle = np.where(is_known, middle / stroke, 0.5)
    is_whole = np.bincount(request, minlength=observed.rows)[request] == 1
    begun = np.maximum(before, entered)
    waiting, passed = _waiting(served, group, request, entered, begun, is_whole)
    return Pieces(
        np.flatnonzero(np.diff(request, prepend=-1)),
        entered,
        before,
        complete,
        length.astype(np.float64),
        share,
        middle,
        place / stroke,
        is_next,
        observed.is_write[request],
        waiting,
        passed,
        is_whole,
        _timed(served, same, is_whole, entered),
    )


def _cut(observed: Observed, order: Ints, layout: Layout) -> tuple[Ints, Ints, Ints, Ints]:
    """Return request, member, position on it and length of each piece, requests as in `order`."""
    members, chunk = layout
    offset, end = (
        observed.offset_bytes[order],
        (observed.offset_bytes + observed.length_bytes)[order],
    )
    first, last = offset // chunk, (end - 1) // chunk
    touched = np.minimum(last - first + 1, members)
    row = np.repeat(np.arange(len(order)), touched)
    step = np.arange(len(row)) - np.repeat(np.cumsum(touched) - touched, touched)
    begin = first[row] + step
    final = last[row] - (last[row] - begin) % members
    start = begin // members * chunk + np.where(step == 0, offset[row] % chunk, 0)
    whole = np.where(final == last[row], (end[row] - 1) % chunk + 1, chunk)
    stop = final // members * chunk + whole
    if members == 1:
        start, stop = offset[row], end[row]
    return order[row], begin % members, start, stop - start


def _before(
    served: Ints, same: npt.NDArray[np.bool_], place: Ints, length: Ints, complete: Floats
) -> tuple[Floats, Floats, Floats, npt.NDArray[np.bool_]]:
    """Return for each piece the previous completion, distance and middle, and if it is adjacent."""
    before = np.full(len(served), -np.inf)
    distance = np.full(len(served), NO_DISTANCE)
    middle = np.zeros(len(served))
    later, earlier = served[same], served[np.flatnonzero(same) - 1]
    before[later] = complete[earlier]
    gap = place[later] - (place[earlier] + length[earlier])
    distance[later] = np.abs(gap)
    middle[later] = place[later] - gap / 2
    is_next = np.zeros(len(served), np.bool_)
    is_next[later] = gap == 0
    return before, distance, middle, is_next


def _timed(
    served: Ints, same: npt.NDArray[np.bool_], is_whole: npt.NDArray[np.bool_], entered: Floats
) -> npt.NDArray[np.bool_]:
    """Return for each piece whether it is known when its service began and ended.

    It and the previous one are whole, and no piece of a split request entered earlier and is
    outstanding: this one may have been served in between.
    """
    timed = is_whole.copy()
    timed[served[same]] &= is_whole[served[np.flatnonzero(same) - 1]]
    for group in np.split(served, np.flatnonzero(~same)[1:]):
        split = np.where(is_whole[group], np.inf, entered[group])
        earliest = np.minimum.accumulate(split[::-1])[::-1]
        timed[group] &= earliest >= entered[group]
    return timed


def _waiting(
    served: Ints,
    group: Ints,
    request: Ints,
    entered: Floats,
    begun: Floats,
    is_whole: npt.NDArray[np.bool_],
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return how many pieces waited when each began, and whether an older whole one was among them.

    Of a request in several pieces only the completion of the last one is known, so the others seem
    to be served later than they were.
    """
    waiting = np.zeros(len(served), np.int64)
    passed = np.zeros(len(served), np.bool_)
    start, came, key, rank = begun[served], entered[served], group[served], request[served]
    whole = is_whole[served]
    for ahead in range(1, min(QUEUE_MAX, len(served))):
        there = (key[ahead:] == key[:-ahead]) & (came[ahead:] <= start[:-ahead])
        if not there.any():
            break
        waiting[served[:-ahead]] += there
        earlier = rank[ahead:] < rank[:-ahead]
        passed[served[:-ahead]] |= there & earlier & whole[ahead:] & whole[:-ahead]
    return waiting, passed
