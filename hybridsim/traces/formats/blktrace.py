"""Binary files of blktrace: one per CPU, a merged `blkparse -d` dump, or the stream of `-o -`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np

from hybridsim.foundation.errors import TraceError
from hybridsim.requests.rows import Findings, Requests
from hybridsim.traces.formats.blktrace_records import (
    LOST,
    MAGIC,
    Log,
    Of,
    Tally,
    decode,
    new_log,
    resync,
    rows_of,
    unswap,
)
from hybridsim.traces.formats.event_text import EventReader, Seen
from hybridsim.traces.formats.files import ByteStream, Source, cpu_of
from hybridsim.traces.formats.pairing import WINDOW, Events, Fill, InOrder, Pairer, room_for

BLOCK_BYTES_MAX = 1 << 20
BLOCK_BYTES_MIN = 1 << 18
BLOCKS_BYTES = 1 << 25  # of all files together
VERSIONS = (7, 8)
CAPTURE_AGAIN = "capture again with larger buffers: `blktrace -b 2048 -n 8`"
MAGICS = tuple((MAGIC | v).to_bytes(4, order) for v in VERSIONS for order in ("little", "big"))


def detect(head: bytes) -> bool:
    """Return whether a file begins with a blktrace record of any version."""
    return len(head) >= 4 and (head[1:4] == b"tae" or head[:3] == b"eat")


def holds_records(head: bytes) -> bool:
    """Return whether the head contains a record, as in a file with a damaged start."""
    return any(magic in head for magic in MAGICS)


def device_name(number: int) -> str:
    """Return a device number as `major,minor`."""
    return f"{number >> 20},{number & 0xFFFFF}"


class Reader(EventReader):
    """A blktrace capture; each pass reads the files again."""

    format = "blktrace"

    def __init__(self, sources: list[Source], device: str | None, use_dispatch: bool) -> None:
        self._sources = sources
        self._block_bytes = max(
            BLOCK_BYTES_MIN, min(BLOCK_BYTES_MAX, BLOCKS_BYTES // max(len(sources), 1))
        )
        for each in sources:
            check_version(each.name, each.head())
        log = self._survey(device)
        seen = SeenInLog(log)
        self.by_issue = use_dispatch or not seen.queued
        self.issued_only = not seen.queued and not use_dispatch
        name = sources[0].name
        self._choose(
            name, device, self._largest(name, log, seen) if device is None else device, seen
        )
        self._number = seen.first_seen[self._chosen]
        self.origin_unix_ns = wall_clock_ns(log, self._swapped)

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Read the files and yield their requests in order of arrival."""
        log = new_log()
        lanes = self._lanes(self._number, log, findings)
        fills: list[Fill] = [lane.fill for lane in lanes]
        batch = rows_of(self._block_bytes)
        if len(lanes) == 1:
            fills, batch = [InOrder(fills[0], batch).fill], WINDOW // 2
        pairer = Pairer(fills, batch, by_issue=self.by_issue)
        first_ns = None
        try:
            index = self._names.index(self._chosen)
            for some in pairer.requests(index, lambda: int(log.tally[Tally.FIRST_NS])):
                first_ns = int(some.arrival_ns[0]) if first_ns is None else first_ns
                yield some
        finally:
            for lane in lanes:
                lane.stream.close()
        self._count(SeenInLog(log))
        for lane in lanes:
            report_damage(findings, lane)
        report_gaps(findings, log)
        report_missing_files(findings, log, lanes)
        report_records(findings, log)
        self._report(findings, pairer, first_ns or 0)

    def _lanes(self, wanted: int, log: Log, findings: Findings) -> list[Lane]:
        """Open every file; several files are one per CPU, a single one may contain several CPUs."""
        return [
            Lane(
                each.open(findings),
                cpu_of(each.path) if each.path and len(self._sources) > 1 else -1,
                wanted,
                log,
                self._block_bytes,
            )
            for each in self._sources
        ]

    def _survey(self, device: str | None) -> Log:
        """Return the log of a first pass, which lists the devices.

        Only the first block of each file is read, unless these blocks contain several devices, no
        requests, or not the device that was specified.
        """
        log = new_log()
        lanes = self._lanes(-1, log, Findings())
        scratch = room_for(rows_of(self._block_bytes))
        for lane in lanes:
            lane.fill(scratch)
        seen = SeenInLog(log)
        names, moved = seen.first_seen, seen.queued or seen.issued
        if len(names) > 1 or not moved or (device is not None and device not in names):
            for lane in lanes:
                while lane.fill(scratch):
                    pass
        for lane in lanes:
            lane.stream.close()
        self._swapped = any(lane.swapped for lane in lanes)
        if not log.tally[Tally.RECORDS]:
            raise TraceError(
                f"{self._sources[0].name}: no intact blktrace record found: "
                "copy or capture the file again"
            )
        return log

    def _largest(self, name: str, log: Log, seen: Seen) -> str:
        """Return the device with most bytes queued, or issued."""
        if not seen.queued and not seen.issued:
            raise TraceError(
                f"{name}: {int(log.tally[Tally.RECORDS]):,} records, but no queue or issue events; "
                "capture with `blktrace -a queue -a issue -a complete`"
            )
        loads = seen.issued if self.by_issue else seen.queued
        if not loads:
            raise TraceError(
                f"{name}: --use-dispatch needs issue events; there are none: remove it, or capture "
                "with `blktrace -a issue -a complete`"
            )
        return max(loads, key=lambda each: loads[each][::-1])  # by bytes, then requests


class SeenInLog(Seen):
    """What a pass has seen of each device."""

    def __init__(self, log: Log) -> None:
        rows = log.devices[: int(log.tally[Tally.DEVICES])].tolist()
        self.first_seen = {device_name(row[Of.NUMBER]): row[Of.NUMBER] for row in rows}
        self.queued, self.issued = (
            {device_name(row[Of.NUMBER]): (row[n], row[n + 1]) for row in rows if row[n]}
            for n in (Of.QUEUED, Of.ISSUED)
        )


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


def check_version(name: str, head: bytes) -> None:
    """Raise TraceError for versions of blktrace records that cannot be read."""
    if not detect(head):
        return
    order: Literal["little", "big"] = "little" if head[1:4] == b"tae" else "big"
    version = head[0] if order == "little" else head[3]
    if version not in VERSIONS:
        raise TraceError(
            f"{name}: blktrace records of version {version}; supported are 7 and 8. "
            "A newer release of hybridsim may read them"
        )
    if version == 7 and _is_cut_v8(head, order):
        raise TraceError(
            f"{name}: malformed records of the ftrace `blk` tracer in `bin` mode (kernel 6.19 or "
            "later writes version 8 fields after a version 7 magic, truncated). "
            "Capture with blktrace(8) instead"
        )


def _is_cut_v8(head: bytes, order: Literal["little", "big"]) -> bool:
    """Return whether the action is where version 8 has it: at offset 32, eight bytes long."""

    def number(at: int, size: int) -> int:
        return int.from_bytes(head[at : at + size], order)

    action, wide = number(28, 4), number(32, 8)
    true_v7 = action >> 16 != 0 and 0 < (action & 0xFF) <= 19
    note = action >> 16 & 1 << 10
    seems_v8 = 0 < (wide & 0xFF) <= 19 and 0 < wide >> 16 < 1 << 23
    return len(head) >= 48 and not true_v7 and not note and seems_v8


def wall_clock_ns(log: Log, swapped: bool) -> int | None:
    """Return the Unix time of the first event in ns; None without a note of the wall clock."""
    tally = log.tally
    if tally[Tally.STAMP_NS] < 0 or tally[Tally.LAST_NS] < 0:
        return None
    clock = np.array([tally[Tally.WALL_S], tally[Tally.WALL_NS]], np.uint32)
    if swapped:
        clock.byteswap(inplace=True)
    if clock[1] >= 10**9:  # the payload was not swapped with the headers
        clock.byteswap(inplace=True)
    wall = int(clock[0]) * 10**9 + int(clock[1])
    return wall + int(tally[Tally.FIRST_NS]) - int(tally[Tally.STAMP_NS])


def report_damage(findings: Findings, lane: Lane) -> None:
    """Add the parts of a file that could not be decoded."""
    for offset, size in lane.skipped:
        findings.add(
            "corrupt",
            "damaged bytes were skipped; requests recorded there are missing",
            count=size,
            place=f"{lane.stream.name} byte {offset:,} ({size:,} bytes)",
            fix="copy the file again from where it was captured",
        )
    if lane.cut_at >= 0:
        findings.add(
            "truncated",
            "the last record is truncated; all records before it are used",
            place=f"{lane.stream.name} byte {lane.cut_at:,}",
            fix="stop blktrace before copying its files",
        )


def report_gaps(findings: Findings, log: Log) -> None:
    """Add the records missing according to sequence numbers."""
    for cpu in np.flatnonzero(log.missing):
        after = (int(log.missing_at[cpu]) - int(log.tally[Tally.FIRST_NS])) / 1e9
        findings.add(
            "dropped",
            "events are missing (dropped by the kernel, or filtered out of a dump); requests "
            "without their queue event are absent, others have no completion",
            count=int(log.missing[cpu]),
            place=f"CPU {cpu} from {after:.3f} s",
            fix=CAPTURE_AGAIN,
        )


def report_missing_files(findings: Findings, log: Log, lanes: Sequence[Lane]) -> None:
    """Add the CPUs whose file is missing."""
    present = {lane.cpu for lane in lanes}
    seen = {int(cpu) for cpu in np.flatnonzero(log.cpus)}
    if len(lanes) == 1 and seen == {cpu_of(Path(lanes[0].stream.name))}:
        present = seen  # not a dump of all CPUs that is named like the file of one
    if -1 in present:
        return
    absent = sorted((set(range(max(present))) | seen) - present)
    if absent:
        findings.add(
            "cpu-file-missing",
            "the files of these CPUs are missing, with the requests that they queued or completed",
            count=len(absent),
            place="CPU " + ", ".join(map(str, absent[:8])) + (" ..." if len(absent) > 8 else ""),
            fix="copy all files of the capture: blktrace writes one for each CPU, even if empty",
        )


def report_records(findings: Findings, log: Log) -> None:
    """Add the records that were skipped on purpose."""
    for what, code, text, fix in (
        (
            Tally.BAD_TIME,
            "corrupt-time",
            "records with an impossible time were skipped",
            "copy the file again from where it was captured",
        ),
        (
            Tally.ABSURD,
            "corrupt-sector",
            "records with an impossible sector were skipped",
            "copy the file again from where it was captured",
        ),
        (
            Tally.UNKNOWN_ACTION,
            "unknown-action",
            "records of an unknown kind were skipped",
            "none needed for a few",
        ),
        (
            Tally.PASSTHROUGH,
            "passthrough",
            "passthrough commands (SG_IO and similar) are not replayed",
            "none needed",
        ),
        (
            Tally.ZONE,
            "zone-management",
            "zone management commands are not replayed",
            "none needed; zone appends are replayed as writes",
        ),
        (
            Tally.OTHER_DEVICES,
            "too-many-devices",
            "records of further devices were ignored",
            "capture fewer devices at a time",
        ),
    ):
        findings.count(log.tally[what], code, text, fix)
