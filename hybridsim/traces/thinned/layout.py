"""The layout of a thinned capture: blocks that are appended, each with a checksum.

docs/reference/thinned.md describes every byte.  A block that is damaged or incomplete is skipped:
reading goes on at the next block whose checksum is right.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Callable, Iterator
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.codes import Op
from hybridsim.jit import loop
from hybridsim.requests.rows import DTYPES, UNKNOWN, Requests, no_requests
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


class Columns(IntEnum):
    """Optional columns of a block of requests; a bit mask."""

    DETAILS = 1  # process and time of issue


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
    if columns & Columns.DETAILS:
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
    if count > ROWS_MAX or shift not in (0, 9) or columns > Columns.DETAILS:
        raise DamagedError("a block of requests has an impossible header")
    at, numbers = ROWS.size, []
    for _ in range(7 if columns else 5):
        (size,) = COLUMN.unpack(data[at : at + 4].ljust(4, b"\xff"))
        at += 4
        numbers.append(unpacked(data[at : at + size], count))
        at += size
    rows = no_requests(count)
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
    rows.arrival_ns[:] = arrival
    rows.offset_bytes[:] = offset
    rows.length_bytes[:] = length
    rows.op[:] = marks & 7
    rows.flags[:] = marks >> 3
    rows.complete_ns[:] = _from_arrival(numbers[4], arrival)
    rows.stream[:] = UNKNOWN
    rows.dispatch_ns[:] = UNKNOWN
    if columns:
        stream = np.cumsum(unfolded(numbers[5]))
        if (abs(stream) > np.iinfo(DTYPES[6]).max).any() or (numbers[6] >= TIME_MAX).any():
            raise DamagedError("a block of requests has impossible values")
        rows.stream[:] = stream
        rows.dispatch_ns[:] = _from_arrival(numbers[6], arrival)
    return rows


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
