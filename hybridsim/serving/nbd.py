"""The server's side of the Network Block Device protocol, for one export.

Source: the protocol (https://github.com/NetworkBlockDevice/nbd/blob/master/doc/proto.md):
"newstyle fixed" handshake, simple replies.  All numbers are big-endian.
"""

from __future__ import annotations

import errno
import socket
import struct
import time
from dataclasses import dataclass
from typing import NamedTuple

GREETING = struct.pack(
    ">8s8sH", b"NBDMAGIC", b"IHAVEOPT", 1 << 0 | 1 << 1
)  # fixed newstyle; no zeroes
NO_ZEROES = 1 << 1
OPTION = struct.Struct(">8sII")  # IHAVEOPT, option, length of its data
REPLY_MAGIC = 0x3E889045565A9
OPTION_REPLY = struct.Struct(">QIII")
EXPORT_NAME, ABORT, LIST, INFO, GO = 1, 2, 3, 6, 7
ACK, SERVER, INFORMATION = 1, 2, 3
UNSUPPORTED, INVALID = 1 << 31 | 1, 1 << 31 | 3
INFO_EXPORT, INFO_BLOCK_SIZE = 0, 3

HAS_FLAGS, SENDS_FLUSH, SENDS_FUA, ROTATIONAL, SENDS_TRIM, SENDS_ZEROES, MULTI_CONN = (
    1 << 0, 1 << 2, 1 << 3, 1 << 4, 1 << 5, 1 << 6, 1 << 8,
)  # fmt: skip
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
    """The client violated the protocol, or disconnected within a message."""


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
