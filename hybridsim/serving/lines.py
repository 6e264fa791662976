"""Reads and writes of a device: those that overlap in order of submission, others in parallel.

So each device has the contents that it would have if all took effect when they were submitted,
which the cache assumes (DESIGN.md 2.3).
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import struct
from dataclasses import dataclass, field

from hybridsim.engine.serving import Order
from hybridsim.foundation.codes import FUA, OP_MASK, Op
from hybridsim.serving.claims import Claim

BLKDISCARD = 0x1277
PUNCH_HOLE, KEEP_SIZE = 2, 1  # of fallocate


def buffer(length: int) -> memoryview:
    """Return zeroed memory that begins at a memory page, as direct I/O needs it."""
    return memoryview(mmap.mmap(-1, length)) if length else memoryview(b"")


class Medium:
    """A device or file, from `start` on."""

    def __init__(self, claim: Claim, start: int = 0) -> None:
        """Serve from a claim; `start` is in bytes."""
        self.claim, self.start = claim, start
        self.size_bytes = claim.size_bytes - start

    def read(self, where: memoryview, offset: int) -> None:
        """Fill memory; raise OSError."""
        done = 0
        while done < len(where):
            count = os.preadv(self.claim.fd, [where[done:]], self.start + offset + done)
            if count == 0:
                raise OSError(errno.EIO, "the device ends too early")
            done += count

    def write(self, data: memoryview, offset: int, durable: bool = False) -> None:
        """Write memory, to the medium itself if `durable`; raise OSError."""
        done, flags = 0, os.RWF_DSYNC if durable else 0
        while done < len(data):
            count = os.pwritev(self.claim.fd, [data[done:]], self.start + offset + done, flags)
            if count == 0:
                raise OSError(errno.EIO, "the device ends too early")
            done += count

    def flush(self) -> None:
        """Wait until all completed writes are on the medium; raise OSError."""
        os.fdatasync(self.claim.fd)

    def discard(self, offset: int, length: int) -> None:
        """Discard a range if the device can; its contents may be anything afterwards."""
        begin = self.start + offset
        try:
            if self.claim.is_block:
                fcntl.ioctl(self.claim.fd, BLKDISCARD, struct.pack("QQ", begin, length))
            else:
                _punch_hole(self.claim.fd, begin, length)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOTTY, errno.EINVAL, errno.ENOSYS):
                raise

    def bytes_at(self, offset: int, length: int) -> bytes:
        """Return bytes from the beginning of the device, not from `start`; raise OSError."""
        block = self.claim.block_bytes
        first, end = offset // block * block, -(-(offset + length) // block) * block
        where = buffer(end - first)
        Medium(self.claim).read(where, first)
        return bytes(where[offset - first : offset - first + length])


def _punch_hole(fd: int, offset: int, length: int) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    arguments = fd, PUNCH_HOLE | KEEP_SIZE, ctypes.c_int64(offset), ctypes.c_int64(length)
    if libc.fallocate(*arguments) != 0:
        raise OSError(ctypes.get_errno(), "fallocate")


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
