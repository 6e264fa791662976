"""The pages that requests touch, in order, each with a dense id: the input of caches alone.

Reads and writes touch pages.  Discards and flushes do not, as they take no data from the cache.
What is kept of a spatial sample is decided by a hash of its number, alike in every pass (SHARDS:
C. A. Waldspurger et al., "Efficient MRC construction with SHARDS", FAST 2015).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation import arrays
from hybridsim.foundation.arrays import Bytes, Int32s, Ints, runs
from hybridsim.foundation.codes import Op
from hybridsim.foundation.errors import TraceError, UsageError
from hybridsim.foundation.units import human_size
from hybridsim.jit import loop, plain_tuple
from hybridsim.jit.instructions import prefetch
from hybridsim.jit.lists import Index, scattered
from hybridsim.requests.rows import Requests

PAGES_AT_ONCE = 1 << 15
IDS = 1 << 14  # initial capacity
LONGEST_BYTES = 1 << 30
AHEAD = 24  # lookups: a fetch from memory takes dozens of instructions


@runtime_checkable
class Chunked(Protocol):
    """A trace."""

    def chunks(self) -> Iterator[Requests]:
        """Yield the requests."""
        ...


@plain_tuple
class Accesses(NamedTuple):
    """Requests, and their pages: request i touches numbers[ends[i - 1] : ends[i]]."""

    numbers: Ints
    ends: Ints
    write: Bytes  # by request
    offset: Ints  # by request, bytes
    length: Ints
    arrival_ns: Ints

    def between(self, start: int, stop: int) -> Accesses:
        """Return the requests from `start` to `stop`; there may be fewer."""
        low, high = (
            int(self.ends[:each][-1]) if each and len(self.ends) else 0 for each in (start, stop)
        )
        rows = slice(start, stop)
        return Accesses(
            self.numbers[low:high], self.ends[rows] - low, self.write[rows], self.offset[rows],
            self.length[rows], self.arrival_ns[rows],
        )  # fmt: skip


@plain_tuple
class PageReads(NamedTuple):
    """Reads of one page each."""

    numbers: Ints
    page_bytes: int

    def as_requests(self) -> Accesses:
        """Return the same reads as general accesses."""
        count, offset = len(self.numbers), self.numbers * self.page_bytes
        whole = np.full(count, self.page_bytes, np.int64)
        none = np.zeros(count, np.uint8)
        return Accesses(
            self.numbers, np.arange(1, count + 1), none, offset, whole, np.zeros(count, np.int64)
        )


Part = Accesses | PageReads
NO_TRACE = (
    "a trace is the result of Trace.read(PATH), a numpy array of page numbers, or several such "
    "arrays; got a {}"
)


def requests_in(part: Part) -> int:
    """Return the number of requests in a part."""
    return len(part.numbers if isinstance(part, PageReads) else part.ends)


def split(part: Part, requests: int) -> tuple[Part, Part]:
    """Return the first `requests` requests of a part, or all of them, and the rest."""
    if isinstance(part, PageReads):
        first, others = part.numbers[:requests], part.numbers[requests:]
        return part._replace(numbers=first), part._replace(numbers=others)
    return part.between(0, requests), part.between(requests, len(part.ends))


def accesses(
    source: Chunked | Iterable[NDArray[np.integer[Any]]], page_bytes: int
) -> Iterator[Part]:
    """Yield the accesses of a trace; an array of page numbers stands for reads of one page each."""
    if isinstance(source, Chunked):
        for chunk in source.chunks():
            check_real(chunk, getattr(source, "name", "the trace"))
            yield from accesses_of(chunk, page_bytes)
        return
    for numbers in [source] if isinstance(source, np.ndarray) else source:
        if not isinstance(numbers, np.ndarray):
            raise UsageError(NO_TRACE.format(type(numbers).__name__))
        for start in range(0, len(numbers), PAGES_AT_ONCE):
            part = numbers[start : start + PAGES_AT_ONCE]
            yield PageReads(part.astype(np.int64, copy=False), page_bytes)


def check_real(chunk: Requests, name: str) -> None:
    """Raise TraceError for a request longer than any kernel sends; splitting it would take ages."""
    lengths = np.where(chunk.op == Op.DISCARD, 0, chunk.length_bytes)
    if lengths.max(initial=0) > LONGEST_BYTES:
        row = int(lengths.argmax())
        raise TraceError(
            f"{name}: a {Op(int(chunk.op[row])).name} of {human_size(int(lengths[row]))} at "
            f"{chunk.arrival_ns[row] / 1e9:,.6f} s is impossible; the file may be damaged, or "
            "its columns have another meaning (--columns)"
        )


def accesses_of(chunk: Requests, page_bytes: int) -> Iterator[Accesses]:
    """Yield the accesses of requests, PAGES_AT_ONCE or a whole request at a time."""
    data = chunk.moves
    offset, length = chunk.offset_bytes[data], chunk.length_bytes[data]
    write, arrival_ns = (chunk.op[data] != Op.READ).astype(np.uint8), chunk.arrival_ns[data]
    first = offset // page_bytes
    ends = np.cumsum((offset + length - 1) // page_bytes - first + 1)
    start, done = 0, 0
    while start < len(ends):
        stop = max(int(np.searchsorted(ends, done + PAGES_AT_ONCE, "right")), start + 1)
        rows = slice(start, stop)
        until = ends[rows] - done
        counts = np.diff(until, prepend=0)
        numbers = runs(first[rows], counts)
        yield Accesses(numbers, until, write[rows], offset[rows], length[rows], arrival_ns[rows])
        start, done = stop, int(ends[stop - 1])


class Ids:
    """Assigns ids; `capacity` is the number of ids there is room for, and only grows."""

    def __init__(self) -> None:
        self._index = Index.new(IDS)
        self.capacity = IDS

    @property
    def count(self) -> int:
        """Number of distinct pages seen."""
        return int(self._index.used[0])

    @property
    def numbers(self) -> Ints:
        """The number of each page seen, by id."""
        return self._index.number[: self.count]

    def of(self, numbers: Ints) -> Int32s:
        """Return the ids of page numbers, in order."""
        while self._index.room() < len(numbers):
            self.capacity *= 2
            self._index = self._index.grown(self.capacity)
        ids = np.empty(len(numbers), np.int32)
        identify(self._index, numbers, ids)
        return ids


def distinct_pages(parts: Iterable[Part]) -> int:
    """Return the number of distinct pages that are accessed."""
    ids = Ids()
    for part in parts:
        ids.of(part.numbers)
    return ids.count


@loop
def identify(index, numbers, ids):
    """Look up or assign the ids of page numbers."""
    mask = len(index.ids) - 1
    last = len(numbers) - 1
    for i in range(len(numbers)):
        prefetch(index.ids, scattered(numbers[min(i + 2 * AHEAD, last)]) & mask)
        likely = index.ids[scattered(numbers[min(i + AHEAD, last)]) & mask]
        prefetch(index.number, max(likely, 0))
        entry = index.find(numbers[i])
        if entry < 0:
            entry = index.add(numbers[i])
        ids[i] = entry


def next_uses(ids: Int32s, distinct: int, never: int) -> Ints:
    """Return for each access the index of the next access to the same page, or `never`."""
    following = np.empty(len(ids), np.int64)
    _look_back(ids, np.full(distinct, never, np.int64), following)
    return following


@loop
def _look_back(ids, upcoming, following):
    for at in range(len(ids) - 1, -1, -1):
        following[at] = upcoming[ids[at]]
        upcoming[ids[at]] = at


SPAN = 1 << 40  # of the hash: a share is a threshold of this many
GROUPS = 8  # of a sample, by hash, each simulated by itself: their spread is its error
REGIONS = 0x5851F42D4C957F2D  # separates the hashes of regions from those of pages


def hashed(numbers: Ints) -> Ints:
    """Return a number below SPAN for each page."""
    return (arrays.hashed(numbers) >> np.uint64(24)).astype(np.int64)


def hashed_regions(numbers: Ints, seed: int) -> Ints:
    """Return a number below SPAN for each region; another seed takes other regions."""
    mixed = (REGIONS ^ (seed * 0x9E3779B97F4A7C15)) & (1 << 64) - 1
    return hashed((numbers.astype(np.uint64) ^ np.uint64(mixed)).astype(np.int64))
