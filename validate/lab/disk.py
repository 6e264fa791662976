"""A disk in real time: its data in memory, its times from the simulator's own model.

A request is handed to the model when it has come in; the model says at which nanosecond it is
complete, and then it is answered.  The model goes by its own times, not by when this process gets
to run: a wake-up that comes late delays that answer and nothing else, so it costs no throughput.
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

from validate.lab import nbd

PR_SET_TIMERSLACK = 29
MAP_NORESERVE = 0x4000  # of Linux; Python's mmap names it from 3.13 on
PAGE = mmap.PAGESIZE
OP_READ, OP_WRITE, OP_DISCARD, OP_FLUSH = 0, 1, 2, 3  # hybridsim.foundation.codes.Op
OP_FUA = 8
OPS = {nbd.READ: OP_READ, nbd.WRITE: OP_WRITE, nbd.TRIM: OP_DISCARD, nbd.FLUSH: OP_FLUSH,
       nbd.WRITE_ZEROES: OP_WRITE}  # fmt: skip
LONGEST_WAIT_S = 1.0


class Model(Protocol):
    """What tells the times: `hybridsim.engine.live.LiveArray`."""

    @property
    def next_ns(self) -> int:
        """When something will happen next."""

    def submit(self, now_ns: int, tag: int, op: int, offset: int, length: int) -> None:
        """Take a request."""

    def advance(self, now_ns: int) -> list[tuple[int, int]]:
        """Return tag and nanosecond of what is complete."""


@dataclass
class Log:
    """Each request, in order of completion; times in ns since the disk was switched on."""

    columns: tuple[str, ...] = ("tag", "arrival_ns", "done_ns", "sent_ns", "op", "offset", "length")
    values: array[int] = field(default_factory=lambda: array("q"))

    def add(self, *row: int) -> None:
        """Add a request."""
        self.values.extend(row)


class MemoryDisk:
    """Data of a disk, in memory that is taken when it is written."""

    def __init__(self, size_bytes: int) -> None:
        """Make a disk full of zeroes."""
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
        self._map = mmap.mmap(-1, size_bytes, flags=flags)
        self.view = memoryview(self._map)

    def clear(self, offset: int, length: int) -> None:
        """Make zeroes of a range, and give its memory back."""
        first, last = -(-offset // PAGE) * PAGE, (offset + length) // PAGE * PAGE
        if first >= last:
            self.view[offset : offset + length] = bytes(length)
            return
        self.view[offset:first] = bytes(first - offset)
        self._map.madvise(mmap.MADV_DONTNEED, first, last - first)
        self.view[last : offset + length] = bytes(offset + length - last)


class Disk:
    """One disk, for one client at a time."""

    def __init__(self, export: nbd.Export, model: Model) -> None:
        """Switch it on."""
        self.export = export
        self.model = model
        self.data = MemoryDisk(export.size_bytes)
        self.log = Log()
        self._under_way: dict[int, tuple[nbd.Request, int, int]] = {}
        self._tag = 0
        self._on_ns = time.monotonic_ns()

    @property
    def now_ns(self) -> int:
        """Time since it was switched on."""
        return time.monotonic_ns() - self._on_ns

    def serve(self, connection: socket.socket) -> None:
        """Do what a client asks until it goes; requests that it left behind are forgotten."""
        with contextlib.suppress(nbd.ProtocolError, ConnectionError):
            if nbd.shake_hands(connection, self.export):
                while self._turn(connection):
                    pass
        self.model.advance(1 << 62)
        self._under_way.clear()

    def _turn(self, connection: socket.socket) -> bool:
        """Answer what is complete, wait for what comes first, take in what has come."""
        for tag, done_ns in self.model.advance(self.now_ns):
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
        """Read or write the data, and let the model say when."""
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
        # QEMU 7.2 holds a read back until the next reply comes if it had to send another request
        # meanwhile: the lock of its socket has gone to that one, which waits for its own reply
        # with it (block/nbd.c, nbd_recv_coroutines_wake).  Not so if there are no data yet.
        is_alone = not self._under_way
        nbd.reply(connection, request.cookie, 0, memoryview(read), apart=not is_alone)
        self.log.add(tag, arrival_ns, done_ns, self.now_ns, op, offset, length)


def wake_up_in_time() -> None:
    """Let this process's timers be exact, and, where we may, let it run before all others.

    Timers are otherwise 50 us late, to save power; and on a busy machine a process that wakes up
    waits for others, milliseconds long.
    """
    ctypes.CDLL(None).prctl(PR_SET_TIMERSLACK, 1)
    with contextlib.suppress(OSError):  # it takes CAP_SYS_NICE
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def listening(path: Path) -> socket.socket:
    """Return a socket that listens there; it appears when it can be connected to."""
    listener = socket.socket(socket.AF_UNIX)
    half = path.with_suffix(".half")
    half.unlink(missing_ok=True)
    listener.bind(str(half))
    listener.listen(1)
    half.rename(path)
    return listener
