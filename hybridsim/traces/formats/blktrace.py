"""Binary files of blktrace: one per CPU, a merged `blkparse -d` dump, or the stream of `-o -`.

A record, of version 7 or 8 in either byte order, is a header of 48 or 64 bytes, followed by `pdu`
bytes of payload; there is no file header and no alignment.  Offsets and bits are those of the
kernel's blktrace_api.h.  Records are decoded by compiled code.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from hybridsim.foundation.codes import Flag, Op
from hybridsim.foundation.errors import TraceError
from hybridsim.jit import kernel, loop, method, state_machine
from hybridsim.requests.rows import Findings, Requests
from hybridsim.traces.formats.event_text import EventReader, Seen
from hybridsim.traces.formats.files import ByteStream, Source, cpu_of
from hybridsim.traces.formats.pairing import (
    WINDOW,
    Action,
    Events,
    Fill,
    InOrder,
    Pairer,
    room_for,
)

MAGIC = 0x65617400
SWAPPED_MAGIC = 0x00746165  # its highest byte is the version
HEADER_BYTES = 48
HEADER_BYTES_V8 = 64
HOUR_NS = 3_600_000_000_000
TIME_MAX_NS = 1 << 61
SECTOR_MAX = 1 << 51

ONE, TWO, THREE = np.uint64(1), np.uint64(2), np.uint64(3)
DEVICES_MAX = 64
CPUS_MAX = 4096

# Bits of the category, the upper half of the action.
TC_READ, TC_WRITE, TC_FLUSH, TC_SYNC = 1 << 0, 1 << 1, 1 << 2, 1 << 3
TC_PASSTHROUGH, TC_NOTIFY, TC_AHEAD, TC_META = 1 << 9, 1 << 10, 1 << 11, 1 << 12
TC_DISCARD, TC_FUA = 1 << 13, 1 << 15
TC_ZONE_MANAGEMENT = 0b11111 << 17
TC_WRITE_ZEROES = 1 << 22

# Bytes of each header field, in order; version 8 is padded by twelve more.
SIZES = (4, 4, 8, 8, 4, 4, 4, 4, 4, 2, 2)
SIZES_V8 = (4, 4, 8, 8, 4, 4, 8, 4, 4, 2, 2)

NOTE_TIMESTAMP = 1
ACTION_MAX = 19
IS_REQUEST_EVENT = sum(1 << int(action) for action in Action)

READ, WRITE, DISCARD, WRITE_ZEROES = map(int, (Op.READ, Op.WRITE, Op.DISCARD, Op.WRITE_ZEROES))
SYNC, FUA, PREFLUSH, META, AHEAD = map(
    int, (Flag.SYNC, Flag.FUA, Flag.PREFLUSH, Flag.META, Flag.AHEAD)
)
QUEUE, ISSUE, SPLIT = map(int, (Action.QUEUE, Action.ISSUE, Action.SPLIT))
# Why `decode` stopped: the block ends within a record, or exactly after one; no record begins here.
MORE, LOST = range(2)
# Of `Log.tally`.  OTHER_DEVICES: records of devices beyond DEVICES_MAX.  STAMP_NS, WALL_S, WALL_NS:
# of the note with the wall-clock time its own time, and its payload.
(
    RECORDS, FIRST_NS, LAST_NS, BAD_TIME, UNKNOWN_ACTION, PASSTHROUGH, ZONE, ABSURD, DEVICES,
    OTHER_DEVICES, STAMP_NS, WALL_S, WALL_NS,
) = range(13)  # fmt: skip
NUMBER, QUEUED, QUEUED_BYTES, ISSUED, ISSUED_BYTES = range(5)  # columns of `Log.devices`


@state_machine
class Log(NamedTuple):
    """Counts and devices of one pass over a trace; shared by all its files."""

    tally: Any  # int64 [RECORDS ... WALL_NS]
    devices: Any  # int64 [device, NUMBER ... ISSUED_BYTES]
    sequence: Any  # int64 [device, CPU]: the last sequence number, 0 = none
    missing: Any  # int64 [CPU]: missing records, from gaps of sequence numbers
    missing_at: Any  # int64 [CPU]: time of the last record before the first such gap
    cpus: Any  # bool [CPU]: seen

    @method
    def device(self, number):
        """Return the index of a device, adding a new one; DEVICES_MAX if there are too many."""
        known = self.tally[DEVICES]
        for index in range(known):
            if self.devices[index, NUMBER] == number:
                return index
        if known < DEVICES_MAX:
            self.devices[known, NUMBER] = number
            self.tally[DEVICES] = known + 1
        return known

    @method
    def check_sequence(self, device, cpu, sequence, time):
        """Compare a sequence number with the previous one of this CPU, and count a gap."""
        if sequence == 0 or cpu >= CPUS_MAX or device >= DEVICES_MAX:
            return
        before = self.sequence[device, cpu]
        self.sequence[device, cpu] = sequence
        lost = (sequence - before - 1) & 0xFFFFFFFF
        if before == 0 or lost == 0 or lost >= 1 << 31:
            return
        if self.missing[cpu] == 0:
            self.missing_at[cpu] = time
        self.missing[cpu] += lost


def new_log() -> Log:
    """Return an empty log."""
    tally = np.zeros(WALL_NS + 1, np.int64)
    tally[[FIRST_NS, LAST_NS, STAMP_NS]] = TIME_MAX_NS, -1, -1
    return Log(
        tally=tally,
        devices=np.zeros((DEVICES_MAX + 1, ISSUED_BYTES + 1), np.int64),
        sequence=np.zeros((DEVICES_MAX + 1, CPUS_MAX), np.int64),
        missing=np.zeros(CPUS_MAX, np.int64),
        missing_at=np.zeros(CPUS_MAX, np.int64),
        cpus=np.zeros(CPUS_MAX, np.bool_),
    )


@kernel
def u16(block, at):
    """Return two bytes as a number."""
    i = np.uint64(at)
    return np.int64(block[i + ONE]) << 8 | np.int64(block[i])


@kernel
def u32(block, at):
    """Return four bytes as a number; written so that it compiles to one load."""
    i = np.uint64(at)
    low = np.int64(block[i + ONE]) << 8 | np.int64(block[i])
    high = np.int64(block[i + THREE]) << 8 | np.int64(block[i + TWO])
    return high << 16 | low


@kernel
def u32_big(block, at):
    """Return four bytes as a number, most significant byte first."""
    i = np.uint64(at)
    high = np.int64(block[i]) << 8 | np.int64(block[i + ONE])
    low = np.int64(block[i + TWO]) << 8 | np.int64(block[i + THREE])
    return high << 16 | low


@kernel
def u64(block, at):
    """Return eight bytes as a number; values from 2^63 on become negative."""
    return u32(block, at + 4) << 32 | u32(block, at)


@kernel
def header_of(block, at):
    """Return the length of the header at this offset, 0 if there is none."""
    magic = u32(block, at)
    if magic == MAGIC | 7:
        return HEADER_BYTES
    return HEADER_BYTES_V8 if magic == MAGIC | 8 else 0


@kernel
def op_of(category):
    """Return the operation (codes.Op) of a category."""
    if category & TC_WRITE_ZEROES:
        return WRITE_ZEROES
    if category & TC_DISCARD:
        return DISCARD
    return WRITE if category & TC_WRITE else READ


@kernel
def flags_of(category):
    """Return the flags (codes.Flag) of a category."""
    flags = 0
    if category & TC_SYNC:
        flags |= SYNC
    if category & TC_FUA:
        flags |= FUA
    if category & TC_FLUSH:
        flags |= PREFLUSH
    if category & TC_META:
        flags |= META
    if category & TC_AHEAD:
        flags |= AHEAD
    return flags


@kernel
def near(time, other):
    """Return whether two times differ by at most an hour."""
    return -HOUR_NS <= time - other <= HOUR_NS


@kernel
def is_misplaced(block, time, last, following, stop):
    """Return whether a record's time is hours from those before and after it, and so wrong."""
    if time < 0 or time >= TIME_MAX_NS:
        return True
    if following + HEADER_BYTES > stop or header_of(block, following) == 0:
        return False
    after = u64(block, following + 8)
    if last < 0:
        return 0 <= after < time - HOUR_NS
    return near(after, last)


@loop
def decode(block, at, stop, cpu_wanted, wanted, last, log, events):
    """Convert the records of block[at:stop] into events of the wanted device (-1: all devices).

    Returns (offset where it stopped, end of the last complete header, number of events, MORE or
    LOST).  A record of another CPU than the wanted one (-1: any) counts as damage.  `last` is an
    array of one element: the time of the last record.
    """
    tally = log.tally
    count = 0
    resume = at
    number = cpu = -1
    device = 0
    last_ns = last[0]
    status = MORE
    while at + HEADER_BYTES <= stop:
        header = header_of(block, at)
        if header == 0:
            status = LOST
            break
        if at + header > stop:
            break
        if header == HEADER_BYTES:
            pid_at, device_at = at + 32, at + 36
            code = u32(block, at + 28)
        else:
            pid_at, device_at = at + 28, at + 40
            code = u64(block, at + 32)
        following = at + header + u16(block, device_at + 10)
        if following > stop:
            break
        record_cpu = u32(block, device_at + 4)
        if record_cpu >= CPUS_MAX or (cpu_wanted >= 0 and record_cpu != cpu_wanted):
            status = LOST
            break
        begin = at
        at = following
        resume = begin + header
        tally[RECORDS] += 1
        category = code >> 16
        action = code & 0xFF
        time = u64(block, begin + 8)
        if category & TC_NOTIFY:
            if action == NOTE_TIMESTAMP and following - resume >= 8 and tally[STAMP_NS] < 0:
                tally[STAMP_NS] = time
                tally[WALL_S] = u32(block, following - 8)
                tally[WALL_NS] = u32(block, following - 4)
            continue
        if u32(block, device_at) != number or record_cpu != cpu:
            number = u32(block, device_at)
            cpu = record_cpu
            device = log.device(number)
            log.cpus[cpu] = True
        log.check_sequence(device, cpu, u32(block, begin + 4), last_ns)
        if time < 0 or last_ns < 0 or not near(time, last_ns):
            if is_misplaced(block, time, last_ns, following, stop):
                tally[BAD_TIME] += 1
                continue
        last_ns = time
        tally[FIRST_NS] = min(tally[FIRST_NS], time)
        tally[LAST_NS] = max(tally[LAST_NS], time)
        if action > ACTION_MAX or action == 0 or category == 0:
            tally[UNKNOWN_ACTION] += 1
            continue
        if not IS_REQUEST_EVENT >> action & 1:
            continue
        if category & TC_PASSTHROUGH:
            tally[PASSTHROUGH] += action == ISSUE
            continue
        if category & TC_ZONE_MANAGEMENT:
            tally[ZONE] += action == QUEUE
            continue
        sector = u64(block, begin + 16)
        length = u32(block, begin + 24)
        if device >= DEVICES_MAX or sector < 0 or sector >= SECTOR_MAX:
            tally[OTHER_DEVICES if device >= DEVICES_MAX else ABSURD] += 1
            continue
        if action == SPLIT and following - resume >= 8:
            # The payload, always big-endian, is the first sector of the remainder.
            rest = u32_big(block, following - 8) << 32 | u32_big(block, following - 4)
            length = rest * 512 - sector * 512 if sector <= rest < SECTOR_MAX else length
        if action == QUEUE:
            log.devices[device, QUEUED] += 1
            log.devices[device, QUEUED_BYTES] += length
        elif action == ISSUE:
            log.devices[device, ISSUED] += 1
            log.devices[device, ISSUED_BYTES] += length
        if wanted >= 0 and number != wanted:
            continue
        error = u16(block, device_at + 8)
        event = events[count]
        event.time_ns = time
        event.offset_bytes = sector * 512
        event.length_bytes = length
        event.action = action
        event.op = op_of(category)
        event.marks = flags_of(category)
        event.pid = u32(block, pid_at)
        event.error = error if error < 1 << 15 else error - (1 << 16)
        event.cpu = cpu
        count += 1
    last[0] = last_ns
    return at, resume, count, status


@kernel
def header_of_swapped(block, at):
    """Return the length of the header here in the other byte order, 0 if there is none."""
    magic = u32(block, at)
    if magic == SWAPPED_MAGIC | 7 << 24:
        return HEADER_BYTES
    return HEADER_BYTES_V8 if magic == SWAPPED_MAGIC | 8 << 24 else 0


@kernel
def swap_header(block, at, header):
    """Reverse the byte order of a header in place."""
    field = at
    for i in range(len(SIZES)):
        if header == HEADER_BYTES:
            size = SIZES[i]
        else:
            size = SIZES_V8[i]
        for j in range(size // 2):
            other = field + size - 1 - j
            first = block[field + j]
            block[field + j] = block[other]
            block[other] = first
        field += size


@loop
def unswap(block, at, stop):
    """Convert the headers of block[at:stop] in the other byte order to this machine's."""
    while at + HEADER_BYTES <= stop:
        header = header_of(block, at)
        if header == 0:
            header = header_of_swapped(block, at)
            if header == 0 or at + header > stop:
                return
            swap_header(block, at, header)
        elif at + header > stop:
            return
        at += header + u16(block, at + (46 if header == HEADER_BYTES else 50))


@loop
def resync(block, at, stop, ended, last_ns, cpu):
    """Find the next offset at which a record of this CPU (-1: any) certainly begins.

    Returns (offset, whether it was found).  If it was not, no record begins before the offset.
    """
    while at + HEADER_BYTES <= stop:
        swapped = header_of_swapped(block, at)
        header = max(header_of(block, at), swapped)
        if header != 0 and at + header > stop and not ended:
            return at, False
        if header != 0 and at + header <= stop:
            if swapped:
                swap_header(block, at, header)
            following = plausible_end(block, at, header, last_ns, cpu)
            if following == stop and ended:
                return at, True
            if 0 < following <= stop - 4:
                if header_of(block, following) != 0 or header_of_swapped(block, following) != 0:
                    return at, True
            if swapped:
                swap_header(block, at, header)
            if following + 4 > stop and not ended:
                return at, False
        at += 1
    return at, False


@kernel
def plausible_end(block, at, header, last_ns, cpu):
    """Return the end of the apparent record at this offset, 0 if its fields are invalid."""
    if header == HEADER_BYTES:
        device_at = at + 36
        code = u32(block, at + 28)
    else:
        device_at = at + 40
        code = u64(block, at + 32)
    category = code >> 16
    action = code & 0xFF
    time = u64(block, at + 8)
    record_cpu = u32(block, device_at + 4)
    if record_cpu >= CPUS_MAX or (cpu >= 0 and record_cpu != cpu):
        return 0
    if time < 0 or (last_ns >= 0 and not near(time, last_ns)):
        return 0
    if category & TC_NOTIFY:
        if action > 2:
            return 0
    elif (
        action == 0
        or action > ACTION_MAX
        or (category & TC_READ != 0) == (category & TC_WRITE != 0)
    ):
        return 0
    return at + header + u16(block, device_at + 10)


def rows_of(block_bytes: int) -> int:
    """Return the maximum number of events in a block."""
    return block_bytes // HEADER_BYTES + 1


BLOCK_BYTES_MAX = 1 << 20
BLOCK_BYTES_MIN = 1 << 18
BLOCKS_BYTES = 1 << 25  # of all files together
VERSIONS = (7, 8)
COPY_AGAIN = "copy the file again from where it was captured"
CAPTURE_AGAIN = "capture again with larger buffers: `blktrace -b 2048 -n 8`"
MAGICS = tuple((MAGIC | v).to_bytes(4, order) for v in VERSIONS for order in ("little", "big"))
SKIPPED = (  # records that are counted in `Log.tally`: code, text, fix
    (BAD_TIME, "corrupt-time", "records with an impossible time were skipped", COPY_AGAIN),
    (ABSURD, "corrupt-sector", "records with an impossible sector were skipped", COPY_AGAIN),
    (UNKNOWN_ACTION, "unknown-action", "records of an unknown kind were skipped",
     "none needed for a few"),
    (PASSTHROUGH, "passthrough", "passthrough commands (SG_IO and similar) are not replayed",
     "none needed"),
    (ZONE, "zone-management", "zone management commands are not replayed",
     "none needed; zone appends are replayed as writes"),
    (OTHER_DEVICES, "too-many-devices", "records of further devices were ignored",
     "capture fewer devices at a time"),
)  # fmt: skip


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
            for some in pairer.requests(index, lambda: int(log.tally[FIRST_NS])):
                first_ns = int(some.arrival_ns[0]) if first_ns is None else first_ns
                yield some
        finally:
            for lane in lanes:
                lane.stream.close()
        self._count(SeenInLog(log))
        report(findings, log, lanes)
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
        if not log.tally[RECORDS]:
            raise TraceError(
                f"{self._sources[0].name}: no intact blktrace record found: "
                "copy or capture the file again"
            )
        return log

    def _largest(self, name: str, log: Log, seen: Seen) -> str:
        """Return the device with most bytes queued, or issued."""
        if not seen.queued and not seen.issued:
            raise TraceError(
                f"{name}: {int(log.tally[RECORDS]):,} records, but no queue or issue events; "
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
        rows = log.devices[: int(log.tally[DEVICES])].tolist()
        self.first_seen = {device_name(row[NUMBER]): row[NUMBER] for row in rows}
        self.queued, self.issued = (
            {device_name(row[NUMBER]): (row[n], row[n + 1]) for row in rows if row[n]}
            for n in (QUEUED, ISSUED)
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
    if tally[STAMP_NS] < 0 or tally[LAST_NS] < 0:
        return None
    clock = np.array([tally[WALL_S], tally[WALL_NS]], np.uint32)
    if swapped:
        clock.byteswap(inplace=True)
    if clock[1] >= 10**9:  # the payload was not swapped with the headers
        clock.byteswap(inplace=True)
    wall = int(clock[0]) * 10**9 + int(clock[1])
    return wall + int(tally[FIRST_NS]) - int(tally[STAMP_NS])


def report(findings: Findings, log: Log, lanes: Sequence[Lane]) -> None:
    """Add what could not be decoded, what is missing, and what was skipped on purpose."""
    for lane in lanes:
        for offset, size in lane.skipped:
            findings.add(
                "corrupt",
                "damaged bytes were skipped; requests recorded there are missing",
                count=size,
                place=f"{lane.stream.name} byte {offset:,} ({size:,} bytes)",
                fix=COPY_AGAIN,
            )
        if lane.cut_at >= 0:
            findings.add(
                "truncated",
                "the last record is truncated; all records before it are used",
                place=f"{lane.stream.name} byte {lane.cut_at:,}",
                fix="stop blktrace before copying its files",
            )
    for cpu in np.flatnonzero(log.missing):  # by sequence numbers
        after = (int(log.missing_at[cpu]) - int(log.tally[FIRST_NS])) / 1e9
        findings.add(
            "dropped",
            "events are missing (dropped by the kernel, or filtered out of a dump); requests "
            "without their queue event are absent, others have no completion",
            count=int(log.missing[cpu]),
            place=f"CPU {cpu} from {after:.3f} s",
            fix=CAPTURE_AGAIN,
        )
    present = {lane.cpu for lane in lanes}
    seen = {int(cpu) for cpu in np.flatnonzero(log.cpus)}
    if len(lanes) == 1 and seen == {cpu_of(Path(lanes[0].stream.name))}:
        present = seen  # not a dump of all CPUs that is named like the file of one
    absent = [] if -1 in present else sorted((set(range(max(present))) | seen) - present)
    if absent:
        findings.add(
            "cpu-file-missing",
            "the files of these CPUs are missing, with the requests that they queued or completed",
            count=len(absent),
            place="CPU " + ", ".join(map(str, absent[:8])) + (" ..." if len(absent) > 8 else ""),
            fix="copy all files of the capture: blktrace writes one for each CPU, even if empty",
        )
    for what, code, text, fix in SKIPPED:
        findings.count(log.tally[what], code, text, fix)
