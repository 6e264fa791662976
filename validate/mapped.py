"""Query and resume mapped devices by ioctl(2).

dmsetup needs a new process each time, which takes 0.2 s in a guest: too long to give exact times
for the counters and for the start of the cache.  The structures are those of linux/dm-ioctl.h.
"""

from __future__ import annotations

import fcntl
import os
import struct

from validate.errors import RunError

CONTROL = "/dev/mapper/control"
RESUME, TABLE_STATUS = 0xC138FD06, 0xC138FD0C  # DM_DEV_SUSPEND without its flag resumes
HEAD = struct.Struct("=3IIIIiII4xQ128s129s7x")  # struct dm_ioctl
TARGET = struct.Struct("=QQiI16s")  # struct dm_target_spec
BUFFER_BYTES = 16 << 10
NO_FLUSH, STATUS_TABLE = 1 << 11, 1 << 4


def status(name: str) -> list[str]:
    """Return the lines of `dmsetup status --noflush NAME`; raise RunError on failure."""
    return _query(name, NO_FLUSH)


def table(name: str) -> list[str]:
    """Return the lines of `dmsetup table NAME`; raise RunError on failure."""
    return _query(name, NO_FLUSH | STATUS_TABLE)


def resume(name: str) -> None:
    """Activate the table that was loaded; raise RunError on failure."""
    _ioctl(name, RESUME, 0)


def _query(name: str, flags: int) -> list[str]:
    answer = _ioctl(name, TABLE_STATUS, flags)
    _, _, _, _, start, count, *_ = HEAD.unpack_from(answer)
    return _lines(answer, start, count)


def _ioctl(name: str, command: int, flags: int) -> bytearray:
    buffer = bytearray(BUFFER_BYTES)
    HEAD.pack_into(buffer, 0, 4, 0, 0, BUFFER_BYTES, HEAD.size, 0, 0, flags, 0, 0,
                   name.encode(), b"")  # fmt: skip
    try:
        control = os.open(CONTROL, os.O_RDWR)
        try:
            fcntl.ioctl(control, command, buffer)
        finally:
            os.close(control)
    except OSError as error:
        raise RunError(f"cannot query the mapped device {name}: {error.strerror}") from None
    return buffer


def _lines(answer: bytearray, start: int, count: int) -> list[str]:
    lines, at = [], start
    for _ in range(count):
        first, length, _, following, kind = TARGET.unpack_from(answer, at)
        text = answer[at + TARGET.size : answer.index(0, at + TARGET.size)].decode()
        lines.append(f"{first} {length} {kind.rstrip(bytes(1)).decode()} {text}".strip())
        at = start + following  # relative to the first target
    return lines
