"""Counters and histograms of all requests of a span of time: one vector of counts that add up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Flag, Op
from hybridsim.foundation.histogram import BINS, VALUES, bin_of
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


def bits(values: Ints) -> Ints:
    """Return the number of bits of each value: the bin of a histogram that doubles."""
    return np.frexp(np.maximum(values, 0).astype(np.float64))[1].astype(np.int64)


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
        self._last_ns: int | None = None
        self._ends = [-1, -1]  # of the last read and write
        self._outstanding = np.zeros(0, np.int64)  # completion times, sorted

    def restart(self) -> None:
        """Forget the requests so far: an interruption follows."""
        self.__init__()  # type: ignore[misc]

    def add(self, rows: Requests, counts: Counts) -> None:
        """Add some requests to counts."""
        if not rows.rows:
            return
        arrival = rows.arrival_ns
        before = int(arrival[0]) if self._last_ns is None else self._last_ns
        first = 1 if self._last_ns is None else 0
        gaps = np.minimum(bits(np.diff(arrival, prepend=before)[first:]), GAPS - 1)
        counts.of("gaps")[:] += np.bincount(gaps, minlength=GAPS)
        self._last_ns = int(arrival[-1])
        op = rows.op.astype(np.int64)
        counts.of("requests")[:] += np.bincount(op, minlength=OPS)
        # A float64 holds the bytes of some requests exactly.
        counts.of("bytes")[:] += np.bincount(op, rows.length_bytes, OPS).astype(np.int64)
        counts.of("errors")[:] += int((rows.flags & Flag.ERROR != 0).sum())
        self._add_depths(rows, counts)
        moves = ((op == Op.READ) | (op == Op.WRITE) | (op == Op.WRITE_ZEROES)) & (
            rows.length_bytes > 0
        )
        for write in (0, 1):
            mine = moves & ((op != Op.READ) == write)
            if mine.any():
                part = Requests._make(column[mine] for column in rows)
                self._add_moves(part, write, counts)

    def _add_moves(self, rows: Requests, write: int, counts: Counts) -> None:
        offset, length = rows.offset_bytes, rows.length_bytes
        end = offset + length
        previous = np.concatenate(([self._ends[write]], end[:-1]))
        counts.of("sequential")[write] += int((offset == previous).sum())
        self._ends[write] = int(end[-1])
        size = np.minimum(bits(length), SIZES - 1)
        counts.of("sizes")[write * SIZES : (write + 1) * SIZES] += np.bincount(
            size, minlength=SIZES
        )
        for power in range(PAGES):
            shift = PAGES_FIRST + power
            touched = ((end - 1) >> shift) - (offset >> shift) + 1
            counts.of("pages")[write * PAGES + power] += int(touched.sum())
        known = (rows.complete_ns != UNKNOWN) & (rows.complete_ns >= rows.arrival_ns)
        latency = (rows.complete_ns - rows.arrival_ns)[known]
        counts.of("completed")[write] += len(latency)
        counts.of("latency_sum_ns")[write] += int(latency.sum())
        place = slice(write * LATENCIES, (write + 1) * LATENCIES)
        counts.of("latencies")[place] += np.bincount(
            bin_of(latency) >> COARSER, minlength=LATENCIES
        )

    def _add_depths(self, rows: Requests, counts: Counts) -> None:
        """Count the requests in flight at each arrival; unknown completions count for none."""
        known = rows.complete_ns != UNKNOWN
        arrival = rows.arrival_ns
        # A request is in flight for a nanosecond at least: equal times then need no order.
        done = np.clip(rows.complete_ns, arrival + 1, arrival + OUTSTANDING_NS)[known]
        times = np.sort(np.concatenate((self._outstanding, done)))
        earlier = len(self._outstanding) + np.cumsum(known) - known
        depth = earlier - np.searchsorted(times, arrival, "right")
        counts.of("depth_sum")[:] += int(depth.sum())
        counts.of("depths")[:] += np.bincount(np.minimum(bits(depth), DEPTHS - 1), minlength=DEPTHS)
        self._outstanding = times[np.searchsorted(times, arrival[-1], "right") :]
