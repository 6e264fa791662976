"""Reads and writes of a device: those that overlap in order of submission, others in parallel.

So each device has the contents that it would have if all took effect when they were submitted,
which the cache assumes (DESIGN.md 2.3).
"""

from __future__ import annotations

import errno
import mmap
from dataclasses import dataclass, field
from typing import Any, Protocol

from hybridsim.engine.serving import Order
from hybridsim.foundation.codes import FUA, OP_MASK, Op


def buffer(length: int) -> memoryview:
    """Return zeroed memory that begins at a memory page, as direct I/O needs it."""
    return memoryview(mmap.mmap(-1, length)) if length else memoryview(b"")


class Device(Protocol):
    """A claimed device, file or NBD export (claims, remote); errors are OSErrors."""

    @property
    def path(self) -> str:
        """The name that the user has for it."""

    @property
    def size_bytes(self) -> int:
        """Its size."""

    @property
    def block_bytes(self) -> int:
        """What offsets and lengths must be multiples of."""

    @property
    def why_unknown(self) -> str:
        """Why it cannot be known whether others have written to it; "" if it can."""

    def read(self, where: memoryview, offset: int) -> None:
        """Fill memory."""

    def write(self, data: memoryview, offset: int, durable: bool) -> None:
        """Write memory, to the medium itself if `durable`."""

    def flush(self) -> None:
        """Wait until all completed writes are on the medium."""

    def discard(self, offset: int, length: int) -> None:
        """Discard a range if the device can; its contents may be anything afterwards."""

    def stamp(self) -> list[Any]:
        """Return values that change with any write to it by others, and with a reboot."""

    def is_same(self, name: str) -> bool:
        """Return whether a name is one of this device; raise OSError if there is no such device."""

    def release(self) -> None:
        """End the claim."""


class Medium:
    """A device from `start` on."""

    def __init__(self, device: Device, start: int = 0) -> None:
        """Serve from a claimed device; `start` is in bytes."""
        self.device, self.start = device, start
        self.size_bytes = device.size_bytes - start

    def read(self, where: memoryview, offset: int) -> None:
        """Fill memory; raise OSError."""
        self.device.read(where, self.start + offset)

    def write(self, data: memoryview, offset: int, durable: bool = False) -> None:
        """Write memory, to the medium itself if `durable`; raise OSError."""
        self.device.write(data, self.start + offset, durable)

    def flush(self) -> None:
        """Wait until all completed writes are on the medium; raise OSError."""
        self.device.flush()

    def discard(self, offset: int, length: int) -> None:
        """Discard a range if the device can; its contents may be anything afterwards."""
        self.device.discard(self.start + offset, length)

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Return bytes from the beginning of the device, not from `start`; raise OSError."""
        block = self.device.block_bytes
        first, end = offset // block * block, -(-(offset + length) // block) * block
        where = buffer(end - first)
        self.device.read(where, first)
        return bytes(where[offset - first : offset - first + length])


@dataclass(eq=False)
class Job:
    """An order with its data."""

    order: Order
    data: memoryview
    error: int = 0  # errno
    is_void: bool = False  # a read of what a failed write should have written
    waits: int = 0  # jobs that it waits for
    followers: list[Job] = field(default_factory=list)

    @property
    def changes(self) -> bool:
        """Whether it changes the contents of its range."""
        return self.order.op & OP_MASK in (Op.WRITE, Op.DISCARD)

    def carry_out(self, medium: Medium) -> None:
        """Do it; `error` is set on failure."""
        op, at = self.order.op & OP_MASK, self.order.offset
        try:
            if op == Op.READ:
                medium.read(self.data, at)
            elif op == Op.WRITE:
                medium.write(self.data, at, bool(self.order.op & FUA))
            elif op == Op.FLUSH:
                medium.flush()
            else:
                medium.discard(at, self.order.length)
                if self.order.op & FUA:
                    medium.flush()
        except OSError as error:
            self.error = error.errno or errno.EIO


class Line:
    """The jobs of a device that are not complete."""

    def __init__(self) -> None:
        self._jobs: list[Job] = []

    def add(self, job: Job) -> bool:
        """Append a job; return whether it can be carried out now."""
        begin, end = job.order.offset, job.order.offset + job.order.length
        for other in self._jobs:
            at = other.order.offset
            if at < end and begin < at + other.order.length and (job.changes or other.changes):
                other.followers.append(job)
                job.waits += 1
        self._jobs.append(job)
        return job.waits == 0

    def end(self, job: Job) -> list[Job]:
        """Remove a job; return those that can be carried out now.

        What overlaps a failed write is unknown: later reads of it are void.
        """
        self._jobs.remove(job)
        for each in job.followers:
            each.waits -= 1
            each.is_void |= bool(job.error) and job.changes and not each.changes
        return [each for each in job.followers if each.waits == 0]
