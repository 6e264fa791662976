"""The binary records of blktrace, versions 7 and 8 in either byte order, as compiled code.

A record is a header of 48 (version 7) or 64 bytes, followed by `pdu` bytes of payload; there is no
file header and no alignment.  Offsets and bits are those of the kernel's blktrace_api.h.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np

from hybridsim.foundation.codes import Flag, Op
from hybridsim.jit import kernel, loop, method, state_machine
from hybridsim.traces.formats.pairing import Action

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


class Tally(IntEnum):
    """Indices into `Log.tally`."""

    RECORDS = 0
    FIRST_NS = 1
    LAST_NS = 2
    BAD_TIME = 3
    UNKNOWN_ACTION = 4
    PASSTHROUGH = 5
    ZONE = 6
    ABSURD = 7
    DEVICES = 8
    OTHER_DEVICES = 9  # records of devices beyond DEVICES_MAX
    STAMP_NS = 10  # the note with the wall-clock time: its own time, and its payload
    WALL_S = 11
    WALL_NS = 12


RECORDS, FIRST_NS, LAST_NS, BAD_TIME, UNKNOWN_ACTION, PASSTHROUGH, ZONE, ABSURD = range(8)
DEVICES, OTHER_DEVICES, STAMP_NS, WALL_S, WALL_NS = range(8, 13)


class Of(IntEnum):
    """Columns of `Log.devices`."""

    NUMBER = 0
    QUEUED = 1
    QUEUED_BYTES = 2
    ISSUED = 3
    ISSUED_BYTES = 4


NUMBER, QUEUED, QUEUED_BYTES, ISSUED, ISSUED_BYTES = range(5)


@state_machine
class Log(NamedTuple):
    """Counts and devices of one pass over a trace; shared by all its files."""

    tally: Any  # int64, see Tally
    devices: Any  # int64 [device, Of]
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
    tally = np.zeros(len(Tally), np.int64)
    tally[[Tally.FIRST_NS, Tally.LAST_NS, Tally.STAMP_NS]] = TIME_MAX_NS, -1, -1
    return Log(
        tally=tally,
        devices=np.zeros((DEVICES_MAX + 1, len(Of)), np.int64),
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
