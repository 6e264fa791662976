"""An export of an NBD server as a device: `--slow nbd://host:port/name` (docs/how-to/serve.md).

One connection with many requests under way; a thread matches the answers by cookie.  A connection
that is lost stays lost, and everything later fails: the server may have been restarted and have
lost writes that no flush had made durable, and a flush on a new connection would not show it.
Protocol: https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md, fixed newstyle
handshake, simple replies.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import threading
import uuid
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from hybridsim.foundation.errors import DeviceError
from hybridsim.serving import nbd

SCHEMES = ("nbd", "nbd+unix")
PORT = 10809
PATIENCE_S = 30  # to connect and negotiate
UNREACHABLE_MS = 60_000  # without a sign of the host at the other end: the connection is lost
# A server may still carry out what an earlier client, killed, had sent.  That must not come after
# what this one does, and no request waits for it.
SETTLES_S = 5.0
READ_ONLY = 1 << 1
FIXED_NEWSTYLE = 1 << 0
NOTHING = memoryview(b"")
LOST = "the connection to the NBD server is lost"


class Place(NamedTuple):
    """Where an export is."""

    socket: str  # path of a Unix socket, or ""
    host: str
    port: int
    export: str


class Offered(NamedTuple):
    """What a server says of its export."""

    size_bytes: int
    flags: int
    block_bytes: int = 512
    longest_bytes: int = nbd.LONGEST_BYTES


def is_uri(name: str) -> bool:
    """Return whether a name is the address of an export."""
    return name.partition("://")[0] in (*SCHEMES, "nbds", "nbds+unix") and "://" in name


def place_of(uri: str) -> Place:
    """Return what an address names; raise DeviceError if it cannot be used."""
    try:
        parts = urlsplit(uri)
        port = parts.port or PORT
    except ValueError as error:
        raise DeviceError(f"{uri}: {error}") from None
    if parts.scheme not in SCHEMES:
        raise DeviceError(f"{uri}: encryption is not supported: use nbd:// or nbd+unix://")
    export = unquote(parts.path.removeprefix("/"))
    if parts.scheme == "nbd":
        if not parts.hostname:
            raise DeviceError(f"{uri}: names no host: write nbd://HOST:PORT/EXPORT")
        return Place("", parts.hostname, port, export)
    path = parse_qs(parts.query).get("socket", [""])[0]
    if not path:
        raise DeviceError(f"{uri}: names no socket: write nbd+unix:///EXPORT?socket=PATH")
    return Place(os.path.abspath(path), "", 0, export)


@dataclass(eq=False)
class Waiting:
    """A request without an answer."""

    where: memoryview  # of a read
    error: int = 0
    is_answered: threading.Lock = field(default_factory=threading.Lock)


class Remote:
    """An export that is open.  For several threads."""

    def __init__(
        self, path: str, place: Place, connection: socket.socket, offered: Offered
    ) -> None:
        """Take a connection after its handshake."""
        self.path, self.place = path, place
        self.block_bytes = offered.block_bytes
        self.size_bytes = offered.size_bytes // self.block_bytes * self.block_bytes
        self._longest = max(offered.longest_bytes // self.block_bytes, 1) * self.block_bytes
        self._has_fua = bool(offered.flags & nbd.SENDS_FUA)
        self._can_trim = bool(offered.flags & nbd.SENDS_TRIM)
        self._socket = connection
        self._sends, self._state = threading.Lock(), threading.Lock()
        self._waiting: dict[int, Waiting] = {}
        self._cookie = 0
        self._is_lost = False
        self._thread = threading.Thread(target=self._receive, daemon=True, name="nbd answers")
        self._thread.start()

    @property
    def why_unknown(self) -> str:
        """Why its pages are not kept over a restart."""
        return "is an NBD export: it cannot be known whether others have written to it"

    def stamp(self) -> list[Any]:
        """Return a value that never comes again."""
        return [uuid.uuid4().hex]

    def is_same(self, name: str) -> bool:
        """Return whether an address is that of this export."""
        return is_uri(name) and place_of(name) == self.place

    def read(self, where: memoryview, offset: int) -> None:
        """Fill memory; raise OSError."""
        for at in range(0, len(where), self._longest):
            part = where[at : at + self._longest]
            self._ask(nbd.READ, 0, offset + at, len(part), where=part)

    def write(self, data: memoryview, offset: int, durable: bool) -> None:
        """Write memory, to the medium itself if `durable`; raise OSError."""
        flags = nbd.FUA if durable and self._has_fua else 0
        for at in range(0, len(data), self._longest):
            part = data[at : at + self._longest]
            self._ask(nbd.WRITE, flags, offset + at, len(part), data=part)
        if durable and not self._has_fua:
            self.flush()

    def flush(self) -> None:
        """Wait until all completed writes are on the medium; raise OSError."""
        self._ask(nbd.FLUSH, 0, 0, 0)

    def discard(self, offset: int, length: int) -> None:
        """Discard a range if the server can; its contents may be anything afterwards."""
        if not self._can_trim:
            return
        for at in range(0, length, self._longest):
            self._ask(nbd.TRIM, 0, offset + at, min(self._longest, length - at))

    def release(self) -> None:
        """Disconnect."""
        with contextlib.suppress(OSError), self._sends:
            request = nbd.REQUEST.pack(nbd.REQUEST_MAGIC, 0, nbd.DISCONNECT, 0, 0, 0)
            self._socket.sendall(request)
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _ask(
        self, kind: int, flags: int, offset: int, length: int,
        data: memoryview = NOTHING, where: memoryview = NOTHING,
    ) -> None:  # fmt: skip
        """Send a request and wait for its answer."""
        waiting = Waiting(where)
        waiting.is_answered.acquire()
        with self._state:
            if self._is_lost:
                raise OSError(errno.ENOTCONN, LOST)
            self._cookie += 1
            cookie = self._cookie
            self._waiting[cookie] = waiting
        head = nbd.REQUEST.pack(nbd.REQUEST_MAGIC, flags, kind, cookie, offset, length)
        try:
            with self._sends:
                nbd.send(self._socket, head, data)
        except OSError:
            self._lose()
        waiting.is_answered.acquire()
        if waiting.error:
            raise OSError(waiting.error, os.strerror(waiting.error))

    def _receive(self) -> None:
        try:
            while True:
                magic, error, cookie = nbd.REPLY.unpack(nbd.received(self._socket, nbd.REPLY.size))
                with self._state:
                    waiting = self._waiting.pop(cookie, None)
                if magic != nbd.SIMPLE_MAGIC or waiting is None:
                    raise nbd.ProtocolError("not an answer to a request")
                try:
                    if not error:
                        nbd.receive_into(self._socket, waiting.where)
                except BaseException:
                    error = errno.ENOTCONN
                    raise
                finally:
                    waiting.error = error
                    waiting.is_answered.release()
        except (nbd.ProtocolError, OSError):
            self._lose()

    def _lose(self) -> None:
        """Fail all requests under way and all later ones."""
        with self._state:
            self._is_lost = True
            lost, self._waiting = self._waiting, {}
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        for each in lost.values():
            each.error = errno.ENOTCONN
            each.is_answered.release()


def open_export(uri: str) -> Remote:
    """Connect to an export; raise DeviceError if that is not possible or it cannot be written."""
    place = place_of(uri)
    try:
        connection = _connected(place)
    except OSError as error:
        raise DeviceError(f"{uri}: {error.strerror or error}: is the server running?") from None
    try:
        offered = _negotiated(connection, place.export)
        if not offered.flags & nbd.HAS_FLAGS or offered.flags & READ_ONLY:
            raise DeviceError(f"{uri}: can only be read")
        if not offered.flags & nbd.SENDS_FLUSH:
            raise DeviceError(f"{uri}: has no FLUSH, so that nobody knows when a write is durable")
        connection.settimeout(None)
        return Remote(uri, place, connection, offered)
    except (nbd.ProtocolError, OSError, struct.error) as error:
        connection.close()
        raise DeviceError(f"{uri}: {error}") from None
    except BaseException:
        connection.close()
        raise


def _connected(place: Place) -> socket.socket:
    if place.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(PATIENCE_S)
        try:
            connection.connect(place.socket)
        except BaseException:
            connection.close()
            raise
        return connection
    connection = socket.create_connection((place.host, place.port), PATIENCE_S)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, UNREACHABLE_MS)
    return connection


def _negotiated(connection: socket.socket, export: str) -> Offered:
    """Choose an export; raise ProtocolError with the server's reason."""
    magic, option_magic = struct.unpack(">8s8s", nbd.received(connection, 16))
    if magic != b"NBDMAGIC" or option_magic != b"IHAVEOPT":
        raise nbd.ProtocolError("is no NBD server, or one of the old handshake")
    (flags,) = struct.unpack(">H", nbd.received(connection, 2))
    if not flags & FIXED_NEWSTYLE:
        raise nbd.ProtocolError("its server has no fixed newstyle handshake")
    zeroes = flags & nbd.NO_ZEROES
    connection.sendall(struct.pack(">I", FIXED_NEWSTYLE | zeroes))
    name = export.encode()
    wish = struct.pack(">I", len(name)) + name + struct.pack(">HH", 1, nbd.INFO_BLOCK_SIZE)
    connection.sendall(nbd.OPTION.pack(b"IHAVEOPT", nbd.GO, len(wish)) + wish)
    found: Offered | None = None
    block, longest = 512, nbd.LONGEST_BYTES
    while True:
        kind, data = _option_reply(connection)
        if kind == nbd.ACK:
            if found is None:
                raise nbd.ProtocolError("its server says nothing of the export")
            return found._replace(block_bytes=block, longest_bytes=longest)
        if kind == nbd.INFORMATION and len(data) >= 2:
            (what,) = struct.unpack(">H", data[:2])
            if what == nbd.INFO_EXPORT:
                found = Offered(*struct.unpack(">QH", data[2:12]))
            elif what == nbd.INFO_BLOCK_SIZE:
                least, _, most = struct.unpack(">III", data[2:14])
                block, longest = max(least, 512), min(most, nbd.LONGEST_BYTES)
        elif kind == nbd.UNSUPPORTED:
            connection.sendall(nbd.OPTION.pack(b"IHAVEOPT", nbd.EXPORT_NAME, len(name)) + name)
            size_flags = struct.unpack(">QH", nbd.received(connection, 10))
            nbd.received(connection, 0 if zeroes else 124)
            return Offered(*size_flags)
        elif kind & 1 << 31:
            reason = data.decode(errors="replace") or f"error {kind & 0x7FFFFFFF}"
            raise nbd.ProtocolError(f"its server refuses the export {export!r}: {reason}")


def _option_reply(connection: socket.socket) -> tuple[int, bytes]:
    magic, _, kind, length = nbd.OPTION_REPLY.unpack(
        nbd.received(connection, nbd.OPTION_REPLY.size)
    )
    if magic != nbd.REPLY_MAGIC or length > nbd.OPTION_BYTES:
        raise nbd.ProtocolError("its server does not keep to the protocol")
    return int(kind), nbd.received(connection, length)
