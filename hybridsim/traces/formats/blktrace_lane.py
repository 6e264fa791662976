"""One file of blktrace records, decoded block by block; damaged parts are skipped."""

from __future__ import annotations

import numpy as np

from hybridsim.traces.formats.blktrace_records import LOST, Log, decode, resync, unswap
from hybridsim.traces.formats.events import Events
from hybridsim.traces.formats.files import ByteStream


class Lane:
    """One file of records, decoded block by block."""

    def __init__(self, stream: ByteStream, cpu: int, wanted: int, log: Log, block_bytes: int):
        self.stream = stream
        self.skipped: list[tuple[int, int]] = []  # (byte offset, bytes)
        self.cut_at = -1  # byte offset of a truncated last record
        self.ended = False
        self.swapped = False  # written by a machine of the other byte order
        self.cpu = cpu
        self._wanted = wanted
        self._log = log
        self._block = np.empty(block_bytes, np.uint8)
        self._last_ns = np.full(1, -1, np.int64)
        self._held = 0  # bytes of the block that belong to the next record
        self._base = 0  # byte offset of the block in the file
        self._lost_at = -1  # byte offset at which a record was expected

    def fill(self, events: Events) -> int:
        """Fill `events` from the next block; return their number, 0 at the end of the file."""
        while not self.ended:
            room = memoryview(self._block)[self._held :]  # type: ignore[arg-type]
            got = self.stream.readinto(room)
            self.ended = got == 0
            self.swapped = self.swapped or self._block[:3].tobytes() == b"eat"
            count = self._decode(self._held + got, events)
            if count:
                return count
        return 0

    def _decode(self, stop: int, events: Events) -> int:
        """Decode the block up to `stop`, skipping damage; keep the rest for the next block."""
        at = count = 0
        while True:
            if self._lost_at >= 0:
                at, result = self._resync(at, stop)
                if not result:
                    break
                self._skip_to(self._base + at)
            if self.swapped:
                unswap(self._block, at, stop)
            at, resume, rows, status = decode(
                self._block,
                at,
                stop,
                self.cpu,
                self._wanted,
                self._last_ns,
                self._log,
                events[count:],
            )
            count += rows
            if status != LOST:
                if not self.ended or at == stop:
                    break
                # The last record is truncated, or its length is wrong and records follow.
                resume, result = self._resync(at + 1, stop)
                if not result:
                    self.cut_at = self._base + at
                    break
            self._lost_at = self._base + at
            at = resume
        if self.ended and self._lost_at >= 0:
            self._skip_to(self._base + stop)
        self._held = stop - at
        self._block[: self._held] = self._block[at:stop].copy()
        self._base += at
        return count

    def _resync(self, at: int, stop: int) -> tuple[int, bool]:
        at, result = resync(self._block, at, stop, self.ended, int(self._last_ns[0]), self.cpu)
        self.swapped = self.swapped or self._block[at : at + 3].tobytes() == b"eat"
        return int(at), bool(result)

    def _skip_to(self, offset: int) -> None:
        if offset > self._lost_at:
            self.skipped.append((self._lost_at, offset - self._lost_at))
            # Do not also report the skipped records as dropped by the kernel.
            self._log.sequence[:, self.cpu if self.cpu >= 0 else slice(None)] = 0
        self._lost_at = -1
