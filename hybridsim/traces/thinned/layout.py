"""The layout of a thinned capture: blocks that are appended, each with a checksum.

docs/reference/thinned.md describes every byte.  A block that is damaged or incomplete is skipped:
reading goes on at the next block whose checksum is right.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Flag, Op
from hybridsim.foundation.histogram import BINS, BITS, TOP_NS, VALUES
from hybridsim.jit import kernel, loop
from hybridsim.jit.instructions import octave
from hybridsim.requests.rows import UNKNOWN, Requests, requests_with
from hybridsim.traces.formats.files import zstd

VERSION = 1
SIGNATURE = b"hybridsim thin\x00" + bytes([VERSION])
MAGIC = b"\xa7HTb"
HEADER = struct.Struct("<4sBBHIIqqI")  # without the checksum, which follows it
CHECK = struct.Struct("<I")
HEADER_BYTES = HEADER.size + CHECK.size
STRETCH = struct.Struct("<qqB")  # score, rank, roles: before the rows of a stretch
ROWS = struct.Struct("<IBB")  # rows, unit of offsets and lengths as a power of two, columns
COLUMN = struct.Struct("<I")  # bytes of a column
DETAILS = 1  # optional columns: process and time of issue
ROWS_MAX = 1 << 16  # in a block
STORED_MAX = 1 << 23  # bytes of a block, compressed
RAW_MAX = 1 << 24  # and decompressed
LEVEL = 3
TIME_MAX = 1 << 62
BYTES_MAX = 1 << 60
WORD_MAX = 9  # bytes of a number: 63 bits


class Kind(IntEnum):
    """What a block holds."""

    START = 1  # the settings of the capture, at its start and after each interruption, as JSON
    COUNTS = 2  # counters and histograms of all requests in a span of time
    SAMPLE = 3  # requests to the sampled regions
    STRETCH = 4  # all requests of a span of time


class Role(IntEnum):
    """Why a stretch was kept; a bit mask."""

    WORST = 1  # the minute of its hour in which requests waited most
    TYPICAL = 2  # a minute of its hour, drawn at random


class Block(NamedTuple):
    """One block; times count from the origin of the capture."""

    kind: Kind
    number: int
    begin_ns: int
    span_ns: int
    payload: bytes  # decompressed
    stored: bytes  # all bytes of the block


class DamagedError(ValueError):
    """A payload that does not fit its block, although its checksum is right."""


def block(kind: Kind, number: int, begin_ns: int, span_ns: int, payload: bytes) -> bytes:
    """Return a block as bytes."""
    stored = zstd.compress(payload, level=LEVEL)
    header = HEADER.pack(
        MAGIC, kind, 0, 0, len(stored), len(payload), begin_ns, span_ns, number & 0xFFFFFFFF
    )
    return header + CHECK.pack(zlib.crc32(stored, zlib.crc32(header))) + stored


class Skipped(NamedTuple):
    """Bytes that are no whole block; `is_tail`: no block follows."""

    begin: int
    bytes: int
    is_tail: bool


def blocks(
    read: Callable[[int], bytes], kinds: tuple[Kind, ...] = tuple(Kind)
) -> Iterator[Block | Skipped]:
    """Yield the blocks of these kinds that `read` returns after the signature, and damage.

    `read(n)` returns n bytes, fewer only at the end.  Memory: some blocks.
    """
    data, place, is_end, skipped = b"", len(SIGNATURE), False, 0
    while True:
        if not is_end and len(data) < 2 * (STORED_MAX + HEADER_BYTES):
            more = read(4 * STORED_MAX)
            is_end = len(more) < 4 * STORED_MAX
            data += more
        at = 0
        while len(data) - at >= STORED_MAX + HEADER_BYTES or (is_end and at < len(data)):
            one = _block_at(data, at, kinds)
            if one is None:
                following = data.find(MAGIC, at + 1)
                step = (following if following > 0 else max(len(data) - 3, at + 1)) - at
                skipped, at = skipped + step, at + step
                continue
            if skipped:
                yield Skipped(place + at - skipped, skipped, False)
                skipped = 0
            length, found = one
            at += length
            if found is not None:
                yield found
        data, place = data[at:], place + at
        if is_end and not data:
            break
    if skipped:
        yield Skipped(place - skipped, skipped, True)


def _block_at(data: bytes, at: int, kinds: tuple[Kind, ...]) -> tuple[int, Block | None] | None:
    """Return the length of the block at a place, and the block if it is of `kinds`; else None."""
    header = data[at : at + HEADER_BYTES]
    if len(header) < HEADER_BYTES or header[:4] != MAGIC:
        return None
    _, kind, version, spare, stored, raw, begin, span, number = HEADER.unpack(header[: HEADER.size])
    if version or spare or stored > STORED_MAX or raw > RAW_MAX:
        return None
    length = HEADER_BYTES + stored
    whole = data[at : at + length]
    (check,) = CHECK.unpack(header[HEADER.size :])
    if len(whole) < length or not 0 <= begin < TIME_MAX or not 0 <= span < TIME_MAX:
        return None
    if zlib.crc32(whole[HEADER_BYTES:], zlib.crc32(header[: HEADER.size])) != check:
        return None
    if kind not in kinds:
        return length, None
    try:
        payload = zstd.decompress(whole[HEADER_BYTES:])
    except zstd.ZstdError:
        return None
    if len(payload) != raw:
        return None
    return length, Block(Kind(kind), number, begin, span, payload, whole)


@loop
def pack(values, out):
    """Write numbers of 0 to 2^63 - 1 with 7 bits a byte, the lowest first; return the bytes."""
    at = 0
    for value in values:
        while value >= 128:
            out[at] = (value & 127) | 128
            value >>= 7
            at += 1
        out[at] = value
        at += 1
    return at


@loop
def unpack(data, out):
    """Read as many numbers as `out` has room for; return the bytes read, -1 if there are fewer."""
    at = 0
    for row in range(len(out)):
        value = np.int64(0)
        shift = 0
        while True:
            if at >= len(data) or shift > 56:
                return -1
            byte = np.int64(data[at])
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        out[row] = value
    return at


def packed(values: Ints) -> bytes:
    """Return numbers of 0 to 2^63 - 1 as bytes."""
    out = np.empty(max(len(values), 1) * WORD_MAX, np.uint8)
    return out[: pack(values, out)].tobytes()


def unpacked(data: bytes, count: int) -> Ints:
    """Return `count` numbers; raise DamagedError if there are not exactly so many."""
    out = np.empty(count, np.int64)
    if unpack(np.frombuffer(data, np.uint8), out) != len(data):
        raise DamagedError("a column has another length than its rows need")
    return out


def folded(values: Ints) -> Ints:
    """Return signed numbers as numbers from 0: 0, -1, 1, -2 ... as 0, 1, 2, 3 ..."""
    return np.asarray((values << 1) ^ (values >> 63), np.int64)


def unfolded(values: Ints) -> Ints:
    """Return the signed numbers that `folded` was called with."""
    return np.asarray((values >> 1) ^ -(values & 1), np.int64)


def rows_as_bytes(rows: Requests, begin_ns: int, columns: int) -> bytes:
    """Return requests as bytes; arrivals count from `begin_ns`."""
    both = np.bitwise_or.reduce(rows.offset_bytes) | np.bitwise_or.reduce(rows.length_bytes)
    shift = 9 if not both & 511 else 0
    offset = rows.offset_bytes >> shift
    numbers = [
        np.diff(rows.arrival_ns, prepend=begin_ns),
        folded(_steps(offset)),
        rows.length_bytes >> shift,
        rows.op.astype(np.int64) | rows.flags.astype(np.int64) << 3,
        _since(rows.complete_ns, rows.arrival_ns),
    ]
    if columns & DETAILS:
        numbers += [
            folded(_steps(rows.stream.astype(np.int64))),
            _since(rows.dispatch_ns, rows.arrival_ns),
        ]
    parts = [ROWS.pack(rows.rows, shift, columns)]
    for each in numbers:
        data = packed(each)
        parts += [COLUMN.pack(len(data)), data]
    return b"".join(parts)


def rows_of_bytes(data: bytes, begin_ns: int) -> Requests:
    """Return the requests that `rows_as_bytes` wrote; raise DamagedError if they are impossible."""
    if len(data) < ROWS.size:
        raise DamagedError("a block of requests is too short")
    count, shift, columns = ROWS.unpack_from(data)
    if count > ROWS_MAX or shift not in (0, 9) or columns > DETAILS:
        raise DamagedError("a block of requests has an impossible header")
    at, numbers = ROWS.size, []
    for _ in range(7 if columns else 5):
        (size,) = COLUMN.unpack(data[at : at + 4].ljust(4, b"\xff"))
        at += 4
        numbers.append(unpacked(data[at : at + size], count))
        at += size
    arrival = begin_ns + np.cumsum(numbers[0])
    offset, length = np.cumsum(unfolded(numbers[1])) << shift, numbers[2] << shift
    marks = numbers[3]
    is_right = (
        at == len(data)
        and (offset >= 0).all() and (offset < BYTES_MAX).all() and (length >= 0).all()
        and (length < BYTES_MAX).all() and (arrival >= begin_ns).all()
        and (arrival < TIME_MAX).all() and (marks < 1 << 11).all()
        and (marks & 7 <= max(Op)).all() and (numbers[4] < TIME_MAX).all()
    )  # fmt: skip
    if not is_right:
        raise DamagedError("a block of requests has impossible values")
    details: dict[str, Ints] = {}
    if columns:
        stream = np.cumsum(unfolded(numbers[5]))
        if (abs(stream) > np.iinfo(np.int32).max).any() or (numbers[6] >= TIME_MAX).any():
            raise DamagedError("a block of requests has impossible values")
        details = {"stream": stream, "dispatch_ns": _from_arrival(numbers[6], arrival)}
    return requests_with(
        count,
        arrival_ns=arrival,
        offset_bytes=offset,
        length_bytes=length,
        op=marks & 7,
        flags=marks >> 3,
        complete_ns=_from_arrival(numbers[4], arrival),
        **details,
    )


def _steps(values: Ints) -> Ints:
    return np.asarray(np.diff(values, prepend=0), np.int64)


def _since(times: Ints, arrival: Ints) -> Ints:
    """Return times as 1 + the ns after the arrival; 0: unknown."""
    return np.where(times == UNKNOWN, 0, 1 + np.maximum(times - arrival, 0))


def _from_arrival(since: Ints, arrival: Ints) -> Ints:
    return np.where(since == 0, UNKNOWN, arrival + since - 1)


def start_as_bytes(settings: dict[str, Any]) -> bytes:
    """Return the settings of a capture as bytes."""
    return json.dumps(settings, sort_keys=True, separators=(",", ":")).encode()


def start_of_bytes(data: bytes) -> dict[str, Any]:
    """Return the settings of a capture; raise DamagedError if they are none."""
    try:
        settings = json.loads(data)
    except (ValueError, RecursionError):
        raise DamagedError("the settings are not JSON") from None
    if not isinstance(settings, dict):
        raise DamagedError("the settings are no JSON object")
    return settings


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
ENDS_OF = dict(zip(SECTIONS, accumulate(SECTIONS.values())))
PLACES = {name: slice(end - SECTIONS[name], end) for name, end in ENDS_OF.items()}
LENGTH = sum(SECTIONS.values())
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
    return octave(value) + 1 if value > 0 else 0


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
