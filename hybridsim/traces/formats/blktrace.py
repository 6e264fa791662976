"""Binary files of blktrace: one per CPU, a merged `blkparse -d` dump, or the stream of `-o -`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import numpy as np

from hybridsim.foundation.errors import TraceError
from hybridsim.requests.rows import Device, Findings, Requests
from hybridsim.traces.formats import findings_of_blktrace
from hybridsim.traces.formats.blktrace_files import cpu_of
from hybridsim.traces.formats.blktrace_lane import Lane
from hybridsim.traces.formats.blktrace_records import (
    MAGIC,
    Log,
    Of,
    Tally,
    new_log,
    rows_of,
)
from hybridsim.traces.formats.events import WINDOW, Fill, InOrder, room_for
from hybridsim.traces.formats.files import Source
from hybridsim.traces.formats.pairing import Pairer

BLOCK_BYTES_MAX = 1 << 20
BLOCK_BYTES_MIN = 1 << 18
BLOCKS_BYTES = 1 << 25  # of all files together
VERSIONS = (7, 8)
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


class Reader:
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
        issued_only = not log.devices[:, Of.QUEUED].any()
        self.by_issue = use_dispatch or issued_only
        self.issued_only = issued_only and not use_dispatch
        self._numbers = [int(n) for n in log.devices[: log.tally[Tally.DEVICES], Of.NUMBER]]
        self._chosen = self._choose(log, device)
        self._asked = device is not None
        self.devices = self._devices(log)
        self.origin_unix_ns = wall_clock_ns(log, self._swapped)

    def requests(self, findings: Findings) -> Iterator[Requests]:
        """Read the files and yield their requests in order of arrival."""
        log = new_log()
        lanes = self._lanes(self._chosen, log, findings)
        fills: list[Fill] = [lane.fill for lane in lanes]
        batch = rows_of(self._block_bytes)
        if len(lanes) == 1:
            fills, batch = [InOrder(fills[0], batch).fill], WINDOW // 2
        pairer = Pairer(fills, batch, by_issue=self.by_issue)
        first_ns = None
        try:
            index = self._numbers.index(self._chosen)
            for some in pairer.requests(index, lambda: int(log.tally[Tally.FIRST_NS])):
                first_ns = int(some.arrival_ns[0]) if first_ns is None else first_ns
                yield some
        finally:
            for lane in lanes:
                lane.stream.close()
        self.devices = self._devices(log)
        findings_of_blktrace.report(findings, log, lanes, pairer)
        findings_of_blktrace.report_devices(findings, self.devices, self._asked)
        findings_of_blktrace.report_lead(findings, first_ns or 0)
        if self.issued_only:
            findings_of_blktrace.report_issued_only(findings)

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
        names = [device_name(int(n)) for n in log.devices[: log.tally[Tally.DEVICES], Of.NUMBER]]
        moved = log.devices[:, [Of.QUEUED, Of.ISSUED]].any()
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

    def _choose(self, log: Log, device: str | None) -> int:
        """Return the number of the specified device, or of the one with most bytes queued."""
        names = [device_name(number) for number in self._numbers]
        if device is not None:
            if device not in names:
                raise TraceError(
                    f"{self._sources[0].name}: contains no device {device!r}, only "
                    + ", ".join(names)
                )
            return self._numbers[names.index(device)]
        seen = log.devices[: len(self._numbers)]
        if not seen[:, [Of.QUEUED, Of.ISSUED]].any():
            raise TraceError(
                f"{self._sources[0].name}: {int(log.tally[Tally.RECORDS]):,} records, but no queue "
                "or issue events; capture with `blktrace -a queue -a issue -a complete`"
            )
        weight = seen[:, Of.ISSUED_BYTES if self.by_issue else Of.QUEUED_BYTES]
        count = seen[:, Of.ISSUED if self.by_issue else Of.QUEUED]
        if not count.any():
            raise TraceError(
                f"{self._sources[0].name}: --use-dispatch needs issue events; there are none: "
                "remove it, or capture with `blktrace -a issue -a complete`"
            )
        ranked = sorted(range(len(seen)), key=lambda i: (-weight[i], -count[i], i))
        return self._numbers[ranked[0]]

    def _devices(self, log: Log) -> list[Device]:
        """Return the devices with their counts, in the order of the first pass, later ones last."""
        seen = {int(row[Of.NUMBER]): row for row in log.devices[: int(log.tally[Tally.DEVICES])]}
        self._numbers += [number for number in seen if number not in self._numbers]
        count, size = (
            (Of.ISSUED, Of.ISSUED_BYTES) if self.by_issue else (Of.QUEUED, Of.QUEUED_BYTES)
        )
        return [
            Device(
                device_name(number),
                int(seen[number][count]) if number in seen else 0,
                int(seen[number][size]) if number in seen else 0,
                number == self._chosen,
            )
            for number in self._numbers
        ]


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
