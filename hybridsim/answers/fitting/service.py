"""Split requests into pieces, one per member of an assumed array, in order of service.

A member serves one request at a time.  So requests complete in the order of their service, and each
service begins when the request has arrived and the previous one is complete.  The order tells
whether a disk serves its queue as it came, or chooses from it.

The likelihood of observed service times of a disk:

    service = seek(distance) + rotation + length / rate(place)        (+ settling, of a write)

Cylinders hold fewer bytes inwards, evenly from the first to the last, and a byte takes as much
longer.  The rotation is uniform from 0 to a revolution.  The error of the completion times
(interrupts, wake-ups) is logistic; a share of stray requests follows no model.  A request that
finds its disk idle first takes the overhead of the electronics.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import expit

from hybridsim.answers.fitting.observed import Marks, Observed
from hybridsim.foundation.arrays import Floats, Ints

NO_DISTANCE = -1.0  # the position of the arm is unknown
USUAL_DISTANCE = 1 / 3  # of the stroke: the mean over random pairs of positions
QUEUE_MAX = 256  # waiting requests of a member that are examined
CHOOSES = 0.2  # share of the services with a choice; lower shares are jitter of completion times
TINY = 1e-30
NEAR = 1e-9  # share of the stroke: the slope of its root has no end at 0
MS = 1e6


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
    is_next: Marks  # begins where the previous piece ended
    is_write: Marks
    waiting: Ints  # other requests that the member could have served instead
    passed: Marks  # an older one was among them
    is_whole: Marks  # the only piece of its request: its completion is known
    is_timed: Marks  # it is known when its service began and ended


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
    offset = observed.offset_bytes[order]
    end = offset + observed.length_bytes[order]
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
    served: Ints, same: Marks, place: Ints, length: Ints, complete: Floats
) -> tuple[Floats, Floats, Floats, Marks]:
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


def _timed(served: Ints, same: Marks, is_whole: Marks, entered: Floats) -> Marks:
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
    is_whole: Marks,
) -> tuple[Ints, Marks]:
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


def choice_share(seen: Pieces) -> float | None:
    """Return the share of choices that passed over the oldest request; None without choices."""
    had = (seen.waiting > 0) & seen.is_whole
    return float(seen.passed[had].mean()) if had.any() else None


def order_likelihood(seen: Pieces) -> float:
    """Return the log-likelihood of the order of service.

    With probability 1 - p the oldest request is next, else each other with equal probability; p is
    estimated from the capture.  Without this term the layout of one disk, which may serve in any
    order, would explain every capture.
    """
    had = (seen.waiting > 0) & seen.is_whole
    waiting, passed = seen.waiting[had], seen.passed[had]
    if not len(waiting):
        return 0.0
    share = float(np.clip(passed.mean(), 1 / (len(passed) + 2), 1 - 1 / (len(passed) + 2)))
    of_passed = np.log(share / waiting[passed])
    return float(of_passed.sum() + (~passed).sum() * np.log(1 - share))


class Service(NamedTuple):
    """The parameters of one disk and of the observation; times in milliseconds."""

    overhead_ms: float  # of a request that finds the disk idle
    track_ms: float  # the shortest seek
    full_ms: float  # over the whole stroke
    linear: float  # a seek over the share x of the stroke grows as (1 - linear) sqrt(x) + linear x
    bend: float  # + bend x (1 - x), for arms that accelerate in stages
    rotation_ms: float  # of a revolution
    per_mib_ms: float  # transfer of 1 MiB, mean over the bytes
    inner: float  # bytes that the last cylinder has less than the first, as a share of the mean
    settle_ms: float  # added to a write
    noise_ms: float  # scale of the logistic error
    stray: float  # share of requests that follow no model

    def density(self, place: Floats) -> Floats:
        """Return the bytes of the cylinder at a place, as a share of the mean."""
        return np.sqrt((1 + self.inner / 2) ** 2 - 2 * self.inner * place)

    def stroke(self, share: Floats, middle: Floats) -> Floats:
        """Return the share of the cylinders between two places `share` of the bytes apart."""
        half = share / 2
        return 2 * share / (self.density(middle - half) + self.density(middle + half))

    def seek_ms(self, share: Floats) -> Floats:
        """Return the time of a seek over a share of the stroke."""
        return self.track_ms + (self.full_ms - self.track_ms) * self.curve(share)

    def curve(self, share: Floats) -> Floats:
        """Return how far a seek is from the shortest, 0, to the longest, 1."""
        curve = (1 - self.linear) * np.sqrt(share) + self.linear * share
        curve += self.bend * share * (1 - share)
        return curve


def log_likelihood(service: Service, seen: Pieces) -> Floats:
    """Return the log density of each request's completion, in 1 / ms."""
    density, below = _of_pieces(service, seen)
    # A request completes with its last piece: the density of the maximum of independent times.
    whole = np.add.reduceat(np.log(below), seen.first)
    return np.asarray(whole + np.log(np.add.reduceat(density / below, seen.first)))


def with_slopes(service: Service, seen: Pieces) -> tuple[Floats, dict[str, Floats]]:
    """Return the log density of each request's completion, and its slopes by the parameters.

    For `full_ms` there is `reach_ms`, the time from the shortest seek to the longest.
    """
    rest, moved, share = _elapsed(service, seen)
    density, below = _turned(service, seen.is_next, rest, moved)
    each = density[0] / below[0]
    total = np.add.reduceat(each, seen.first)
    value = np.add.reduceat(np.log(below[0]), seen.first) + np.log(total)
    total_of_piece = np.repeat(total, np.diff(seen.first, append=len(each)))
    slopes = density[1:] / (below[0] * total_of_piece)
    slopes += below[1:] * (1 - each / total_of_piece) / below[0]
    moved_by, rest_by, rotation_by, noise_by, stray_by = slopes
    both_by = moved_by + rest_by

    mib = seen.length_bytes / 2**20
    bytes_there = service.density(seen.place)
    reach_ms, root = service.full_ms - service.track_ms, np.sqrt(share)
    steep = (1 - service.linear) / (2 * np.maximum(root, NEAR)) + service.linear
    steep += service.bend * (1 - 2 * share)
    half = seen.share / 2
    ends = [service.density(seen.middle + by) for by in (-half, half)]
    ends_by = [_density_by(service, seen.middle + by) for by in (-half, half)]
    stroke_by_inner = -share * (ends_by[0] + ends_by[1]) / (ends[0] + ends[1])
    is_late = seen.entered_ns + service.overhead_ms * MS >= seen.before_ns
    of_piece = {
        "overhead_ms": -both_by * is_late,
        "track_ms": -moved_by,
        "reach_ms": -moved_by * service.curve(share),
        "linear": moved_by * reach_ms * (root - share),
        "bend": -moved_by * reach_ms * share * (1 - share),
        "rotation_ms": rotation_by,
        "per_mib_ms": -both_by * mib / bytes_there,
        "inner": both_by
        * mib
        * service.per_mib_ms
        * _density_by(service, seen.place)
        / bytes_there**2
        - moved_by * reach_ms * steep * stroke_by_inner,
        "settle_ms": -both_by * seen.is_write,
        "noise_ms": noise_by,
        "stray": stray_by,
    }
    return value, {name: np.add.reduceat(one, seen.first) for name, one in of_piece.items()}


def _density_by(service: Service, place: Floats) -> Floats:
    """Return the slope of the bytes of a cylinder by `inner`."""
    return ((1 + service.inner / 2) / 2 - place) / service.density(place)


def _of_pieces(service: Service, seen: Pieces) -> tuple[Floats, Floats]:
    """Return density and cumulative distribution at the completion of each piece."""
    rest, moved, _ = _elapsed(service, seen)
    density, below = _turned(service, seen.is_next, rest, moved)
    return density[0], below[0]


def _elapsed(service: Service, seen: Pieces) -> tuple[Floats, Floats, Floats]:
    """Return the times left for seek and rotation, those for rotation, and the strokes."""
    begun = np.maximum(seen.entered_ns + service.overhead_ms * MS, seen.before_ns)
    rest = (seen.complete_ns - begun) / MS
    transfer_ms = service.per_mib_ms / service.density(seen.place)
    rest -= seen.length_bytes / 2**20 * transfer_ms + seen.is_write * service.settle_ms
    share = service.stroke(seen.share, seen.middle)
    return rest, rest - service.seek_ms(share), share


def _turned(service: Service, is_next: Marks, rest: Floats, moved: Floats) -> tuple[Floats, Floats]:
    """Return density and distribution of the times that are left, with their slopes.

    The rows are the value and its slopes by `moved`, `rest`, rotation, noise and stray.
    """
    turn, noise, stray = service.rotation_ms, service.noise_ms, service.stray
    early, late = moved / noise, (moved - turn) / noise
    past, over = expit(early), expit(late)
    past_by, over_by = past * (1 - past), over * (1 - over)
    none = np.zeros_like(moved)
    value = (past - over) / turn
    density = np.stack([
        value,
        (past_by - over_by) / (noise * turn),
        none,
        (over_by / noise - value) / turn,
        (late * over_by - early * past_by) / (noise * turn),
        none,
    ])  # fmt: skip
    value = (np.logaddexp(0.0, early) - np.logaddexp(0.0, late)) * noise / turn
    below = np.stack([
        value,
        density[0],
        none,
        (over - value) / turn,
        value / noise + (late * over - early * past) / turn,
        none,
    ])  # fmt: skip
    if is_next.any():  # the head may continue without seek and rotation
        at = rest[is_next] / noise
        on = expit(at)
        on_by = on * (1 - on) / noise
        turned = on_by * (1 - 2 * on) / noise
        zero = np.zeros_like(at)
        density[:, is_next] += [on_by, zero, turned, zero, -on_by / noise - turned * at, zero]
        below[:, is_next] += [on, zero, on_by, zero, -on_by * at, zero]
        density[:, is_next] /= 2
        below[:, is_next] /= 2
    off = moved / turn - 0.5
    far = np.exp(-np.abs(off))
    side = np.sign(off)
    strays = far / (2 * turn)
    by_turn = -moved / turn**2  # of `off`
    beside = np.where(off < 0, far / 2, 1 - far / 2)
    far_density = [strays, -side * strays / turn, none, -side * by_turn * strays - strays / turn,
                   none, none]  # fmt: skip
    far_below = [beside, strays, none, far / 2 * by_turn, none, none]
    by_stray = strays - density[0], beside - below[0]
    density = (1 - stray) * density + stray * np.stack(far_density)
    below = (1 - stray) * below + stray * np.stack(far_below)
    density[-1], below[-1] = by_stray
    density[0] = np.maximum(density[0], TINY)
    below[0] = np.clip(below[0], TINY, 1.0)
    return density, below
