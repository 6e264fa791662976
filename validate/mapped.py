"""What a mapped device says of itself, asked of the kernel directly.

`dmsetup status` takes a process each time, a tenth of a second in a guest: too long to know when
the counters stood where they are said to.  The structures are those of linux/dm-ioctl.h.
"""

from __future__ import annotations

import fcntl
import os
import struct

from validate.errors import RunError

CONTROL = "/dev/mapper/control"
TABLE_STATUS = 0xC138FD0C
HEAD = struct.Struct("=3IIIIiII4xQ128s129s7x")  # struct dm_ioctl
TARGET = struct.Struct("=QQiI16s")  # struct dm_target_spec
BUFFER_BYTES = 16 << 10
NO_FLUSH, STATUS_TABLE = 1 << 11, 1 << 4


def status(name: str) -> list[str]:
    """Return the lines of `dmsetup status --noflush NAME`; RunError where the kernel refuses."""
    return _ask(name, NO_FLUSH)


def table(name: str) -> list[str]:
    """Return the lines of `dmsetup table NAME`."""
    return _ask(name, NO_FLUSH | STATUS_TABLE)


def _ask(name: str, flags: int) -> list[str]:
    question = bytearray(BUFFER_BYTES)
    HEAD.pack_into(question, 0, 4, 0, 0, BUFFER_BYTES, HEAD.size, 0, 0, flags, 0, 0,
                   name.encode(), b"")  # fmt: skip
    try:
        control = os.open(CONTROL, os.O_RDWR)
        try:
            fcntl.ioctl(control, TABLE_STATUS, question)
        finally:
            os.close(control)
    except OSError as error:
        raise RunError(f"the mapped device {name} does not answer: {error.strerror}") from None
    _, _, _, _, start, count, *_ = HEAD.unpack_from(question)
    return _lines(question, start, count)


def _lines(answer: bytearray, start: int, count: int) -> list[str]:
    found, at = [], start
    for _ in range(count):
        first, length, _, following, kind = TARGET.unpack_from(answer, at)
        text = answer[at + TARGET.size : answer.index(0, at + TARGET.size)].decode()
        found.append(f"{first} {length} {kind.rstrip(bytes(1)).decode()} {text}".strip())
        at = start + following  # counted from the first one
    return found
