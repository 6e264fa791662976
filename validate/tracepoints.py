"""Count tracepoints in the kernel: exact counters at little cost.

perf_event_open(2) counts the events that match a filter on each processor; no event is stored or
lost.  The counters end with this process, and do not affect other users of tracing.
"""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct
from pathlib import Path

from validate.errors import MissingError
from validate.system import System

PLACES = ("kernel/tracing", "kernel/debug/tracing")
CALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
TRACEPOINT = 2  # PERF_TYPE_TRACEPOINT
ATTRIBUTE = struct.Struct("=IIQQQQQIIQ")  # perf_event_attr, in the size of its first version
CLOSE_ON_EXEC = 8  # PERF_FLAG_FD_CLOEXEC
SET_FILTER = 0x40082406  # PERF_EVENT_IOC_SET_FILTER
EVERY_PROCESS = -1
_LIBC = ctypes.CDLL(None, use_errno=True)


class Count:
    """The number of events of a tracepoint that match a filter, on all processors."""

    def __init__(self, event: str, condition: str, system: System) -> None:
        """Start to count at 0.  Raises MissingError if the kernel refuses."""
        self._fds: list[int] = []
        number = int(system.read(folder(event, system) / "id"))
        try:
            for cpu in processors(system.read(system.sys / "devices/system/cpu/online", "0")):
                self._fds.append(_open(number, cpu))
                if condition:
                    _filter(self._fds[-1], condition)
        except OSError as error:
            self.close()
            raise MissingError(
                f"cannot count the tracepoint {event}: {error.strerror}; this needs root, and a "
                "kernel lockdown other than `confidentiality`"
            ) from None

    def value(self) -> int:
        """Return the count."""
        return sum(struct.unpack("=Q", os.read(fd, 8))[0] for fd in self._fds)

    def close(self) -> None:
        """Stop to count."""
        while self._fds:
            os.close(self._fds.pop())


def folder(event: str, system: System) -> Path:
    """Return the folder of a tracepoint `system/name`; raise MissingError if there is none."""
    for place in PLACES:
        if (system.sys / place / "events").is_dir():
            path = system.sys / place / "events" / event
            if not path.is_dir():
                raise MissingError(f"the kernel has no tracepoint {event}")
            return path
    raise MissingError("tracefs is not mounted: mount -t tracefs none /sys/kernel/tracing")


def fields(event: str, system: System) -> set[str]:
    """Return the names of a tracepoint's fields."""
    text = system.read(folder(event, system) / "format", "")
    return set(re.findall(r"field:[^;]*?(\w+)(?:\[\w*\])?;", text))


def processors(text: str) -> list[int]:
    """Return the numbers in a list such as 0-3,8."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def _filter(fd: int, condition: str) -> None:
    text = ctypes.create_string_buffer(condition.encode())
    if _LIBC.ioctl(fd, ctypes.c_ulong(SET_FILTER), text) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _open(number: int, cpu: int) -> int:
    call = CALLS.get(platform.machine())
    if call is None:
        raise OSError(38, "not supported on this processor architecture")
    attribute = ATTRIBUTE.pack(TRACEPOINT, ATTRIBUTE.size, number, 0, 0, 0, 0, 0, 0, 0)
    fd: int = _LIBC.syscall(call, attribute, EVERY_PROCESS, cpu, -1, CLOSE_ON_EXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd
