"""Requests of a disk while they happen: from the kernel's block events, in bounded memory.

An instance of tracefs of its own is used, so no setting of the system's tracing changes.
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

from hybridsim.foundation.errors import RecordingError
from hybridsim.requests.rows import Requests, joined, no_requests
from hybridsim.traces.formats.events import EVENT, Events, whole
from hybridsim.traces.formats.pairing import PENDING_MAX, At, Pairer, give_up, pair
from hybridsim.traces.recording.disk import Disk, Host
from hybridsim.traces.recording.ring_buffer import EVENTS, Decoder, Formats
from hybridsim.traces.recording.tracefs import LOST, chosen, place

PATIENCE_NS = 60 * 10**9  # a request without completion after this is given up
AT_ONCE = 1 << 16  # events
PAGES_AT_ONCE = 1 << 13  # of a CPU: bounds memory, and the kernel's buffer is smaller
READ_AT_ONCE = 1 << 6  # pages
STATS_BYTES = 1 << 12  # of a file
BUFFER = "buffer_size_kb"
ROUNDED_KB = 64  # by which the kernel may have made a buffer larger


class Paired:
    """Pairs events that come in order of time, and returns requests as soon as they settle."""

    def __init__(self) -> None:
        self._pairer = Pairer([], 1, by_issue=False)
        self._pairing = self._pairer._pairing

    def take(self, events: Events, now_ns: int) -> Requests:
        """Take events up to a time; return the requests that settled, in order of arrival."""
        at = self._pairing.at
        out = []
        for start in range(0, len(events), AT_ONCE):
            part = events[start : start + AT_ONCE]
            position, end = np.zeros(1, np.int64), np.array([len(part)], np.int64)
            live = np.ones(1, np.bool_)
            while position[0] < end[0]:
                pair(self._pairing, part, position, end, live)
                if at[At.NEXT] - at[At.OLDEST] >= PENDING_MAX or position[0] < end[0]:
                    if at[At.SETTLED] == at[At.OLDEST]:
                        give_up(self._pairing, PENDING_MAX // 8)
                    out.append(self._pairer._settled(0, 0))
        self._expire(now_ns - PATIENCE_NS)
        if at[At.SETTLED] > at[At.OLDEST]:
            out.append(self._pairer._settled(0, 0))
        return joined(out) if out else no_requests()

    def rest(self) -> Requests:
        """Return all pending requests: those without completion are incomplete."""
        at = self._pairing.at
        if at[At.NEXT] > at[At.SETTLED]:
            give_up(self._pairing, int(at[At.NEXT] - at[At.SETTLED]))
        return self._pairer._settled(0, 0) if at[At.NEXT] > at[At.OLDEST] else no_requests()

    def _expire(self, before_ns: int) -> None:
        at, rows = self._pairing.at, self._pairing.rows
        number, stop = int(at[At.SETTLED]), int(at[At.NEXT])
        first = number
        while number < stop and rows.arrival_ns[number % PENDING_MAX] < before_ns:
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
        devices = devices_of(disk)
        self._decoder = Decoder(Formats.read(root), devices, os.sysconf("SC_PAGESIZE"))
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
        if self._held:
            rows = np.concatenate([whole(part) for part in self._held])
            order = np.argsort(rows.view(EVENT)["time_ns"], kind="stable")
            events = rows[order].view(EVENT).view(np.recarray)
            ready = int(np.searchsorted(events.time_ns, now_ns))
            self._held = [events[ready:].copy()] if ready < len(events) else []
            settled = self._paired.take(events[:ready], now_ns)
        else:
            settled = self._paired.take(np.zeros(0), now_ns)
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
    rounded = int(found.pop(BUFFER)) - int(settings[BUFFER])
    others = {name: value for name, value in settings.items() if name != BUFFER}
    return 0 <= rounded <= ROUNDED_KB and found == others


def devices_of(disk: Disk) -> list[int]:
    """Return the numbers of a disk and its partitions: the kernel names either in its events."""
    folders = [disk.folder, *(each.parent for each in disk.folder.glob("*/partition"))]
    numbers = []
    for each in folders:
        match = re.fullmatch(r"(\d+):(\d+)", (each / "dev").read_text().strip())
        if match:
            numbers.append(int(match[1]) << 20 | int(match[2]))
    return numbers
