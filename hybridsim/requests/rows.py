"""The output of every trace reader: columns of requests, and findings about the file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hybridsim.foundation.codes import Op

UNKNOWN = -1  # a time or process that the trace does not have


class Requests(NamedTuple):
    """Equally long columns, one row per request, in order of arrival."""

    # From the first event of the trace; of `Trace`, from its first request.
    arrival_ns: NDArray[np.int64]
    offset_bytes: NDArray[np.int64]
    length_bytes: NDArray[np.int64]
    op: NDArray[np.uint8]  # codes.Op
    flags: NDArray[np.uint8]  # codes.Flag
    device: NDArray[np.uint16]  # index in the trace's list of devices
    stream: NDArray[np.int32]  # process id, or UNKNOWN
    dispatch_ns: NDArray[np.int64]  # like arrival_ns, or UNKNOWN
    complete_ns: NDArray[np.int64]  # like arrival_ns, or UNKNOWN

    @property
    def rows(self) -> int:
        """Number of requests."""
        return len(self.arrival_ns)

    @property
    def moves(self) -> NDArray[np.bool_]:
        """Which requests read or write data."""
        is_move = (self.op == Op.READ) | (self.op == Op.WRITE) | (self.op == Op.WRITE_ZEROES)
        moves: NDArray[np.bool_] = is_move & (self.length_bytes > 0)
        return moves

    def between(self, start: int, stop: int) -> Requests:
        """Return the rows from `start` up to `stop`."""
        return Requests._make(column[start:stop] for column in self)

    def where(self, rows: NDArray[Any]) -> Requests:
        """Return some rows, by a mask or by their indices."""
        return Requests._make(column[rows] for column in self)

    def later(self, by_ns: int | NDArray[np.int64]) -> Requests:
        """Return the requests so much later; unknown times remain so."""
        known = {name: getattr(self, name) for name in ("dispatch_ns", "complete_ns")}
        moved = {name: np.where(of == UNKNOWN, UNKNOWN, of + by_ns) for name, of in known.items()}
        return self._replace(arrival_ns=self.arrival_ns + by_ns, **moved)

    def not_before(self, time_ns: int) -> Requests:
        """Return the requests with earlier arrivals moved to a time, and completions with them."""
        arrival_ns = np.maximum(self.arrival_ns, time_ns)
        complete_ns = np.maximum(self.complete_ns, arrival_ns)
        complete_ns[self.complete_ns == UNKNOWN] = UNKNOWN
        return self._replace(arrival_ns=arrival_ns, complete_ns=complete_ns)


DTYPES = (*[np.int64] * 3, np.uint8, np.uint8, np.uint16, np.int32, np.int64, np.int64)


NOTHING = {"stream": UNKNOWN, "dispatch_ns": UNKNOWN, "complete_ns": UNKNOWN}  # others: 0


def requests_with(rows: int, **columns: ArrayLike) -> Requests:
    """Return requests with some columns, arrays or the same value for all; others are blank."""
    values = NOTHING | columns
    return Requests._make(
        np.full(rows, values.get(name, 0), dtype) for name, dtype in zip(Requests._fields, DTYPES)
    )


def no_requests(rows: int = 0) -> Requests:
    """Return `rows` blank rows, ready to be filled."""
    return Requests._make(np.zeros(rows, dtype) for dtype in DTYPES)


def joined(parts: list[Requests]) -> Requests:
    """Return the rows of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Requests._make(map(np.concatenate, zip(*parts))) if parts else no_requests()


def merged(streams: Sequence[Iterator[Requests]]) -> Iterator[Requests]:
    """Merge streams by (arrival, number of the stream, order within it); each in its own order."""
    held = [no_requests()] * len(streams)
    running = [True] * len(streams)
    while True:
        for number, stream in enumerate(streams):
            while running[number] and not held[number].rows:
                more = next(stream, None)
                running[number] = more is not None
                held[number] = held[number] if more is None else more
        if not any(rows.rows for rows in held):
            return
        # What may still come is not before this, of this stream or a later one.
        ends = [
            (int(rows.arrival_ns[-1]), number)
            for number, rows in enumerate(held)
            if running[number]
        ]
        until_ns, last = min(ends, default=(np.iinfo(np.int64).max, len(streams)))
        cut = [
            int(np.searchsorted(rows.arrival_ns, until_ns, "right" if number <= last else "left"))
            for number, rows in enumerate(held)
        ]
        ready = joined([rows.between(0, at) for rows, at in zip(held, cut)])
        held = [rows.between(at, rows.rows) for rows, at in zip(held, cut)]
        yield ready.where(np.argsort(ready.arrival_ns, kind="stable"))


def in_chunks(parts: Iterable[Requests], rows: int) -> Iterator[Requests]:
    """Cut and join parts of any size into chunks of `rows`; only the last may be shorter."""
    waiting: list[Requests] = []
    held = 0
    for part in parts:
        waiting.append(part)
        held += part.rows
        if held < rows:
            continue
        whole = joined(waiting)
        cut = held - held % rows
        for start in range(0, cut, rows):
            yield whole.between(start, start + rows)
        waiting = [whole.between(cut, held)]
        held -= cut
    if held:
        yield joined(waiting)


@dataclass(frozen=True)
class TraceWarning:
    """A finding about a trace that the user must know before trusting it."""

    code: str
    text: str  # the problem, and what it means for a replay
    count: int
    place: str
    fix: str  # how to fix or avoid it


@dataclass(frozen=True)
class Device:
    """One device of a trace, and the load queued to it."""

    name: str
    requests: int
    bytes: int
    chosen: bool


class Findings:
    """The warnings of one pass over a trace, one per code; counts add up."""

    def __init__(self) -> None:
        self._warnings: dict[str, TraceWarning] = {}

    def add(self, code: str, text: str, *, count: int = 1, place: str = "", fix: str = "") -> None:
        """Add a finding; the first three places of findings with the same code are kept."""
        known = self._warnings.get(code)
        if known is not None:
            count += known.count
            places = known.place.split("; ")
            place = "; ".join([*places, place]) if place and len(places) < 3 else known.place
        self._warnings[code] = TraceWarning(code, text, count, place, fix)

    def count(self, count: int, code: str, text: str, fix: str, place: str = "") -> None:
        """Add a finding if it was found at least once."""
        if count:
            self.add(code, text, count=int(count), place=place, fix=fix)

    def take(self, others: Findings) -> None:
        """Add all findings of another list."""
        for each in others.list():
            self.add(each.code, each.text, count=each.count, place=each.place, fix=each.fix)

    def list(self) -> list[TraceWarning]:
        """Return the warnings in order of first occurrence."""
        return list(self._warnings.values())
