"""Requests of a disk while they happen: from the kernel's block events, in bounded memory.

An instance of tracefs of its own is used, so no setting of the system's tracing changes.  Events
are in pages of the kernel's trace buffer, as `trace_pipe_raw` returns them: time of its first event
(64 bits), bytes used (64 bits, of which 20 count), events.  An event: 5 bits of type or length, 27
bits of time since the one before, data.  The places of fields are read from
`events/block/NAME/format`, as they differ between kernels.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from hybridsim.foundation.arrays import Ints
from hybridsim.foundation.errors import RecordingError
from hybridsim.jit import kernel, loop
from hybridsim.requests.rows import Requests, joined, no_requests
from hybridsim.traces.formats.blktrace import SECTOR_MAX, SPLIT, u32, u64
from hybridsim.traces.formats.ftrace import parse_rwbs
from hybridsim.traces.formats.pairing import (
    EVENT,
    PENDING_MAX,
    Action,
    At,
    Events,
    Pairer,
    give_up,
    pair,
    room_for,
    whole,
)
from hybridsim.traces.recording import Disk, Host
from hybridsim.traces.recording.tracefs import LOST, chosen, content, place

# event of the kernel: action, fields other than those of all
EVENTS = {
    "block_bio_queue": (Action.QUEUE, "nr_sector"),
    "block_rq_complete": (Action.COMPLETE, "nr_sector"),
    "block_bio_complete": (Action.COMPLETE, "nr_sector"),
    "block_split": (Action.SPLIT, "new_sector"),
    "block_rq_requeue": (Action.REQUEUE, "nr_sector"),
}
FIELD = re.compile(r"field:([^;]+);\s*offset:(\d+);\s*size:(\d+);")  # "char rwbs[8]", its place
IDENTITY = re.compile(r"^ID: (\d+)", re.M)
RWBS_BYTES = 8  # of the letters: no request has more
LETTERS_MAX = 64  # kinds of `rwbs` at a time
EVENT_BYTES_MIN = 32  # of a block event in a page
# columns of a table of formats
ID, ACTION, PID, DEVICE, SECTOR, COUNT, ERROR, RWBS, SIZE = range(9)


def formats(root: Path) -> Ints:
    """Return the places of the fields of events, a row per event, from tracefs.

    Raises RecordingError if the kernel lacks an event or a field.
    """
    rows = []
    for event, (action, count) in EVENTS.items():
        path = root / "events/block" / event / "format"
        text = content(path)
        fields = {
            declared.partition("[")[0].split()[-1]: (int(at), int(size))
            for declared, at, size in FIELD.findall(text)
        }
        number = IDENTITY.search(text)
        missing = {"common_pid", "dev", "sector", count, "rwbs"} - fields.keys()
        if number is None or missing:
            raise RecordingError(f"{path}: has no {', '.join(sorted(missing)) or 'ID'}")
        places = [fields[name][0] for name in ("common_pid", "dev", "sector", count)]
        error_at = fields["error"][0] if "error" in fields else -1
        size = max(at + size for at, size in fields.values())
        rows.append([int(number[1]), action, *places, error_at, fields["rwbs"][0], size])
    return np.array(rows, np.int64)


@kernel
def text_at(data, at):
    """Return a text as a number; what follows its end is left over from other events."""
    value = np.int64(0)
    for byte in range(RWBS_BYTES):
        if data[at + byte] == 0:
            break
        value |= np.int64(data[at + byte]) << (8 * byte)
    return value


@kernel
def parse(data, used, table, devices, events, letters):
    """Write the block events of a page; return their number, or -1 if the page is malformed.

    `letters` gets the first bytes of `rwbs`, as a number.
    """
    base = u64(data, 0)
    end = 16 + (u64(data, 8) & 0xFFFFF)
    if end > used:
        return -1
    at = 16
    time = base
    found = 0
    while at + 4 <= end:
        head = u32(data, at)
        kind = head & 31
        delta = head >> 5
        at += 4
        if kind == 29:  # padding: the rest of the page, or of a discarded event
            if delta == 0:
                break
            time += delta
            at += u32(data, at)
            continue
        if kind == 30:
            time += (u32(data, at) << 27) + delta
            at += 4
            continue
        if kind == 31:  # the low 59 bits of a time
            time = (time & ~((1 << 59) - 1)) | ((u32(data, at) << 27) + delta)
            at += 4
            continue
        time += delta
        body = at
        if kind == 0:
            length = u32(data, at)
            body = at + 4
            at += (length + 3) & ~3
        else:
            length = kind * 4
            at += length
        if at > end or length < 8:
            return -1
        identity = u32(data, body) & 0xFFFF
        for row in range(len(table)):
            if table[row, ID] != identity:
                continue
            if body + table[row, SIZE] > used:
                return -1
            device = u32(data, body + table[row, DEVICE])
            is_wanted = False
            for each in devices:
                is_wanted |= each == device
            if not is_wanted:
                break
            sector = u64(data, body + table[row, SECTOR])
            if sector == -1:  # a flush without an address
                sector = 0
            if table[row, ACTION] == SPLIT:
                count = u64(data, body + table[row, COUNT]) - sector
            else:
                count = u32(data, body + table[row, COUNT])
            if not 0 <= sector <= SECTOR_MAX or not 0 <= count <= SECTOR_MAX:
                break
            event = events[found]
            event.time_ns = time
            event.offset_bytes = sector << 9
            event.length_bytes = count << 9
            event.pid = u32(data, body + table[row, PID]) & 0x7FFFFFFF
            event.error = 0
            if table[row, ERROR] >= 0 and u32(data, body + table[row, ERROR]) != 0:
                event.error = -1
            event.cpu = 0
            event.action = table[row, ACTION]
            letters[found] = text_at(data, body + table[row, RWBS])
            found += 1
            break
    return found


@loop
def parse_pages(data, page_bytes, table, devices, events, letters, known, malformed):
    """Write the block events of pages; return their number.

    `letters` gets for each the number of its letters in `known`, whose first number counts them;
    `malformed` the number of malformed pages.
    """
    total = 0
    for first in range(0, len(data), page_bytes):
        page = data[first : first + page_bytes]
        found = parse(page, len(page), table, devices, events[total:], letters[total:])
        if found < 0:
            malformed[0] += 1
            continue
        for row in range(total, total + found):
            number = 1
            while number <= known[0] and known[number] != letters[row]:
                number += 1
            if number > known[0] and number < len(known):
                known[0] = number
                known[number] = letters[row]
            letters[row] = number if number < len(known) else 0  # 0: no request
        total += found
    return total


@loop
def mark(events, letters, meanings, cpu):
    """Write what the numbers of letters mean to events; return whether all are of requests.

    `letters` gets 0 where an event is of no request.
    """
    are_all = True
    for row in range(len(letters)):
        event = events[row]
        number = letters[row]
        has_data = np.int64(event.length_bytes != 0)
        event.cpu = cpu
        event.op = meanings[number, has_data, 1]
        event.marks = meanings[number, has_data, 2]
        letters[row] = meanings[number, has_data, 0]
        are_all &= letters[row] != 0
    return are_all


class Decoder:
    """Converts pages to events."""

    def __init__(self, formats: Ints, devices: list[int], page_bytes: int) -> None:
        """Decode the events of devices, as the kernel numbers them: MAJOR << 20 | MINOR."""
        self._formats, self._devices = formats, np.array(devices, np.int64)
        self.page_bytes = page_bytes
        self._known = np.zeros(LETTERS_MAX, np.int64)
        self._meanings = np.zeros((0, 2, 3), np.int64)  # of the known letters
        self._malformed = np.zeros(1, np.int64)
        self._room, self._letters = room_for(0), np.zeros(0, np.int64)

    @property
    def malformed(self) -> int:
        """Number of malformed pages."""
        return int(self._malformed[0])

    def events(self, pages: bytes | memoryview, cpu: int) -> Events:
        """Return the events of pages of one CPU, each of `page_bytes`."""
        most = len(pages) // EVENT_BYTES_MIN + 1
        if most > len(self._room):
            self._room, self._letters = room_for(most), np.zeros(most, np.int64)
        count = parse_pages(
            np.frombuffer(pages, np.uint8), self.page_bytes, self._formats, self._devices,
            self._room, self._letters, self._known, self._malformed,
        )  # fmt: skip
        if self._known[0] >= len(self._meanings):
            keys = self._known[: self._known[0] + 1]
            self._meanings = np.array([self._meaning(key) for key in keys])
        events, letters = self._room[:count], self._letters[:count]
        found = events if mark(events, letters, self._meanings, cpu) else events[letters != 0]
        return whole(found).copy().view(EVENT).view(np.recarray)

    @staticmethod
    def _meaning(key: int) -> list[tuple[int, int, int]]:
        """Return for requests without and with data whether they are some, their op and flags."""
        text = (int(key) & (1 << 64) - 1).to_bytes(RWBS_BYTES, "little").split(b"\0")[0]
        both = (parse_rwbs(text, sectors) for sectors in (0, 1))
        return [(0, 0, 0) if each is None else (1, *each) for each in both]


PATIENCE_NS = 60 * 10**9  # a request without completion after this is given up
PAGES_AT_ONCE = 1 << 13  # of a CPU: bounds memory, and the kernel's buffer is smaller
READ_AT_ONCE = 1 << 6  # pages
STATS_BYTES = 1 << 12  # of a file
BUFFER = "buffer_size_kb"
ROUNDED_KB = 64  # by which the kernel may have made a buffer larger


class Paired(Pairer):
    """Pairs events that come in order of time, and returns requests as soon as they settle."""

    def __init__(self) -> None:
        super().__init__([], 1, by_issue=False)

    def take(self, events: Events, now_ns: int) -> Requests:
        """Take events up to a time; return the requests that settled, in order of arrival."""
        at = self._pairing.at
        out = []
        position, end = np.zeros(1, np.int64), np.array([len(events)], np.int64)
        while position[0] < end[0]:
            pair(self._pairing, events, position, end, np.ones(1, np.bool_))
            if position[0] < end[0]:  # there is no more space
                if at[At.SETTLED] == at[At.OLDEST]:
                    give_up(self._pairing, PENDING_MAX // 8)
                out.append(self._settled(0, 0))
        self._expire(now_ns - PATIENCE_NS)
        if at[At.SETTLED] > at[At.OLDEST]:
            out.append(self._settled(0, 0))
        return joined(out)

    def rest(self) -> Requests:
        """Return all pending requests: those without completion are incomplete."""
        at = self._pairing.at
        if at[At.NEXT] > at[At.SETTLED]:
            give_up(self._pairing, int(at[At.NEXT] - at[At.SETTLED]))
        return self._settled(0, 0) if at[At.NEXT] > at[At.OLDEST] else no_requests()

    def _expire(self, before_ns: int) -> None:
        at, rows = self._pairing.at, self._pairing.rows
        first = number = int(at[At.SETTLED])
        while number < at[At.NEXT] and rows.arrival_ns[number % PENDING_MAX] < before_ns:
            number += 1
        if number > first:
            give_up(self._pairing, number - first)

    @property
    def oldest_ns(self) -> int | None:
        """Arrival of the oldest pending request; None: there is none."""
        at = self._pairing.at
        if at[At.NEXT] == at[At.OLDEST]:
            return None
        return int(self._pairing.rows.arrival_ns[int(at[At.OLDEST]) % PENDING_MAX])


class Live:
    """The block events of one disk and its partitions, read now and then."""

    def __init__(self, disk: Disk, host: Host, buffer_bytes: int, goes_on: bool = False) -> None:
        """Begin tracing; `close` ends it.  Raises RecordingError if the kernel refuses.

        `goes_on`: what the kernel has traced since another Live of this disk was killed comes
        first, if its settings were the same; of the requests in flight at the kill none do.
        """
        if sys.byteorder != "little":
            raise RecordingError("events are decoded on little-endian machines only")
        if host.uid != 0:
            raise RecordingError("only root may record a disk: run this with sudo")
        root = place(host)
        self.instance = instance_of(disk, host)
        self._removal: Callable[[], object] = lambda: remove(self.instance)
        if not (root / "events/block").is_dir():
            raise RecordingError("the kernel has no block events (CONFIG_BLK_DEV_IO_TRACE)")
        devices = disk.devices  # the kernel names either in its events
        self._decoder = Decoder(formats(root), devices, os.sysconf("SC_PAGESIZE"))
        self._drain = Drain(self._decoder.page_bytes)
        self._pipes: dict[int, int] = {}
        self._stats: list[int] = []  # files
        self._held: list[Events] = []
        self._new_lost = 0
        self._paired = Paired()
        # Compile before the first event: the kernel's buffer holds some seconds.
        self._decoder.events(bytes(self._decoder.page_bytes), 0)
        self._paired.take(np.zeros(1, EVENT).view(np.recarray), 0)
        self._paired = Paired()
        self._lock: int | None = None
        self._lost = 0
        settings = _settings(devices, buffer_bytes)
        try:
            self._take_over()
            if not (goes_on and _has(self.instance, settings)):
                self._remove()
                self.instance.mkdir()
                self._take_over()
                for name, value in settings.items():
                    (self.instance / name).write_text(value)
            self._open()
        except OSError as error:
            self.close()
            raise RecordingError(f"{self.instance}: {error.strerror}") from None
        except BaseException:
            self.close()
            raise

    def hand_over(self, removal: Callable[[], object]) -> None:
        """Let another one remove the instance at the end: this process gives up root."""
        self._removal = removal

    def _take_over(self) -> None:
        """Lock the instance, if it exists: one that a killed process left is not locked."""
        if not self.instance.is_dir():
            return
        self._lock = os.open(self.instance, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._lock)
            self._lock = None
            raise RecordingError(
                f"{self.instance}: another recorder of this disk runs: end it first"
            ) from None

    def _open(self) -> None:
        """Open the buffer of each CPU, then let the events in."""
        for cpu in sorted(self.instance.glob("per_cpu/cpu[0-9]*")):
            pipe = os.open(cpu / "trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
            self._pipes[int(cpu.name[3:])] = pipe
            self._stats.append(os.open(cpu / "stats", os.O_RDONLY))
        for event in EVENTS:
            (self.instance / "events/block" / event / "enable").write_text("1")

    def requests(self) -> tuple[Requests, int]:
        """Return the requests that settled, and a time before which no other one arrives.

        Times are those of the monotonic clock in ns.  Once events were lost, pending requests may
        have completed unseen, and would hold back all later ones: they are given up.
        """
        now_ns = time.monotonic_ns()
        lost = self._dropped()
        for cpu, pipe in self._pipes.items():
            pages = self._drain.pages(pipe)
            if len(pages):
                self._held.append(self._decoder.events(pages, cpu))
        rows = np.concatenate([whole(part) for part in self._held or [room_for(0)]])
        order = np.argsort(rows.view(EVENT)["time_ns"], kind="stable")
        events = rows[order].view(EVENT).view(np.recarray)
        ready = int(np.searchsorted(events.time_ns, now_ns))
        self._held = [events[ready:].copy()] if ready < len(events) else []
        settled = self._paired.take(events[:ready], now_ns)
        if lost:
            self._new_lost += lost
            settled = joined([settled, self._paired.rest()])
        oldest_ns = self._paired.oldest_ns
        return settled, now_ns if oldest_ns is None else oldest_ns

    def rest(self) -> Requests:
        """Return the requests that are still pending, at the end."""
        return self._paired.rest()

    def lost(self) -> int:
        """Return the events that were lost before the last `requests`, since the last call."""
        lost, self._new_lost = self._new_lost, 0
        return lost

    def _dropped(self) -> int:
        """Return the events that the kernel dropped since the last call."""
        total = self._decoder.malformed
        for each in self._stats:
            text = os.pread(each, STATS_BYTES, 0).decode(errors="replace")
            total += sum(map(int, LOST.findall(text)))
        new, self._lost = total - self._lost, total
        return max(new, 0)

    def close(self) -> None:
        """End tracing; the instance is removed."""
        for handle in [*self._pipes.values(), *self._stats]:
            os.close(handle)
        self._pipes, self._stats = {}, []
        with contextlib.suppress(OSError):
            self._remove()

    def _remove(self) -> None:
        """Remove the instance, if it exists and is locked by this process."""
        if self._lock is None:
            return
        self._removal()
        os.close(self._lock)
        self._lock = None


def instance_of(disk: Disk, host: Host) -> Path:
    """Return the folder of tracefs for a disk; raise RecordingError if tracefs is not mounted."""
    return place(host) / "instances" / f"hybridsim-{disk.name}"


def remove(instance: Path) -> None:
    """End the events of an instance, and remove it."""
    (instance / "events/enable").write_text("0")
    instance.rmdir()


class Drain:
    """Reads the pages of a pipe to memory that is used again, many with one call."""

    def __init__(self, page_bytes: int) -> None:
        self._page_bytes = page_bytes
        self._room = np.zeros(READ_AT_ONCE * page_bytes, np.uint8)

    def pages(self, pipe: int) -> memoryview:
        """Return the pages of a CPU, at most PAGES_AT_ONCE; they stand until the next call."""
        size, end = self._page_bytes, 0
        while end < PAGES_AT_ONCE * size:
            if end == len(self._room):
                self._room = np.concatenate((self._room, np.zeros_like(self._room)))
            free = self._room.data[end : end + READ_AT_ONCE * size]
            try:
                got = os.readv(pipe, [free[at : at + size] for at in range(0, len(free), size)])
            except BlockingIOError:
                break
            rest = -got % size  # the kernel may leave out the unused end of the last page
            self._room[end + got : end + got + rest] = 0
            end += got + rest
            if got < len(free):
                break
        return self._room.data[:end].toreadonly()


def _settings(devices: list[int], buffer_bytes: int) -> dict[str, str]:
    """Return the files of an instance and their values."""
    wanted = " || ".join(f"dev == {each}" for each in devices)
    return {
        BUFFER: str(max(buffer_bytes // 1024, ROUNDED_KB)),
        "trace_clock": "mono",
        "options/overwrite": "0",
        **{f"events/block/{event}/filter": wanted for event in EVENTS},
    }


def _has(instance: Path, settings: dict[str, str]) -> bool:
    """Return whether an instance exists and has these settings."""
    if not instance.is_dir():
        return False
    found = {name: chosen((instance / name).read_text().strip()) for name in settings}
    rounded = int(found[BUFFER]) - int(settings[BUFFER])
    return 0 <= rounded <= ROUNDED_KB and found | {BUFFER: settings[BUFFER]} == settings
