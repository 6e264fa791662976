"""Summary of a trace in one pass: counts, bytes, time span, footprint."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hybridsim.foundation.arrays import Ints, runs
from hybridsim.foundation.codes import Flag, Op
from hybridsim.foundation.histogram import Distribution
from hybridsim.foundation.in_notebooks import table_html
from hybridsim.foundation.units import human_size
from hybridsim.foundation.wording import counted, span
from hybridsim.requests.rows import UNKNOWN, Device, Requests, TraceWarning

COLUMNS, ROWS = 128, 64  # maximum cells of time and address; at least half once it has grown
WIDTH_BITS, HEIGHT_BITS = 20, 16  # a cell is 2^20 ns by 64 KiB at first; both double
KINDS = ("reads", "writes")
OTHER = len(KINDS)  # neither
_KIND = np.full(len(Op), OTHER, np.int64)
_KIND[Op.READ] = 0
_KIND[[Op.WRITE, Op.WRITE_ZEROES]] = 1


class AddressMap:
    """Counts requests by arrival time and first address."""

    def __init__(self) -> None:
        self._width_bits, self._height_bits = WIDTH_BITS, HEIGHT_BITS
        self._counts = np.zeros((len(KINDS), COLUMNS, ROWS), np.int64)
        self._end_ns = self._end_bytes = 0

    def add(self, chunk: Requests) -> None:
        """Count the reads and writes of a chunk."""
        kind, time_ns, offset = _KIND[chunk.op], chunk.arrival_ns, chunk.offset_bytes
        is_data = (kind != OTHER) & (chunk.length_bytes > 0)
        if not is_data.all():
            kind, time_ns, offset = kind[is_data], time_ns[is_data], offset[is_data]
        if not len(kind):
            return
        self._reach(int(time_ns.max()) + 1, int(offset.max()) + 1)
        cells = (kind * COLUMNS + (time_ns >> self._width_bits)) * ROWS
        cells += offset >> self._height_bits
        shape = self._counts.shape
        self._counts += np.bincount(cells, minlength=self._counts.size).reshape(shape)

    def _reach(self, end_ns: int, end_bytes: int) -> None:
        """Merge neighbouring cells until the grid covers a time and an address."""
        self._end_ns = max(self._end_ns, end_ns)
        self._end_bytes = max(self._end_bytes, end_bytes)
        while self._end_ns > COLUMNS << self._width_bits:
            self._counts = _halved(self._counts, 1)
            self._width_bits += 1
        while self._end_bytes > ROWS << self._height_bits:
            self._counts = _halved(self._counts, 2)
            self._height_bits += 1

    def to_dict(self) -> dict[str, Any]:
        """Return the used part of the grid: one text per column, with counts from address 0 up."""
        width_ns, height_bytes = 1 << self._width_bits, 1 << self._height_bits
        columns = max(-(-self._end_ns // width_ns), 1)
        rows = max(-(-self._end_bytes // height_bytes), 1)
        texts = {
            name: [" ".join(map(str, column)) for column in counts[:columns, :rows].tolist()]
            for name, counts in zip(KINDS, self._counts)
        }
        return {"width_ns": width_ns, "height_bytes": height_bytes, **texts}


def _halved(counts: Ints, axis: int) -> Ints:
    """Merge neighbouring cells along an axis; the second half becomes empty."""
    even, odd = ((slice(None),) * axis + (slice(start, None, 2),) for start in (0, 1))
    joined = counts[even] + counts[odd]
    return np.concatenate([joined, np.zeros_like(joined)], axis=axis)


UNIT_BYTES = 1 << 16
UNITS_MARKED = 1 << 24  # one mark each: exact up to 1 TiB
UNITS_AT_ONCE = 1 << 20
IDLE_NS = 60 * 10**9  # maximum part of a pause that counts as activity: no I/O takes longer


@dataclass(frozen=True)
class Summary:
    """A trace in numbers; bytes and times are exact except as noted."""

    requests: int
    reads: int
    writes: int  # write zeroes included
    discards: int
    flushes: int
    bytes_read: int
    bytes_written: int
    bytes_discarded: int
    span_ns: int  # from the first arrival to the last arrival or completion
    active_ns: int  # as span_ns, but each pause between arrivals counts at most IDLE_NS
    max_end_bytes: int  # highest byte touched + 1: the device is at least this large
    footprint_bytes: int  # distinct data read or written, in units of 64 KiB
    footprint_is_exact: bool
    sequential_reads: int  # start where the previous read ended
    sequential_writes: int
    incomplete: int  # without a completion: latency unknown
    errors: int
    requeues: int
    devices: list[Device]
    warnings: list[TraceWarning]
    address_map: AddressMap
    requests_sha256: str  # of the requests, independent of the file format
    recorded: Distribution  # latencies of reads and writes, from arrival to completion

    def __repr__(self) -> str:
        words = ", ".join(value for name, value in self._rows() if name != "data touched")
        return f"<Summary: {words}, {human_size(self.footprint_bytes)} touched>"

    def _repr_html_(self) -> str:
        return table_html("Summary", self._rows())

    def _rows(self) -> list[tuple[str, str]]:
        reads, writes = human_size(self.bytes_read), human_size(self.bytes_written)
        return [
            ("requests", f"{counted(self.requests, 'request')} in {span(self.span_ns)}"),
            ("reads", f"{counted(self.reads, 'read')} of {reads}"),
            ("writes", f"{counted(self.writes, 'write')} of {writes}"),
            ("data touched", human_size(self.footprint_bytes)),
        ]

    @property
    def is_untimed(self) -> bool:
        """Whether all of several requests arrive at one time: the trace has no times."""
        return self.requests > 1 and not self.span_ns


class Footprint:
    """Counts distinct units with one mark each.

    Below UNITS_MARKED units the marks are the units.  Above, units share marks as if at random,
    and the number of distinct ones is estimated from the share of marks that are set (linear
    counting): within 1 % up to some 100 million units.
    """

    def __init__(self) -> None:
        self._marks = np.zeros(UNITS_MARKED, np.bool_)
        self.is_exact = True

    def add(self, offset_bytes: NDArray[np.int64], length_bytes: NDArray[np.int64]) -> None:
        """Mark the units that requests of length > 0 touch."""
        first = offset_bytes // UNIT_BYTES
        count = (offset_bytes + length_bytes - 1) // UNIT_BYTES - first + 1
        wide = count > UNITS_AT_ONCE // 64
        for start, units in zip(first[wide].tolist(), count[wide].tolist()):
            stop = start + min(units, 2 * UNITS_MARKED)
            for part in range(start, stop, UNITS_AT_ONCE):
                self._mark(np.arange(part, min(part + UNITS_AT_ONCE, stop), dtype=np.int64))
        first, count = first[~wide], count[~wide]
        cuts = np.searchsorted(np.cumsum(count), np.arange(0, count.sum(), UNITS_AT_ONCE))
        for low, high in zip(cuts, [*cuts[1:], len(count)]):
            self._mark(runs(first[low:high], count[low:high]))

    def _mark(self, units: NDArray[np.int64]) -> None:
        beyond = units // UNITS_MARKED
        if beyond.any():
            self.is_exact = False
            mixed = beyond.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(40)
            units = units ^ mixed.astype(np.int64)
        self._marks[units % UNITS_MARKED] = True

    @property
    def bytes(self) -> int:
        """Distinct bytes touched, in whole units."""
        marked = int(np.count_nonzero(self._marks))
        if self.is_exact:
            return marked * UNIT_BYTES
        free = max(UNITS_MARKED - marked, 1)
        return round(UNITS_MARKED * math.log(UNITS_MARKED / free)) * UNIT_BYTES


class RequestsHash:
    """A hash of requests that does not depend on their division into chunks."""

    COLUMNS = ("<i8", "<i8", "<i8", "u1")  # the first ones of Requests: arrival_ns to op

    def __init__(self) -> None:
        self._columns = [hashlib.sha256() for _ in self.COLUMNS]

    def add(self, chunk: Requests) -> None:
        """Add the requests of a chunk."""
        for column, kind, digest in zip(chunk, self.COLUMNS, self._columns):
            digest.update(np.ascontiguousarray(column, kind).data)

    def hexdigest(self) -> str:
        """Return the hash of all columns together."""
        return hashlib.sha256(b"".join(each.digest() for each in self._columns)).hexdigest()


class Tally:
    """Adds up chunks of requests."""

    def __init__(self, first_ns: int | None = None) -> None:
        """Begin at time `first_ns`; at the first arrival, if it is None."""
        self.requests = 0
        self.count = dict.fromkeys(Op, 0)
        self.bytes = dict.fromkeys(Op, 0)
        self.sequential = dict.fromkeys((Op.READ, Op.WRITE), 0)
        self.span_ns = self.active_ns = self.max_end_bytes = 0
        self._first_ns = first_ns
        self._last_ns = first_ns or 0  # the last arrival
        self.incomplete = self.errors = self.requeues = 0
        self.footprint = Footprint()
        self.address_map = AddressMap()
        self.hash = RequestsHash()
        self.recorded = Distribution()
        self._end = {Op.READ: -1, Op.WRITE: -1}  # of the last request of each direction

    def add(self, chunk: Requests) -> None:
        """Add one chunk."""
        if not chunk.rows:
            return
        self.requests += chunk.rows
        end = chunk.offset_bytes + chunk.length_bytes
        for op in Op:
            mine = chunk.op == op
            self.count[op] += int(mine.sum())
            self.bytes[op] += int(chunk.length_bytes[mine].sum())
            if op in self.sequential and mine.any():
                ends = np.concatenate(([self._end[op]], end[mine]))
                self.sequential[op] += int((chunk.offset_bytes[mine] == ends[:-1]).sum())
                self._end[op] = int(ends[-1])
        data = chunk.moves
        self.footprint.add(chunk.offset_bytes[data], chunk.length_bytes[data])
        if self._first_ns is None:
            self._first_ns = self._last_ns = int(chunk.arrival_ns[0])
        self.address_map.add(chunk._replace(arrival_ns=chunk.arrival_ns - self._first_ns))
        self.hash.add(chunk)
        last = max(int(chunk.arrival_ns[-1]), int(chunk.complete_ns.max()))
        self.span_ns = max(self.span_ns, last - self._first_ns)
        pauses = np.diff(chunk.arrival_ns, prepend=self._last_ns)
        self.active_ns += int(np.minimum(pauses, IDLE_NS).sum())
        self._last_ns = int(chunk.arrival_ns[-1])
        self.max_end_bytes = max(self.max_end_bytes, int(end.max()))
        self.incomplete += int((chunk.complete_ns == UNKNOWN).sum())
        self.errors += int((chunk.flags & Flag.ERROR != 0).sum())
        self.requeues += int((chunk.flags & Flag.REQUEUED != 0).sum())
        # A completion before the first arrival counts as one at that time, as in a replay.
        took_ns = np.maximum(chunk.complete_ns, self._first_ns) - chunk.arrival_ns
        self.recorded += Distribution.of(
            took_ns[data & (chunk.complete_ns != UNKNOWN) & (took_ns >= 0)]
        )


def summarize(chunks: Iterable[Requests], first_ns: int | None = None) -> Tally:
    """Return the tally of all chunks; times count from `first_ns`, or from the first arrival."""
    tally = Tally(first_ns)
    for chunk in chunks:
        tally.add(chunk)
    return tally
