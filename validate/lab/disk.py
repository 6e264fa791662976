"""A disk in real time: its data are in memory, its times come from the simulator's model.

A request is submitted to the model when it arrives, and answered at the completion time that the
model computes.  The model uses its own times, not those at which this process runs: a late wake-up
delays that answer only, and costs no throughput.
"""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import select
import socket
import time
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hybridsim.serving import nbd

PR_SET_TIMERSLACK = 29
MAP_NORESERVE = 0x4000  # of Linux; in Python's mmap since 3.13
PAGE = mmap.PAGESIZE
OP_READ, OP_WRITE, OP_DISCARD, OP_FLUSH = 0, 1, 2, 3  # hybridsim.foundation.codes.Op
OP_FUA = 8
OPS = {nbd.READ: OP_READ, nbd.WRITE: OP_WRITE, nbd.TRIM: OP_DISCARD, nbd.FLUSH: OP_FLUSH,
       nbd.WRITE_ZEROES: OP_WRITE}  # fmt: skip
LONGEST_WAIT_S = 1.0


class Model(Protocol):
    """A device model in real time: `hybridsim.engine.live.LiveArray`."""

    @property
    def next_ns(self) -> int:
        """Time of the next event."""

    def submit(self, now_ns: int, tag: int, op: int, offset: int, length: int) -> None:
        """Submit a request that arrives now."""

    def advance(self, now_ns: int) -> list[tuple[int, int]]:
        """Return tag and completion time of the requests that are complete."""


@dataclass
class Log:
    """Each request, in order of completion; times in ns since the disk was created."""

    columns: tuple[str, ...] = ("tag", "arrival_ns", "done_ns", "sent_ns", "op", "offset", "length")
    values: array[int] = field(default_factory=lambda: array("q"))

    def add(self, *row: int) -> None:
        """Append a request."""
        self.values.extend(row)


class MemoryDisk:
    """The data of a disk; memory is allocated on the first write."""

    def __init__(self, size_bytes: int) -> None:
        """Create a disk of zeros."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
        self._map = mmap.mmap(-1, size_bytes, flags=flags)
        self.view = memoryview(self._map)

    def clear(self, offset: int, length: int) -> None:
        """Zero a range and free its memory."""
        first, last = -(-offset // PAGE) * PAGE, (offset + length) // PAGE * PAGE
        if first >= last:
            self.view[offset : offset + length] = bytes(length)
            return
        self.view[offset:first] = bytes(first - offset)
        self._map.madvise(mmap.MADV_DONTNEED, first, last - first)
        self.view[last : offset + length] = bytes(offset + length - last)


class Disk:
    """One served disk, for one client at a time."""

    def __init__(self, export: nbd.Export, model: Model) -> None:
        """Create the disk; its clock starts at 0."""
        self.export = export
        self.model = model
        self.data = MemoryDisk(export.size_bytes)
        self.log = Log()
        self._under_way: dict[int, tuple[nbd.Request, int, int]] = {}
        self._tag = 0
        self._on_ns = time.monotonic_ns()

    @property
    def now_ns(self) -> int:
        """Time since it was created."""
        return time.monotonic_ns() - self._on_ns

    def serve(self, connection: socket.socket) -> None:
        """Serve a client until it disconnects; drop its requests in flight then.

        The data stay for the next client, and so does the state of the model: a guest that reboots.
        """
        with contextlib.suppress(nbd.ProtocolError, ConnectionError):
            if nbd.shake_hands(connection, self.export):
                while self._turn(connection):
                    pass
        self._under_way.clear()

    def _turn(self, connection: socket.socket) -> bool:
        """Answer completed requests, wait for the next event or request, and submit requests.

        Return False if the client disconnects.
        """
        for tag, done_ns in self.model.advance(self.now_ns):
            if tag in self._under_way:  # else of an earlier client
                self._answer(connection, tag, done_ns)
        wait_s = min((self.model.next_ns - self.now_ns) / 1e9, LONGEST_WAIT_S)
        wait_s = max(wait_s, 0.0)
        while select.select([connection], [], [], wait_s)[0]:
            request = nbd.next_request(connection)
            if request.kind == nbd.DISCONNECT:
                return False
            self._take(connection, request)
            wait_s = 0.0
        return True

    def _take(self, connection: socket.socket, request: nbd.Request) -> None:
        """Transfer the data, and submit the request to the model."""
        kind, offset, length = request.kind, request.offset, request.length
        error = nbd.wrong(request, self.export)
        if kind == nbd.WRITE:
            scratch = memoryview(bytearray(length)) if error else self.data.view[offset:][:length]
            nbd.receive_into(connection, scratch)
        if error:
            nbd.reply(connection, request.cookie, error, memoryview(b""))
            return
        if kind in (nbd.TRIM, nbd.WRITE_ZEROES):
            self.data.clear(offset, length)
        op = OPS[kind] | OP_FUA * (request.flags & nbd.FUA and OPS[kind] == OP_WRITE)
        self._tag += 1
        arrival_ns = self.now_ns
        self._under_way[self._tag] = request, arrival_ns, op
        if op == OP_FLUSH:
            offset = length = 0
        self.model.submit(arrival_ns, self._tag, op, offset, length)

    def _answer(self, connection: socket.socket, tag: int, done_ns: int) -> None:
        request, arrival_ns, op = self._under_way.pop(tag)
        offset, length = request.offset, request.length
        read = self.data.view[offset : offset + length] if request.kind == nbd.READ else b""
        # QEMU 7.2 delays a read until the next reply if it sent another request meanwhile: that
        # request then holds the lock of the socket, and waits for its own reply (block/nbd.c,
        # nbd_recv_coroutines_wake).  This does not happen if the data follow after the head.
        is_alone = not self._under_way
        nbd.reply(connection, request.cookie, 0, memoryview(read), apart=not is_alone)
        self.log.add(tag, arrival_ns, done_ns, self.now_ns, op, offset, length)


def wake_up_in_time() -> None:
    """Set the timer slack to 1 ns and, if permitted, the scheduler to SCHED_RR.

    By default timers are up to 50 us late, to save power, and on a busy machine a process waits
    for others for milliseconds after a wake-up.  The priority is above that of the guest, which has
    the one that this process inherited (`chrt`): it must not wait for the guest's processors.
    """
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)
    above = os.sched_param(os.sched_getparam(0).sched_priority + 1)
    with contextlib.suppress(OSError):  # it needs CAP_SYS_NICE
        os.sched_setscheduler(0, os.SCHED_RR, above)


def listening(path: Path) -> socket.socket:
    """Return a listening socket; its path appears only when clients can connect."""
    listener = socket.socket(socket.AF_UNIX)
    half = path.with_suffix(".half")
    half.unlink(missing_ok=True)
    listener.bind(str(half))
    listener.listen(1)
    half.rename(path)
    return listener
