"""Counters and histograms of all requests of a span of time: one vector of counts that add up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Flag, Op
from hybridsim.foundation.histogram import BINS, BITS, TOP_NS, VALUES
from hybridsim.jit import kernel, loop
from hybridsim.requests.rows import UNKNOWN, Requests
from hybridsim.traces.thinned.layout import DamagedError, packed, unpacked

OPS = len(Op)
COARSER = 2  # powers of two by which bins of latencies are wider than fio's: 6 % wide
LATENCIES = BINS >> COARSER
SIZES, GAPS, DEPTHS = 32, 48, 24  # bins, each twice as wide as the one before
PAGES_FIRST, PAGES = 12, 9  # page sizes of 4 KiB to 1 MiB
OUTSTANDING_NS = 60 * 10**9  # a request counts in depths at most this long
# name: numbers; the order is the layout of the file: append only
SECTIONS = {
    "requests": OPS,
    "bytes": OPS,
    "sequential": 2,  # reads, writes that start where the one before of their direction ended
    "latency_sum_ns": 2,
    "depth_sum": 1,  # over arrivals: requests in flight before each
    "completed": 2,
    "errors": 1,
    "lost": 1,  # events that the kernel dropped
    "gaps": GAPS,  # between arrivals, in ns
    "depths": DEPTHS,
    "sizes": 2 * SIZES,
    "pages": 2 * PAGES,  # page accesses by page size, of reads and of writes
    "latencies": 2 * LATENCIES,
}
PLACES = {}
_at = 0
for _name, _count in SECTIONS.items():
    PLACES[_name] = slice(_at, _at + _count)
    _at += _count
LENGTH = _at


(
    REQUESTS_AT, BYTES_AT, SEQUENTIAL_AT, LATENCY_SUM_AT, DEPTH_SUM_AT, COMPLETED_AT, ERRORS_AT,
    _, GAPS_AT, DEPTHS_AT, SIZES_AT, PAGES_AT, LATENCIES_AT,
) = (place.start for place in PLACES.values())  # fmt: skip
READ, WRITE, WRITE_ZEROES = int(Op.READ), int(Op.WRITE), int(Op.WRITE_ZEROES)
ERROR = int(Flag.ERROR)
LAST, ENDS = 0, 1  # arrival of the last request, and where the last read and write ended
NONE = -1


@dataclass
class Counts:
    """The counts of all requests that arrive in a span of time."""

    begin_ns: int
    span_ns: int
    vector: Ints

    @classmethod
    def none(cls, begin_ns: int, span_ns: int) -> Counts:
        """Return counts of nothing."""
        return cls(begin_ns, span_ns, np.zeros(LENGTH, np.int64))

    def of(self, name: str) -> Ints:
        """Return the numbers of a section: a view."""
        return self.vector[PLACES[name]]

    @property
    def requests(self) -> int:
        """Number of requests of all kinds."""
        return int(self.of("requests").sum())

    def page_accesses(self, page_bytes: int) -> int | None:
        """Return the exact number of page accesses; None for a page size without a counter."""
        power = page_bytes.bit_length() - 1 - PAGES_FIRST
        if page_bytes != 1 << (power + PAGES_FIRST) or not 0 <= power < PAGES:
            return None
        both = self.of("pages")
        return int(both[power] + both[PAGES + power])

    def percentile(self, percent: float) -> float | None:
        """Return a percentile of the latencies of reads and writes in ns; None without any."""
        bins = self.of("latencies").reshape(2, LATENCIES).sum(axis=0)
        total = int(bins.sum())
        if not total:
            return None
        place = int(np.searchsorted(np.cumsum(bins), percent / 100 * total))
        place = min(place, int(np.flatnonzero(bins)[-1]))
        return float(VALUES[(place << COARSER) + (1 << (COARSER - 1))])

    @property
    def mean_latency_ns(self) -> float | None:
        """Mean latency of reads and writes in ns; None if no completion was recorded."""
        done = int(self.of("completed").sum())
        return float(self.of("latency_sum_ns").sum()) / done if done else None

    def add(self, other: Counts) -> None:
        """Add the counts of another span."""
        self.vector += other.vector

    def to_bytes(self) -> bytes:
        """Return the counts other than 0: their number, gaps between their places, values."""
        places = np.flatnonzero(self.vector)
        values = self.vector[places]
        return packed(np.concatenate(([len(places)], np.diff(places, prepend=-1), values)))

    @classmethod
    def of_bytes(cls, data: bytes, begin_ns: int, span_ns: int) -> Counts:
        """Return counts from bytes; raise DamagedError if they are none."""
        first = next((at for at, byte in enumerate(data[:9]) if byte < 128), -1)
        if first < 0:
            raise DamagedError("counters are too short")
        count = int(unpacked(data[: first + 1], 1)[0])
        if count > LENGTH:
            raise DamagedError("there are more counters than this version has")
        both = unpacked(data[first + 1 :], 2 * count)
        places = np.cumsum(both[:count]) - 1
        if count and (places.max() >= LENGTH or (both[:count] < 1).any()):
            raise DamagedError("a counter is out of range")
        counts = cls.none(begin_ns, span_ns)
        counts.vector[places] = both[count:]
        return counts


class Counter:
    """Counts requests in order of arrival; what is between two calls does not matter."""

    def __init__(self) -> None:
        self._before = np.full(3, NONE)  # LAST, and ENDS of reads and of writes
        self._outstanding = np.zeros(0, np.int64)  # completion times, sorted

    def restart(self) -> None:
        """Forget the requests so far: an interruption follows."""
        self.__init__()  # type: ignore[misc]

    def add(self, rows: Requests, counts: Counts) -> None:
        """Add some requests to counts."""
        if not rows.rows:
            return
        arrival = rows.arrival_ns
        known = rows.complete_ns != UNKNOWN
        # A request is in flight for a nanosecond at least: equal times then need no order.
        done = np.clip(rows.complete_ns, arrival + 1, arrival + OUTSTANDING_NS)[known]
        times = np.sort(np.concatenate((self._outstanding, done)))
        over = count(
            arrival, rows.offset_bytes, rows.length_bytes, rows.op, rows.flags, rows.complete_ns,
            times, len(self._outstanding), self._before, counts.vector,
        )  # fmt: skip
        self._outstanding = times[over:].copy()


@kernel
def bits(value):
    """Return the number of bits of a value, 0 for negative ones: the bin of one that doubles."""
    found = 0
    while value >= 256:
        value >>= 8
        found += 8
    while value > 0:
        value >>= 1
        found += 1
    return found


@loop
def count(arrival, offset, length, op, flags, complete, times, earlier, before, vector):
    """Add requests to the counters in `vector`; return how many of `times` are over at the end.

    `times` are completions, sorted, of these requests and of `earlier` ones in flight.
    """
    over = 0
    for row in range(len(arrival)):
        now = arrival[row]
        if before[LAST] != NONE:
            vector[GAPS_AT + min(bits(now - before[LAST]), GAPS - 1)] += 1
        before[LAST] = now
        kind = np.int64(op[row])
        size = length[row]
        vector[REQUESTS_AT + kind] += 1
        vector[BYTES_AT + kind] += size
        vector[ERRORS_AT] += np.int64(flags[row]) & ERROR != 0
        while over < len(times) and times[over] <= now:
            over += 1
        depth = earlier - over
        vector[DEPTH_SUM_AT] += depth
        vector[DEPTHS_AT + min(bits(depth), DEPTHS - 1)] += 1
        earlier += complete[row] != UNKNOWN
        if size == 0 or (kind != READ and kind != WRITE and kind != WRITE_ZEROES):
            continue
        side = np.int64(kind != READ)
        first = offset[row]
        vector[SEQUENTIAL_AT + side] += before[ENDS + side] == first
        before[ENDS + side] = first + size
        vector[SIZES_AT + side * SIZES + min(bits(size), SIZES - 1)] += 1
        last = first + size - 1
        for power in range(PAGES):
            shift = PAGES_FIRST + power
            vector[PAGES_AT + side * PAGES + power] += (last >> shift) - (first >> shift) + 1
        took = complete[row] - now
        if complete[row] == UNKNOWN or took < 0:
            continue
        vector[COMPLETED_AT + side] += 1
        vector[LATENCY_SUM_AT + side] += took
        short = min(took, TOP_NS)
        group = max(bits(short) - (BITS + 1), 0)
        place = (group << BITS) + (short >> group)
        vector[LATENCIES_AT + side * LATENCIES + (place >> COARSER)] += 1
    return over
