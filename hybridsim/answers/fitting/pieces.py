"""What each member of a supposed array had to do: its share of every request, in order of service.

A member serves one request at a time.  So the order in which requests came back is the order in
which it served them, and each one's service began when it had come in and the one before was done.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hybridsim.answers.fitting.observed import Floats, Ints, Observed

NO_DISTANCE = -1.0  # where the arm was is not known
USUAL_DISTANCE = 1 / 3  # of the stroke: the mean over random pairs
QUEUE_MAX = 256  # waiting requests of a member that are looked at


class Layout(NamedTuple):
    """How a volume may lie on its disks."""

    members: int
    chunk_bytes: int

    def __str__(self) -> str:
        return f"{self.members} x {self.chunk_bytes // 1024} KiB"


class Pieces(NamedTuple):
    """One row per member that a request touches; rows of one request follow each other."""

    first: Ints  # row of each request's first piece
    entered_ns: Floats
    before_ns: Floats  # completion of what the member served before
    complete_ns: Floats
    length_bytes: Floats
    share: Floats  # of the stroke, from where the arm was
    place: Floats  # of the stroke, where it begins
    is_next: npt.NDArray[np.bool_]  # begins where the piece before ended
    is_write: npt.NDArray[np.bool_]
    waiting: Ints  # other requests that the member could have served instead
    passed: npt.NDArray[np.bool_]  # one of them was there before it
    is_whole: npt.NDArray[np.bool_]  # the only piece of its request: done exactly when that was
    is_timed: npt.NDArray[np.bool_]  # whole, and so was what the member served before


def pieces(observed: Observed, entered_ns: Ints, layout: Layout) -> Pieces:
    """Return what the members of this layout served."""
    order = np.lexsort((observed.dispatch_ns, observed.complete_ns, observed.stretch))
    request, member, place, length = _cut(observed, order, layout)
    group = observed.stretch[request] * layout.members + member
    served = np.lexsort((np.arange(len(group)), group))
    same = np.zeros(len(group), np.bool_)
    same[1:] = group[served][1:] == group[served][:-1]
    stroke = max(-(-observed.end_bytes // layout.members), 1)
    complete = observed.complete_ns[request].astype(np.float64)
    entered = entered_ns[request].astype(np.float64)
    before, distance, is_next = _before(served, same, place, length, complete)
    share = np.where(distance < 0, USUAL_DISTANCE, np.minimum(distance / stroke, 1.0))
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
        place / stroke,
        is_next,
        observed.is_write[request],
        waiting,
        passed,
        is_whole,
        _timed(served, same, is_whole),
    )


def _cut(observed: Observed, order: Ints, layout: Layout) -> tuple[Ints, Ints, Ints, Ints]:
    """Return request, member, place on it and length of every piece, requests as in `order`."""
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
) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
    """Return of each piece when the one before was done, how far it was, and if it continues it."""
    before = np.full(len(served), -np.inf)
    distance = np.full(len(served), NO_DISTANCE)
    later, earlier = served[same], served[np.flatnonzero(same) - 1]
    before[later] = complete[earlier]
    gap = place[later] - (place[earlier] + length[earlier])
    distance[later] = np.abs(gap)
    is_next = np.zeros(len(served), np.bool_)
    is_next[later] = gap == 0
    return before, distance, is_next


def _timed(
    served: Ints, same: npt.NDArray[np.bool_], is_whole: npt.NDArray[np.bool_]
) -> npt.NDArray[np.bool_]:
    """Tell of each piece whether both its own completion and that before it are known."""
    timed = is_whole.copy()
    timed[served[same]] &= is_whole[served[np.flatnonzero(same) - 1]]
    return timed


def _waiting(
    served: Ints,
    group: Ints,
    request: Ints,
    entered: Floats,
    begun: Floats,
    is_whole: npt.NDArray[np.bool_],
) -> tuple[Ints, npt.NDArray[np.bool_]]:
    """Return how many pieces were there when each began, and if a whole one of them came earlier.

    Of a request in several pieces only the last one's completion is known, so that the others
    seem to be served later than they were.
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
