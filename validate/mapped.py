"""What a mapped device says of itself, and that it is to begin, said to the kernel directly.

dmsetup takes a process each time, two tenths of a second in a guest: too long to know when the
counters stood where they are said to, or when the cache began.  The structures are those of
linux/dm-ioctl.h.
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
    """Return the lines of `dmsetup status --noflush NAME`; RunError where the kernel refuses."""
    return _ask(name, NO_FLUSH)


def table(name: str) -> list[str]:
    """Return the lines of `dmsetup table NAME`."""
    return _ask(name, NO_FLUSH | STATUS_TABLE)


def resume(name: str) -> None:
    """Let a device work with the table that was loaded; RunError where the kernel refuses."""
    _tell(name, RESUME, 0)


def _ask(name: str, flags: int) -> list[str]:
    answer = _tell(name, TABLE_STATUS, flags)
    _, _, _, _, start, count, *_ = HEAD.unpack_from(answer)
    return _lines(answer, start, count)


def _tell(name: str, command: int, flags: int) -> bytearray:
    question = bytearray(BUFFER_BYTES)
    HEAD.pack_into(question, 0, 4, 0, 0, BUFFER_BYTES, HEAD.size, 0, 0, flags, 0, 0,
                   name.encode(), b"")  # fmt: skip
    try:
        control = os.open(CONTROL, os.O_RDWR)
        try:
            fcntl.ioctl(control, command, question)
        finally:
            os.close(control)
    except OSError as error:
        raise RunError(f"the mapped device {name} does not answer: {error.strerror}") from None
    return question


def _lines(answer: bytearray, start: int, count: int) -> list[str]:
    found, at = [], start
    for _ in range(count):
        first, length, _, following, kind = TARGET.unpack_from(answer, at)
        text = answer[at + TARGET.size : answer.index(0, at + TARGET.size)].decode()
        found.append(f"{first} {length} {kind.rstrip(bytes(1)).decode()} {text}".strip())
        at = start + following  # counted from the first one
    return found
