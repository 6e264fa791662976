"""Sort requests that are not quite in order of time, and spread those of equal times."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice

import numpy as np
from numpy.typing import NDArray

from hybridsim.requests.rows import Findings, Requests, joined

WINDOW = 1 << 18  # requests by which one may be out of order
SECOND_NS = 10**9
BACK_NS = 60 * SECOND_NS  # no request is reported so late after its arrival
SPREAD_MIN = 16  # requests that show whether times are whole seconds
EPOCH_NS = 10**18  # September 2001: larger numbers of nanoseconds are times since 1970


def in_order(
    parts: Iterable[Requests], findings: Findings, window: int = WINDOW
) -> Iterator[Requests]:
    """Yield requests in order of arrival, those of equal times in the order of the trace.

    A request that is more than `window` requests late is moved to the time of the preceding one,
    and counted.  So are times that go back by more than BACK_NS: a file may be several captures.
    """
    held: deque[Requests] = deque()
    rows, is_sorted, last_ns = 0, True, -(1 << 62)
    previous_ns = 0  # of the last line

    def settled(part: Requests) -> Requests:
        nonlocal last_ns
        before_ns, last_ns = last_ns, max(last_ns, int(part.arrival_ns[-1]))
        return _not_before(before_ns, part, findings)

    for part in parts:
        if not part.rows:
            continue
        before = held[-1].arrival_ns[-1] if held else part.arrival_ns[0]
        if not (
            before <= part.arrival_ns[0] and (part.arrival_ns[1:] >= part.arrival_ns[:-1]).all()
        ):
            is_sorted = False
            _report_back(part.arrival_ns, previous_ns, findings)
        previous_ns = int(part.arrival_ns[-1])
        held.append(part)
        rows += part.rows
        if rows < 2 * window:
            continue
        if not is_sorted:
            whole, cut, is_sorted = _sorted(joined(list(held))), rows - window, True
            held = deque([whole.between(0, cut), whole.between(cut, rows)])
        while rows - held[0].rows >= window:
            rows -= held[0].rows
            yield settled(held.popleft())
    yield from map(settled, held if is_sorted else [_sorted(joined(list(held)))])


def _report_back(arrival_ns: NDArray[np.int64], previous_ns: int, findings: Findings) -> None:
    """Count the requests that are much earlier than the line before."""
    steps_ns = np.diff(arrival_ns, prepend=previous_ns)
    findings.count(
        (steps_ns < -BACK_NS).sum(),
        "times-back",
        "times go back by more than a minute; requests were sorted by time, as if all were of one "
        "capture",
        "if the file is several captures, one after the other, split it there; none needed if it "
        "is sorted by volume",
    )


def _sorted(part: Requests) -> Requests:
    return part.where(np.argsort(part.arrival_ns, kind="stable"))


def _not_before(last_ns: int, part: Requests, findings: Findings) -> Requests:
    """Move requests that are earlier than `last_ns` to that time."""
    if part.arrival_ns[0] >= last_ns:
        return part
    late = int(np.searchsorted(part.arrival_ns, last_ns))
    findings.add(
        "disorder",
        "requests are much earlier than preceding ones and were moved to their time",
        count=late,
        fix="sort the file by time",
    )
    return part.not_before(last_ns)


def spread_if_whole(
    parts: Iterable[Requests], whole_seconds: bool | None
) -> tuple[bool, Iterator[Requests]]:
    """Return whether times are in whole seconds, and the requests, then spread over each second.

    With `whole_seconds` None, that is decided by the times of the first part: all are whole, and
    several are equal.
    """
    rest = iter(parts)
    first = [*islice(rest, 1)]
    if whole_seconds is None:
        times_ns = first[0].arrival_ns if first else np.zeros(0, np.int64)
        whole_seconds = len(times_ns) >= SPREAD_MIN and not (times_ns % SECOND_NS).any()
        whole_seconds = whole_seconds and 1 < len(np.unique(times_ns)) < len(times_ns)
    every = chain(first, rest)
    return whole_seconds, spread_seconds(every) if whole_seconds else every


def spread_seconds(parts: Iterable[Requests]) -> Iterator[Requests]:
    """Spread requests with times in whole seconds evenly over each second.

    Memory: the requests of the busiest second.
    """
    waiting: list[Requests] = []
    for part in parts:
        waiting.append(part)
        if waiting[0].arrival_ns[0] == part.arrival_ns[-1]:
            continue
        whole = joined(waiting)
        cut = int(np.searchsorted(whole.arrival_ns, whole.arrival_ns[-1]))
        yield _spread(whole.between(0, cut))
        waiting = [whole.between(cut, whole.rows)]
    if waiting:
        yield _spread(joined(waiting))


def _spread(part: Requests) -> Requests:
    second = part.arrival_ns
    begins = np.flatnonzero(np.concatenate(([True], second[1:] != second[:-1])))
    counts = np.diff(np.append(begins, len(second)))
    rank = np.arange(len(second)) - np.repeat(begins, counts)
    return part.later(rank * SECOND_NS // np.repeat(counts, counts))


def origin_of(since_1970: bool | None, first_ns: int) -> int | None:
    """Return the Unix time of the first request, or None if times are not since 1970.

    With `since_1970` None, that is decided by their magnitude.
    """
    absolute = first_ns >= EPOCH_NS if since_1970 is None else since_1970
    return first_ns if absolute else None


def from_first(
    parts: Iterable[Requests], note: Callable[[int], object] = lambda _: None
) -> Iterator[Requests]:
    """Yield requests with times relative to the first arrival, after `note` got that."""
    origin_ns: int | None = None
    for part in parts:
        if origin_ns is None:
            origin_ns = int(part.arrival_ns[0])
            note(origin_ns)
        yield from_origin(part, origin_ns)


def from_origin(part: Requests, origin_ns: int) -> Requests:
    """Return requests with times relative to `origin_ns`."""
    if not origin_ns:
        return part
    part = part._replace(arrival_ns=part.arrival_ns - origin_ns)
    for name in ("dispatch_ns", "complete_ns"):
        column = getattr(part, name)
        known = column >= 0
        if known.any():  # a time before the first arrival is invalid: it becomes 0
            moved = np.where(known, np.maximum(column - origin_ns, 0), column)
            part = part._replace(**{name: moved})
    return part
