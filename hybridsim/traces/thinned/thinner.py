"""Thin requests: write a sample, counters and stretches to a file that stays within a size.

What is written depends on the requests alone, not on how they arrive in chunks.  Slices end at
multiples of SLICE_NS of the clock.  Where the file exceeds its limit it is written again, beside
itself, with a lower rate: the sample then holds what it would hold had the rate been lower from
the start, as regions are kept by a hash.
"""

from __future__ import annotations

import contextlib
import math
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO, get_args, get_type_hints

import numpy as np

from hybridsim.foundation.arrays import runs
from hybridsim.foundation.errors import UsageError
from hybridsim.foundation.units import human_size
from hybridsim.requests.pages import SPAN, check_real, hashed, hashed_regions
from hybridsim.requests.rows import Requests, joined
from hybridsim.traces.thinned.layout import (
    DETAILS,
    HEADER_BYTES,
    ROWS_MAX,
    SIGNATURE,
    STRETCH,
    TIME_MAX,
    Block,
    Counter,
    Counts,
    DamagedError,
    Kind,
    Role,
    Skipped,
    block,
    blocks,
    rows_as_bytes,
    rows_of_bytes,
    start_as_bytes,
    start_of_bytes,
)

SECOND_NS = 10**9
SLICE_NS = 10 * SECOND_NS  # a power cut costs at most this much of counters and sample
MINUTE_NS = 60 * SECOND_NS
HOUR_NS = 3600 * SECOND_NS
REGION_BYTES = 1 << 20
REGION_MIN, REGION_MAX = 1 << 12, 1 << 30
MAX_LEAST = 1 << 18  # bytes of the smallest capture
FILLED = 2 / 3  # of the maximum: from there on the file is written again, into the rest of it
KEPT = 1 / 2  # of that, after it was written again
OF_REQUESTS = 1 / 4  # of that, at least: else counters alone fill the file
OF_STRETCHES = 1 / 2  # of what counters leave, at most
BINS = 1 << 12  # of hashes, where a lower threshold is chosen


@dataclass(frozen=True)
class Settings:
    """How requests are thinned; part of the capture."""

    device: str = ""
    origin_unix_ns: int | None = None  # of time 0; None: unknown
    utc_offset_s: int = 0  # of the device's clock, for days of the week
    region_bytes: int = REGION_BYTES
    max_bytes: int | None = None  # of the file; None: no limit
    rate: int | float = 1.0  # at the start
    seed: int = 0  # another one takes other regions
    source: str = ""  # what was thinned, or how it was recorded

    def check(self) -> None:
        """Raise UsageError for settings that cannot be met."""
        if not 0 < self.rate <= 1:
            raise UsageError(f"--rate must be above 0% and at most 100%, not {self.rate:.4%}")
        size = self.region_bytes
        if size & (size - 1) or not REGION_MIN <= size <= REGION_MAX:
            raise UsageError(
                f"--region must be a power of two from {human_size(REGION_MIN)} to "
                f"{human_size(REGION_MAX)}, not {size} bytes"
            )
        if self.max_bytes is not None and self.max_bytes < MAX_LEAST:
            raise UsageError(f"--max must be at least {human_size(MAX_LEAST)}")


def settings_of(one: Block) -> tuple[Settings, int]:
    """Return the settings of a START block, and its threshold; raise DamagedError if wrong."""
    found = start_of_bytes(one.payload)
    hints = get_type_hints(Settings)
    for name, hint in (hints | {"threshold": int}).items():
        if type(found.get(name)) not in (get_args(hint) or (hint,)):
            raise DamagedError(f"the setting {name} is missing or wrong")
    threshold = found["threshold"]
    settings = Settings(**{name: found[name] for name in hints})
    try:
        settings.check()
    except UsageError as error:
        raise DamagedError(str(error)) from None
    is_near = abs(settings.utc_offset_s) <= 86_400 and abs(settings.origin_unix_ns or 0) < TIME_MAX
    if not 1 <= threshold <= SPAN or not is_near:
        raise DamagedError("the settings are out of range")
    return settings, threshold


class Store:
    """The file: blocks are appended."""

    def __init__(self, path: Path) -> None:
        """Open a file that exists, or create it with its signature."""
        self.path = path
        self._file: IO[bytes] = path.open("r+b" if path.exists() else "w+b")
        self._file.seek(0, os.SEEK_END)
        if not self._file.tell():
            self._file.write(SIGNATURE)
        self.number = 0
        self._syncing: threading.Thread | None = None

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return self._file.tell()

    def append(self, kind: Kind, begin_ns: int, span_ns: int, payload: bytes) -> None:
        """Append a block."""
        self._file.write(block(kind, self.number, begin_ns, span_ns, payload))
        self.number += 1

    def append_sample(self, parts: list[Requests]) -> None:
        """Append the rows of all parts, as many in a block as it may have."""
        whole = joined(parts)
        for start in range(0, whole.rows, ROWS_MAX):
            part = whole.between(start, start + ROWS_MAX)
            begin_ns = int(part.arrival_ns[0])
            span_ns = int(part.arrival_ns[-1]) - begin_ns
            self.append(Kind.SAMPLE, begin_ns, span_ns, rows_as_bytes(part, begin_ns, 0))

    def blocks(self) -> Iterator[Block | Skipped]:
        """Yield the blocks of the file, and damage."""
        self._file.flush()
        with self.path.open("rb") as again:
            again.seek(len(SIGNATURE))
            yield from blocks(again.read)

    def whole_blocks(self) -> Iterator[Block]:
        """Yield the blocks of the file."""
        return (one for one in self.blocks() if isinstance(one, Block))

    def flush(self, is_safe: bool = False) -> None:
        """Hand all blocks to the system, and with `is_safe` to the medium."""
        self._file.flush()
        if is_safe:
            os.fdatasync(self._file.fileno())

    def flush_aside(self) -> None:
        """Hand all blocks to the system; a thread brings them to the medium, if the last is done.

        A busy medium takes seconds for that, in which the kernel's buffer would overflow.
        """
        self._file.flush()
        if self._syncing is None or not self._syncing.is_alive():
            handle = os.dup(self._file.fileno())
            self._syncing = threading.Thread(target=_synced, args=[handle], daemon=True)
            self._syncing.start()

    def cut(self, size: int) -> None:
        """Drop what follows the first `size` bytes: a block that was not finished."""
        self._file.flush()
        self._file.truncate(size)
        self._file.seek(size)

    def replaced_by(self, other: Store) -> None:
        """Take the blocks of another file, which takes the place of this one."""
        other.flush(is_safe=True)
        os.replace(other.path, self.path)
        self._file.close()
        self._file, self.number = other._file, other.number

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _synced(handle: int) -> None:
    """Bring a file to the medium, and close it."""
    with contextlib.suppress(OSError):  # the next write reports it
        os.fdatasync(handle)
    os.close(handle)


@dataclass(frozen=True)
class Stretch:
    """A stretch of requests that are kept in full."""

    begin_ns: int
    span_ns: int
    score: int  # nanoseconds that requests waited in its minute, or requests without completions
    rank: int  # a hash of the minute
    roles: int

    @classmethod
    def of(cls, one: Block) -> Stretch:
        """Return the stretch of a block; raise DamagedError if it has none."""
        if len(one.payload) < STRETCH.size:
            raise DamagedError("a stretch is too short")
        return cls(one.begin_ns, one.span_ns, *STRETCH.unpack_from(one.payload))

    def place(self, role: Role) -> int:
        """Return its place among those that stand for their hour in a role: the least is best."""
        return -self.score if role == Role.WORST else self.rank


class Chosen:
    """The stretches that stand for their hours: of each role the best one so far, by hour."""

    def __init__(self) -> None:
        self.by_role: dict[Role, dict[int, Stretch]] = {role: {} for role in Role}

    def roles_of(self, one: Stretch) -> int:
        """Return the roles in which a stretch would replace the best one of its hour."""
        best = {role: of.get(one.begin_ns // HOUR_NS) for role, of in self.by_role.items()}
        return sum(r for r, it in best.items() if it is None or one.place(r) < it.place(r))

    def take(self, one: Stretch) -> None:
        """Consider a stretch."""
        roles = one.roles & self.roles_of(one)
        for role, of_hour in self.by_role.items():
            if roles & role:
                of_hour[one.begin_ns // HOUR_NS] = one

    def all(self) -> dict[int, Stretch]:
        """Return the stretches by begin."""
        both = chain.from_iterable(of_hour.values() for of_hour in self.by_role.values())
        return {one.begin_ns: one for one in sorted(both, key=lambda one: one.begin_ns)}


def thinned_rows(rows: Requests, threshold: int, settings: Settings) -> Requests:
    """Return the reads and writes in sampled regions, cut to these.

    Of a request that crosses regions each run of sampled ones is a request of its own.
    """
    moves = rows.moves
    if not moves.all():
        rows = rows.where(moves)
    region_bytes, seed = settings.region_bytes, settings.seed
    first = rows.offset_bytes // region_bytes
    last = (rows.offset_bytes + rows.length_bytes - 1) // region_bytes
    kept = hashed_regions(first, seed) < threshold
    if threshold >= SPAN:
        return rows
    wide = np.flatnonzero(last > first)
    if not len(wide):
        return rows.where(kept)
    count = np.where(last > first, last - first + 1, 1)
    row = np.repeat(np.arange(len(first)), count)
    region = runs(first, count)
    is_in = hashed_regions(region, seed) < threshold
    row, region = row[is_in], region[is_in]
    if not len(row):
        return rows.between(0, 0)
    begins = np.ones(len(row), bool)
    begins[1:] = (row[1:] != row[:-1]) | (region[1:] != region[:-1] + 1)
    at = np.flatnonzero(begins)
    ends = np.append(at[1:], len(row)) - 1
    out = rows.where(row[at])
    low = np.maximum(out.offset_bytes, region[at] * region_bytes)
    high = np.minimum(out.offset_bytes + out.length_bytes, (region[ends] + 1) * region_bytes)
    return out._replace(offset_bytes=low, length_bytes=high - low)


class Thinner:
    """Takes requests in order of arrival, and writes a thinned capture."""

    def __init__(self, store: Store, settings: Settings) -> None:
        """Begin a capture, or go on with one after `resumed`."""
        self.store, self.settings = store, settings
        self.threshold = max(round(settings.rate * SPAN), 1)
        self.chosen = Chosen()
        self.lost = 0  # events, of the present slice
        self._counter = Counter()
        self._slice: Counts | None = None
        self._sampled: list[Requests] = []
        self._minute: list[Requests] = []  # its first rows, in full
        self._minute_number = -1
        self._minute_rows = self._score = self._minute_requests = 0
        self._settings_hour = -1  # in which they were written last; -1: never
        self._limit = math.inf if settings.max_bytes is None else int(settings.max_bytes * FILLED)
        self._last_ns = 0  # arrival of the last request
        self.first_ns = 0  # time of the first start, of a capture that goes on
        self.written_again = 0  # times
        self.on_slice: Callable[[], None] = lambda: None

    @classmethod
    def resumed(cls, path: Path) -> tuple[Thinner, int]:
        """Return the thinner of a capture that exists, and the time of its last request in ns.

        What follows its last whole block is cut off.  `begin` must be called next.  Raises
        UsageError if the file is no capture that can go on.
        """
        store = Store(path)
        settings: Settings | None = None
        chosen, end_ns, threshold, cut, first_ns = Chosen(), 0, SPAN, store.size, 0
        try:
            with path.open("rb") as head:
                if head.read(len(SIGNATURE)) != SIGNATURE:
                    raise UsageError(f"{path} exists, but is no thinned capture: use another name")
            for one in store.blocks():
                if isinstance(one, Skipped):
                    cut = one.begin if one.is_tail else cut
                    continue
                store.number = max(store.number, one.number + 1)
                is_sample = one.kind == Kind.SAMPLE
                end_ns = max(end_ns, one.begin_ns + (one.span_ns if is_sample else 0))
                if one.kind == Kind.START:
                    first_ns = one.begin_ns if settings is None else first_ns
                    settings, lowest = settings_of(one)
                    threshold = min(threshold, lowest)
                elif one.kind == Kind.STRETCH:
                    chosen.take(Stretch.of(one))
            if settings is None:
                raise UsageError(f"{path}: no whole block of settings: choose another name")
        except BaseException:
            store.close()
            raise
        store.cut(cut)
        thinner = cls(store, settings)
        thinner.threshold, thinner.chosen, thinner.first_ns = threshold, chosen, first_ns
        thinner._last_ns = end_ns
        return thinner, end_ns

    def begin(self, at_ns: int = 0) -> None:
        """Write the settings: at the start, and after each interruption."""
        self._counter = Counter()  # without the requests so far
        self._put_settings(at_ns, is_interruption=True)

    def _put_settings(self, at_ns: int, is_interruption: bool) -> None:
        self._settings_hour = at_ns // HOUR_NS
        settings = {
            **vars(self.settings),
            "threshold": self.threshold,
            "interruption": is_interruption,
        }
        self.store.append(Kind.START, at_ns, 0, start_as_bytes(settings))

    def take(self, rows: Requests) -> None:
        """Take requests with arrivals from the origin of the capture on."""
        if self._settings_hour < 0:
            self.begin(int(rows.arrival_ns[0]) if rows.rows else 0)
        check_real(rows, self.settings.source or "the trace")
        if not rows.rows:
            return
        rows, start = self._not_before_last(rows), 0
        while start < rows.rows:
            number = int(rows.arrival_ns[start]) // SLICE_NS
            stop = int(np.searchsorted(rows.arrival_ns, (number + 1) * SLICE_NS))
            stop = max(stop, start + 1)
            self.until(number * SLICE_NS)
            if self._slice is None:
                self._slice = Counts.none(number * SLICE_NS, SLICE_NS)
            self._take_part(rows.between(start, stop))
            start = stop

    def _not_before_last(self, rows: Requests) -> Requests:
        """Return requests that are no earlier than the last one: a clock may be set back."""
        last_ns, self._last_ns = self._last_ns, max(self._last_ns, int(rows.arrival_ns[-1]))
        return rows if int(rows.arrival_ns[0]) >= last_ns else rows.not_before(last_ns)

    def until(self, now_ns: int) -> None:
        """End the slice and the minute before a time at which no earlier request can arrive."""
        if self._slice is not None and now_ns >= self._slice.begin_ns + SLICE_NS:
            self._end_slice()
        if self._minute_number >= 0 and now_ns // MINUTE_NS > self._minute_number:
            self._end_minute()

    def finish(self) -> None:
        """End the slice and the minute; nothing may follow but `begin`."""
        if self._settings_hour < 0:
            self.begin()
        self.until(TIME_MAX)
        self.store.flush()

    def _take_part(self, rows: Requests) -> None:
        """Take requests of the present slice."""
        assert self._slice is not None
        self._counter.add(rows, self._slice)
        sampled = thinned_rows(rows, self.threshold, self.settings)
        if sampled.rows:
            self._sampled.append(sampled)
        self._minute_number = int(rows.arrival_ns[0]) // MINUTE_NS
        known = rows.complete_ns >= rows.arrival_ns
        self._score += int((rows.complete_ns - rows.arrival_ns)[known].sum())
        self._minute_requests += rows.rows
        missing = ROWS_MAX - self._minute_rows
        if missing > 0:
            self._minute.append(rows.between(0, missing))
            self._minute_rows += self._minute[-1].rows

    def _end_slice(self) -> None:
        whole = self._slice
        assert whole is not None
        if whole.begin_ns // HOUR_NS > self._settings_hour:  # again, as a block may be damaged
            self._put_settings(whole.begin_ns, is_interruption=False)
        whole.of("lost")[:] += self.lost
        self.lost = 0
        self.store.append_sample(self._sampled)
        self.store.append(Kind.COUNTS, whole.begin_ns, whole.span_ns, whole.to_bytes())
        self._slice, self._sampled = None, []
        if self.store.size > self._limit:
            self._write_again()
        self.on_slice()

    def _end_minute(self) -> None:
        rows = joined(self._minute)
        begin_ns = int(rows.arrival_ns[0])
        score = self._score or self._minute_requests
        rank = int(hashed(np.array([self._minute_number ^ self.settings.seed << 32]))[0])
        cut = self._minute_requests > rows.rows
        end_ns = int(rows.arrival_ns[-1]) + 1 if cut else (self._minute_number + 1) * MINUTE_NS
        one = Stretch(begin_ns, end_ns - begin_ns, score, rank, 0)
        one = replace(one, roles=self.chosen.roles_of(one))
        if one.roles:
            data = STRETCH.pack(score, rank, one.roles)
            data += rows_as_bytes(rows, begin_ns, DETAILS)
            most = self.settings.max_bytes
            if most is None or self.store.size + len(data) < most:  # else it never fits
                self.store.append(Kind.STRETCH, begin_ns, one.span_ns, data)
                self.chosen.take(one)
        self._minute, self._minute_number = [], -1
        self._minute_rows = self._score = self._minute_requests = 0
        if self.store.size > self._limit:
            self._write_again()

    # The file is written again with a lower rate.

    def _write_again(self) -> None:
        """Write the file again at half of its limit; raise UsageError if it cannot get so small."""
        assert self.settings.max_bytes is not None
        sizes = dict.fromkeys(Kind, 0)  # of blocks, in bytes
        sizes[Kind.START] = len(SIGNATURE) + HEADER_BYTES
        stretches: dict[int, int] = {}  # bytes by begin
        by_hash = np.zeros(BINS, np.int64)  # sampled requests
        for one in self.store.whole_blocks():
            size = len(one.stored)
            if one.kind == Kind.STRETCH:
                stretches[one.begin_ns] = size
            elif one.kind == Kind.COUNTS and one.span_ns < MINUTE_NS:
                size //= MINUTE_NS // SLICE_NS // 2  # once they are by minute
            elif one.kind == Kind.SAMPLE:
                regions = rows_of_bytes(one.payload, one.begin_ns).offset_bytes
                hashes = hashed_regions(regions // self.settings.region_bytes, self.settings.seed)
                by_hash += np.bincount(hashes * BINS // self.threshold, minlength=BINS)
            sizes[one.kind] += size
        target = int(self._limit * KEPT)
        room = target - sizes[Kind.COUNTS] - sizes[Kind.START]
        if room < target * OF_REQUESTS:
            raise UsageError(
                f"--max {human_size(self.settings.max_bytes)} is too small for this long a "
                f"capture: its counters alone take {human_size(sizes[Kind.COUNTS])} so far; allow "
                "at least 4 times what they take for all of it"
            )
        kept = self._stretches_within(stretches, int(room * OF_STRETCHES))
        room -= sum(stretches[begin] for begin in kept)
        if room < sizes[Kind.SAMPLE]:  # the largest threshold that keeps no more of the sample
            kept_rows = room / sizes[Kind.SAMPLE] * int(by_hash.sum())
            bins = int(np.searchsorted(np.cumsum(by_hash), kept_rows, "right"))
            self.threshold = max(self.threshold * bins // BINS, 1)
        beside = self.store.path.with_name(f".{self.store.path.name}.again")
        beside.unlink(missing_ok=True)
        again = Store(beside)
        try:
            self._copy(again, kept)
            self.store.replaced_by(again)
        except BaseException:
            beside.unlink(missing_ok=True)
            raise
        self.written_again += 1

    def _stretches_within(self, stretches: dict[int, int], room: int) -> set[int]:
        """Return the begins of the stretches to keep: typical ones in half of the room, then worst.

        One that an earlier writing did not keep is too large.
        """
        kept: set[int] = set()
        used = 0
        for role, most in ((Role.TYPICAL, room // 2), (Role.WORST, room)):
            ranked = ((one.place(role), one.begin_ns) for one in self.chosen.by_role[role].values())
            for _, begin_ns in sorted(ranked):
                size = 0 if begin_ns in kept else stretches.get(begin_ns, room + 1)
                if used + size <= most:
                    kept.add(begin_ns)
                    used += size
        return kept

    def _with_roles(self, one: Block) -> bytes:
        """Return the head of a stretch with its present roles: a later one may have taken over."""
        stretch = Stretch.of(one)
        hour = one.begin_ns // HOUR_NS
        best = {role: of_hour.get(hour) for role, of_hour in self.chosen.by_role.items()}
        roles = sum(role for role, it in best.items() if it and it.begin_ns == one.begin_ns)
        return STRETCH.pack(stretch.score, stretch.rank, roles)

    def _copy(self, again: Store, kept: set[int]) -> None:
        """Write the blocks to another file: the sample at the present rate, counts by minute."""
        held: list[Requests] = []
        minute: Counts | None = None

        def put_minute() -> None:
            nonlocal minute
            again.append_sample(held)
            held.clear()
            if minute is not None:
                again.append(Kind.COUNTS, minute.begin_ns, minute.span_ns, minute.to_bytes())
                minute = None

        for one in self.store.whole_blocks():
            number = one.begin_ns // MINUTE_NS
            if minute is not None and number != minute.begin_ns // MINUTE_NS:
                put_minute()
            if one.kind == Kind.START:
                put_minute()
                settings = start_of_bytes(one.payload) | {"threshold": self.threshold}
                again.append(Kind.START, one.begin_ns, 0, start_as_bytes(settings))
            elif one.kind == Kind.COUNTS:
                if minute is None:
                    minute = Counts.none(number * MINUTE_NS, MINUTE_NS)
                minute.add(Counts.of_bytes(one.payload, one.begin_ns, one.span_ns))
            elif one.kind == Kind.SAMPLE:
                if held and int(held[0].arrival_ns[0]) // MINUTE_NS != number:
                    put_minute()
                rows = rows_of_bytes(one.payload, one.begin_ns)
                rows = thinned_rows(rows, self.threshold, self.settings)
                if rows.rows:
                    held.append(rows)
            elif one.begin_ns in kept:
                put_minute()
                again.append(
                    Kind.STRETCH, one.begin_ns, one.span_ns,
                    self._with_roles(one) + one.payload[STRETCH.size :],
                )  # fmt: skip
        put_minute()
