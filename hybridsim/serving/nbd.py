"""The Network Block Device protocol: the server's side for one export, and exports as devices.

Source: the protocol (https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md):
"newstyle fixed" handshake, simple replies.  All numbers are big-endian.
"""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
import threading
import time
import uuid
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from hybridsim.foundation.errors import DeviceError

FIXED_NEWSTYLE, NO_ZEROES = 1 << 0, 1 << 1
GREETING = struct.pack(">8s8sH", b"NBDMAGIC", b"IHAVEOPT", FIXED_NEWSTYLE | NO_ZEROES)
OPTION = struct.Struct(">8sII")  # IHAVEOPT, option, length of its data
REPLY_MAGIC = 0x3E889045565A9
OPTION_REPLY = struct.Struct(">QIII")
EXPORT_NAME, ABORT, LIST, INFO, GO = 1, 2, 3, 6, 7
ACK, SERVER, INFORMATION = 1, 2, 3
UNSUPPORTED, INVALID = 1 << 31 | 1, 1 << 31 | 3
INFO_EXPORT, INFO_BLOCK_SIZE = 0, 3

HAS_FLAGS, READ_ONLY, SENDS_FLUSH, SENDS_FUA = 1 << 0, 1 << 1, 1 << 2, 1 << 3
ROTATIONAL, SENDS_TRIM, SENDS_ZEROES, MULTI_CONN = 1 << 4, 1 << 5, 1 << 6, 1 << 8
REQUEST = struct.Struct(">IHHQQI")
REQUEST_MAGIC = 0x25609513
READ, WRITE, DISCONNECT, FLUSH, TRIM, WRITE_ZEROES = 0, 1, 2, 3, 4, 6
FUA = 1 << 0
REPLY = struct.Struct(">IIQ")
SIMPLE_MAGIC = 0x67446698
LONGEST_BYTES = 32 << 20  # of one request
APART_S = 150e-6  # enough for a client to read the head of a reply
OPTION_BYTES = 4096  # limit for the data of an option
# Errors that the protocol has; they have the numbers of Linux.  Devices have others as well, such
# as ENODATA for a sector that cannot be read.
ERRORS = (errno.EPERM, errno.EIO, errno.ENOMEM, errno.EINVAL, errno.ENOSPC, errno.EOVERFLOW,
          errno.EOPNOTSUPP, errno.ESHUTDOWN)  # fmt: skip
INSTEAD = {errno.EROFS: errno.EPERM, errno.EDQUOT: errno.ENOSPC, errno.EFBIG: errno.ENOSPC}


class ProtocolError(Exception):
    """The other side violated the protocol, or disconnected within a message."""


@dataclass(frozen=True)
class Export:
    """The properties of an exported disk."""

    size_bytes: int
    can_trim: bool = True
    is_rotational: bool = False
    block_bytes: int = 512
    can_zero: bool = True
    is_shared: bool = False  # a flush on one connection holds for the writes of all

    @property
    def flags(self) -> int:
        """The transmission flags of the protocol."""
        flags = HAS_FLAGS | SENDS_FLUSH | SENDS_FUA | SENDS_ZEROES * self.can_zero
        flags |= MULTI_CONN * self.is_shared
        return flags | ROTATIONAL * self.is_rotational | SENDS_TRIM * self.can_trim


class Request(NamedTuple):
    """A request of a client."""

    kind: int
    flags: int
    cookie: int
    offset: int
    length: int


def received(connection: socket.socket, length: int) -> bytes:
    """Return exactly `length` bytes; raise ProtocolError if the client disconnects."""
    parts = bytearray(length)
    receive_into(connection, memoryview(parts))
    return bytes(parts)


def receive_into(connection: socket.socket, where: memoryview) -> None:
    """Fill a buffer; raise ProtocolError if the client disconnects."""
    while where:
        count = connection.recv_into(where)
        if not count:
            raise ProtocolError("the client disconnected")
        where = where[count:]


def shake_hands(connection: socket.socket, export: Export) -> bool:
    """Negotiate the only export with a client; return whether requests follow."""
    connection.sendall(GREETING)
    (client_flags,) = struct.unpack(">I", received(connection, 4))
    while True:
        magic, option, length = OPTION.unpack(received(connection, OPTION.size))
        if magic != b"IHAVEOPT" or length > OPTION_BYTES:
            raise ProtocolError("not an NBD option")
        data = received(connection, length)
        if option == EXPORT_NAME:
            zeroes = b"" if client_flags & NO_ZEROES else bytes(124)
            connection.sendall(struct.pack(">QH", export.size_bytes, export.flags) + zeroes)
            return True
        if option in (GO, INFO):
            if _inform(connection, export, option, data) and option == GO:
                return True
        elif option == LIST:
            _answer(connection, option, SERVER, struct.pack(">I", 0))
            _answer(connection, option, ACK)
        elif option == ABORT:
            _answer(connection, option, ACK)
            return False
        else:
            _answer(connection, option, UNSUPPORTED)


def _inform(connection: socket.socket, export: Export, option: int, data: bytes) -> bool:
    """Describe the export; its name and the requested kinds of information are ignored."""
    if len(data) < 6 or struct.unpack(">I", data[:4])[0] > len(data) - 6:
        _answer(connection, option, INVALID)
        return False
    size = struct.pack(">HQH", INFO_EXPORT, export.size_bytes, export.flags)
    _answer(connection, option, INFORMATION, size)
    blocks = (INFO_BLOCK_SIZE, export.block_bytes, 4096, LONGEST_BYTES)
    _answer(connection, option, INFORMATION, struct.pack(">HIII", *blocks))
    _answer(connection, option, ACK)
    return True


def _answer(connection: socket.socket, option: int, kind: int, data: bytes = b"") -> None:
    connection.sendall(OPTION_REPLY.pack(REPLY_MAGIC, option, kind, len(data)) + data)


def next_request(connection: socket.socket) -> Request:
    """Return the next request; the caller reads the data of a WRITE."""
    magic, flags, kind, cookie, offset, length = REQUEST.unpack(received(connection, REQUEST.size))
    if magic != REQUEST_MAGIC:
        raise ProtocolError("not an NBD request")
    if kind == WRITE and length > LONGEST_BYTES:
        raise ProtocolError(f"a write of {length} bytes")
    return Request(kind, flags, cookie, offset, length)


def wrong(request: Request, export: Export) -> int:
    """Return the errno of an invalid request, or 0."""
    optional = {TRIM: export.can_trim, WRITE_ZEROES: export.can_zero}
    if not optional.get(request.kind, request.kind in (READ, WRITE, FLUSH)):
        return errno.EINVAL
    if request.kind == READ and request.length > LONGEST_BYTES:
        return errno.EINVAL
    beyond = request.kind != FLUSH and request.offset + request.length > export.size_bytes
    return (errno.ENOSPC if request.kind in (WRITE, WRITE_ZEROES) else errno.EINVAL) * beyond


def reply(
    connection: socket.socket, cookie: int, error: int, data: memoryview, *, apart: bool = False
) -> None:
    """Answer a request; with `apart` the data of a READ follow APART_S after the head."""
    if error and error not in ERRORS:
        error = INSTEAD.get(error, errno.EIO)
    head = REPLY.pack(SIMPLE_MAGIC, error, cookie)
    if apart and len(data):
        connection.sendall(head)
        time.sleep(APART_S)
        connection.sendall(data)
        return
    send(connection, head, data)


def send(connection: socket.socket, head: bytes, data: memoryview) -> None:
    """Send two parts, if possible at once."""
    sent = connection.sendmsg([head, data])
    if sent < len(head) + len(data):
        connection.sendall(head[sent:])
        connection.sendall(data[max(sent - len(head), 0) :])


# An export of a server as a device: `--slow nbd://host:port/name` (docs/how-to/serve.md).
#
# One connection with many requests under way; a thread matches the answers by cookie.  A connection
# that is lost stays lost, and everything later fails: the server may have been restarted and have
# lost writes that no flush had made durable, and a flush on a new connection would not show it.

SCHEMES = ("nbd", "nbd+unix")
PORT = 10809
PATIENCE_S = 30  # to connect and negotiate
UNREACHABLE_MS = 60_000  # without a sign of the host at the other end: the connection is lost
# A server may still carry out what an earlier client, killed, had sent.  That must not come after
# what this one does, and no request waits for it.
SETTLES_S = 5.0
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
    longest_bytes: int = LONGEST_BYTES


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

    # Why its pages are not kept over a restart.
    why_unknown = "is an NBD export: it cannot be known whether others have written to it"

    def __init__(
        self, path: str, place: Place, connection: socket.socket, offered: Offered
    ) -> None:
        """Take a connection after its handshake."""
        self.path, self.place = path, place
        self.block_bytes = offered.block_bytes
        self.size_bytes = offered.size_bytes // self.block_bytes * self.block_bytes
        self._longest = max(offered.longest_bytes // self.block_bytes, 1) * self.block_bytes
        self._has_fua = bool(offered.flags & SENDS_FUA)
        self._can_trim = bool(offered.flags & SENDS_TRIM)
        self._socket = connection
        self._sends, self._state = threading.Lock(), threading.Lock()
        self._waiting: dict[int, Waiting] = {}
        self._cookie = 0
        self._is_lost = False
        self._thread = threading.Thread(target=self._receive, daemon=True, name="nbd answers")
        self._thread.start()

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
            self._ask(READ, 0, offset + at, len(part), where=part)

    def write(self, data: memoryview, offset: int, durable: bool) -> None:
        """Write memory, to the medium itself if `durable`; raise OSError."""
        flags = FUA if durable and self._has_fua else 0
        for at in range(0, len(data), self._longest):
            part = data[at : at + self._longest]
            self._ask(WRITE, flags, offset + at, len(part), data=part)
        if durable and not self._has_fua:
            self.flush()

    def flush(self) -> None:
        """Wait until all completed writes are on the medium; raise OSError."""
        self._ask(FLUSH, 0, 0, 0)

    def discard(self, offset: int, length: int) -> None:
        """Discard a range if the server can; its contents may be anything afterwards."""
        if not self._can_trim:
            return
        for at in range(0, length, self._longest):
            self._ask(TRIM, 0, offset + at, min(self._longest, length - at))

    def release(self) -> None:
        """Disconnect."""
        with contextlib.suppress(OSError), self._sends:
            request = REQUEST.pack(REQUEST_MAGIC, 0, DISCONNECT, 0, 0, 0)
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
        head = REQUEST.pack(REQUEST_MAGIC, flags, kind, cookie, offset, length)
        try:
            with self._sends:
                send(self._socket, head, data)
        except OSError:
            self._lose()
        waiting.is_answered.acquire()
        if waiting.error:
            raise OSError(waiting.error, os.strerror(waiting.error))

    def _receive(self) -> None:
        try:
            while True:
                magic, error, cookie = REPLY.unpack(received(self._socket, REPLY.size))
                with self._state:
                    waiting = self._waiting.pop(cookie, None)
                if magic != SIMPLE_MAGIC or waiting is None:
                    raise ProtocolError("not an answer to a request")
                try:
                    if not error:
                        receive_into(self._socket, waiting.where)
                except BaseException:
                    error = errno.ENOTCONN
                    raise
                finally:
                    waiting.error = error
                    waiting.is_answered.release()
        except (ProtocolError, OSError):
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
        if not offered.flags & HAS_FLAGS or offered.flags & READ_ONLY:
            raise DeviceError(f"{uri}: can only be read")
        if not offered.flags & SENDS_FLUSH:
            raise DeviceError(f"{uri}: has no FLUSH, so that nobody knows when a write is durable")
        connection.settimeout(None)
        return Remote(uri, place, connection, offered)
    except (ProtocolError, OSError, struct.error) as error:
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
    magic, option_magic = struct.unpack(">8s8s", received(connection, 16))
    if magic != b"NBDMAGIC" or option_magic != b"IHAVEOPT":
        raise ProtocolError("is no NBD server, or one of the old handshake")
    (flags,) = struct.unpack(">H", received(connection, 2))
    if not flags & FIXED_NEWSTYLE:
        raise ProtocolError("its server has no fixed newstyle handshake")
    zeroes = flags & NO_ZEROES
    connection.sendall(struct.pack(">I", FIXED_NEWSTYLE | zeroes))
    name = export.encode()
    wish = struct.pack(">I", len(name)) + name + struct.pack(">HH", 1, INFO_BLOCK_SIZE)
    connection.sendall(OPTION.pack(b"IHAVEOPT", GO, len(wish)) + wish)
    found: Offered | None = None
    block, longest = 512, LONGEST_BYTES
    while True:
        kind, data = _option_reply(connection)
        if kind == ACK:
            if found is None:
                raise ProtocolError("its server says nothing of the export")
            return found._replace(block_bytes=block, longest_bytes=longest)
        if kind == INFORMATION and len(data) >= 2:
            (what,) = struct.unpack(">H", data[:2])
            if what == INFO_EXPORT:
                found = Offered(*struct.unpack(">QH", data[2:12]))
            elif what == INFO_BLOCK_SIZE:
                least, _, most = struct.unpack(">III", data[2:14])
                block, longest = max(least, 512), min(most, LONGEST_BYTES)
        elif kind == UNSUPPORTED:
            connection.sendall(OPTION.pack(b"IHAVEOPT", EXPORT_NAME, len(name)) + name)
            size_flags = struct.unpack(">QH", received(connection, 10))
            received(connection, 0 if zeroes else 124)
            return Offered(*size_flags)
        elif kind & 1 << 31:
            reason = data.decode(errors="replace") or f"error {kind & 0x7FFFFFFF}"
            raise ProtocolError(f"its server refuses the export {export!r}: {reason}")


def _option_reply(connection: socket.socket) -> tuple[int, bytes]:
    magic, _, kind, length = OPTION_REPLY.unpack(received(connection, OPTION_REPLY.size))
    if magic != REPLY_MAGIC or length > OPTION_BYTES:
        raise ProtocolError("its server does not keep to the protocol")
    return int(kind), received(connection, length)
