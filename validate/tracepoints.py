"""The kernel's tracepoints, counted by the kernel: exact, at hardly any cost, gone when we are.

perf_event_open(2) counts what matches a filter on each processor; no event is stored or lost.
Nothing of the tracing that others may do is touched.
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
ATTRIBUTE = struct.Struct("=IIQQQQQIIQ")  # perf_event_attr, as long as its first version
CLOSE_ON_EXEC = 8  # PERF_FLAG_FD_CLOEXEC
SET_FILTER = 0x40082406  # PERF_EVENT_IOC_SET_FILTER
EVERY_PROCESS = -1
_LIBC = ctypes.CDLL(None, use_errno=True)


class Count:
    """How often a tracepoint was passed, on all processors, where a filter matched."""

    def __init__(self, event: str, condition: str, system: System) -> None:
        """Begin to count, from 0.  Raises MissingError where the kernel does not let us."""
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
                f"the kernel does not count its tracepoint {event}: {error.strerror}; it takes "
                "root, and a lockdown that is not `confidentiality`"
            ) from None

    def value(self) -> int:
        """Return the count."""
        return sum(struct.unpack("=Q", os.read(fd, 8))[0] for fd in self._fds)

    def close(self) -> None:
        """Count no more."""
        while self._fds:
            os.close(self._fds.pop())


def folder(event: str, system: System) -> Path:
    """Return the folder of a tracepoint, `system/name`; MissingError where there is none."""
    for place in PLACES:
        if (system.sys / place / "events").is_dir():
            found = system.sys / place / "events" / event
            if not found.is_dir():
                raise MissingError(f"the kernel has no tracepoint {event}")
            return found
    raise MissingError("tracefs is not mounted: mount -t tracefs none /sys/kernel/tracing")


def fields(event: str, system: System) -> set[str]:
    """Return the names of a tracepoint's fields."""
    text = system.read(folder(event, system) / "format", "")
    return set(re.findall(r"field:[^;]*?(\w+)(?:\[\w*\])?;", text))


def processors(text: str) -> list[int]:
    """Return the numbers in a list such as 0-3,8."""
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


def _filter(fd: int, condition: str) -> None:
    text = ctypes.create_string_buffer(condition.encode())
    if _LIBC.ioctl(fd, ctypes.c_ulong(SET_FILTER), text) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _open(number: int, cpu: int) -> int:
    call = CALLS.get(platform.machine())
    if call is None:
        raise OSError(38, "not known on this kind of processor")
    attribute = ATTRIBUTE.pack(TRACEPOINT, ATTRIBUTE.size, number, 0, 0, 0, 0, 0, 0, 0)
    fd: int = _LIBC.syscall(call, attribute, EVERY_PROCESS, cpu, -1, CLOSE_ON_EXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd
