"""Clients of the served cache: a thread for each connection, answers in order of completion."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import stat
import struct
import threading
from collections.abc import Callable
from pathlib import Path

from hybridsim.foundation.codes import FUA, Op
from hybridsim.foundation.errors import DeviceError
from hybridsim.serving import nbd
from hybridsim.serving.cache import ServedCache, all_or_nothing, buffer

OPS = {nbd.READ: Op.READ, nbd.WRITE: Op.WRITE, nbd.FLUSH: Op.FLUSH, nbd.TRIM: Op.DISCARD}
CONNECTIONS_MAX = 64
LOOPBACK = "127.0.0.1"
PATIENCE_S = 30  # for a client that does not read its answers: then it is disconnected
Seen = Callable[[int, int, int], None]  # op, offset, length


class Server:
    """Accepts clients until it is stopped."""

    def __init__(
        self, cache: ServedCache, export: nbd.Export, listener: socket.socket, seen: Seen | None,
        apart: bool = False,
    ) -> None:  # fmt: skip
        """Serve on a listening socket; `seen` is called with each request, in order of arrival.

        With `apart` the data of a read follow after its head if others are in flight: QEMU 7.2
        holds them back until the next answer otherwise.
        """
        self._cache, self._export, self._listener, self._seen = cache, export, listener, seen
        self.apart = apart
        self._connections: set[Connection] = set()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._accept, daemon=True, name="accept")

    def start(self) -> None:
        """Begin to accept clients."""
        self._thread.start()

    def stop(self) -> None:
        """Accept and read no more requests, and wait until all are answered."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        with self._lock:
            connections = list(self._connections)
        for each in connections:
            each.stop()
        for each in connections:
            each.join()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if len(self._connections) >= CONNECTIONS_MAX:
                    client.close()
                    continue
                connection = Connection(self, client)
                self._connections.add(connection)
            connection.start()

    def serve(self, connection: Connection) -> None:
        """Answer the requests of a client until it disconnects."""
        client = connection.socket
        with contextlib.suppress(nbd.ProtocolError, OSError):
            if client.family != socket.AF_UNIX:
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if nbd.shake_hands(client, self._export):
                while self._take(connection, nbd.next_request(client)):
                    pass
        connection.wait()
        with self._lock:
            self._connections.discard(connection)
        client.close()

    def _take(self, connection: Connection, request: nbd.Request) -> bool:
        """Start a request; return False if it is the end of the connection."""
        if request.kind == nbd.DISCONNECT:
            return False
        has_data = request.kind in (nbd.READ, nbd.WRITE)
        error = nbd.wrong(request, self._export) or self._unaligned(request)
        data = buffer(request.length if has_data and request.length <= nbd.LONGEST_BYTES else 0)
        if request.kind == nbd.WRITE:
            nbd.receive_into(connection.socket, data)
        if error or (request.kind != nbd.FLUSH and request.length == 0):
            connection.reply(request, error, memoryview(b""))
            return True
        op = OPS[request.kind]
        offset, length = (0, 0) if op == Op.FLUSH else (request.offset, request.length)
        flags = FUA if op in (Op.WRITE, Op.DISCARD) and request.flags & nbd.FUA else 0
        if self._seen is not None:
            self._seen(op, offset, length)
        connection.begin()

        def answer(error: int) -> None:
            connection.reply(request, error, data if op == Op.READ else memoryview(b""))
            connection.end()

        self._cache.submit(op, flags, offset, length, data, answer)
        return True

    def _unaligned(self, request: nbd.Request) -> int:
        """Return the errno of a request that is no whole number of blocks, or 0."""
        block = self._export.block_bytes
        is_aligned = request.kind == nbd.FLUSH or not (request.offset | request.length) % block
        return 0 if is_aligned else errno.EINVAL


class Connection:
    """A client, with the requests that are not answered."""

    def __init__(self, server: Server, client: socket.socket) -> None:
        self.socket = client
        self._apart = server.apart
        self._sends = threading.Lock()
        self._state = threading.Condition()
        self._pending = 0
        client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", PATIENCE_S, 0))
        serve = all_or_nothing(lambda: server.serve(self))
        self._thread = threading.Thread(target=serve, daemon=True)
        self.start, self.join = self._thread.start, self._thread.join

    def begin(self) -> None:
        """Count a request that is to be answered."""
        with self._state:
            self._pending += 1

    def end(self) -> None:
        """Count an answer."""
        with self._state:
            self._pending -= 1
            self._state.notify_all()

    def wait(self) -> None:
        """Wait until all requests are answered."""
        with self._state:
            self._state.wait_for(lambda: self._pending == 0)

    def stop(self) -> None:
        """Read no more requests."""
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RD)

    def reply(self, request: nbd.Request, error: int, data: memoryview) -> None:
        """Answer a request, if the client is still there."""
        with self._sends:
            try:
                part = memoryview(b"") if error else data
                apart = self._apart and self._pending > 1
                nbd.reply(self.socket, request.cookie, error, part, apart=apart)
            except OSError:
                with contextlib.suppress(OSError):
                    self.socket.shutdown(socket.SHUT_RDWR)


def listen_unix(path: Path) -> socket.socket:
    """Listen on a Unix socket for this user alone; a socket without a server is replaced.

    Raises DeviceError.
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise DeviceError(f"--socket {path}: exists and is not a socket: name another path")
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(str(path))
            except ConnectionRefusedError:
                path.unlink()
            except OSError as error:
                raise DeviceError(f"--socket {path}: {error.strerror}") from None
            else:
                raise DeviceError(f"--socket {path}: another server listens there")
    listener = socket.socket(socket.AF_UNIX)
    mask = os.umask(0o077)
    try:
        listener.bind(str(path))
    except OSError as error:
        raise DeviceError(f"--socket {path}: {error.strerror or error}") from None
    finally:
        os.umask(mask)
    listener.listen(CONNECTIONS_MAX)
    return listener


def listen_tcp(port: int) -> socket.socket:
    """Listen on a port of the loopback interface; 0 chooses one.  Raises DeviceError."""
    listener = socket.socket(socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((LOOPBACK, port))
    except OSError as error:
        raise DeviceError(f"--port {port}: {error.strerror or error}") from None
    listener.listen(CONNECTIONS_MAX)
    return listener
